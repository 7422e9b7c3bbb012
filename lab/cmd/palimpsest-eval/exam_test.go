package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/lab/eval/exam"
	"github.com/palimpsest-ai/palimpsest/token"
)

// evaluate runs one command line.
func evaluate(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	return status, out.String(), errs.String()
}

// TestExamOfSessions: of real sessions every policy makes a prompt, and those that
// fill a budget keep to it as text.
func TestExamOfSessions(t *testing.T) {
	exams, err := filepath.Glob(filepath.Join(corpus.Dir(t, "reader"), "*", "exam.json"))
	if err != nil || len(exams) == 0 {
		t.Fatalf("no exam there: %v", err)
	}
	counter, err := token.New(examCounter, nil)
	if err != nil {
		t.Fatal(err)
	}
	sized := []string{"session", "timeline", "workstream", "loop"}
	filling := []string{"auto", "ladder", "last-tokens:2000", "last-messages:10", "last-turns:2", "ratio:0.1"}
	budgets := []string{"own", "16k", "5%"} // each exam in one of them
	args := []string{"--exam", "--json", "--contender", exam.OwnSummary}
	for _, name := range append(sized, filling...) {
		args = append(args, "--contender", name)
	}
	keeps := map[string]bool{exam.OwnSummary: true}
	for _, name := range filling {
		keeps[name] = true
	}
	for n, path := range corpus.EveryNth(exams, len(exams)) {
		out := filepath.Join(t.TempDir(), "out")
		status, stdout, stderr := evaluate(t, append(args, "-o", out, "--budget", budgets[n%len(budgets)], filepath.Dir(path))...)
		var k exam.Key
		if err := json.Unmarshal([]byte(stdout), &k); status != 0 || err != nil || stderr != "" {
			t.Fatalf("status %d, %v, %s", status, err, stderr)
		}
		if want := len(sized) + len(filling) + 1; len(k.Readers) != want || len(k.Missing) > 0 {
			t.Errorf("%d prompts and not %d; not made: %+v", len(k.Readers), want, k.Missing)
		}
		for _, r := range k.Readers {
			text, err := os.ReadFile(filepath.Join(out, "readers", r.Number, "prompt.txt"))
			if err != nil {
				t.Fatal(err)
			}
			if size := counter.Text(string(text)); size != r.Size || r.Over != (size > r.Limit) || keeps[r.Contender] && r.Over || size == 0 {
				t.Errorf("%s at %s in %s: %d tokens, told are %d of %d", r.Contender, r.Budget, r.Session, size, r.Size, r.Limit)
			}
			if r.Contender == exam.OwnSummary && !strings.HasPrefix(string(text), "=== user\n") {
				t.Errorf("%s begins %.40q", r.Session, text)
			}
		}
	}
}

// examOf makes a folder with one of the sample sessions and a question.
func examOf(t *testing.T, session string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "exam")
	data, err := os.ReadFile(filepath.Join("../../../testdata/sessions", session))
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	for name, text := range map[string]string{"history.json": string(data), "exam.json": `[{"id":"q","question":"What?","key":"That."}]`} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestExamStepByStep: the last request of a session in a window was compacted on
// the way, and fits what the window leaves beside the answer. A window that is none
// is refused.
func TestExamStepByStep(t *testing.T) {
	dir, out := examOf(t, "fix-retry.claude-code.jsonl"), filepath.Join(t.TempDir(), "out")
	status, stdout, stderr := evaluate(t, "--exam", dir, "-o", out, "--budget", "8k", "--contender", "auto@20k", "--json")
	var k exam.Key
	if err := json.Unmarshal([]byte(stdout), &k); status != 0 || err != nil || len(k.Readers) != 1 {
		t.Fatalf("status %d, %v, %s", status, err, stderr)
	}
	r := k.Readers[0]
	if n, _, _ := strings.Cut(r.Note, " "); n < "2" || !strings.Contains(r.Note, "compactions in a window of 20000 tokens") || r.Size == 0 || r.Size > 16_000 {
		t.Errorf("%d tokens, %s", r.Size, r.Note)
	}
	text, err := os.ReadFile(filepath.Join(out, "readers", r.Number, "prompt.txt"))
	if err != nil || !strings.Contains(string(text), "## Where the work stands") {
		t.Errorf("%v: no summary in %.200q", err, text)
	}
	for _, name := range []string{"auto@", "auto@10%", "auto@40k+model", "auto@40k+recall", "nobody@40k"} {
		if status, _, stderr := evaluate(t, "--exam", dir, "-o", out+"2", "--contender", name, "--budget", "8k"); status != 2 || stderr == "" {
			t.Errorf("%s: status %d, %s", name, status, stderr)
		}
	}
}

