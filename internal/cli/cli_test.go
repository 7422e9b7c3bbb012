package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
)

// Errors reach people without the names of the functions they came through.
func TestMessage(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: want one FILE", errUsage), "want one FILE"},
		{errors.New("a.json: palimpsest.Render(run (1)): render.Render: plan.Validate: it is for another thread"), "a.json: palimpsest.Render(run (1)): it is for another thread"},
		{errors.New("a.json: palimpsest.Render(run-1): render.Render: plan.Validate: it is for another thread"), "a.json: it is for another thread"},
		{fmt.Errorf("transcript: %w", &fs.PathError{Op: "open", Path: "a.json", Err: fs.ErrNotExist}), "a.json: file does not exist"},
		{errors.New("sqlite.Append(small/st): no space left on device"), "no space left on device"},
		{fmt.Errorf("policy: %w: unknown policy", errUsage), "policy: unknown policy"},
		{errors.New("tool \x1b[2Jsaid\u202e so"), `tool \x1b[2Jsaid\u202e so`},
		{errors.New("unknown command \"x\"\n\nDid you mean this?\n\tcompact\n\n"), "unknown command \"x\"\nDid you mean this?\n  compact"},
		{errors.New("the file plan.json: broken"), "the file plan.json: broken"},
	} {
		if got := ErrorText(c.err); got != c.want {
			t.Errorf("message(%q) = %q, want %q", c.err, got, c.want)
		}
	}
}

// full is an output that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A command whose output is lost has failed, whatever it writes.
func TestOutputIsLost(t *testing.T) {
	for _, args := range []string{"--help", "models", "models --json", "policy list", "policy schema", "config show", "inspect ../../testdata/sessions/fix-retry.claude-code.jsonl"} {
		var told bytes.Buffer
		status := Run(t.Context(), strings.Fields(args), Streams{In: strings.NewReader(""), Out: full{}, Err: &told})
		if status != exitFailed || !strings.Contains(told.String(), "no space left on device") {
			t.Errorf("%s: status %d, told %q", args, status, told.String())
		}
	}
}

// Only a terminal gets colours, and NO_COLOR is heard.
func TestColours(t *testing.T) {
	var plain, coloured bytes.Buffer
	for w, on := range map[*bytes.Buffer]bool{&plain: false, &coloured: true} {
		p := &printer{w: w, colour: on}
		p.section("tools", []string{"tool", ">calls"}, [][]string{{"Read\x1b[31m", "3"}})
	}
	if strings.Contains(plain.String(), "\x1b") {
		t.Errorf("colours without a terminal: %q", plain.String())
	}
	if got := coloured.String(); !strings.Contains(got, "\x1b[1mtools\x1b[0m") || strings.Contains(got, "\x1b[31m") {
		t.Errorf("the heading is not bold, or a cell has its own colours: %q", got)
	}
	if newPrinter(&plain).colour {
		t.Error("a buffer is taken for a terminal")
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "report"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if newPrinter(f).colour {
		t.Error("a file is taken for a terminal")
	}
}

// The same command twice gives the same prompt and the same report, also on
// long real sessions: nothing depends on the order of a map.
func TestTwiceTheSame(t *testing.T) {
	dir := corpus.Dir(t, "transcripts")
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	for _, name := range corpus.EveryNth([]string{"entire-cli/long-720c20f08988-0.jsonl.gz", "pi-mono/before-compaction.jsonl.gz"}, 2) {
		path := filepath.Join(dir, name)
		for _, args := range [][]string{{"inspect", path}, {"compact", path, "--budget", "16k"}, {"plan", path, "--budget", "16k", "--policy", "ladder"}} {
			_, first, report := run(t, args...)
			if _, again, told := run(t, args...); again != first || told != report {
				t.Errorf("%s %s: two runs differ", args[0], name)
			}
		}
	}
}

// A file keeps its mode when it is replaced, a new one follows the umask, and
// nothing is left beside them.
func TestWriteKeepsModes(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret.json")
	if err := os.WriteFile(secret, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{secret, filepath.Join(dir, "new.json")} {
		if err := WriteOutput(path, []byte("new"), nil); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(secret)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the mode became %v", info.Mode())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}

// A name that the disk refuses leaves nothing behind, and says so.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	err := WriteOutput(filepath.Join(dir, strings.Repeat("x", 300)), []byte("new"), nil)
	if err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("something was left: %v", entries)
	}
}

// Ctrl-C ends a command that waits for standard input.
func TestInterruptWhileWaiting(t *testing.T) {
	for _, args := range [][]string{{"compact", "-", "--budget", "8000"}, {"inspect", "-"}, {"check", "-", "--to", "openai"}} {
		r, w := io.Pipe() // nobody writes
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan int)
		var errs bytes.Buffer
		go func() { ended <- Run(ctx, args, Streams{In: r, Out: io.Discard, Err: &errs}) }()
		cancel()
		if status := <-ended; status != exitFailed {
			t.Errorf("%s: exit status %d, want %d", args[0], status, exitFailed)
		}
		if got := errs.String(); got != "palimpsest: interrupted\n" {
			t.Errorf("%s says %q", args[0], got)
		}
		w.Close()
	}
}

// TestDiffOfOtherSession: plans of different conversations are not compared.
func TestDiffOfOtherSession(t *testing.T) {
	one, other := filepath.Join(t.TempDir(), "one.json"), filepath.Join(t.TempDir(), "other.json")
	if status, _, told := run(t, "plan", smallSession, "--budget", "3000", "--plan-out", one); status != exitDone {
		t.Fatal(told)
	}
	data, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	data = regexp.MustCompile(`("thread_id": ?)"[^"]+"`).ReplaceAll(data, []byte(`$1"another"`))
	if err := os.WriteFile(other, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, out, told := run(t, "diff", one, other); status != exitInvalid || out != "" || !strings.Contains(told, "different threads") {
		t.Errorf("status %d, %q, told %q", status, out, told)
	}
}

// TestLikeFlag: a mistyped flag is told with the one that is like it, of the command and of a command below another.
func TestLikeFlag(t *testing.T) {
	for args, want := range map[string]string{
		"plan x.jsonl --bugdet 8000": "unknown flag: --bugdet (did you mean --budget?)",
		"artifact list --tred x":     "unknown flag: --tred (did you mean --thread?)",
		"run --budget 8000 claude":   "unknown flag: --budget (did you mean --window?)",
		"plan x.jsonl --zzzzzz":      "unknown flag: --zzzzzz\n",
	} {
		if status, _, told := run(t, strings.Fields(args)...); status != exitUsage || !strings.Contains(told, want) {
			t.Errorf("%s: status %d, told %q", args, status, told)
		}
	}
}
