package install

import (
	"errors"
	"strings"
	"testing"
)

// TestTable: the table of our server is added, renewed where the program moved, seen in its other forms, and taken out
// without what others put beside it.
func TestTable(t *testing.T) {
	const (
		own     = "[mcp_servers.palimpsest]\ncommand = \"/new/palimpsest\"\nargs = [\"mcp\", \"--agent\", \"codex\"]\n"
		moved   = "[mcp_servers.palimpsest]\ncommand = \"/old/palimpsest\"\nargs = [\"mcp\", \"--agent\", \"codex\"]\n"
		env     = "[mcp_servers.palimpsest.env]\nA = \"b\"\n"
		project = "[projects.\"/home/u/app/[slug]/a=b\"]\ntrust_level = \"trusted\"\n"
		other   = "[mcp_servers.other]\ncommand = \"x\"\n"
	)
	for _, c := range []struct{ name, doc, with, without, forced string }{ // "": left as it is
		{"none", "", own, "", ""},
		{"beside another", other, other + "\n" + own, other, other},
		{"no line end", "a = 1", "a = 1\n\n" + own, "a = 1\n", "a = 1\n"},
		{"it is there", other + "\n" + own, other + "\n" + own, other, other},
		{"it moved", "a = 1\n\n" + moved + "\n# mine\n" + other, "a = 1\n\n" + own + "\n# mine\n" + other, "a = 1\n\n# mine\n" + other, "a = 1\n\n# mine\n" + other},
		{"it moved, and has a member and a table", moved + "enabled = true\n" + env, own + "enabled = true\n" + env, "", " "},
		{"a table in it alone", own + "\n" + env + other, own + "\n" + env + other, "", other},
		{"quotes and spaces", strings.Replace(moved, "[mcp_servers.palimpsest]", "[ mcp_servers . \"palimpsest\" ] # mine", 1), strings.Replace(own, "[mcp_servers.palimpsest]", "[ mcp_servers . \"palimpsest\" ] # mine", 1), "", " "},
		{"another's", "[mcp_servers.palimpsest]\ncommand = \"x\"\n", "", "", " "},
		{"by an address", "[mcp_servers.palimpsest]\nurl = \"http://palimpsest\"\n", "", "", " "},
		{"all in one line", "mcp_servers = { a = { command = \"a\" } }\n", "", "mcp_servers = { a = { command = \"a\" } }\n", "mcp_servers = { a = { command = \"a\" } }\n"},
		{"in the table of all", "[mcp_servers]\npalimpsest = { command = \"/new/palimpsest\", args = [\"mcp\"] }\n", "[mcp_servers]\npalimpsest = { command = \"/new/palimpsest\", args = [\"mcp\"] }\n", "[mcp_servers]\npalimpsest = { command = \"/new/palimpsest\", args = [\"mcp\"] }\n", "[mcp_servers]\npalimpsest = { command = \"/new/palimpsest\", args = [\"mcp\"] }\n"},
		{"in the table of all, moved", "[mcp_servers]\npalimpsest = { command = \"/old/palimpsest\" }\n", "", "[mcp_servers]\npalimpsest = { command = \"/old/palimpsest\" }\n", "[mcp_servers]\npalimpsest = { command = \"/old/palimpsest\" }\n"},
		{"with dots", "mcp_servers.palimpsest.command = \"/old/palimpsest\"\n", "", "mcp_servers.palimpsest.command = \"/old/palimpsest\"\n", "mcp_servers.palimpsest.command = \"/old/palimpsest\"\n"},
		{"with dots in the table", "[mcp_servers]\npalimpsest.command = \"/old/palimpsest\"\n", "", "[mcp_servers]\npalimpsest.command = \"/old/palimpsest\"\n", "[mcp_servers]\npalimpsest.command = \"/old/palimpsest\"\n"},
		{"line ends of Windows", strings.ReplaceAll(other+own, "\n", "\r\n"), strings.ReplaceAll(other+own, "\n", "\r\n"), strings.ReplaceAll(other, "\n", "\r\n"), strings.ReplaceAll(other, "\n", "\r\n")},
		{"a table behind it with a bracket and = in its name", own + "\n" + project, own + "\n" + project, project, project},
		{"an array of arrays before it", "notify = [\n  [\"a\"]\n]\nmcp_servers.palimpsest.command = \"/old/palimpsest\"\n", "", "notify = [\n  [\"a\"]\n]\nmcp_servers.palimpsest.command = \"/old/palimpsest\"\n", "notify = [\n  [\"a\"]\n]\nmcp_servers.palimpsest.command = \"/old/palimpsest\"\n"},
		{"a text of several lines", "notes = \"\"\"\n[mcp_servers.palimpsest]\ncommand = \"palimpsest\"\n\"\"\"\n", "notes = \"\"\"\n[mcp_servers.palimpsest]\ncommand = \"palimpsest\"\n\"\"\"\n\n" + own, "notes = \"\"\"\n[mcp_servers.palimpsest]\ncommand = \"palimpsest\"\n\"\"\"\n", "notes = \"\"\"\n[mcp_servers.palimpsest]\ncommand = \"palimpsest\"\n\"\"\"\n"},
		{"another server with dots", "mcp_servers.other.command = \"x\"\n", "mcp_servers.other.command = \"x\"\n\n" + own, "mcp_servers.other.command = \"x\"\n", "mcp_servers.other.command = \"x\"\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := Edit{Kind: tomlTable, Value: own}
			out, err := e.apply([]byte(c.doc))
			if string(out) != c.with || errors.Is(err, ErrOthers) != (c.with == "") {
				t.Errorf("it becomes %q: %v", out, err)
			}
			if c.with != "" {
				if again, err := e.apply(out); err != nil || string(again) != string(out) {
					t.Errorf("again it becomes %q: %v", again, err)
				}
			} else {
				out = []byte(c.doc)
			}
			for _, force := range []bool{false, true} {
				want := c.without
				if force {
					want = c.forced
				}
				left, err := e.remove(out, force)
				kept := want == "" && string(out) != own && !force
				if kept {
					want = string(out)
				}
				if strings.TrimSpace(string(left)) != strings.TrimSpace(want) || (err != nil) != kept {
					t.Errorf("force %v leaves %q: %v", force, left, err)
				}
			}
		})
	}
}

