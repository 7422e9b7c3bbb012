// Package install puts Palimpsest into the coding agents of a machine, and takes it out
// again: their plugins, hooks, MCP servers and the status line.
//
// Find says which agents are there (agents.go), Plan what would change, from the contents of
// their files alone (plan.go, edit.go). Apply does it and keeps a record, and Remove takes
// back what the record says, and leaves what others changed since (apply.go, files.go).
// Switches turn agents and sessions off without removing anything (switches.go).
package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
)

// ClaudeCode is the agent whose plugin its own command installs.
const ClaudeCode = "claude-code"

// Agent is an agent that was found, with one of its folders of settings.
type Agent struct {
	Name, Folder string
	// Version is that of the program on the path; empty if its files do not say. Tried is the
	// version that was tried with Palimpsest; empty for none.
	Version, Tried string

	program string // its program on the path; empty if it is not there
	row     row
}

// row is what is known of an agent.
type row struct {
	name, program, tried string
	loads                string // the file or folder of the plugin, in the agent's; empty if there is none
	plugin               bool   // integrations has one
	hooks                bool   // internal/hook answers them
	mcp                  *entry // where it lists MCP servers; nil where the plugin makes it needless
	// after and undo are what the user has to run besides.
	after, undo string
}

// entry is a place in a file of settings for an MCP server, and the form of the entry: PROGRAM
// and AGENT stand for the quoted path of this program and the quoted name of the agent.
type entry struct {
	file string   // in the agent's folder; of several joined by "|" the first that is there, else the first
	path []string // empty for TOML
	form string
}

// The forms of entries. An example of the first: {"command":"palimpsest","args":["mcp","--agent","cursor"]}.
const (
	plainForm = `{"command":PROGRAM,"args":["mcp","--agent",AGENT]}`
	typedForm = `{"type":"stdio","command":PROGRAM,"args":["mcp","--agent",AGENT]}`
	listForm  = `{"type":"local","command":[PROGRAM,"mcp","--agent",AGENT]}`
	localForm = `{"type":"local","command":PROGRAM,"args":["mcp","--agent",AGENT],"tools":["*"]}`
	tomlForm  = "[mcp_servers.palimpsest]\ncommand = PROGRAM\nargs = [\"mcp\", \"--agent\", AGENT]\n"
)

func servers(file, form string) *entry {
	return &entry{file, []string{"mcpServers", "palimpsest"}, form}
}

// rows are all agents, in the order in which people see them. Where the column of what was
// tried is empty, the place and the form are those of the agent's documentation.
var rows = []row{
	{name: ClaudeCode, program: "claude", tried: "2.1.330", plugin: true, hooks: true},
	{name: "codex", program: "codex", tried: "0.171.0", hooks: true, mcp: &entry{"config.toml", nil, tomlForm}},
	{name: "opencode", program: "opencode", tried: "1.18.33", plugin: true, loads: "plugins/palimpsest.js"},
	{name: "pi", program: "pi", tried: "1.6.0", plugin: true, loads: "extensions/palimpsest.js"},
	{name: "openclaw", program: "openclaw", tried: "2026.9.6", plugin: true, loads: "extensions/palimpsest",
		after: "openclaw config set plugins.slots.contextEngine palimpsest && openclaw config set agents.defaults.compaction.provider palimpsest",
		undo:  "openclaw config unset plugins.slots.contextEngine && openclaw config unset agents.defaults.compaction.provider"},
	{name: "hermes", program: "hermes", plugin: true, loads: "plugins/palimpsest",
		after: "hermes plugins enable palimpsest && hermes config set context.engine palimpsest", undo: "hermes config set context.engine compressor"},
	{name: "gemini-cli", program: "gemini", tried: "0.61.0", hooks: true, mcp: servers("settings.json", plainForm)},
	{name: "qwen-code", program: "qwen", mcp: servers("settings.json", plainForm)},
	{name: "kimi-code", program: "kimi", mcp: servers("mcp.json", plainForm)},
	{name: "copilot-cli", program: "copilot", mcp: servers("mcp-config.json", localForm)},
	{name: "cursor", program: "cursor-agent", mcp: servers("mcp.json", plainForm)},
	{name: "droid", program: "droid", mcp: servers("mcp.json", typedForm)},
	{name: "cline", program: "cline", mcp: servers("data/settings/cline_mcp_settings.json", plainForm)},
	{name: "kilo", program: "kilo", mcp: &entry{"kilo.jsonc|kilo.json", []string{"mcp", "palimpsest"}, listForm}},
	{name: "crush", program: "crush", mcp: &entry{"crush.json", []string{"mcp", "palimpsest"}, typedForm}},
	{name: "amp", program: "amp", mcp: &entry{"settings.json", []string{"amp.mcpServers", "palimpsest"}, plainForm}},
}

