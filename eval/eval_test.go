package eval

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/eval/internal/grid"
	"github.com/palimpsest-ai/palimpsest/internal/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

func load(t *testing.T, paths ...string) *Set {
	t.Helper()
	set, err := Load(t.Context(), paths, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// recalls is what a way to show a history reaches over all moments.
func recalls(t *testing.T, set *Set, budget string, render func(s *session, m *moment, budget int) *shown) tally {
	t.Helper()
	b, err := parseBudget(budget)
	if err != nil {
		t.Fatal(err)
	}
	var sum tally
	for _, s := range set.sessions {
		for _, m := range s.moments(b, s.moment) {
			r := render(s, m, b.of(s, m.size))
			sum.add(m, r, m.scan(r), b.of(s, m.size))
		}
	}
	if sum.needs == 0 {
		t.Fatal("nothing was measured")
	}
	return sum
}

// TestSanity: what keeps everything recalls all, what keeps nothing nothing, the
// prompt of another conversation next to nothing, and a bare list of identifiers
// stands in the prompt but says little of what they are.
func TestSanity(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t, "transcripts"), "entire-cli", "mid-*"))
	if err != nil {
		t.Fatal(err)
	}
	set := load(t, files...)
	counter := set.counter
	of := func(name string) func(*session, *moment, int) *shown {
		all := simple(counter)
		i := slices.IndexFunc(all, func(c contender) bool { return c.name == name })
		return func(_ *session, m *moment, budget int) *shown { return all[i].render(m, budget) }
	}
	share := func(x, of float64) float64 { return x / of }

	whole := recalls(t, set, "20%", of("identity"))
	if whole.direct != whole.needs || whole.bound != whole.needs || whole.strict < 0.995*whole.needs {
		t.Errorf("identity finds %.0f, %.0f bound, %.0f strictly, of %.0f", whole.direct, whole.bound, whole.strict, whole.needs)
	}
	if none := recalls(t, set, "20%", of("empty")); none.direct != 0 {
		t.Errorf("the tail alone finds %.0f of %.0f", none.direct, none.needs)
	}
	best := recalls(t, set, "20%", of(oracleName))
	if r := share(best.bound, best.needs); r < 0.97 || best.over > 0 {
		t.Errorf("the oracle finds %.3f, %.0f prompts over their budgets", r, best.over)
	}
	other := recalls(t, set, "20%", func(s *session, m *moment, budget int) *shown {
		i := slices.Index(set.sessions, s)
		stranger := set.sessions[(i+len(set.sessions)/2)%len(set.sessions)]
		r := m.show((forms{counter}).plain(m)[m.tail:])
		for k := range stranger.thread.Len() {
			if budget -= stranger.sizes[k]; budget < 0 {
				break
			}
			r.other = append(r.other, *stranger.thread.At(k))
		}
		return r
	})
	if r := share(other.bound, other.needs); r > 0.10 {
		t.Errorf("the prompt of another conversation finds %.3f", r)
	}
	dump := recalls(t, set, "20%", func(_ *session, m *moment, budget int) *shown { return dumped(m, budget, counter) })
	if d, b := share(dump.direct, dump.needs), share(dump.bound, dump.needs); d < 0.6 || b > d/2 {
		t.Errorf("a list of identifiers finds %.3f, and %.3f (%.3f strictly) with what tells what they are", d, b, share(dump.strict, dump.needs))
	}
}

// dumped lists identifiers alone, the newest that fit, by name: in the order of
// the conversation, they would tell of each other.
func dumped(m *moment, budget int, counter *token.Counter) *shown {
	r := m.show((forms{counter}).plain(m)[m.tail:])
	var list []string
	seen := map[string]bool{}
	size := 0
	for i := m.tail - 1; i >= 0 && r.tokens+size/3 < budget; i-- {
		for _, x := range ident.All(m.texts[i]) {
			if !seen[x.Norm] {
				seen[x.Norm] = true
				size += len(x.Norm) + 1
				list = append(list, x.Norm)
			}
		}
	}
	slices.Sort(list)
	r.other = []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: strings.Join(list, "\n")}}}}
	return r
}

