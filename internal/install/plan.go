package install

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/integrations"
	"github.com/palimpsest-ai/palimpsest/internal/hook"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// Self is this program, and where it keeps its data.
type Self struct {
	// Program is how other programs start it, Shell how a shell calls it: with quotes if they
	// are needed.
	Program, Shell string
	// Data is the folder for the record of what was installed, backups and switches.
	Data string
	// ContextTools has the MCP servers offer the tools by which a model steers its context. Those
	// that do so already go on.
	ContextTools bool
}

// args are the arguments of an MCP server after "--agent", whose entry is, or will be, in a file at a path of names.
func (s Self) args(a Agent, folder, file string, path ...string) string {
	args := rawjson.Quote(a.Name)
	if _, old, _ := read(filepath.Join(folder, file), folder); s.ContextTools || offersContextTools(arrayOf(string(old), path)) {
		args += ", " + contextFlag
	}
	return args
}

// Change is what an installation does to one file, or one series of commands: as it is planned,
// and as the record keeps it. The zero value changes nothing.
type Change struct {
	Agent string `json:"agent"`
	// Path is the file, "" for commands. It may be a link, but leads nowhere outside of Root. The
	// Root of commands is a folder of our plugin that the agent leaves when it is removed.
	Path  string `json:"path,omitempty"`
	Root  string `json:"root,omitempty"`
	Edits []Edit `json:"edits,omitempty"`
	// Run are commands of the agent's own program, Undo those that take them back, and Env the variables for both.
	Run  [][]string `json:"-"`
	Undo [][]string `json:"undo,omitempty"`
	Env  []string   `json:"env,omitempty"`
	// Existed is false for a new file. Backup names a copy of the file from before, and Hash is that
	// of what was written. With them an untouched file is put back as it was, byte for byte. Made are
	// the folders that were made for it.
	Existed bool     `json:"existed,omitempty"`
	Backup  string   `json:"backup,omitempty"`
	Hash    string   `json:"hash,omitempty"`
	Made    []string `json:"made,omitempty"`
}

// What says what is added, or taken back, in a few words.
func (c Change) What() string {
	var all []string
	for _, e := range c.Edits {
		if e.What != "" {
			all = append(all, e.What)
		}
	}
	if len(c.Run) > 0 {
		all = append(all, "run `"+strings.Join(c.Run[len(c.Run)-1], " ")+"`")
	} else if len(c.Undo) > 0 {
		all = append(all, "run `"+strings.Join(c.Undo[0], " ")+"`")
	}
	return strings.Join(all, ", ")
}

// OfPlugin reports whether the file is one of the agent's plugin.
func (c Change) OfPlugin() bool { return c.isOurs() && c.Agent != settings }

// isOurs reports whether the whole file is ours.
func (c Change) isOurs() bool { return len(c.Edits) == 1 && c.Edits[0].Kind == wholeFile }

// together reports whether the change is made with its likes or not at all: the files of a plugin and
// the commands for them, and this program's settings.
func (c Change) together() bool { return c.isOurs() || c.Path == "" || c.Agent == settings }

// settings is the name under which changes of this program's own settings are recorded.
const settings = "settings"

// Settings stands for the settings of this program in a file: it is installed in them that the
// daemon lets the model of an agent behind its proxy say which sentences of the user stand.
func Settings(file string) Agent {
	return Agent{Name: settings, Folder: filepath.Dir(file), program: filepath.Base(file), parts: []Part{rules}}
}

// Plan says what installing parts of each agent would change. No parts are the usual ones. What is
// there already is no change. What cannot be changed is left out (of a plugin, all of it), and the
// error names it; all else is planned still.
func (s Self) Plan(chosen []Agent, parts ...Part) (changes []Change, err error) {
	for _, a := range chosen {
		which := parts
		if len(which) == 0 {
			which = a.Usual()
		}
		var own []Change
		whole := true
		for _, c := range s.wanted(a, which) {
			if c.Path == "" {
				own = append(own, c)
				continue
			}
			_, old, failed := read(c.Path, c.Root)
			var after []byte
			if failed == nil {
				c.Existed = old != nil
				after, failed = c.apply(old)
			}
			if failed != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", a.Name, failed))
				whole = whole && !c.together()
			} else if string(after) != string(old) {
				own = append(own, c)
			}
		}
		changes = append(changes, slices.DeleteFunc(own, func(c Change) bool { return !whole && c.together() })...)
	}
	return changes, err
}

