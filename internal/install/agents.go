// Package install puts Palimpsest into the coding agents of a machine, and takes it out
// again: their plugins, hooks, MCP servers and the status line.
//
// Find says which agents are there (agents.go), Self.Plan what would change, from the contents of
// their files alone (plan.go, edit.go). Apply does it and keeps a record, and Remove takes
// back what the record says, and leaves what others changed since (apply.go, files.go).
// Switches turn agents and sessions off without removing anything (switches.go).
package install

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
)

// ClaudeCode is the agent whose plugin its own command installs.
const ClaudeCode = "claude-code"

// Agent is an agent that is known, or was found with one of its folders of settings.
type Agent struct {
	Name string
	// Tried is the version that was tried with Palimpsest; empty for none.
	Tried string
	// Next says what the user has to do after an installation, Undo after a removal; empty for
	// nothing.
	Next, Undo string
	// Folder and Version are of what was found; Version, that of the program on the path, is empty
	// if its files do not say.
	Folder, Version string
	// Absent is its program if that is not on the path, else empty.
	Absent string

	program string // its name
	onPath  bool   // it works on Folder
	parts   []Part // what there is for it, the better way first
	mcp     *entry // where it lists MCP servers; nil where the plugin makes it needless
}

// Part is what is installed in an agent.
type Part string

// The parts.
const (
	Plugin Part = "plugin" // of package integrations
	Hooks  Part = "hooks"  // those that internal/hook answers
	MCP    Part = "MCP"
	Status Part = "status line"
	rules  Part = "rules" // of Settings
)

// Usual are the parts that are installed in an agent if nothing else is said: its plugin or, where
// there is none or the agent's program is needed and not there, its hooks; and what goes beside.
func (a Agent) Usual() (parts []Part) {
	for _, part := range a.parts {
		if part == Plugin && a.Name == ClaudeCode && !a.onPath || part == Hooks && slices.Contains(parts, Plugin) {
			continue
		}
		parts = append(parts, part)
	}
	return parts
}

// Missing says why an agent gets less than it could; "" if it does not.
func (a Agent) Missing() string {
	if slices.Contains(a.parts, Plugin) && !slices.Contains(a.Usual(), Plugin) {
		return "its program is not on the PATH, which the plugin needs: with hooks alone it makes its own compactions; run this again when it is"
	}
	return ""
}

// Fixed reports whether the agent has a plugin whose tools are always the same, and no MCP server that could offer more.
func (a Agent) Fixed() bool {
	return slices.Contains(a.parts, Plugin) && a.mcp == nil && a.Name != ClaudeCode
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

func inJSON(file, form string) *entry {
	return &entry{file, []string{"mcpServers", "palimpsest"}, form}
}

// agents are all that are known, in the order in which people see them. Where the column of what was
// tried is empty, the place and the form are those of the agent's documentation.
var agents = []Agent{
	{Name: ClaudeCode, program: "claude", Tried: "2.1.330", parts: []Part{Plugin, Hooks, Status}},
	{Name: "codex", program: "codex", Tried: "0.171.0", parts: []Part{Hooks, MCP}, mcp: &entry{"config.toml", nil, tomlForm}, Next: "it asks at its next start whether you trust the hooks"},
	{Name: "opencode", program: "opencode", Tried: "1.18.33", parts: []Part{Plugin}},
	{Name: "pi", program: "pi", Tried: "1.6.0", parts: []Part{Plugin}},
	{Name: "openclaw", program: "openclaw", Tried: "2026.9.6", parts: []Part{Plugin},
		Next: "now run `openclaw config set plugins.slots.contextEngine palimpsest && openclaw config set agents.defaults.compaction.provider palimpsest`",
		Undo: "now run `openclaw config unset plugins.slots.contextEngine && openclaw config unset agents.defaults.compaction.provider`"},
	{Name: "hermes", program: "hermes", parts: []Part{Plugin},
		Next: "now run `hermes plugins enable palimpsest && hermes config set context.engine palimpsest`", Undo: "now run `hermes config set context.engine compressor`"},
	{Name: "gemini-cli", program: "gemini", Tried: "0.61.0", parts: []Part{Hooks, MCP}, mcp: inJSON("settings.json", plainForm)},
	{Name: "qwen-code", program: "qwen", parts: []Part{MCP}, mcp: inJSON("settings.json", plainForm)},
	{Name: "kimi-code", program: "kimi", parts: []Part{MCP}, mcp: inJSON("mcp.json", plainForm)},
	{Name: "copilot-cli", program: "copilot", parts: []Part{MCP}, mcp: inJSON("mcp-config.json", localForm)},
	{Name: "cursor", program: "cursor-agent", parts: []Part{MCP}, mcp: inJSON("mcp.json", plainForm)},
	{Name: "droid", program: "droid", parts: []Part{MCP}, mcp: inJSON("mcp.json", typedForm)},
	{Name: "cline", program: "cline", parts: []Part{MCP}, mcp: inJSON("data/settings/cline_mcp_settings.json", plainForm)},
	{Name: "kilo", program: "kilo", parts: []Part{MCP}, mcp: &entry{"kilo.jsonc|kilo.json", []string{"mcp", "palimpsest"}, listForm}},
	{Name: "crush", program: "crush", parts: []Part{MCP}, mcp: &entry{"crush.json", []string{"mcp", "palimpsest"}, typedForm}},
	{Name: "amp", program: "amp", parts: []Part{MCP}, mcp: &entry{"settings.json", []string{"amp.mcpServers", "palimpsest"}, plainForm}},
}

// Names are the agents that are known, or those of them that can have all the parts.
func Names(parts ...Part) (names []string) {
	for _, a := range agents {
		if !slices.ContainsFunc(parts, func(p Part) bool { return !slices.Contains(a.parts, p) }) {
			names = append(names, a.Name)
		}
	}
	return names
}

// Find returns the agents whose folder or program is there, once for each folder of settings:
// the one that the agent's variable names, and the usual one. Of those that are named, no others
// are returned, and the folder that they use now first, whether it is there or not. Nothing is run.
func Find(named ...string) (found []Agent, err error) {
	for _, a := range agents {
		if len(named) > 0 && !slices.Contains(named, a.Name) {
			continue
		}
		folders, err := sessions.SettingsFolders(a.Name)
		if err != nil {
			return nil, err
		}
		program, _ := exec.LookPath(a.program)
		if program == "" {
			a.Absent = a.program
		}
		for i, folder := range folders {
			info, err := os.Stat(folder)
			if a.onPath = program != "" && i == 0; a.onPath || err == nil && info.IsDir() || len(named) > 0 && i == 0 {
				a.Folder, a.Version = folder, ""
				if a.onPath {
					a.Version = versionOf(program)
				}
				found = append(found, a)
			}
		}
	}
	return found, nil
}

// numbers matches a version in the name of a file.
var numbers = lazyregexp.New(`^v?(\d+\.\d+\.\d+(?:[-+.][0-9A-Za-z.-]+)?)$`)

// maxPackage limits how much of a package's description is read, in bytes.
const maxPackage = 1 << 20

// versionOf reads the version of a program off its files: the name of one of its folders, as
// native installers have it, or the package.json above it.
func versionOf(program string) string {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
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
	numbers := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	}
	a, b := numbers(version), numbers(than)
	return len(a) > 0 && len(b) > 0 && slices.CompareFunc(a, b, func(x, y string) int {
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
	}) > 0
}
