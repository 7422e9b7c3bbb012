//go:build unix

package hostile_test

import (
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/hostile"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// sampleOf is the smallest recorded file of a format.
func sampleOf(t *testing.T, format transcript.Format) (name string, data []byte) {
	t.Helper()
	const dir = "../../../transcript/testdata"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), string(format))
		if !ok || strings.HasSuffix(rest, ".golden") || name != "" && len(e.Name()) >= len(name) {
			continue
		}
		name = e.Name()
	}
	if data, err = os.ReadFile(filepath.Join(dir, name)); err != nil || name == "" {
		t.Fatalf("the format %s has no sample: %v", format, err)
	}
	return name, data
}

// reads is a command that reads a file: FILE stands for the hostile one, and OK for an
// ordinary one of the same kind.
type reads struct {
	kind string // of its ordinary file: transcript, plan, policy, export, settings, models
	args []string
	// dear ones take seconds for an ordinary file, and get few cases.
	dear bool
}

// commands are the commands of the program; those that read no file have none. One
// that is not here fails the test.
var commands = map[string][]reads{
	"compact": {
		{"transcript", []string{"compact", "FILE", "--budget", "6000", "--store", "memory:", "-o", "out.json"}, false},
		{"policy", []string{"compact", "session.json", "--budget", "6000", "--store", "memory:", "-o", "out.json", "--policy", "FILE"}, false},
		{"models", []string{"compact", "session.json", "--model", "m", "--store", "memory:", "-o", "out.json", "--models", "FILE"}, false},
	},
	"inspect": {{"transcript", []string{"inspect", "FILE"}, false}},
	"plan":    {{"transcript", []string{"plan", "FILE", "--budget", "6000"}, false}},
	"render":  {{"transcript", []string{"render", "FILE", "--plan", "plan.json"}, false}, {"plan", []string{"render", "session.json", "--plan", "FILE"}, false}},
	"diff":    {{"plan", []string{"diff", "plan.json", "FILE"}, false}},
	"check":   {{"transcript", []string{"check", "FILE", "--to", "openai"}, false}},
	"eval":    {{"transcript", []string{"eval", "FILE", "--budget", "4000"}, true}},
	"models":  {{"models", []string{"models", "--models", "FILE"}, false}},

	"db import":   {{"export", []string{"db", "import", "FILE", "--store", "memory:"}, false}},
	"policy show": {{"policy", []string{"policy", "show", "FILE"}, false}},
	"config show": {{"settings", []string{"config", "show", "--config", "FILE"}, false}},
	"db check":    {{"store", []string{"db", "check", "--store", "FILE"}, false}},
	"keys list":   {{"store", []string{"keys", "list", "--store", "FILE"}, false}},
	// They read a store as "db check" does.
	"artifact get": nil, "artifact list": nil, "recall": nil, "threads": nil, "threads delete": nil, "undo": nil, "pin": nil, "expand": nil, "db export": nil, "db reseal": nil, "db stats": nil, "db vacuum": nil,
	"keys add": nil, "keys revoke": nil, "keys master": nil, "keys rotate": nil, "keys erase": nil,
	// Requests are what they read: see the daemon and the proxy.
	"serve": nil, "run": nil,
	// They read what a daemon of the user's says at its socket.
	"daemon": nil, "daemon stop": nil,
	// What they read on standard input has tests of its own: mcp_test.go, hook_test.go.
	"mcp": nil, "hook": nil,
	"hook install": nil, "hook remove": nil, "plugin install": nil, "plugin remove": nil,
	// What they read are settings of agents, and the input and the transcript of a status line:
	// members_test.go, install_test.go, statusline_test.go.
	"install": nil, "uninstall": nil, "on": nil, "off": nil, "doctor": nil, "statusline": nil,
	"lost":    {{"transcript", []string{"lost", "FILE"}, false}},
	"explain": {{"transcript", []string{"explain", "FILE", "--budget", "6000", "-o", "out.json"}, false}},
	// It reads what compact reads, and never writes over a file.
	"handoff": nil,
	// The formats that agents keep their sessions in are those of transcripts.
	"sessions": nil,
	"version":  nil, "health": nil, "man": nil, "policy list": nil, "policy schema": nil,
}

