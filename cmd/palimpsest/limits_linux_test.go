package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
)

// endless writes a session whose message is a line of so many megabytes.
type endless struct {
	before, line string
	megabytes    int
}

func (e endless) WriteTo(w io.Writer) (int64, error) {
	chunk := strings.Repeat("words and ", 100_000)
	if _, err := io.WriteString(w, e.before+e.line); err != nil {
		return 0, err
	}
	for range e.megabytes {
		if _, err := io.WriteString(w, chunk); err != nil {
			return 0, err
		}
	}
	_, err := io.WriteString(w, "\"}}\n")
	return 0, err
}

// A line of 200 MB ends with a plain word and without filling the memory,
// wherever it stands.
func TestEndlessLine(t *testing.T) {
	const line = `{"type":"user","uuid":"b","sessionId":"s","message":{"role":"user","content":"`
	for name, before := range map[string]string{
		"first":  "",
		"second": `{"type":"user","uuid":"a","sessionId":"s","message":{"role":"user","content":"hi"}}` + "\n",
	} {
		for _, args := range [][]string{
			{"compact", "-", "--budget", "8000"},
			{"inspect", "-"},
			{"check", "-", "--to", "anthropic"},
		} {
			if !corpus.Long() && (args[0] == "compact") != (before == "") {
				continue // each command with one of the two
			}
			t.Run(name+" "+args[0], func(t *testing.T) {
				cmd := exec.Command("palimpsest", args...)
				cmd.Env = append(os.Environ(), "GOGC=100") // the memory of a program as it is run
				var out, errs bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errs
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				// The command stops reading at its limit, so that writing fails.
				_, _ = endless{before, line, 200}.WriteTo(in)
				in.Close()
				_ = cmd.Wait()
				if got := cmd.ProcessState.ExitCode(); got != 4 {
					t.Errorf("exit status %d, want 4: %s", got, errs.String())
				}
				if got := errs.String(); !strings.Contains(got, "64 MB") || len(got) > 300 {
					t.Errorf("the message does not say the limit briefly: %s", got)
				}
				if out.Len() > 0 {
					t.Errorf("wrote %d bytes", out.Len())
				}
				usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
				// A few times the limit: the garbage collector may be a cycle late.
				if mb := usage.Maxrss >> 10; mb > 500 {
					t.Errorf("took %d MB of memory, want at most 500", mb)
				} else {
					t.Logf("%d MB", mb)
				}
			})
		}
	}
}
