package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/golden"
)

func TestMain(m *testing.M) {
	corpus.CollectLessOften()
	for _, setting := range []string{"PALIMPSEST_STORE", config.MasterFileEnv} { // not those of who runs the tests
		os.Setenv(setting, "")
	}
	home, again := os.LookupEnv("PALIMPSEST_TEST_HOME") // of the test that runs this program again
	if !again {
		var err error
		if home, err = os.MkdirTemp("", "home"); err != nil { // for what is kept of the sessions that are listed
			panic(err)
		}
		defer os.RemoveAll(home)
		os.Setenv("PALIMPSEST_TEST_HOME", home)
	}
	os.Setenv("HOME", home)
	m.Run()
}

// run runs one command line in this process.
func run(t testing.TB, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = Run(context.Background(), args, Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	return status, out.String(), errs.String()
}

// The reports of the sample sessions, as a person sees them.
func TestGoldenReports(t *testing.T) {
	reports, err := filepath.Abs("testdata/golden")
	if err != nil {
		t.Fatal(err)
	}
	// The prompt names a store other than the usual one, and a temporary folder's name does not
	// count the same in every run.
	dir, data := alone(t), filepath.Join("data", "palimpsest")
	if err := os.CopyFS(dir, os.DirFS("../../testdata/sessions")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, session := range []struct{ file, budget string }{
		{"fix-retry.claude-code.jsonl", "16000"},
		{"import-csv.openai-chat.json", "16000"},
		{"small.openai-chat.json", "3000"},
	} {
		short, _, _ := strings.Cut(session.file, ".")
		for name, args := range map[string][]string{
			"inspect": {"inspect", session.file},
			"plan":    {"plan", session.file, "--budget", session.budget},
			"compact": {"compact", session.file, "--budget", session.budget, "-o", os.DevNull},
		} {
			t.Run(short+"."+name, func(t *testing.T) {
				status, stdout, stderr := run(t, args...)
				if status != exitDone {
					t.Fatalf("exit status %d: %s", status, stderr)
				}
				got := strings.ReplaceAll(stdout+stderr, filepath.Join(dir, data), data)
				readable(t, got)
				golden.Equal(t, filepath.Join(reports, short+"."+name+".txt"), got)
			})
		}
	}
}

// readable wants a report that fits a terminal and cannot steer it.
func readable(t *testing.T, report string) {
	t.Helper()
	for line := range strings.SplitSeq(report, "\n") {
		// A line to be copied may be longer, and so may one long word.
		if n := utf8.RuneCountInString(line); n > width && strings.Count(strings.TrimSpace(line), " ") > 5 && !strings.HasPrefix(line, "see: ") {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	if clean := printable(strings.ReplaceAll(report, "\n", "\\")); clean != strings.ReplaceAll(report, "\n", "\\") {
		t.Error("the report holds characters that steer a terminal")
	}
}

// numbers are the fields of a report and of an inspection that must add up.
type numbers struct {
	Budget, Before, After int
	System, Tools         int
	Framing               tokenShare
	Roles                 []tokenShare
	Repairs               int
}

func (n *numbers) UnmarshalJSON(data []byte) error {
	var r report
	var record struct {
		Records json.RawMessage `json:"records"`
	}
	if err := json.Unmarshal(data, &record); err != nil {
		return err
	}
	// The records are of no interest, and an action is only ever written.
	data = bytes.Replace(data, record.Records, []byte("null"), 1)
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	*n = numbers{r.Budget, r.Before, r.After, r.System, r.Tools, r.Framing, r.Roles, len(r.Repairs)}
	return nil
}

// On real transcripts, in a long run of every format, the parts add up to the whole, the whole
// meets the budget, and the reports can be read.
func TestReportsOfCorpus(t *testing.T) {
	dir := corpus.Dir(t, "transcripts")
	out := filepath.Join(t.TempDir(), "prompt.json")
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	for _, c := range corpus.EveryNth([]struct{ pattern, budget, run string }{
		{"pi-mono/before-compaction.jsonl.gz", "32k", ""},
		{"entire-cli/long-bccb77bb88fa-1.jsonl.gz", "16k", ""},
		{"entire-cli/long-adff0201aecb-0.jsonl.gz", "8k", ""},
		{"entire-cli/long-5c5cb639eac4-0.jsonl.gz", "32k", ""},
		{"entire-cli/mid-4080b6c2257f-0.jsonl.gz", "8k", ""},
		{"tau-bench/gpt-4o-airline-public.jsonl.gz", "4k", "5"},
		{"swe-agent/867__default*.gz", "4k", ""},
		{"swe-agent/play__*.gz", "4k", ""},
		{"own-runs/codex-rollout.jsonl.gz", "16k", ""},
		{"own-runs/pi-session.jsonl.gz", "16k", ""},
		{"own-runs/claude-code.jsonl.gz", "16k", ""},
		{"entire-cli-gemini/gemini-12cbfeaa512b-0.json", "8k", ""},
		{"pydantic-ai-cassettes/anthropic-messages.jsonl.gz", "8k", "1"},
		{"pydantic-ai-cassettes/openai-responses.jsonl.gz", "8k", "8"},
		{"pydantic-ai-cassettes/openai-chat.jsonl.gz", "8k", "2"},
		{"pydantic-ai-cassettes/gemini-generatecontent.jsonl.gz", "8k", "3"},
		{"docent-inspect/ctf-gpt-4o.jsonl.gz", "4k", "1"},
	}, 4) {
		found, err := filepath.Glob(filepath.Join(dir, c.pattern))
		if err != nil || len(found) == 0 {
			t.Errorf("%s: not in the corpus (%v)", c.pattern, err)
			continue
		}
		t.Run(filepath.Base(found[0])+" "+c.budget, func(t *testing.T) {
			args := []string{found[0]}
			if c.run != "" {
				args = append(args, "--run", c.run)
			}
			status, text, errs := run(t, append([]string{"inspect"}, args...)...)
			if status != exitDone {
				t.Fatalf("inspect: %s", errs)
			}
			readable(t, text)
			status, text, _ = run(t, append([]string{"inspect", "--json"}, args...)...)
			var seen inspection
			if err := json.Unmarshal([]byte(text), &seen); err != nil || status != exitDone {
				t.Fatal(status, err)
			}
			sum := seen.System + seen.Tools + seen.Framing
			for _, k := range seen.Kinds {
				sum += k.Tokens
			}
			if sum != seen.Tokens {
				t.Errorf("inspect: the parts are %d tokens, the whole %d", sum, seen.Tokens)
			}

			args = append(args, "--budget", c.budget)
			status, text, errs = run(t, append([]string{"plan"}, args...)...)
			if status != exitDone {
				t.Fatalf("plan: %s", errs)
			}
			readable(t, text)
			status, _, errs = run(t, append([]string{"compact", "-o", out, "--json"}, args...)...)
			if status != exitDone {
				t.Fatalf("compact: %s", errs)
			}
			var n numbers
			if err := json.Unmarshal([]byte(errs), &n); err != nil {
				t.Fatal(err)
			}
			before, after := n.System+n.Tools+n.Framing.Before, n.System+n.Tools+n.Framing.After
			for _, role := range n.Roles {
				before, after = before+role.Before, after+role.After
			}
			if before != n.Before || after != n.After {
				t.Errorf("the parts are %d and %d tokens, the whole %d and %d", before, after, n.Before, n.After)
			}
			if n.After > n.Budget {
				t.Errorf("%d tokens, the budget is %d", n.After, n.Budget)
			}
			// What is left over is the frame that every request has, and the
			// notes that mend the log: nothing hides there.
			if n.Framing.After < seen.Framing || n.Repairs == 0 && n.Framing.After != seen.Framing {
				t.Errorf("the frame is %d tokens, what is left over %d with %d repairs", seen.Framing, n.Framing.After, n.Repairs)
			}
			if f := n.Framing.Before; f < seen.Framing || f > seen.Framing+300 {
				t.Errorf("the frame is %d tokens, what is left over before is %d", seen.Framing, f)
			}
		})
	}
}
