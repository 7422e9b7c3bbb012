package install

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/integrations"
	"github.com/palimpsest-ai/palimpsest/internal/hook"
	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// Self is this program, and where it keeps its data.
type Self struct {
	// Program is how other programs start it, Shell how a shell calls it: with quotes if they
	// are needed.
	Program, Shell string
	// Data is the folder for the record of what was installed, backups and switches.
	Data string
}

// Change is what an installation does to one file, or one series of commands. The zero value
// changes nothing.
type Change struct {
	Agent string `json:"agent"`
	// Path is the file, "" for commands. It may be a link, but leads nowhere outside of Root. The
	// Root of commands is a folder of our plugin that the agent leaves when it is removed.
	Path  string `json:"path,omitempty"`
	Root  string `json:"root,omitempty"`
	Edits []Edit `json:"edits,omitempty"`
	// Before and After are the contents; Existed is false for a new file.
	Before  []byte `json:"-"`
	After   []byte `json:"-"`
	Existed bool   `json:"existed,omitempty"`
	// Run are commands of the agent's own program, and Undo those that take them back.
	Run  [][]string `json:"-"`
	Undo [][]string `json:"undo,omitempty"`
}

// What says what is added, or taken back, in a few words.
func (c Change) What() string {
	switch {
	case len(c.Run) > 0:
		return "run `" + strings.Join(c.Run[len(c.Run)-1], " ") + "`"
	case len(c.Undo) > 0:
		return "run `" + strings.Join(c.Undo[0], " ") + "`"
	}
	if c.isOurs() && !c.OfPlugin() {
		return "a policy"
	}
	var all []string
	for _, e := range c.Edits {
		if said := e.what(); said != "" {
			all = append(all, said)
		}
	}
	return strings.Join(all, ", ")
}

// Part is what is installed in an agent.
type Part string

// The parts.
const (
	Plugin Part = "plugin"
	Hooks  Part = "hooks"
	MCP    Part = "MCP"
	Status Part = "status line"
)

// Usual are the parts that are installed in an agent if nothing else is said: its plugin or, where
// there is none or the agent's program is needed and not there, its hooks; and what goes beside.
func (a Agent) Usual() (parts []Part) {
	switch {
	case a.row.plugin && (a.Name != ClaudeCode || a.program != ""):
		parts = append(parts, Plugin)
	case a.row.hooks:
		parts = append(parts, Hooks)
	}
	if a.row.mcp != nil {
		parts = append(parts, MCP)
	}
	if a.Name == ClaudeCode {
		parts = append(parts, Status)
	}
	return parts
}

// Plan says what installing parts of each agent would change, given a reader of files. No parts
// are the usual ones. What is there already is no change. What cannot be changed is left out (of a
// plugin, all of it), and the error names it; all else is planned still.
func Plan(self Self, chosen []Agent, read Reader, parts ...Part) (changes []Change, err error) {
	for _, a := range chosen {
		which := parts
		if len(which) == 0 {
			which = a.Usual()
		}
		var own []Change
		whole := true // the plugin
		for _, c := range self.wanted(a, which) {
			ok, failed := c.fill(read)
			if failed != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", a.Name, failed))
				whole = whole && !c.OfPlugin()
			}
			if ok {
				own = append(own, c)
			}
		}
		changes = append(changes, slices.DeleteFunc(own, func(c Change) bool { return !whole && (c.OfPlugin() || c.Path == "") })...)
	}
	return changes, err
}

// OfPlugin reports whether the file is one of the agent's plugin.
func (c Change) OfPlugin() bool { return c.isOurs() && c.Agent != Settings }

// isOurs reports whether the whole file is ours.
func (c Change) isOurs() bool { return len(c.Edits) == 1 && c.Edits[0].Kind == wholeFile }

// fill reads the file, and says whether there is something to change.
func (c *Change) fill(read Reader) (bool, error) {
	if c.Path == "" {
		return true, nil
	}
	old, err := read(c.Path, c.Root)
	if c.Existed = err == nil; err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	c.Before = old
	c.After, err = applyAll(c.Path, c.Edits, old)
	if errors.Is(err, jsonedit.ErrShape) {
		err = fmt.Errorf("%w; correct it, and install again", err)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", c.Path, err)
	}
	return !c.Existed && len(c.After) > 0 || string(c.After) != string(old), nil
}

