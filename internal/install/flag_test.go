package install

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestContextToolsInTable: the flag is put behind the last argument of our table, whatever stands around that; where it
// cannot be, that is told and nothing is changed.
func TestContextToolsInTable(t *testing.T) {
	const head, value = "[mcp_servers.palimpsest]\ncommand = \"palimpsest\"\n", "[mcp_servers.palimpsest]\ncommand = \"palimpsest\"\nargs = [\"mcp\", \"--agent\", \"codex\", \"--context-tools\"]\n"
	for _, c := range []struct{ args, want string }{ // want "": left as it is
		{"args = [\"mcp\", \"codex\"]\n", "args = [\"mcp\", \"codex\", \"--context-tools\"]\n"},
		{"args = [\n  \"mcp\",\n  \"codex\", # mine\n]\n", "args = [\n  \"mcp\",\n  \"codex\", \"--context-tools\", # mine\n]\n"},
		{"args = [\"mcp\", \"--store\", \"/a]b\", 'it]']\n", "args = [\"mcp\", \"--store\", \"/a]b\", 'it]', \"--context-tools\"]\n"},
		{"# not \"--context-tools\"\nargs = [\"mcp\"] # [\"--context-tools\"]\n", "# not \"--context-tools\"\nargs = [\"mcp\", \"--context-tools\"] # [\"--context-tools\"]\n"},
		{"\"args\" = [ \"mcp\" , ]\nenv = { A = \"]\" }\n", "\"args\" = [ \"mcp\", \"--context-tools\" , ]\nenv = { A = \"]\" }\n"},
		{"note = '''\nargs = [\"x\"]\n'''\nargs = ['mcp']\n", "note = '''\nargs = [\"x\"]\n'''\nargs = ['mcp', \"--context-tools\"]\n"},
		{"args = ['mcp', '--context-tools']\n", "args = ['mcp', '--context-tools']\n"},
		{"args = []\n", ""},
		{"args = [\"mcp\"\n", ""},
		{"enabled = true\n", ""},
	} {
		e := Edit{Kind: tomlTable, Value: value}
		out, err := e.apply([]byte(head + c.args))
		if got := strings.TrimPrefix(string(out), head); got != c.want || errors.Is(err, ErrOthers) != (c.want == "") {
			t.Errorf("%q becomes %q: %v", c.args, got, err)
		}
		if again, err := e.apply(out); c.want != "" && (err != nil || string(again) != string(out)) {
			t.Errorf("again: %q: %v", again, err)
		}
	}
	e := Edit{Kind: tomlTable, Value: value}
	if out, err := e.apply([]byte("[mcp_servers]\npalimpsest = { command = \"palimpsest\", args = [\"mcp\"] }\n")); !errors.Is(err, ErrOthers) {
		t.Errorf("in the table of all: %q: %v", out, err)
	}
}

// TestContextToolsInJSON: the flag is added to the arguments that are there, and the program alone takes the place of another.
func TestContextToolsInJSON(t *testing.T) {
	const plain, list = `{"command":"palimpsest","args":["mcp","--agent","cursor","--context-tools"]}`, `{"type":"local","command":["palimpsest","mcp","--agent","kilo","--context-tools"]}`
	for _, c := range []struct{ old, value, want string }{
		{`{"command":"palimpsest","args":["--store","/srv/p.db","mcp","--agent","cursor"]}`, plain, `{"command":"palimpsest","args":["--store","/srv/p.db","mcp","--agent","cursor","--context-tools"]}`},
		{`{"command":"/old/palimpsest","args":["--store","/srv/p.db","mcp"],"env":{}}`, strings.Replace(plain, `,"--context-tools"`, "", 1), `{"command":"palimpsest","args":["--store","/srv/p.db","mcp"],"env":{}}`},
		{"{\"command\":\"palimpsest\",\"args\":[\n\"mcp\", // \"--context-tools\"]\n]}", plain, "{\"command\":\"palimpsest\",\"args\":[\n\"mcp\", \"--context-tools\", // \"--context-tools\"]\n]}"},
		{`{"command":"palimpsest"}`, plain, plain},
		{`{"command":["/old/palimpsest","--store","/srv/p.db","mcp"]}`, list, `{"command":["palimpsest","--store","/srv/p.db","mcp","--context-tools"]}`},
	} {
		e := Edit{Kind: jsonMember, Path: []string{"s"}, Value: c.value}
		out, err := e.apply([]byte(`{"s":` + c.old + `}`))
		if strings.Join(strings.Fields(string(out)), "") != strings.Join(strings.Fields(`{"s":`+c.want+`}`), "") || err != nil {
			t.Errorf("%s becomes %s: %v", c.old, out, err)
		}
		if again, err := e.apply(out); err != nil || string(again) != string(out) {
			t.Errorf("again: %s: %v", again, err)
		}
	}
}

// TestContextToolsOfOthers: the flag goes on where our own entry has it, and not because that of another server does.
func TestContextToolsOfOthers(t *testing.T) {
	const table, without, with = "[mcp_servers.x]\nargs = [\"--context-tools\"]\n[mcp_servers.palimpsest]\n", `["p", "mcp"]`, `["p", "--context-tools"]`
	for _, c := range []struct{ agent, text string }{
		{"codex", table + "args = ARGS\n"},
		{"cursor", `{"mcpServers": {"x": {"args": ["--context-tools"]}, "palimpsest": {"args": ARGS}}}`},
		{"kilo", `{"mcp": {"x": {"command": ["--context-tools"]}, "palimpsest": {"command": ARGS}}}`},
	} {
		a := agents[slices.Index(Names(), c.agent)]
		for args, want := range map[string]bool{without: false, with: true} {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "f"), []byte(strings.Replace(c.text, "ARGS", args, 1)), newFile); err != nil {
				t.Fatal(err)
			}
			if got := (Self{}).args(a, folder, "f", a.mcp.path...); strings.Contains(got, "--context-tools") != want {
				t.Errorf("%s: %s: %s", c.agent, args, got)
			}
		}
	}
}