// TestCommands: whatever a file holds, each command that reads it ends with a status
// of its own and few words, within its memory and time.
func TestCommands(t *testing.T) {
	c := startChild(t)
	dir := t.TempDir()
	session, err := os.ReadFile("../../../testdata/sessions/import-csv.openai-chat.json")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	run := func(args ...string) done {
		t.Helper()
		d := c.do(t, order{Args: args})
		if d.Status != 0 {
			t.Fatalf("%q: status %d: %s", args, d.Status, d.Said)
		}
		return d
	}
	small, err := os.ReadFile("../../../testdata/sessions/small.openai-chat.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "hostile"), 0o700); err != nil {
		t.Fatal(err)
	}
	samples := map[string][]byte{"small": small, "transcript": session, "models": []byte(`{"models":[{"name":"m","provider":"p","window":20000,"counter":"chars/4","date":"2026-01-01","source":"https://example.com"}]}`), "settings": []byte("listen: 127.0.0.1:7433\nwindow: 20000\nlog-level: info\n")}
	file, store := write("session.json", session), filepath.Join(dir, "store.db")
	plan, out := filepath.Join(dir, "plan.json"), filepath.Join(dir, "out.json")
	run("compact", file, "--budget", "6000", "--store", store, "--plan-out", plan, "-o", out)
	run("db", "export", "--store", store, "-o", filepath.Join(dir, "export.jsonl"))
	for kind, name := range map[string]string{"plan": "plan.json", "export": "export.jsonl", "store": "store.db"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		samples[kind] = data
	}
	for name, line := range map[string]string{"policy": "auto"} {
		d := run("policy", "show", line)
		samples[name] = []byte(d.Text)
	}
	listed := listCommands(t, c, nil)
	if len(listed) < 20 {
		t.Fatalf("the help lists %q", listed)
	}
	for _, name := range listed {
		if _, ok := commands[name]; !ok {
			t.Errorf("the command %q is not listed here: say which files it reads", name)
		}
	}
	n, share := size()
	first := 0
	for _, name := range listed {
		for _, r := range commands[name] {
			t.Run(name+" "+r.kind, func(t *testing.T) {
				first++
				sample, ordinary := samples[r.kind], samples[r.kind]
				cases := inTurn(slices.Values(hostile.Whole(n)), slices.Values(hostile.Broken(sample, n)), hostile.Changed(sample, n, first, share), slices.Values(plainPacked(sample, n)))
				if !corpus.Long() { // a part, another one for each
					cases = inTurn(slices.Values(some(slices.Concat(hostile.Whole(n), hostile.Broken(sample, n), plainPacked(sample, n)), first, share)), hostile.Changed(sample, n, first, share))
				}
				if r.dear && !corpus.Long() {
					t.Skip("it takes seconds for each file")
				}
				if r.dear {
					sample = samples["small"]
					cases = hostile.Changed(sample, n/4, first, 4*share)
				}
				if r.kind == "transcript" || r.kind == "plan" || r.kind == "export" {
					ordinary = longest(sample, rawjson.Quote(prose(n)))
				}
				trial(t, c, cases, sample, ordinary, func(data []byte) order {
					hostileFile := write("hostile/session.json", data) // the name of the thread that plan.json is for
					args := slices.Clone(r.args)
					for i, a := range args {
						switch a {
						case "FILE":
							args[i] = hostileFile
						case "session.json", "plan.json", "out.json":
							args[i] = filepath.Join(dir, a)
						}
					}
					return order{Args: args}
				}, nil)
			})
		}
	}
}