// TestStatusLineOut: without ours, the status line is the one that ours ran first, as the user has it now.
func TestStatusLineOut(t *testing.T) {
	const mine = `{"type":"command","command":"a 'b'","padding":0}`
	for _, c := range []struct{ name, old, edit, by, want, forced string }{ // want "": left as it is
		{"unchanged", mine, "", "", mine, mine},
		{"padded", mine, `"padding": 0`, `"padding": 2`, `{"type":"command","command":"a 'b'","padding":2}`, `{"type":"command","command":"a 'b'","padding":2}`},
		{"another behind it", mine, `--after 'a '\\''b'\\'''`, `--after 'c d'`, `{"type":"command","command":"c d","padding":0}`, `{"type":"command","command":"c d","padding":0}`},
		{"with more behind it", mine, `palimpsest statusline`, `palimpsest statusline --plain`, "", mine},
		{"another in its place", mine, `palimpsest statusline --after 'a '\\''b'\\'''`, `other`, `{"type":"command","command":"other","padding":0,"refreshInterval":10}`, `{"type":"command","command":"other","padding":0,"refreshInterval":10}`},
		{"there was none", "", "", "", " ", " "},
		{"there was none, and is now", "", `palimpsest statusline`, `palimpsest statusline --after 'c'`, `{"type":"command","command":"c"}`, `{"type":"command","command":"c"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc := `{"model":"opus"}`
			if c.old != "" {
				doc = `{"model":"opus","statusLine":` + c.old + `}`
			}
			e := Edit{Kind: statusLine, Path: []string{"statusLine"}, Value: "palimpsest"}
			text, err := e.apply([]byte(doc))
			if err != nil || !strings.Contains(string(text), c.edit) {
				t.Fatalf("no %s in %s: %v", c.edit, text, err)
			}
			if c.edit != "" {
				text = []byte(strings.Replace(string(text), c.edit, c.by, 1))
			}
			for _, force := range []bool{false, true} {
				want := c.want
				if force {
					want = c.forced
				}
				left, err := e.remove(text, force)
				if (err != nil) != (want == "") || err != nil && string(left) != string(text) {
					t.Fatalf("force %v: %v: %s", force, err, left)
				}
				if want = strings.TrimSpace(want); want != "" {
					want = `,"statusLine":` + want
				}
				if want = `{"model":"opus"` + want + `}`; err == nil && !sameJSON(string(left), want) {
					t.Errorf("force %v leaves %s, want %s", force, left, want)
				}
			}
		})
	}
}
