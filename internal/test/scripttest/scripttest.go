// Package scripttest runs commands as their users do: by scripts, in a folder that holds the
// sample sessions of the project.
package scripttest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
)

// Command is a program that runs within this process: it executes one command line and
// returns the exit status.
type Command func(ctx context.Context, args []string, s cli.Streams) int

// Run runs the scripts in testdata/script: "exec NAME" is a process of its own, "run NAME" is the
// same command within this one, which need not start and read its tables anew. With
// PALIMPSEST_LONG=all each is a process. The program must be known to testscript.Main.
func Run(t *testing.T, name string, command Command) {
	t.Helper()
	sessions := filepath.Join(corpus.Root(t), "testdata", "sessions")
	scripts, err := filepath.Abs("testdata/script")
	if err != nil {
		t.Fatal(err)
	}
	inProcess := newWithin(t, name, command)
	testscript.Run(t, testscript.Params{
		Dir:                 scripts,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			// What is taken out is kept here, not in the data of who runs the tests.
			e.Setenv("XDG_DATA_HOME", filepath.Join(e.WorkDir, ".data"))
			// A process of a tenth of a second needs no memory back.
			e.Setenv("GOGC", "400")
			for _, name := range []string{"fix-retry.claude-code.jsonl", "import-csv.openai-chat.json", "small.openai-chat.json"} {
				data, err := os.ReadFile(filepath.Join(sessions, name))
				if err != nil {
					return err
				}
				short := strings.SplitN(name, ".", 2)[0] + filepath.Ext(name)
				if err := os.WriteFile(filepath.Join(e.WorkDir, short), data, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"run": func(ts *testscript.TestScript, neg bool, args []string) {
				if status := inProcess.run(ts, args); (status != 0) != neg {
					ts.Fatalf("exit status %d", status)
				}
			},
			"exits": inProcess.exits, "json": isJSON, "columns": columns, "clean": clean, "only": only, "cut": cutFile, "replace": replace,
		},
	})
}

// within runs commands in this process, one after the other: they share its directory and
// its environment.
type within struct {
	sync.Mutex
	name    string
	command Command
}

// scriptVariables are what a command in this process sees of its script's environment. One
// that depends on another variable is a process.
var scriptVariables = []string{"HOME", "PATH", "TMPDIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"}

// newWithin leaves to the test no more of the environment than a script has.
func newWithin(t *testing.T, program string, command Command) *within {
	t.Helper()
	t.Chdir(".") // back to it in the end
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if !slices.Contains(scriptVariables, name) && name != "PALIMPSEST_LONG" {
			t.Setenv(name, value) // and that back to what it was
			os.Unsetenv(name)
		}
	}
	for _, name := range scriptVariables {
		t.Setenv(name, os.Getenv(name))
	}
	return &within{name: program, command: command}
}

// run runs the command and returns its exit status.
func (w *within) run(ts *testscript.TestScript, args []string) int {
	if len(args) == 0 || args[0] != w.name {
		ts.Fatalf("run runs %s, not %q", w.name, args)
	}
	if corpus.Longest() {
		return statusOf(ts, args)
	}
	w.Lock()
	defer w.Unlock()
	ts.Check(os.Chdir(ts.MkAbs(".")))
	for _, name := range scriptVariables {
		ts.Check(os.Setenv(name, ts.Getenv(name)))
	}
	return w.command(context.Background(), args[1:], cli.Streams{In: strings.NewReader(""), Out: ts.Stdout(), Err: ts.Stderr()})
}

// statusOf runs a program and returns its exit status.
func statusOf(ts *testscript.TestScript, args []string) int {
	err := ts.Exec(args[0], args[1:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

// exits wants an exact exit status: exits 4 run NAME …, or exits 4 exec PROGRAM …
func (w *within) exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var got int
	switch args[1] {
	case "exec":
		got = statusOf(ts, args[2:])
	case "run":
		got = w.run(ts, args[2:])
	default:
		ts.Fatalf("exits takes run or exec, not %s", args[1])
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d: %s", got, want, strings.Join(args[1:], " "))
	}
}

// isJSON wants a file (or stdout, stderr) to hold exactly one JSON value, with
// the fields named: json stderr tokens_after
func isJSON(ts *testscript.TestScript, _ bool, args []string) {
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	var v any
	if err := d.Decode(&v); err != nil {
		ts.Fatalf("%s is not JSON: %v", args[0], err)
	}
	if d.Decode(new(any)) != io.EOF {
		ts.Fatalf("%s holds more than one JSON value", args[0])
	}
	for _, path := range args[1:] {
		at := v
		for name := range strings.SplitSeq(path, ".") {
			object, _ := at.(map[string]any)
			var ok bool
			if at, ok = object[name]; !ok {
				ts.Fatalf("%s has no %s", args[0], path)
			}
		}
	}
}

// columns wants every line to fit: columns stdout 100
func columns(ts *testscript.TestScript, _ bool, args []string) {
	most, err := strconv.Atoi(args[1])
	ts.Check(err)
	for line := range strings.SplitSeq(ts.ReadFile(args[0]), "\n") {
		if n := utf8.RuneCountInString(line); n > most {
			ts.Fatalf("a line of %d columns, want at most %d:\n%s", n, most, line)
		}
	}
}

// clean wants text that a terminal may print: no control character but line ends.
func clean(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	for i, r := range text {
		if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r == utf8.RuneError {
			ts.Fatalf("%s has %U at byte %d: %q", args[0], r, i, text[max(0, i-20):min(len(text), i+20)])
		}
	}
}

// only wants a directory to hold exactly these names: only out a.json b.json
func only(ts *testscript.TestScript, _ bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	want := slices.Sorted(slices.Values(args[1:]))
	if !slices.Equal(got, want) {
		ts.Fatalf("%s holds %v, want %v", args[0], got, want)
	}
}

// cutFile keeps the first bytes of a file: cut FILE BYTES NEW
func cutFile(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	data := ts.ReadFile(args[0])
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(data[:n]), 0o644))
}

// replace replaces one line of a file: replace FILE LINE TEXT NEW. The text is
// a Go string without its quotes, so that it can hold any byte.
func replace(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	text, err := strconv.Unquote(`"` + args[2] + `"`)
	ts.Check(err)
	lines := strings.Split(ts.ReadFile(args[0]), "\n")
	lines[n-1] = text
	ts.Check(os.WriteFile(ts.MkAbs(args[3]), []byte(strings.Join(lines, "\n")), 0o644))
}