// made is a conversation in which the agent reads a file, does a few other
// things, and then writes an id that stood in the file.
func made(t *testing.T) *session {
	t.Helper()
	say := func(role thread.Role, parts ...thread.Part) thread.Message {
		return thread.Message{Role: role, Parts: parts}
	}
	call := func(id, name, args string) thread.Part { return thread.ToolCall{ID: id, Name: name, Arguments: args} }
	result := func(id, tool, text string) thread.Message {
		return say(thread.Tool, thread.ToolResult{CallID: id, Tool: tool, Content: []thread.Part{thread.Text{Text: text}}})
	}
	th, err := thread.New("made").Append(
		say(thread.User, thread.Text{Text: "Please cancel the order of Ada."}),
		say(thread.Assistant, call("1", "Read", `{"file_path":"orders/list.csv"}`)),
		result("1", "Read", "order,customer,total\nORD-48213-B,ada,127.50\nORD-99001-C,grace,12.00"),
		say(thread.Assistant, thread.Text{Text: "I look at helperFunction first."}, call("2", "Bash", `{"command":"make lint"}`)),
		result("2", "Bash", "ok"),
		say(thread.Assistant, call("3", "Bash", `{"command":"make test"}`)),
		result("3", "Bash", "ok, see ORD-99001-C"),
		say(thread.Assistant, call("4", "cancel", `{"order":"ORD-48213-B","other":"ORD-99001-C","like":"helperFunction"}`)),
		result("4", "cancel", "done"),
		say(thread.Assistant, call("5", "Edit", `{"file_path":"orders/list.csv","new_string":"x"}`)),
	)
	if err != nil {
		t.Fatal(err)
	}
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSession(&transcript.Transcript{Name: "made", Thread: th}, "made", "made", counter)
	if err != nil {
		t.Fatal(err)
	}
	s.link(func(ident.Ident) bool { return false })
	return s
}

// TestEligible: what the agent could know from the old part alone.
func TestEligible(t *testing.T) {
	m := made(t).moment(3)
	var got []string
	for _, n := range m.refs {
		got = append(got, fmt.Sprintf("%s %s %s %d", n.Type, n.Norm, n.origin, n.age))
	}
	// ORD-99001-C stands in the tail; helperFunction only the agent itself said.
	want := []string{"id ORD-48213-B tool 2", "path orders/list.csv call 2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestBound: an identifier counts with what stood beside it, a file with what
// was truly done to it.
func TestBound(t *testing.T) {
	m := made(t).moment(3)
	for _, c := range []struct {
		text                 string
		id, path, bid, bpath bool
	}{
		{"the order ORD-48213-B of ada", true, false, true, false},
		{"ORD-48213-B", true, false, false, false},
		{"ORD-48213-Bx and xorders/list.csv", false, false, false, false},
		{"read orders/list.csv", false, true, false, true},
		{"deleted orders/list.csv", false, true, false, false},
		{`{"order":"ORD-48213-B","customer":"ada"}`, true, false, true, false},
	} {
		out := m.scan(&shown{other: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: c.text}}}}})
		if got := [4]bool{out[0].direct, out[1].direct, out[0].bound, out[1].bound}; got != [4]bool{c.id, c.path, c.bid, c.bpath} {
			t.Errorf("%q: %v", c.text, got)
		}
	}
}

// TestSameFigures: the result does not depend on the number of processors.
func TestSameFigures(t *testing.T) {
	set := load(t, "../testdata/sessions/import-csv.openai-chat.json")
	var tables [2]bytes.Buffer
	for i, n := range []int{1, 4} {
		old := runtime.GOMAXPROCS(n)
		r, err := Run(t.Context(), set, &Options{Budgets: []string{"3k"}})
		runtime.GOMAXPROCS(old)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.WriteTable(&tables[i], true); err != nil {
			t.Fatal(err)
		}
	}
	if tables[0].String() != tables[1].String() {
		t.Errorf("two runs differ:\n%s\n%s", &tables[0], &tables[1])
	}
	if !strings.Contains(tables[0].String(), autoName) {
		t.Errorf("nothing was measured:\n%s", &tables[0])
	}
	fits(t, tables[0].String())
}

// fits fails where a table is wider than a terminal.
func fits(t *testing.T, table string) {
	t.Helper()
	for _, line := range strings.Split(table, "\n") {
		if n := utf8.RuneCountInString(line); n > grid.Width+4 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestIntervals(t *testing.T) {
	b := newBootstrap(50)
	x := make([]float64, 50)
	for i := range x {
		x[i] = float64(i % 2)
	}
	low, high := b.interval(x)
	// The standard error of 50 tosses of a coin is 0.0707.
	if math.Abs(low-(0.5-1.96*0.0707)) > 0.02 || math.Abs(high-(0.5+1.96*0.0707)) > 0.02 {
		t.Errorf("the interval is %.3f to %.3f", low, high)
	}
}

func TestOptions(t *testing.T) {
	for _, bad := range []Options{{Budgets: []string{"8x"}}, {Budgets: []string{"100%"}}, {Budgets: []string{"-1"}}, {Contenders: []string{"magic"}}} {
		if bad.Check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	if _, err := Load(t.Context(), []string{"no such file"}, nil, nil); err == nil {
		t.Error("a missing file is no error")
	}
}
