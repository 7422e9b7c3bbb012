package exam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/internal/test/golden"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
)

// newest keeps the newest messages: a contender for tests, whose prompts are a little
// too long at first.
func newest(_ context.Context, s *Session, budget int) (*Made, error) {
	all := s.Transcript.Thread.Messages()
	for i := range all {
		p := &prompt.Prompt{Messages: all[i:]}
		size := 0
		for _, m := range p.Messages {
			size += len(m.Text()) / 4
		}
		if size <= budget {
			return &Made{Prompt: p}, nil
		}
	}
	return nil, policy.ErrOverBudget
}

func sample(t *testing.T) *Session {
	t.Helper()
	s, err := Open("testdata/made")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sit writes the sample exam, answers and grades it: a reader knows what the text
// says in the words of the key.
func sit(t *testing.T, o *Options) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	k, err := Write(t.Context(), out, []*Session{sample(t)}, o)
	if err != nil {
		t.Fatal(err)
	}
	words := map[string][]string{"q1": {"column order", "header"}, "q2": {"40 times"}, "q3": {"flushed"}, "q4": {"TestExport"}}
	for _, r := range k.Readers {
		dir := filepath.Join(out, "readers", r.Number)
		text, err := os.ReadFile(filepath.Join(dir, "prompt.txt"))
		if err != nil {
			t.Fatal(err)
		}
		answers := map[string]string{}
		for id, all := range words {
			answers[id] = "not known"
			for _, word := range all {
				if strings.Contains(string(text), word) {
					answers[id] += " " + word
				}
			}
		}
		// The second reader of a prompt says something that is not so.
		if r.Reading == 2 {
			answers["q4"] = "TestImport"
		}
		if err := writeJSON(filepath.Join(dir, "answers.json"), answers); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := Sheets(out); n != 1 || err != nil {
		t.Fatalf("%d sheets, %v", n, err)
	}
	var sheet gradeSheet
	if err := readJSON(filepath.Join(out, "graders/01/sheet.json"), &sheet); err != nil {
		t.Fatal(err)
	}
	grades := map[string]map[string]map[string]any{}
	for _, q := range sheet.Questions {
		grades[q.ID] = map[string]map[string]any{}
		for label, text := range q.Answers {
			found := 0
			for _, word := range words[q.ID] {
				if strings.Contains(text, word) {
					found++
				}
			}
			grades[q.ID][label] = map[string]any{"score": float64(found) / float64(len(words[q.ID])), "false": strings.Contains(text, "Import")}
		}
	}
	if err := writeJSON(filepath.Join(out, "graders/01/grades.json"), grades); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSample: the report and the folders of a small exam are as they were.
func TestSample(t *testing.T) {
	out := sit(t, &Options{
		Contenders: []Contender{{Name: "newest", Make: newest}, {Name: OwnSummary}, {Name: "never", Make: never}},
		Budgets:    []string{Own, "60%"}, Readings: 2, Seed: 7,
	})
	r, err := Fold(out)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"report.txt": table.String(), "report.json": string(asJSON) + "\n", "files.txt": files(t, out)} {
		golden.Equal(t, "testdata/golden/"+name, got)
	}
}

func never(context.Context, *Session, int) (*Made, error) {
	return nil, fmt.Errorf("there is no such prompt: %w", policy.ErrOverBudget)
}

// files are the folders of an exam as one text.
func files(t *testing.T, out string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(out, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(out, path)
		fmt.Fprintf(&b, "-- %s --\n%s", filepath.ToSlash(name), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestFold: points over questions, by type, session and reading.
func TestFold(t *testing.T) {
	k := &Key{
		Readings: 2,
		Sessions: []KeySession{
			{Name: "a", Questions: []Question{{ID: "1", Type: "fact"}, {ID: "2", Type: "intent"}}},
			{Name: "b", Questions: []Question{{ID: "1", Type: "zeal"}}},
		},
		Readers: []Reader{
			{Number: "01", Session: "a", Contender: "x", Budget: "own", Limit: 10, Size: 10, Reading: 1},
			{Number: "02", Session: "a", Contender: "x", Budget: "own", Limit: 10, Size: 10, Reading: 2},
			{Number: "03", Session: "b", Contender: "x", Budget: "own", Limit: 20, Size: 22, Over: true, Reading: 1},
			{Number: "04", Session: "b", Contender: "x", Budget: "own", Limit: 20, Size: 22, Over: true, Reading: 2},
			{Number: "05", Session: "a", Contender: "y", Budget: "8k", Limit: 8000, Size: 7000, Reading: 1},
			{Number: "06", Session: "a", Contender: "y", Budget: "8k", Limit: 8000, Size: 7000, Reading: 2},
		},
	}
	full, half, wrong := grade{Score: 1}, grade{Score: 0.5}, grade{False: true}
	r := foldGrades(k, map[string]map[string]map[string]grade{
		"a": {"1": {"01": full, "02": half, "05": full, "06": full}, "2": {"01": full, "02": wrong, "05": full, "06": full}},
		"b": {"1": {"03": half, "04": wrong}},
	})
	if want := []string{"intent", "fact", "zeal"}; !slices.Equal(r.Types, want) {
		t.Errorf("types %v, want %v", r.Types, want)
	}
	if len(r.Rows) != 2 || r.Rows[0].Contender != "y" {
		t.Fatalf("rows %+v, want y before x", r.Rows)
	}
	x := r.Rows[1]
	if x.Points != 3 || x.N != 6 || x.Score != 0.5 || x.False != 2 || x.Over != 1 || x.Least != 10 || x.Most != 22 {
		t.Errorf("the row is %+v", x)
	}
	if want := []float64{2.5 / 3, 0.5 / 3}; !cmp.Equal(x.Scores, want) {
		t.Errorf("readings %v, want %v", x.Scores, want)
	}
	if low, high := x.spread(); low != 0.5/3 || high != 2.5/3 {
		t.Errorf("readings from %v to %v", low, high)
	}
	want, got := Cell{Mean: 1.25, Low: 0.5, High: 2, Questions: 2, Size: 10, False: 1}, x.BySession["a"]
	if diff := cmp.Diff(want, *got, cmpopts.IgnoreUnexported(want)); diff != "" {
		t.Errorf("session a (-want +got):\n%s", diff)
	}
	if want := (Tally{Points: 1.5, N: 2, Score: 0.75}); *x.ByType["fact"] != want {
		t.Errorf("facts %+v, want %+v", x.ByType["fact"], want)
	}
	if _, ok := r.Rows[0].BySession["b"]; ok {
		t.Error("y was not made for session b, and has a cell there")
	}
}

// TestFits: a contender whose text is too long is asked for less, its rehearsal first,
// and nobody is asked where a question waits.
func TestFits(t *testing.T) {
	s := sample(t)
	var asked, rehearsed []int
	note := func(all *[]int) Make {
		return func(ctx context.Context, s *Session, budget int) (*Made, error) {
			*all = append(*all, budget)
			return newest(ctx, s, budget)
		}
	}
	o := &Options{Contenders: []Contender{{Name: "x", Make: note(&asked), Rehearse: note(&rehearsed)}}, Budgets: []string{"40"}}
	k, err := Write(t.Context(), t.TempDir(), []*Session{s}, o)
	if err != nil {
		t.Fatal(err)
	}
	if r := k.Readers[0]; r.Size > 40 || r.Over || r.Limit != 40 {
		t.Errorf("the reader is %+v", r)
	}
	if len(rehearsed) < 2 || rehearsed[0] != 40 || len(asked) != 1 || asked[0] != rehearsed[len(rehearsed)-1] {
		t.Errorf("asked for %v after %v", asked, rehearsed)
	}
	o.Contenders = append(o.Contenders, Contender{Name: "y", Make: func(context.Context, *Session, int) (*Made, error) {
		return nil, fmt.Errorf("y: %w", ErrWaiting)
	}})
	out := filepath.Join(t.TempDir(), "out")
	if _, err := Write(t.Context(), out, []*Session{s}, o); !errors.Is(err, ErrWaiting) {
		t.Errorf("with a contender that waits: %v", err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("something was written while a contender waits")
	}
}

func TestLabels(t *testing.T) {
	for n, want := range map[int]string{0: "A", 25: "Z", 26: "AA", 51: "AZ", 52: "BA"} {
		if got := letterLabel(n); got != want {
			t.Errorf("label %d is %s, want %s", n, got, want)
		}
	}
	if a, b := shuffled(1, "q1", 20), shuffled(1, "q2", 20); slices.Equal(a, b) {
		t.Error("two questions have the same order")
	}
}

// FuzzAnswers: whatever a reader writes is answers or an error that names the file.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{`{"q1":"a"}`, "```json\n{\"q1\":\"a\"}\n```", `[]`, `{"q1":null}`, `{`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "answers.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		answers, bad := readAnswers(dir, &KeySession{Questions: []Question{{ID: "q1"}}})
		if _, ok := answers["q1"]; !ok && len(bad) == 0 {
			t.Fatalf("%q: no answer and no error", text)
		}
		for _, err := range bad {
			if !errors.Is(err, cli.ErrInvalid) || !strings.Contains(err.Error(), "answers.json") {
				t.Fatalf("%q: %v", text, err)
			}
		}
	})
}

// FuzzGrades: whatever a grader writes is grades or an error that names the file.
func FuzzGrades(f *testing.F) {
	for _, text := range []string{`{"q1":{"A":{"score":0.5,"false":true}}}`, `{"q1":null}`, `{"q1":{"A":null}}`, `null`, `{"q1":{"A":{"score":"1"}}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out := t.TempDir()
		if err := writeFile(filepath.Join(graderDir(out, 0), "grades.json"), text); err != nil {
			t.Fatal(err)
		}
		grades, bad := readGrades(out, 0, &KeySession{Questions: []Question{{ID: "q1"}}}, map[string]map[string]string{"q1": {"A": "01"}})
		if _, ok := grades["q1"]["01"]; !ok && len(bad) == 0 {
			t.Fatalf("%q: no grade and no error", text)
		}
		for _, err := range bad {
			if !errors.Is(err, cli.ErrInvalid) || !strings.Contains(err.Error(), "grades.json") {
				t.Fatalf("%q: %v", text, err)
			}
		}
	})
}

// FuzzQuestions: whatever a file holds is an exam or an error that names it.
func FuzzQuestions(f *testing.F) {
	for _, text := range []string{`[{"id":"q1","type":"fact","question":"?","key":"!"}]`, `[]`, `[null]`, `{}`, `[{"id":"a"},{"id":"a"}]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "exam.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := questions(path)
		if err == nil && len(all) == 0 || err != nil && (!errors.Is(err, cli.ErrInvalid) || !strings.Contains(err.Error(), "exam.json")) {
			t.Fatalf("%q: %d questions, %v", text, len(all), err)
		}
	})
}