// wanted are the changes of an agent, whatever its files have.
func (s Self) wanted(a Agent, parts []Part) (all []Change) {
	edits := map[string][]Edit{} // by file
	add := func(file string, e Edit) { edits[file] = append(edits[file], e) }
	own := func(folder, name, what, text, mark string) {
		all = append(all, Change{Agent: a.Name, Path: filepath.Join(folder, filepath.FromSlash(name)), Root: folder, Edits: []Edit{{Kind: wholeFile, What: what, text: text, mark: mark}}})
	}
	for _, part := range parts {
		switch part {
		case Plugin:
			folder := a.Folder
			if a.Name == ClaudeCode { // a marketplace, which its own program reads in place
				folder = filepath.Join(s.Data, "plugins", ClaudeCode)
			}
			calls, texts := ProgramReplacer(s.Shell, s.Program), integrations.Plugin(a.Name)
			for _, name := range slices.Sorted(maps.Keys(texts)) {
				text := calls.Replace(texts[name])
				if name == claudeServer {
					text = strings.Replace(text, rawjson.Quote(a.Name), s.args(a, folder, name, "mcpServers", "palimpsest"), 1)
				}
				own(folder, name, "the plugin", text, "palimpsest")
			}
			if a.Name == ClaudeCode {
				all = append(all, a.claudeCommands(folder))
				add("settings.json", Edit{Kind: hooksOf, Path: []string{a.Name}}) // none: the plugin brings them
			}
		case Hooks:
			h, _ := hook.Find(a.Name) // it has some
			add(h.Settings, Edit{Kind: hooksOf, What: "hooks", Path: []string{a.Name}, Value: s.Shell})
		case Status:
			add("settings.json", Edit{Kind: statusLine, What: "a status line", Path: []string{"statusLine"}, Value: s.Shell})
		case MCP:
			value := strings.NewReplacer("PROGRAM", rawjson.Quote(s.Program), "AGENT", s.args(a, a.Folder, firstThere(a.Folder, a.mcp.file), a.mcp.path...)).Replace(a.mcp.form)
			kind := jsonMember
			if a.mcp.path == nil {
				kind = tomlTable
			}
			add(a.mcp.file, Edit{Kind: kind, What: "an MCP server", Path: a.mcp.path, Value: value})
		case rules:
			own(a.Folder, "rules.yaml", "a policy", rulesMark+rulesPolicy, rulesMark)
			add(a.program, Edit{Kind: settingLine, What: "the setting policy: rules.yaml", Value: "policy: rules.yaml\n"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(edits)) {
		all = append(all, Change{Agent: a.Name, Path: filepath.Join(a.Folder, firstThere(a.Folder, name)), Root: a.Folder, Edits: edits[name]})
	}
	return all
}

// rulesPolicy is the policy by which an agent's own model says which sentences of its user stand.
const rulesPolicy = `the agent's own model says which sentences of its user still stand.
base: auto
summarizer:
  rules: agent
`

// rulesMark begins it: any other file of this name is another's.
const rulesMark = "# Made by palimpsest install: "

// claudeServer is the file of Claude Code's plugin that names the MCP server.
const claudeServer = ".mcp.json"

// claudeFolder is the variable by which Claude Code finds its folder.
const claudeFolder = "CLAUDE_CONFIG_DIR"

// cache is the folder that Claude Code leaves when the plugin is removed.
func (a Agent) cache() string { return filepath.Join(a.Folder, "plugins", "cache", "palimpsest") }

// claudeCommands have Claude Code's own program install the plugin in a folder.
func (a Agent) claudeCommands(folder string) Change {
	const name = "palimpsest@palimpsest"
	var env []string
	if own := os.Getenv(claudeFolder); own != "" {
		env = []string{claudeFolder + "=" + own}
	}
	return Change{Agent: a.Name, Root: a.cache(), Env: env,
		Run:  [][]string{{a.program, "plugin", "marketplace", "add", folder}, {a.program, "plugin", "install", name}},
		Undo: [][]string{{a.program, "plugin", "uninstall", name}, {a.program, "plugin", "marketplace", "remove", "palimpsest"}}}
}

// ProgramReplacer puts into a plugin's files how a shell calls this program, and how other
// programs start it.
func ProgramReplacer(shell, program string) *strings.Replacer {
	return strings.NewReplacer(
		`PROGRAM = 'palimpsest'`, `PROGRAM = `+rawjson.Quote(program),
		`"palimpsest hook `, strings.TrimSuffix(rawjson.Quote(shell+" hook "), `"`),
		`"command": "palimpsest"`, `"command": `+rawjson.Quote(program),
	)
}