// Names are the agents that are known.
func Names() (names []string) {
	for _, r := range rows {
		names = append(names, r.name)
	}
	return names
}

// PluginNames are the agents for which there is a plugin.
func PluginNames() (names []string) {
	for _, r := range rows {
		if r.plugin {
			names = append(names, r.name)
		}
	}
	return names
}

// Find returns the agents whose folder or program is there, once for each folder of settings:
// the one that the agent's variable names, and the usual one. Nothing is run.
func Find() (found []Agent, err error) {
	for _, r := range rows {
		folders, err := sessions.SettingsFolders(r.name)
		if err != nil {
			return nil, err
		}
		program, _ := exec.LookPath(r.program)
		for i, folder := range folders {
			info, missing := os.Stat(folder)
			there := missing == nil && info.IsDir()
			if i > 0 {
				program = "" // it works on the first one
			}
			if there || program != "" {
				found = append(found, r.in(folder, program))
			}
		}
	}
	return found, nil
}

// Named returns an agent with the folder of settings that it uses now, whether it is there or
// not. ok is false for a name that is not known.
func Named(name string) (agent Agent, ok bool, err error) {
	i := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
	if i < 0 {
		return Agent{}, false, nil
	}
	folders, err := sessions.SettingsFolders(name)
	if err != nil {
		return Agent{}, true, err
	}
	program, _ := exec.LookPath(rows[i].program)
	return rows[i].in(folders[0], program), true, nil
}

func (r row) in(folder, program string) Agent {
	return Agent{Name: r.name, Folder: folder, Version: versionOf(program), Tried: r.tried, program: program, row: r}
}

// Next is a command that the user has to run after an installation, Undo after a removal;
// empty for none.
func (a Agent) Next() string { return a.row.after }

// Undo is described at Next.
func (a Agent) Undo() string { return a.row.undo }

// numbers matches a version in the name of a file.
var numbers = lazyregexp.New(`^v?(\d+\.\d+\.\d+(?:[-+.][0-9A-Za-z.-]+)?)$`)

// maxPackage limits how much of a package's description is read, in bytes.
const maxPackage = 1 << 20

// versionOf reads the version of a program off its files: the name of one of its folders, as
// native installers have it, or the package.json above it.
func versionOf(program string) string {
	real, err := filepath.EvalSymlinks(program)
	if program == "" || err != nil {
		return ""
	}
	for at, up := real, 0; up < 6 && len(at) > 1; at, up = filepath.Dir(at), up+1 {
		if m := numbers().FindStringSubmatch(filepath.Base(at)); m != nil {
			return m[1]
		}
		info, err := os.Stat(filepath.Join(at, "package.json"))
		if err != nil || info.Size() > maxPackage {
			continue
		}
		text, err := os.ReadFile(filepath.Join(at, "package.json"))
		if v := gjson.GetBytes(text, "version").Str; err == nil && v != "" {
			return v
		}
	}
	return ""
}

// Newer reports whether a version is after another one, number by number; false where one
// cannot be read.
func Newer(version, than string) bool {
	a, b := parts(version), parts(than)
	return len(a) > 0 && len(b) > 0 && slices.Compare(a, b) > 0
}

func parts(version string) (all []int) {
	for _, digits := range strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' }) {
		n, _ := strconv.Atoi(digits) // what is no number any more counts as the highest
		all = append(all, n)
	}
	return all
}
