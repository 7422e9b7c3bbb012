package drift

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/internal/test/longhistory"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/lab/texttable"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// worked is a long conversation of a coding agent.
func worked(t *testing.T, counter *token.Counter) *references.Session {
	t.Helper()
	th, err := thread.New("long").Append(longhistory.Messages(70_000, counter.Message)...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := references.NewSession(&transcript.Transcript{Name: "long", Thread: th}, "tests", "long", counter)
	if err != nil {
		t.Fatal(err)
	}
	s.Link(func(ident.Ident) bool { return false })
	return s
}

// TestDrift: through twenty compactions no value changes, every canary can be
// looked up, auto stays in its budget and keeps the user's rules, and a second run
// gives the same figures.
func TestDrift(t *testing.T) {
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	run := func() *Report {
		set := &references.Set{Counter: counter, Sessions: []*references.Session{worked(t, counter)}}
		r, err := Measure(t.Context(), set, &Options{Contenders: []string{references.AutoName, "workstream"}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := run()
	if r.Sessions != 1 || r.Canaries != 52 || len(r.Rows) != 2 || r.Rows[1].Contender != references.AutoName {
		t.Fatalf("%+v", r)
	}
	for _, row := range r.Rows {
		if len(row.Canaries) != driftRounds || len(row.CanariesTotal) != len(askedRounds) || row.Mutated > 0 {
			t.Errorf("%+v", row)
		}
		for i, n := range askedRounds {
			if row.CanariesTotal[i] < row.Canaries[n-1] || row.CanariesTotal[i] > 1 {
				t.Errorf("%s, round %d: %.3f in the prompt, %.3f with lookups", row.Contender, n, row.Canaries[n-1], row.CanariesTotal[i])
			}
		}
	}
	auto := r.Rows[1]
	for n, size := range auto.Prompt {
		if size > driftBudget || size == 0 {
			t.Errorf("round %d: %.0f tokens", n+1, size)
		}
	}
	if auto.Kinds[canaryNames[0]] < 1 || auto.Canaries[0] < auto.Canaries[driftRounds-1] {
		t.Errorf("%+v", auto)
	}
	if again := run(); !reflect.DeepEqual(r, again) {
		t.Errorf("two runs differ:\n%+v\n%+v", r, again)
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil || !strings.Contains(table.String(), "52 canaries") {
		t.Errorf("%v\n%s", err, &table)
	}
	for line := range strings.Lines(table.String()) {
		if n := utf8.RuneCountInString(line); n > texttable.Width+4 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestPlanted: the canaries stand where they are looked for, before the first
// cut, and every call has its result.
func TestPlanted(t *testing.T) {
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := worked(t, counter)
	p, err := newPlanted(s, counter)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Thread.Len(); got != s.Thread.Len()+canaryGroups*groupLength {
		t.Errorf("%d messages, want %d", got, s.Thread.Len()+canaryGroups*groupLength)
	}
	for _, n := range p.facts[p.trace:] {
		pos := n.Seen[0].Pos
		if !strings.Contains(p.Texts[pos], n.Norm) || pos >= p.Steps[p.cuts[0]] {
			t.Errorf("%s is said to stand in %q", n.Norm, p.Texts[pos])
		}
		if out := (&references.Moment{Session: p.Session, At: pos + 1, Needs: []references.Need{n}}).Scan(&references.Shown{Other: []thread.Message{*p.Thread.At(pos)}}); !out[0].Bound {
			t.Errorf("%s is not bound in its own message %q", n.Norm, p.Texts[pos])
		}
	}
	open := map[string]bool{}
	for _, m := range p.Thread.All() {
		for _, c := range m.Calls() {
			open[c.ID] = true
		}
		if r, ok := m.Result(); ok {
			delete(open, r.CallID)
		} else if m.Role == thread.User && len(open) > 0 {
			t.Errorf("a user's message stands before the results of %v", open)
		}
	}
	if len(open) > 0 {
		t.Errorf("no results of %v", open)
	}
	for i := 1; i < len(p.cuts); i++ {
		if p.cuts[i] <= p.cuts[i-1] || p.cuts[i] >= len(p.Steps) {
			t.Errorf("the cuts are %v of %d steps", p.cuts, len(p.Steps))
		}
	}
}

// TestMutated: another figure behind the key is a changed value.
func TestMutated(t *testing.T) {
	c := newCanaries("x")
	key, value := c.list[2].near[0], c.list[2].value
	for text, want := range map[string]int{
		key + " = " + value: 0, key + ": " + value + "1": 1, key + ": 7" + value: 1, value: 0,
		c.list[0].value + " and " + c.list[3].value: 0, c.list[0].value + "0": 1, strings.Replace(c.list[3].value, "/codec", "7/codec", 1): 1, "vault_" + canaryWords[0]: 0, key + " was read": 0, key + `": "1", ` + key + "=2": 2,
	} {
		_, got := c.mutated(&references.Shown{Other: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}}}})
		if got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestHalfLife(t *testing.T) {
	for _, c := range []struct {
		first, last float64
		want        float64
	}{{1, 0.5, 19}, {1, 0.25, 9.5}, {0.5, 0.5, 0}, {0.5, 0.6, 0}, {0, 0, 0}} {
		if got := halfLife(c.first, c.last, 19); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("from %g to %g: %g, want %g", c.first, c.last, got, c.want)
		}
	}
	if got := halfLife(1, 0, 19); got <= 0 || got > 2 {
		t.Errorf("to nothing: %g", got)
	}
}
