package cli

import (
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
)

// agentsHome is a home with agents, a program claude that notes how it is called, and this program
// as palimpsest. No variable of an agent leads out of it.
func agentsHome(t *testing.T) (home string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the programs are scripts of a shell")
	}
	home, bin := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{
		"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "OPENCODE_CONFIG_DIR",
		"OPENCLAW_STATE_DIR", "HERMES_HOME", "QWEN_HOME", "COPILOT_HOME", "KIMI_CODE_HOME", "PALIMPSEST_CONFIG",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(own, filepath.Join(bin, "palimpsest")); err != nil {
		t.Fatal(err)
	}
	putFile(t, filepath.Join(bin, "claude"), "#!/bin/sh\necho \"$*\" >>\""+filepath.Join(bin, "calls")+"\"\n", 0o755)
	for name, text := range agentFiles {
		putFile(t, filepath.Join(home, name), text, 0o640)
	}
	for _, folder := range []string{".config/opencode", ".pi/agent", ".openclaw", ".hermes", ".config/kilo", ".factory", ".kimi-code"} {
		if err := os.MkdirAll(filepath.Join(home, folder), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// agentFiles are the settings of a user, with comments, trailing commas and indents of all kinds.
var agentFiles = map[string]string{
	".claude/settings.json":       "{\n    \"model\": \"opus\",\n    \"statusLine\": {\n        \"type\": \"command\",\n        \"command\": \"printf 'it'\\\\''s mine'\",\n        \"padding\": 0\n    }\n}\n",
	".codex/config.toml":          "model = \"m\" # mine\n[mcp_servers.other]\ncommand = \"x\"",
	".gemini/settings.json":       `{"theme":"dark"}`,
	".qwen/settings.json":         "{}",
	".cursor/mcp.json":            "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"}, // first\n  },\n}\n",
	".copilot/mcp-config.json":    "{\n  \"mcpServers\": {}\n}",
	".config/crush/crush.json":    "{\n\t\"$schema\": \"https://charm.land/crush.json\"\n}\n",
	".config/amp/settings.json":   "",
	".cline/data/settings/x.json": "{}",
}

func putFile(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// homeState is every file and folder of a home, with its mode and its content.
func homeState(t *testing.T, home string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		if info.Mode().IsRegular() {
			read, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(read)
		}
		rel, err := filepath.Rel(home, path)
		all[rel] = fmt.Sprint(info.Mode(), " ", text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func sameHome(t *testing.T, before, after map[string]string) {
	t.Helper()
	names := slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if before[name] != after[name] {
			t.Errorf("%s: was %q, is %q", name, before[name], after[name])
		}
	}
}

// TestInstallAndUninstall: all agents that are found are connected, and uninstall leaves the home as
// it was: names, contents and modes.
func TestInstallAndUninstall(t *testing.T) {
	home := agentsHome(t)
	before := homeState(t, home)
	status, out, errs := run(t, "install", "--dry-run")
	if status != exitDone || errs != "" || !strings.Contains(out, "cursor") || !strings.Contains(out, "runs yours first") {
		t.Fatalf("status %d: %s\n%s", status, errs, out)
	}
	sameHome(t, before, homeState(t, home))
	if status, _, errs := run(t, "install"); status != exitUsage || !strings.Contains(errs, "--yes") {
		t.Errorf("without an answer: status %d: %s", status, errs)
	}
	sameHome(t, before, homeState(t, home))
	if status, out, errs := run(t, "install", "--yes"); status != exitDone || errs != "" || !strings.Contains(out, "openclaw: now run") {
		t.Fatalf("status %d: %s\n%s", status, errs, out)
	}
	for _, row := range []struct{ file, path, want string }{ // an example of each form
		{".claude/settings.json", "statusLine.command", `palimpsest statusline --after 'printf '\''it'\''\'\'''\''s mine'\'''`},
		{".claude/settings.json", "statusLine.refreshInterval", "10"},
		{".gemini/settings.json", "hooks.AfterTool.0.hooks.0.command", "palimpsest hook gemini-cli AfterTool"},
		{".gemini/settings.json", "mcpServers.palimpsest.args", `["mcp","--agent","gemini-cli"]`},
		{".codex/hooks.json", "hooks.SessionStart.0.hooks.0.command", "palimpsest hook codex SessionStart"},
		{".copilot/mcp-config.json", "mcpServers.palimpsest.tools", `["*"]`},
		{".factory/mcp.json", "mcpServers.palimpsest.type", "stdio"},
		{".kimi-code/mcp.json", "mcpServers.palimpsest.command", "palimpsest"},
		{".config/kilo/kilo.jsonc", "mcp.palimpsest.command", `["palimpsest","mcp","--agent","kilo"]`},
		{".config/crush/crush.json", "mcp.palimpsest.type", "stdio"},
		{".config/amp/settings.json", `amp\.mcpServers.palimpsest.command`, "palimpsest"},
		{".qwen/settings.json", "mcpServers.palimpsest.command", "palimpsest"},
	} {
		text, err := os.ReadFile(filepath.Join(home, row.file))
		if got := strings.Join(strings.Fields(gjson.GetBytes(text, row.path).String()), " "); err != nil || strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(row.want, " ", "") {
			t.Errorf("%s: %v: %s is %s, want %s", row.file, err, row.path, got, row.want)
		}
	}
	if text, _ := os.ReadFile(filepath.Join(home, ".cursor/mcp.json")); !strings.Contains(string(text), "// first\n    \"palimpsest\": {") {
		t.Errorf("comments: %s", text)
	}
	if text, _ := os.ReadFile(filepath.Join(home, ".codex/config.toml")); !strings.HasSuffix(string(text), "\"x\"\n\n[mcp_servers.palimpsest]\ncommand = \"palimpsest\"\nargs = [\"mcp\", \"--agent\", \"codex\"]\n") {
		t.Errorf("TOML: %s", text)
	}
	for _, file := range []string{".config/opencode/plugins/palimpsest.js", ".pi/agent/extensions/palimpsest.js", ".openclaw/extensions/palimpsest/index.js", ".hermes/plugins/palimpsest/__init__.py"} {
		if _, err := os.Stat(filepath.Join(home, file)); err != nil {
			t.Error(err)
		}
	}
	installed := homeState(t, home)
	if status, out, errs := run(t, "install", "--yes"); status != exitDone || errs != "" || !strings.Contains(out, "nothing to change") {
		t.Errorf("again: status %d: %s\n%s", status, errs, out)
	}
	sameHome(t, installed, homeState(t, home))
	if status, out, errs := run(t, "uninstall", "--yes"); status != exitDone || errs != "" || !strings.Contains(out, "openclaw: now run") {
		t.Errorf("status %d: %s\n%s", status, errs, out)
	}
	sameHome(t, before, homeState(t, home))
	calls, err := os.ReadFile(filepath.Join(filepath.Dir(lookPath(t, "claude")), "calls"))
	if err != nil || strings.Count(string(calls), "plugin install palimpsest@palimpsest\n") != 1 || !strings.HasSuffix(string(calls), "plugin uninstall palimpsest@palimpsest\nplugin marketplace remove palimpsest\n") {
		t.Errorf("%v: claude was asked %s", err, calls)
	}
}

func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestUninstallAfterOthers: what others changed between install and uninstall stays, and only
// that.
func TestUninstallAfterOthers(t *testing.T) {
	home := agentsHome(t)
	before := homeState(t, home)
	if status, _, errs := run(t, "install", "--yes"); status != exitDone {
		t.Fatal(errs)
	}
	edit := func(file, old, new string) {
		path := filepath.Join(home, file)
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), old) {
			t.Fatalf("%s: %v: no %q in %s", file, err, old, text)
		}
		putFile(t, path, strings.Replace(string(text), old, new, 1), 0)
	}
	edit(".claude/settings.json", `"opus"`, `"haiku"`)
	edit(".codex/config.toml", `"m"`, `"n"`)
	edit(".gemini/settings.json", `"dark"`, `"light"`)
	edit(".qwen/settings.json", "{", "{\"ui\": 1,")
	edit(".cursor/mcp.json", "// mine", "// still mine")
	edit(".copilot/mcp-config.json", `"mcpServers": {`, `"mcpServers": {"b": {"command": "b"},`)
	edit(".config/kilo/kilo.jsonc", "{", "{\n  \"theme\": \"x\",")
	edit(".config/crush/crush.json", "charm.land", "charm.example")
	putFile(t, filepath.Join(home, ".hermes/plugins/palimpsest/__pycache__/a.pyc"), "x", 0o600)
	putFile(t, filepath.Join(home, ".pi/agent/extensions/mine.js"), "x", 0o600)
	if status, out, errs := run(t, "uninstall", "--yes"); status != exitDone {
		t.Fatalf("status %d: %s\n%s", status, errs, out)
	}
	after := homeState(t, home)
	for file, change := range map[string][2]string{
		".claude/settings.json":    {`"opus"`, `"haiku"`},
		".codex/config.toml":       {`"m"`, `"n"`},
		".gemini/settings.json":    {`"dark"`, `"light"`},
		".cursor/mcp.json":         {"// mine", "// still mine"},
		".config/crush/crush.json": {"charm.land", "charm.example"},
	} {
		before[file] = strings.Replace(before[file], change[0], change[1], 1)
	}
	before[".codex/config.toml"] += "\n" // its last line was none
	for file, want := range map[string]string{
		".qwen/settings.json":      "-rw-r----- {\"ui\": 1\n}",
		".copilot/mcp-config.json": "-rw-r----- {\n  \"mcpServers\": {\"b\": {\"command\": \"b\"}\n  }\n}",
		".config/kilo/kilo.jsonc":  "-rw------- {\n  \"theme\": \"x\"\n}\n",
	} {
		before[file] = want
	}
	for _, file := range []string{".pi/agent/extensions", ".pi/agent/extensions/mine.js"} {
		before[file] = after[file]
	}
	sameHome(t, before, after)
}

// TestUninstallLeaves: what of ours was changed is left, and told, until it is forced.
func TestUninstallLeaves(t *testing.T) {
	home := agentsHome(t)
	before := homeState(t, home)
	if status, _, errs := run(t, "install", "--yes"); status != exitDone {
		t.Fatal(errs)
	}
	for file, change := range map[string][2]string{
		".config/opencode/plugins/palimpsest.js": {"import", "// mine\nimport"},
		".cursor/mcp.json":                       {`"cursor"`, `"other"`},
		".codex/config.toml":                     {`"--agent", "codex"`, `"--write"`},
	} {
		path := filepath.Join(home, file)
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), change[0]) {
			t.Fatalf("%s: %v: %s", file, err, text)
		}
		putFile(t, path, strings.Replace(string(text), change[0], change[1], 1), 0)
	}
	status, _, errs := run(t, "uninstall", "--yes")
	for _, file := range []string{"opencode/plugins/palimpsest.js", ".cursor/mcp.json", ".codex/config.toml"} {
		if status != exitFailed || !strings.Contains(errs, file+": left as it is") {
			t.Errorf("status %d: %s is not named: %s", status, file, errs)
		}
	}
	if status, out, _ := run(t, "uninstall", "--dry-run"); status != exitDone || strings.Contains(out, "gemini-cli") || !strings.Contains(out, "cursor") {
		t.Errorf("status %d: what is left: %s", status, out)
	}
	if status, out, errs := run(t, "uninstall", "--yes", "--force"); status != exitDone {
		t.Errorf("status %d: %s\n%s", status, errs, out)
	}
	before[".codex/config.toml"] += "\n"
	sameHome(t, before, homeState(t, home))
}