// wanted are the changes of an agent, without the contents of files.
func (self Self) wanted(a Agent, parts []Part) (all []Change) {
	settings := map[string][]Edit{} // by file
	add := func(file string, e Edit) { settings[file] = append(settings[file], e) }
	for _, part := range parts {
		switch part {
		case Plugin:
			all = append(all, self.pluginFiles(a)...)
			if a.Name == ClaudeCode {
				all = append(all, self.claudeCommands(a))
				add("settings.json", Edit{Kind: noHooks, Path: []string{a.Name}}) // the plugin brings them
			}
		case Hooks:
			if h, err := hook.Find(a.Name); err == nil {
				add(h.Settings, Edit{Kind: hooksOf, Path: []string{a.Name}, Value: self.Shell})
			}
		case Status:
			add("settings.json", Edit{Kind: statusLine, Path: []string{"statusLine"}, Value: self.Shell})
		case MCP:
			value := strings.NewReplacer("PROGRAM", rawjson.Quote(self.Program), "AGENT", rawjson.Quote(a.Name)).Replace(a.row.mcp.form)
			kind := jsonMember
			if a.row.mcp.path == nil {
				kind = tomlTable
			}
			add(a.row.mcp.file, Edit{Kind: kind, Path: a.row.mcp.path, Value: value})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		all = append(all, Change{Agent: a.Name, Path: filepath.Join(a.Folder, firstThere(a.Folder, name)), Root: a.Folder, Edits: settings[name]})
	}
	return all
}

// claudeCommands have Claude Code's own program install the plugin.
func (self Self) claudeCommands(a Agent) Change {
	program := a.row.program
	return Change{Agent: a.Name, Root: filepath.Join(a.Folder, "plugins", "cache", "palimpsest"),
		Run:  [][]string{{program, "plugin", "marketplace", "add", self.pluginFolder(a)}, {program, "plugin", "install", ClaudePlugin}},
		Undo: [][]string{{program, "plugin", "uninstall", ClaudePlugin}, {program, "plugin", "marketplace", "remove", "palimpsest"}}}
}

// ClaudePlugin is the plugin's name in Claude Code, and its marketplace.
const ClaudePlugin = "palimpsest@palimpsest"

// pluginFolder is where the plugin's files are. Claude Code's is a marketplace, which its own
// program reads in place.
func (self Self) pluginFolder(a Agent) string {
	if a.Name == ClaudeCode {
		return filepath.Join(self.Data, "plugins", ClaudeCode)
	}
	return a.Folder
}

// pluginFiles are the files of an agent's plugin, which start this program.
func (self Self) pluginFiles(a Agent) (all []Change) {
	folder := self.pluginFolder(a)
	calls := ProgramReplacer(self.Shell, self.Program)
	texts := integrations.Plugin(a.Name)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		all = append(all, Change{Agent: a.Name, Path: filepath.Join(folder, filepath.FromSlash(name)), Root: folder,
			Edits: []Edit{{Kind: wholeFile, Value: calls.Replace(texts[name])}}})
	}
	return all
}

// Loaded is the file or folder that the agent loads as the plugin.
func (self Self) Loaded(a Agent) string {
	if a.Name == ClaudeCode {
		return self.pluginFolder(a)
	}
	return filepath.Join(a.Folder, filepath.FromSlash(a.row.loads))
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

// StatusCommand is the command of Claude Code's status line: our own, which runs the one that was
// there before. ok is false if that is ours already.
func StatusCommand(shell, before string) (command string, ok bool) {
	if IsStatusCommand(before) {
		return before, false
	}
	if before == "" {
		return shell + statusSuffix, true
	}
	return shell + statusSuffix + " --after '" + strings.ReplaceAll(before, "'", `'\''`) + "'", true
}

const statusSuffix = " statusline"

// refreshSeconds is how often Claude Code asks for the status line besides: it does not ask by
// itself after a compaction.
const refreshSeconds = 10

// IsStatusCommand reports whether a command is our status line.
func IsStatusCommand(command string) bool {
	head, _, _ := strings.Cut(command, " --after ")
	return strings.HasSuffix(head, statusSuffix) && strings.Contains(head, "palimpsest")
}

// Settings is the name under which changes of this program's own settings are recorded.
const Settings = "settings"

// rulesPolicy is the policy by which an agent's own model says which sentences of its user stand.
const rulesPolicy = `# Made by palimpsest install: the agent's own model says which sentences of its user still stand.
base: auto
summarizer:
  rules: agent
`

// PlanRules says what changes in a folder of this program's settings so that the daemon lets the
// model of an agent behind its proxy say which sentences of the user stand. The error wraps
// ErrOthers if the settings name a policy already.
func PlanRules(folder string, read Reader) (changes []Change, err error) {
	for _, c := range []Change{
		{Path: filepath.Join(folder, "rules.yaml"), Edits: []Edit{{Kind: wholeFile, Value: rulesPolicy}}},
		{Path: filepath.Join(folder, "config.yaml"), Edits: []Edit{{Kind: settingLine, Value: "policy: rules.yaml\n"}}},
	} {
		c.Agent, c.Root = Settings, folder
		ok, failed := c.fill(read)
		if failed != nil {
			return nil, failed
		}
		if ok {
			changes = append(changes, c)
		}
	}
	return changes, nil
}