// TestExamWithRecall: the readers of NAME+recall find in their folder what was removed from
// their prompt; those of NAME are told to use nothing else.
func TestExamWithRecall(t *testing.T) {
	dir, out := examOf(t, "fix-retry.claude-code.jsonl"), filepath.Join(t.TempDir(), "out")
	status, stdout, stderr := evaluate(t, "--exam", dir, "-o", out, "--budget", "8k", "--contender", "auto", "--contender", "auto+recall", "--json")
	var k exam.Key
	if err := json.Unmarshal([]byte(stdout), &k); status != 0 || err != nil || len(k.Readers) != 2 {
		t.Fatalf("status %d, %v, %s", status, err, stderr)
	}
	var prompts []string
	for _, r := range k.Readers {
		folder := filepath.Join(out, "readers", r.Number)
		rules, err := os.ReadFile(filepath.Join(folder, "INSTRUCTIONS.txt"))
		text, err2 := os.ReadFile(filepath.Join(folder, "prompt.txt"))
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		prompts = append(prompts, string(text))
		store := filepath.Join(folder, exam.StoreFile)
		_, err = os.Stat(store)
		looks := r.Contender == "auto+recall"
		if told := strings.Contains(string(rules), "./look WORDS"); told != looks || (err == nil) != looks {
			t.Errorf("%s: told to look up: %v; %v", r.Contender, told, err)
		}
		if !looks {
			continue
		}
		script := func(name string, args ...string) string {
			shell, err := os.ReadFile(filepath.Join(folder, name))
			_, flags, is := strings.Cut(string(shell), " look ")
			if err != nil || !is || strings.HasPrefix(flags, "--read ") != (name == "read") {
				t.Fatalf("%s: %v", shell, err)
			}
			line := []string{"look", "--", folder}
			if name == "read" {
				line = []string{"look", "--read", "--", folder}
			}
			status, stdout, stderr := evaluate(t, append(line, args...)...)
			if (status == 0) != (stderr == "") {
				t.Errorf("status %d: %s", status, stderr)
			}
			return stdout + stderr
		}
		found := script("look", "retry")
		_, id, is := strings.Cut(found, "\n1. message ")
		if !is || !strings.Contains(found, "----- begin excerpt 1 -----") {
			t.Fatal(found)
		}
		id, _, _ = strings.Cut(id, ",")
		for n := 1; n <= exam.MaxLookups; n++ {
			read := script("read", id, "1")
			if refused := strings.Contains(read, "all 12 look-ups are used"); refused != (n == exam.MaxLookups) || !refused && !strings.Contains(read, "lines 1-") {
				t.Fatalf("look-up %d: %s", n+1, read)
			}
		}
	}
	if prompts[0] != prompts[1] {
		t.Error("the two contenders have different prompts")
	}
}

// good is an answer whose first item stands in the session and whose second one
// is invented.
const good = `{"facts":[{"text":"TestCreateTwiceIsAConflict fails: second POST = 500, want 409","sources":[1,2,3,4,5,6]},
	{"text":"The database password is hunter2-4711.","sources":[1,2,3]}],
	"decisions":[],"plan":[],"open_items":[],"failed_attempts":[],"tool_outcomes":[]}`

// TestExamWithModel: what policies ask a model lies in files, word for word and once;
// answers there go through the product, which says what it made of them, and only
// then there are prompts.
func TestExamWithModel(t *testing.T) {
	dir, out := examOf(t, "small.openai-chat.json"), filepath.Join(t.TempDir(), "out")
	args := []string{"--exam", dir, "-o", out, "--budget", "1500", "--contender", "last-messages:3", "--model-written", "--contender", "loop+model"}
	status, _, first := evaluate(t, args...)
	if status != 1 || !strings.Contains(first, "2 open requests in "+filepath.Join(out, "requests")+": 01 02") {
		t.Fatalf("status %d: %s", status, first)
	}
	if _, err := os.Stat(filepath.Join(out, "readers")); err == nil {
		t.Fatal("prompts are written while a request is open")
	}
	if status, _, again := evaluate(t, args...); status != 1 || again != first {
		t.Errorf("a second run without answers: status %d: %s", status, again)
	}
	rounds := 0
	var stdout string
	for status != 0 {
		if rounds++; rounds > 10 {
			t.Fatal("requests do not end")
		}
		open, err := filepath.Glob(filepath.Join(out, "requests", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range open {
			for _, name := range []string{"request.txt", "system.txt", "INSTRUCTIONS.txt"} {
				if text, err := os.ReadFile(filepath.Join(folder, name)); err != nil || len(text) == 0 {
					t.Fatalf("%s/%s: %v", folder, name, err)
				}
			}
			answer := "I will not."
			if _, err := os.Stat(filepath.Join(folder, "schema.json")); err == nil {
				answer = good
			}
			if err := os.WriteFile(filepath.Join(folder, "answer.txt"), []byte(answer), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		status, stdout, _ = evaluate(t, args...)
	}
	if !strings.Contains(stdout, "last-messages:3+model at 1500, exam: summaries by files:model (") || !strings.Contains(stdout, "items kept") {
		t.Errorf("nothing of the model in\n%s", stdout)
	}
	if !strings.Contains(stdout, "loop+model at 1500, exam: summaries by extractive (1); 0 of 1 items kept, left out: ") {
		t.Errorf("nothing of the answer that was not used in\n%s", stdout)
	}
	prompts, err := filepath.Glob(filepath.Join(out, "readers", "*", "prompt.txt"))
	if err != nil || len(prompts) != 3 {
		t.Fatalf("%d prompts, %v", len(prompts), err)
	}
	said := 0
	for _, path := range prompts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "TestCreateTwiceIsAConflict fails: second POST = 500, want 409") {
			said++
		}
	}
	if said != 1 {
		t.Errorf("what the model wrote stands in %d prompts, want 1", said)
	}
}

// TestExamRequestsBroken: a folder of requests that cannot be read is named.
func TestExamRequestsBroken(t *testing.T) {
	dir, out := examOf(t, "small.openai-chat.json"), t.TempDir()
	path := filepath.Join(out, "requests", "07")
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	status, _, errs := evaluate(t, "--exam", dir, "-o", out, "--contender", "auto+model")
	if status != 4 || !strings.Contains(errs, filepath.Join(path, "key.json")) || !strings.Contains(errs, "remove the folder 07") {
		t.Errorf("status %d: %s", status, errs)
	}
}