// TestUninstallOne: what is taken out of one agent leaves no copy of its files, and the others stay.
func TestUninstallOne(t *testing.T) {
	home := agentsHome(t)
	if status, _, errs := run(t, "install", "--yes"); status != exitDone {
		t.Fatal(errs)
	}
	before := homeState(t, home)
	if status, _, errs := run(t, "uninstall", "codex", "--yes"); status != exitDone {
		t.Error(errs)
	}
	copies := 0
	for name, was := range homeState(t, home) {
		if strings.Contains(was, "mcp_servers.other") {
			copies++
		}
		if !strings.Contains(name, "codex") && !strings.HasSuffix(name, "installed.json") && was != before[name] {
			t.Errorf("%s: was %q, is %q", name, before[name], was)
		}
	}
	if copies != 1 {
		t.Errorf("%d files have what is in config.toml", copies)
	}
}

// TestUninstallLeavesUnreadable: settings that cannot be read any more, as hooks are not taken out between
// comments, stay, and are told.
func TestUninstallLeavesUnreadable(t *testing.T) {
	home := agentsHome(t)
	for _, text := range []string{"// mine\n{\"theme\": \"dark\"}\n", "{", ""} {
		if status, _, errs := run(t, "install", "gemini-cli", "codex", "--yes"); status != exitDone {
			t.Fatal(errs)
		}
		for _, file := range []string{".gemini/settings.json", ".codex/hooks.json"} { // one that was there, and a new one
			path := filepath.Join(home, file)
			putFile(t, path, text, 0)
			status, out, errs := run(t, "uninstall", "--yes")
			if left, err := os.ReadFile(path); string(left) != text || err != nil && text != "" {
				t.Errorf("%s: %q became %q: %v: status %d: %s%s", file, text, left, err, status, out, errs)
			}
			if (status == exitDone) != (text == "") || text != "" && !strings.Contains(errs, file) {
				t.Errorf("%s: %q: status %d: %s", file, text, status, errs)
			}
			putFile(t, path, "{}", 0)
			if status, _, errs := run(t, "uninstall", "--yes"); status != exitDone {
				t.Errorf("%s: status %d: %s", file, status, errs)
			}
			if status, _, errs := run(t, "install", "gemini-cli", "codex", "--yes"); status != exitDone {
				t.Fatal(errs)
			}
		}
		if status, _, errs := run(t, "uninstall", "--yes"); status != exitDone {
			t.Fatal(errs)
		}
	}
}

