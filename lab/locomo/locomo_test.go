package locomo

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMeasure: on two talks made for this test, the whole history holds all, the
// last exchange nothing, a lookup brings back what was taken out, and what has no
// answer or no turn is not asked (benchmarks 6a.10).
func TestMeasure(t *testing.T) {
	r, err := Measure(t.Context(), []string{"testdata/made.json"}, &Options{Budgets: []string{"50%", "120"}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Conversations != 2 || r.Questions != 7 || len(r.Columns) != 2 {
		t.Fatalf("%+v", r)
	}
	scores := map[string]Score{}
	for _, s := range r.Columns[0].Scores {
		scores[s.Contender] = s
	}
	if s := scores["identity"]; s.Evidence.Mean != 1 || s.Over != 1 || s.Lookup != s.Answer {
		t.Errorf("identity: %+v", s)
	}
	// "a bowl, a vase" stands nowhere in one piece: of 4 and 3 questions one has an
	// answer that only a reader can give.
	if s := scores["identity"]; s.Answer.Mean != (0.75+1)/2 {
		t.Errorf("identity holds %.3f of the answers", s.Answer.Mean)
	}
	if s := scores["empty"]; s.Evidence.Mean != 0 || s.Answer.Mean != 0 || s.Lookup.Mean != 0 {
		t.Errorf("the last exchange: %+v", s)
	}
	window, auto := scores["sliding window"], scores["auto"]
	if window.Evidence.Mean == 0 || window.Evidence.Mean >= 1 || window.Over > 0 || auto.Lookup.Mean <= auto.Answer.Mean {
		t.Errorf("the window %+v, auto %+v", window, auto)
	}
	if c := auto.Categories; len(c) != 3 || c["4"].Questions != 5 || c["5"].Questions != 0 || scores["random"].Categories["4"].Questions != 5 {
		t.Errorf("the categories are %+v", c)
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil || !strings.Contains(table.String(), "not the accuracy") || strings.Contains(table.String(), "mask 10") {
		t.Errorf("%v\n%s", err, &table)
	}
	first, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Measure(t.Context(), []string{"testdata/made.json"}, &Options{Budgets: []string{"50%", "120"}})
	if err != nil {
		t.Fatal(err)
	}
	if second, err := json.Marshal(again); err != nil || !bytes.Equal(first, second) {
		t.Errorf("two runs differ (%v):\n%s\n%s", err, first, second)
	}
}

// TestSearch: a question is asked of its own conversation, one without an answer too; sessions
// and turns are told apart, and the dates stand beside the messages, not in them.
func TestSearch(t *testing.T) {
	const file = "testdata/made.json"
	r, err := Search(t.Context(), file, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Categories[5]; r.All.Questions != 8 || f.Questions != 1 || r.All.Session < r.All.Turn || r.All.Sessions < r.All.Session || r.All.Turn == 0 {
		t.Errorf("%+v", r)
	}
	if one, err := Search(t.Context(), file, 2, 2); err != nil || one.All.Questions != 3 {
		t.Errorf("the second alone: %+v, %v", one, err)
	}
	if _, err := Search(t.Context(), file, 2, 3); err == nil || !strings.Contains(err.Error(), "some of 1 to 2") {
		t.Errorf("a third of two: %v", err)
	}
	all, err := open(file)
	if err != nil {
		t.Fatal(err)
	}
	log, err := all[0].dated()
	if err != nil {
		t.Fatal(err)
	}
	if m := log.At(5); m.Time.Format(dateLayout) != "7:45 pm on 21 April, 2025" || strings.Contains(m.Text(), "2025") {
		t.Errorf("%+v", m)
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil || !strings.Contains(table.String(), "session, first") {
		t.Errorf("%v\n%s", err, &table)
	}
}

// TestOpen: what is no such file is refused by name.
func TestOpen(t *testing.T) {
	all, err := open("testdata/made.json")
	if err != nil {
		t.Fatal(err)
	}
	if d := all[0]; d.thread.Len() != 14 || !strings.Contains(d.texts[d.turns["D2:3"]], "[shows a photo of a green sailing boat") || !strings.HasPrefix(d.texts[5], "(7:45 pm on 21 April, 2025)\nTomas: ") {
		t.Errorf("%q", d.texts)
	}
	if q := all[0].questions[3]; len(q.evidence) != 2 {
		t.Errorf("two turns in one string are %v", q.evidence)
	}
	for _, bad := range []string{"{}", "[]", "nothing", `[{"conversation":{},"qa":[]}]`} {
		path := filepath.Join(t.TempDir(), "bad.json")
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Measure(t.Context(), []string{path}, nil); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := Measure(t.Context(), []string{"testdata/made.json"}, &Options{Budgets: []string{"much"}}); err == nil {
		t.Error("a wrong budget is taken")
	}
}
