package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/eval/exam"
	"github.com/palimpsest-ai/palimpsest/internal/corpus"
	"github.com/palimpsest-ai/palimpsest/token"
)

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
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"eval", "--exam", "-o", out, "--budget", "own,16k,5%", "--json", "--contender", exam.OwnSummary}
	for _, name := range append(sized, filling...) {
		args = append(args, "--contender", name)
	}
	for _, path := range exams {
		args = append(args, filepath.Dir(path))
	}
	status, stdout, stderr := run(t, args...)
	var k exam.Key
	if err := json.Unmarshal([]byte(stdout), &k); status != done || err != nil || stderr != "" {
		t.Fatalf("status %d, %v, %s", status, err, stderr)
	}
	if want := len(exams) * (3*(len(sized)+len(filling)) + 1); len(k.Readers) != want || len(k.Missing) > 0 {
		t.Errorf("%d prompts and not %d; not made: %+v", len(k.Readers), want, k.Missing)
	}
	keeps := map[string]bool{exam.OwnSummary: true}
	for _, name := range filling {
		keeps[name] = true
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