// TestInstallRefuses: files of others, what cannot be read, and links out of the home are left as
// they are, and all else is installed.
func TestInstallRefuses(t *testing.T) {
	home, outside := agentsHome(t), t.TempDir()
	putFile(t, filepath.Join(home, ".config/opencode/plugins/palimpsest.js"), "another's", 0o600)
	putFile(t, filepath.Join(home, ".gemini/settings.json"), "{\"a\": }", 0o600)
	putFile(t, filepath.Join(home, ".qwen/settings.json"), "[]", 0o600)
	putFile(t, filepath.Join(home, ".codex/config.toml"), "mcp_servers = { a = { command = \"a\" } }\n", 0o600)
	putFile(t, filepath.Join(home, ".copilot/mcp-config.json"), `{"mcpServers":{"palimpsest":{"command":"mine"}}}`, 0o600)
	putFile(t, filepath.Join(outside, "mcp.json"), "{}", 0o600)
	if err := os.Remove(filepath.Join(home, ".cursor/mcp.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "mcp.json"), filepath.Join(home, ".cursor/mcp.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(home, ".config/amp/settings.json")); err != nil {
		t.Fatal(err)
	}
	putFile(t, filepath.Join(home, "dotfiles/amp.json"), "{}\n", 0o644)
	if err := os.Symlink("../../dotfiles/amp.json", filepath.Join(home, ".config/amp/settings.json")); err != nil {
		t.Fatal(err)
	}
	before := homeState(t, home)
	status, _, errs := run(t, "install", "--yes")
	for _, told := range []string{
		"opencode/plugins/palimpsest.js: left as it is: it is no file of ours", ".gemini/settings.json", "qwen/settings.json: line 1: not a JSON object; correct it", ".codex/config.toml: left as it is",
		".copilot/mcp-config.json: left as it is: it has another", ".cursor/mcp.json is a link out of your home",
	} {
		if !strings.Contains(errs, told) {
			t.Errorf("status %d: it does not say %q: %s", status, told, errs)
		}
	}
	if status, out, _ := run(t, "install", "qwen-code", "--dry-run"); status == exitDone || strings.Contains(out, "everything is installed") {
		t.Errorf("status %d: %s", status, out)
	}
	if _, err := os.Stat(filepath.Join(home, ".config/opencode/plugins/palimpsest")); err == nil {
		t.Error("half a plugin is installed")
	}
	if text, _ := os.ReadFile(filepath.Join(outside, "mcp.json")); string(text) != "{}" {
		t.Errorf("a file outside of the home: %s", text)
	}
	if text, _ := os.ReadFile(filepath.Join(home, "dotfiles/amp.json")); !strings.Contains(string(text), "palimpsest") {
		t.Errorf("a file behind a link in the home: %s", text)
	}
	if status, _, errs := run(t, "uninstall", "--yes"); status != exitDone {
		t.Errorf("status %d: %s", status, errs)
	}
	sameHome(t, before, homeState(t, home))
}

// TestInstallAsks: who says which sentences stand is asked for, with no as the default, and a yes is
// a policy that the daemon's settings name.
func TestInstallAsks(t *testing.T) {
	home := agentsHome(t)
	settings := filepath.Join(home, ".config/palimpsest/config.yaml")
	if runtime.GOOS == "darwin" {
		settings = filepath.Join(home, "Library/Application Support/palimpsest/config.yaml")
	}
	putFile(t, settings, "rate: 50", 0o600)
	before := homeState(t, home)
	for _, tt := range []struct {
		in      string
		args    []string
		by      string
		changed bool
	}{
		{"\n", nil, "auto", false},
		{"n\ny\n", nil, "auto", false},
		{"y\n", nil, "auto", true},
		{"y\n\n", nil, "auto", true},
		{"y\nyes\n", nil, "rules.yaml", true},
		{"y\n", []string{"--rules"}, "rules.yaml", true},
		{"", []string{"--yes"}, "auto", true},
		{"", []string{"--yes", "--rules"}, "rules.yaml", true},
	} {
		status, out, errs := runOn(t, tt.in, append([]string{"install", "cursor"}, tt.args...)...)
		if status != exitDone || strings.Contains(errs, "15 %") != (strings.HasPrefix(tt.in, "y") && tt.args == nil) {
			t.Errorf("%q %v: status %d: %s\n%s", tt.in, tt.args, status, errs, out)
		}
		if strings.Contains(out, "nothing was changed") == tt.changed {
			t.Errorf("%q %v: %s", tt.in, tt.args, out)
		}
		if changed := len(homeState(t, home)) != len(before); changed != tt.changed {
			t.Errorf("%q %v: changed %v", tt.in, tt.args, changed)
		}
		if _, out, errs := run(t, "config", "show", "--json"); !strings.HasSuffix(gjson.Get(out, `#(name=="policy").value`).Str, tt.by) || gjson.Get(out, `#(name=="rate").value`).Str != "50" {
			t.Errorf("%q %v: %s\n%s", tt.in, tt.args, errs, out)
		}
		if tt.by == "rules.yaml" {
			if status, out, errs := run(t, "policy", "show", filepath.Join(filepath.Dir(settings), tt.by)); status != exitDone || !strings.Contains(out, "rules: [agent]") {
				t.Errorf("status %d: %s%s", status, out, errs)
			}
		}
		if status, _, errs := run(t, "uninstall", "--yes"); status != exitDone {
			t.Errorf("status %d: %s", status, errs)
		}
		sameHome(t, before, homeState(t, home))
	}
	putFile(t, settings, "policy: mine.yaml\n", 0o600)
	if status, _, errs := run(t, "install", "--yes", "--rules"); status != exitDone || !strings.Contains(errs, "names a policy already") {
		t.Errorf("status %d: %s", status, errs)
	}
}

// TestInstallRulesElsewhere: the policy goes beside the settings that are used, and a file of its name that is not ours
// stays.
func TestInstallRulesElsewhere(t *testing.T) {
	home := agentsHome(t)
	settings := filepath.Join(home, "work", "own.yaml")
	putFile(t, settings, "rate: 50\n", 0o600)
	t.Setenv("PALIMPSEST_CONFIG", settings)
	before := homeState(t, home)
	if status, _, errs := run(t, "install", "cursor", "--yes", "--rules"); status != exitDone {
		t.Fatalf("status %d: %s", status, errs)
	}
	if _, out, errs := run(t, "config", "show", "--json"); gjson.Get(out, `#(name=="policy").value`).Str != filepath.Join(home, "work", "rules.yaml") {
		t.Errorf("%s\n%s", errs, out)
	}
	if status, _, errs := run(t, "uninstall", "--yes"); status != exitDone {
		t.Errorf("status %d: %s", status, errs)
	}
	sameHome(t, before, homeState(t, home))
	putFile(t, filepath.Join(home, "work", "rules.yaml"), "# what palimpsest does here\nbase: auto\n", 0o600)
	before = homeState(t, home)
	if status, _, errs := run(t, "install", "cursor", "--yes", "--rules"); !strings.Contains(errs, "rules.yaml: left as it is") {
		t.Errorf("status %d: %s", status, errs)
	}
	if status, _, errs := run(t, "uninstall", "--yes"); status != exitDone {
		t.Errorf("status %d: %s", status, errs)
	}
	sameHome(t, before, homeState(t, home))
}

// TestUninstallRestores: a file of the plugin that was there before comes back, also where what was installed was
// changed and it is forced; and what others changed before the next installation stays, byte for byte.
func TestUninstallRestores(t *testing.T) {
	home := agentsHome(t)
	plugin, servers := filepath.Join(home, ".pi/agent/extensions/palimpsest.js"), filepath.Join(home, ".cursor/mcp.json")
	putFile(t, plugin, "// palimpsest, by hand\n", 0o600)
	before := homeState(t, home)
	if status, _, errs := run(t, "install", "pi", "cursor", "--yes"); status != exitDone {
		t.Fatal(errs)
	}
	putFile(t, plugin, "// changed since\n", 0)
	text, err := os.ReadFile(servers)
	if err != nil {
		t.Fatal(err)
	}
	putFile(t, servers, strings.NewReplacer(`"palimpsest",`, `"/gone/palimpsest",`, "// mine", "// still mine").Replace(string(text)), 0)
	if status, _, errs := run(t, "install", "cursor", "--yes"); status != exitDone {
		t.Fatal(errs)
	}
	if copies, err := filepath.Glob(filepath.Join(home, ".local/share/palimpsest/install/backups/*")); err != nil || runtime.GOOS == "linux" && len(copies) != 2 {
		t.Errorf("%d copies: %v", len(copies), err)
	}
	if status, _, errs := run(t, "uninstall", "--yes"); status != exitFailed || !strings.Contains(errs, "palimpsest.js") {
		t.Errorf("status %d: %s", status, errs)
	}
	if status, _, errs := run(t, "uninstall", "--yes", "--force"); status != exitDone {
		t.Errorf("status %d: %s", status, errs)
	}
	before[".cursor/mcp.json"] = strings.Replace(before[".cursor/mcp.json"], "// mine", "// still mine", 1)
	sameHome(t, before, homeState(t, home))
}

// TestInstallLeavesChanged: a file of the plugin that the user changed is not overwritten by another
// installation.
func TestInstallLeavesChanged(t *testing.T) {
	home := agentsHome(t)
	if status, _, errs := run(t, "install", "pi", "--yes"); status != exitDone {
		t.Fatal(errs)
	}
	path := filepath.Join(home, ".pi/agent/extensions/palimpsest.js")
	putFile(t, path, "// palimpsest, mine\n", 0)
	if status, _, errs := run(t, "install", "pi", "--yes"); status != exitFailed || !strings.Contains(errs, "extensions/palimpsest.js: left as it is") {
		t.Errorf("status %d: %s", status, errs)
	}
	if text, _ := os.ReadFile(path); string(text) != "// palimpsest, mine\n" {
		t.Errorf("it is %s", text)
	}
}

// TestInstallKeepsMembers: what the user adds to the entry of the MCP server stays when it is installed again.
func TestInstallKeepsMembers(t *testing.T) {
	home := agentsHome(t)
	if status, _, errs := run(t, "install", "cursor", "--yes"); status != exitDone {
		t.Fatal(errs)
	}
	path := filepath.Join(home, ".cursor/mcp.json")
	text, _ := os.ReadFile(path)
	doc, err := jsonedit.SetMember(string(text), `{"A":"b"}`, "mcpServers", "palimpsest", "env")
	if err == nil {
		doc, err = jsonedit.SetMember(doc, `"/gone/palimpsest"`, "mcpServers", "palimpsest", "command")
	}
	if err != nil {
		t.Fatal(err)
	}
	putFile(t, path, doc, 0)
	if status, _, errs := run(t, "install", "cursor", "--yes"); status != exitDone {
		t.Fatal(errs)
	}
	text, _ = os.ReadFile(path)
	if entry := gjson.GetBytes(text, "mcpServers.palimpsest"); entry.Get("env.A").Str != "b" || strings.Contains(entry.Raw, "/gone/") {
		t.Errorf("it is %s", text)
	}
}

// TestInstallCommandsFail: where Claude Code's own program fails, the others are installed, nothing
// is left to take back that was not done, and the next installation tries again.
func TestInstallCommandsFail(t *testing.T) {
	home := agentsHome(t)
	before := homeState(t, home)
	claude := lookPath(t, "claude")
	works, err := os.ReadFile(claude)
	if err != nil {
		t.Fatal(err)
	}
	for _, fails := range []string{"marketplace add", "plugin install"} {
		putFile(t, claude, "#!/bin/sh\ncase \"$*\" in *'"+fails+"'*) echo no; exit 1;; esac\n"+string(works), 0o755)
		if status, _, errs := run(t, "install", "--yes"); status != exitFailed || !strings.Contains(errs, fails) {
			t.Errorf("%s: status %d: %s", fails, status, errs)
		}
		if _, err := os.Stat(filepath.Join(home, ".codex/hooks.json")); err != nil {
			t.Error(err)
		}
		if status, _, errs := run(t, "uninstall", "--yes"); status != exitDone {
			t.Errorf("%s: status %d: %s", fails, status, errs)
		}
		sameHome(t, before, homeState(t, home))
		if status, _, _ := run(t, "install", "--yes"); status != exitFailed {
			t.Errorf("%s: status %d", fails, status)
		}
		putFile(t, claude, string(works), 0o755)
		if status, out, errs := run(t, "install", "--yes"); status != exitDone || !strings.Contains(out, "claude plugin install") {
			t.Errorf("%s: status %d: %s\n%s", fails, status, errs, out)
		}
		if status, _, errs := run(t, "uninstall", "--yes"); status != exitDone {
			t.Errorf("%s: status %d: %s", fails, status, errs)
		}
		sameHome(t, before, homeState(t, home))
	}
}

// TestInstallCommandsFailLater: where the next installation of the plugin fails, what takes the first one back is still
// known, and it is called for the folder that it was installed in.
func TestInstallCommandsFailLater(t *testing.T) {
	home := agentsHome(t)
	claude := lookPath(t, "claude")
	calls := filepath.Join(filepath.Dir(claude), "calls")
	notes := "#!/bin/sh\necho \"$CLAUDE_CONFIG_DIR $*\" >>'" + calls + "'\n"
	putFile(t, claude, notes, 0o755)
	other := filepath.Join(home, "other")
	t.Setenv("CLAUDE_CONFIG_DIR", other)
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	before := homeState(t, home)
	if status, _, errs := run(t, "install", "claude-code", "--yes"); status != exitDone {
		t.Fatal(errs)
	}
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	if status, out, errs := run(t, "install", "claude-code", "--yes"); status != exitDone || !strings.Contains(out, "claude plugin install") {
		t.Fatalf("in the usual folder: status %d: %s%s", status, out, errs)
	}
	if err := os.Remove(filepath.Join(home, ".local/share/palimpsest/plugins/claude-code/hooks/hooks.json")); err != nil && runtime.GOOS == "linux" {
		t.Fatal(err)
	}
	putFile(t, claude, notes+"exit 1\n", 0o755)
	if status, _, errs := run(t, "install", "claude-code", "--yes"); status != exitFailed {
		t.Errorf("status %d: %s", status, errs)
	}
	putFile(t, claude, notes, 0o755)
	putFile(t, calls, "", 0o600)
	if status, _, errs := run(t, "uninstall", "--yes"); status != exitDone {
		t.Errorf("status %d: %s", status, errs)
	}
	said, err := os.ReadFile(calls)
	for _, folder := range []string{"", other} {
		if !strings.Contains("\n"+string(said), "\n"+folder+" plugin uninstall palimpsest@palimpsest\n"+folder+" plugin marketplace remove palimpsest\n") {
			t.Errorf("of the folder %q: %s: %v", folder, said, err)
		}
	}
	sameHome(t, before, homeState(t, home))
}

// TestInstallFolders: an agent is connected in the folder that its variable names, and in the usual
// one, in which its program does not work.
func TestInstallFolders(t *testing.T) {
	home := agentsHome(t)
	other := filepath.Join(home, "other")
	t.Setenv("CLAUDE_CONFIG_DIR", other)
	t.Setenv("CODEX_HOME", filepath.Join(home, "codex"))
	putFile(t, filepath.Join(other, "settings.json"), "{}", 0o600)
	before := homeState(t, home)
	if status, out, errs := run(t, "install", "--yes"); status != exitDone || errs != "" || strings.Count(out, "claude plugin install") != 1 {
		t.Fatalf("status %d: %s\n%s", status, errs, out)
	}
	for file, want := range map[string]string{
		"other/settings.json": `"statusLine"`, ".claude/settings.json": "hook claude-code PreCompact", ".codex/hooks.json": "hook codex", ".codex/config.toml": "mcp_servers.palimpsest",
	} {
		if text, err := os.ReadFile(filepath.Join(home, file)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v: %s", file, err, text)
		}
	}
	if status, out, errs := run(t, "install", "--yes"); status != exitDone || !strings.Contains(out, "nothing to change") {
		t.Errorf("status %d: %s\n%s", status, errs, out)
	}
	if status, _, errs := run(t, "uninstall", "--yes"); status != exitDone {
		t.Errorf("status %d: %s", status, errs)
	}
	sameHome(t, before, homeState(t, home))
}

// TestOffReachesTheDaemon: the daemon leaves the conversations of a plugin to its agent while that is
// off.
func TestOffReachesTheDaemon(t *testing.T) {
	agentsHome(t)
	settings, err := loadSettings("", nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newServing(settings, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		off  string
	}{
		{[]string{"off", "opencode"}, "palimpsest on opencode"}, {[]string{"on", "opencode"}, ""}, {[]string{"off"}, "palimpsest on opencode"}, {[]string{"on"}, ""},
	} {
		if status, _, errs := run(t, tt.args...); status != exitDone {
			t.Errorf("%v: status %d: %s", tt.args, status, errs)
		}
		if got := p.daemon.Off("opencode.ses_1"); !strings.Contains(got, tt.off) || (got == "") != (tt.off == "") {
			t.Errorf("%v: %q", tt.args, got)
		}
	}
	if status, _, errs := run(t, "off", "no-such-session"); status != exitUsage || !strings.Contains(errs, "neither an agent") {
		t.Errorf("status %d: %s", status, errs)
	}
}
