package install

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/integrations"
	"github.com/palimpsest-ai/palimpsest/internal/hook"
)

// TestSwitches: agents and sessions are off by name, for hooks, for the conversations of plugins and
// for MCP servers; what is on leaves no file.
func TestSwitches(t *testing.T) {
	data := t.TempDir()
	set := func(off bool, names ...string) error {
		return UpdateSwitches(t.Context(), data, func(s *Switches) error {
			for _, name := range names {
				s.Set(name, off)
			}
			return nil
		})
	}
	var all sync.WaitGroup
	for _, name := range []string{"s1", "s.2", "codex", "codex"} { // at once
		all.Go(func() {
			if err := set(true, name); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	s, err := LoadSwitches(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		agent, session string
		off            bool
	}{
		{"codex", "", true}, {"codex", "any", true}, {"pi", "any", false}, {"pi", "s1", true}, {"", "", false}, {"pi", "s11", false},
	} {
		if got := s.Off(tt.agent, tt.session); (got != "") != tt.off {
			t.Errorf("%s %s: %q", tt.agent, tt.session, got)
		}
	}
	for thread, off := range map[string]bool{
		"codex.x": true, "codex": false, "opencode.s1": true, "opencode.s1.msg_2": true, "opencode.s12": false, "pi.s.2": true, "pi.s.2.e4": true, "pi.s": false, "s1": false,
	} {
		if got := s.OffThread(thread); (got != "") != off {
			t.Errorf("%s: %q", thread, got)
		}
	}
	if err := set(false, "s1", "s.2", "codex"); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(data); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v: %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(data, switchesName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadSwitches(data); err == nil {
		t.Error("a broken file is read")
	}
}

// TestVersions: a version is read off the files of a program, and compared by its numbers.
func TestVersions(t *testing.T) {
	home := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("npm/node_modules/x/package.json", `{"name":"x","version":"1.2.3"}`)
	for path, want := range map[string]string{
		put("share/claude/versions/2.1.330", ""): "2.1.330",
		put("opt/v0.171.0-beta.1/bin/codex", ""): "0.171.0-beta.1",
		put("npm/node_modules/x/bin/x.js", ""):   "1.2.3",
		put("plain/bin/x", ""):                   "",
		filepath.Join(home, "none"):              "",
	} {
		if got := versionOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for _, tt := range []struct {
		version, than string
		newer         bool
	}{
		{"2.1.331", "2.1.330", true}, {"2.1.330", "2.1.330", false}, {"2.1.9", "2.1.330", false}, {"2.10.0", "2.9.9", true}, {"", "1.0", false}, {"1.0", "", false}, {"x", "1", false},
	} {
		if got := Newer(tt.version, tt.than); got != tt.newer {
			t.Errorf("%q after %q: %v", tt.version, tt.than, got)
		}
	}
}

// TestStatusLine: the status line that was there first runs first, and the next installation, by a program
// that is elsewhere, puts itself in the place of ours alone.
func TestStatusLine(t *testing.T) {
	for _, tt := range []struct{ doc, want string }{
		{`{}`, `palimpsest statusline`},
		{`{"statusLine":{"type":"command","command":"a 'b'"}}`, `palimpsest statusline --after 'a '\''b'\'''`},
		{`{"statusLine":{"type":"command","command":"\"/old/palimpsest\" statusline"}}`, `palimpsest statusline`},
		{`{"statusLine":{"type":"command","command":"\"/old/palimpsest\" statusline --after 'a'"}}`, `palimpsest statusline --after 'a'`},
	} {
		e := Edit{Kind: statusLine, Path: []string{"statusLine"}, Value: "palimpsest"}
		out, err := e.apply([]byte(tt.doc))
		if got := gjson.GetBytes(out, "statusLine.command").Str; err != nil || got != tt.want {
			t.Errorf("%s: %v: %s, want %s", tt.doc, err, got, tt.want)
		}
		if ours := strings.Contains(tt.doc, "palimpsest"); (e.Old == "") != (ours || tt.doc == "{}") {
			t.Errorf("%s: it goes back to %q", tt.doc, e.Old)
		}
		if again, err := e.apply(out); err != nil || string(again) != string(out) {
			t.Errorf("%s: %v: again it is %s", tt.doc, err, again)
		}
	}
	e := Edit{Kind: statusLine, Path: []string{"statusLine"}, Value: "palimpsest"}
	if _, err := e.apply([]byte(`{"statusLine":{"type":"text"}}`)); !errors.Is(err, ErrOthers) {
		t.Errorf("another form: %v", err)
	}
}

// TestAgents: every agent can be connected in some way, and the docs name what was tried.
func TestAgents(t *testing.T) {
	docs, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range agents {
		if len(a.Usual()) == 0 || a.program == "" || slices.Contains(a.parts, Plugin) != (len(integrations.Plugin(a.Name)) > 0) ||
			slices.Contains(a.parts, Hooks) != slices.Contains(hook.Names(), a.Name) || slices.Contains(a.parts, MCP) != (a.mcp != nil) {
			t.Errorf("%s: %+v", a.Name, a)
		}
		if a.Tried != "" && !strings.Contains(string(docs), a.Tried) {
			t.Errorf("%s: docs/agents.md does not name %s", a.Name, a.Tried)
		}
	}
}