// plainPacked are the packings that a file may have.
func plainPacked(sample []byte, n int) []hostile.Case {
	return slices.DeleteFunc(hostile.Packed(sample, n/8), func(c hostile.Case) bool { return c.Encoding != "gzip" })
}

// trial runs a command on each case, and sees that it ends well: good, unless it is
// nil, says more of what that is.
func trial(t *testing.T, c *child, cases iter.Seq[hostile.Case], sample, ordinary []byte, orders func(data []byte) order, good func(done) bool) {
	t.Helper()
	d := c.do(t, orders(ordinary))
	if d = c.do(t, orders(ordinary)); d.Status != 0 && d.Status < 3 {
		t.Fatalf("an ordinary one: status %d: %s", d.Status, d.Said)
	}
	at := "an ordinary one"
	defer func() {
		if t.Failed() {
			t.Logf("the last case: %s", at)
		}
	}()
	limit, w := ceiling{len(ordinary), d.CPU, d.Peak}, &worst{}
	for k := range cases {
		at = k.Name
		d := c.do(t, orders(k.Data))
		w.see(k.Name, d.figures)
		bytes := len(k.Data)
		if k.Encoding != "" {
			bytes = max(8<<20, 8*len(ordinary)) // what is unpacked
		}
		for again := 0; again < 3 && d.CPU > limit.mostCPU(bytes); again++ {
			d.CPU = min(d.CPU, c.do(t, orders(k.Data)).CPU)
		}
		t.Run(k.Name, func(t *testing.T) {
			limit.holds(t, bytes, d.figures)
			if good != nil && !good(d) || d.Status < 0 || d.Status > 4 || d.Status != 0 && (d.Said == "" || len(d.Said) > 6000) {
				t.Errorf("status %d, %d bytes are said: %.400s", d.Status, len(d.Said), d.Said)
			}
		})
	}
	w.tell(t, limit)
	if d := c.do(t, orders(sample)); d.Status != 0 && d.Status != 3 {
		t.Errorf("an ordinary one after them: status %d: %s", d.Status, d.Said)
	}
}

// listCommands finds the commands that do something in the help of the program.
func listCommands(t *testing.T, c *child, parent []string) (list []string) {
	t.Helper()
	d := c.do(t, order{Args: append(slices.Clone(parent), "--help")})
	_, rest, _ := strings.Cut(d.Text, "\nUsage:\n")
	listed := false // the lines below a heading are commands
	for line := range strings.Lines(rest) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if line[0] != ' ' {
			listed = !slices.Contains([]string{"Aliases:", "Examples:", "Flags:", "Global Flags:"}, strings.TrimSpace(line))
		} else if listed && fields[0] != "help" && fields[0] != "completion" {
			list = append(list, listCommands(t, c, append(slices.Clone(parent), fields[0]))...)
		}
	}
	if len(list) == 0 {
		return []string{strings.Join(parent, " ")}
	}
	return list
}

// TestFormats: whatever a transcript of any format holds, it is compacted or refused.
func TestFormats(t *testing.T) {
	c := startChild(t)
	dir := t.TempDir()
	n, share := size()
	policies := []string{"auto", "notes", "ladder", "session", "timeline", "workstream", "loop"}
	turn := 0
	for i, format := range transcript.Formats() {
		t.Run(string(format), func(t *testing.T) {
			name, sample := sampleOf(t, format)
			file := filepath.Join(dir, name)
			trial(t, c, inTurn(slices.Values(hostile.Broken(sample, n)), hostile.Changed(sample, n, i, share)), sample, longest(sample, rawjson.Quote(prose(n))), func(data []byte) order {
				if err := os.WriteFile(file, data, 0o600); err != nil {
					t.Fatal(err)
				}
				turn++
				return order{Args: []string{"compact", file, "--from", string(format), "--run", "1", "--budget", "3000", "--store", "memory:", "-o", filepath.Join(dir, "out"), "--policy", policies[turn%len(policies)]}}
			}, nil)
		})
	}
}
