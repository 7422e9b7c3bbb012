package eval

import (
	"bytes"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/lab/texttable"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

func TestMain(m *testing.M) {
	corpus.CollectLessOften()
	m.Run()
}

func load(t *testing.T, paths ...string) *references.Set {
	t.Helper()
	set, err := references.Load(t.Context(), paths, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// recalls is what a way to show a history reaches over all moments.
func recalls(t *testing.T, set *references.Set, budget string, render func(s *references.Session, m *references.Moment, budget int) *references.Shown) tally {
	t.Helper()
	b, err := parseBudget(budget)
	if err != nil {
		t.Fatal(err)
	}
	var sum tally
	for _, s := range set.Sessions {
		for _, m := range b.moments(s, s.Moment) {
			r := render(s, m, b.budgetFor(s, m.Size))
			sum.add(m, r, m.Scan(r), b.budgetFor(s, m.Size))
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
	set := load(t, corpus.EveryNth(files, 2)...)
	counter := set.Counter
	of := func(name string) func(*references.Session, *references.Moment, int) *references.Shown {
		all, err := references.Contenders(t.Context(), counter)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(c references.Contender) bool { return c.Name == name })
		return func(_ *references.Session, m *references.Moment, budget int) *references.Shown {
			return all[i].Fit(m, budget)
		}
	}
	share := func(x, of float64) float64 { return x / of }

	whole := recalls(t, set, "20%", of("identity"))
	if whole.direct != whole.needs || whole.bound != whole.needs || whole.strict < 0.995*whole.needs {
		t.Errorf("identity finds %.0f, %.0f bound, %.0f strictly, of %.0f", whole.direct, whole.bound, whole.strict, whole.needs)
	}
	if none := recalls(t, set, "20%", of("empty")); none.direct != 0 {
		t.Errorf("the tail alone finds %.0f of %.0f", none.direct, none.needs)
	}
	best := recalls(t, set, "20%", of(references.OracleName))
	if r := share(best.bound, best.needs); r < 0.97 || best.over > 0 {
		t.Errorf("the oracle finds %.3f, %.0f prompts over their budgets", r, best.over)
	}
	other := recalls(t, set, "20%", func(s *references.Session, m *references.Moment, budget int) *references.Shown {
		i := slices.Index(set.Sessions, s)
		stranger := set.Sessions[(i+len(set.Sessions)/2)%len(set.Sessions)]
		r := m.TailOnly(nil)
		for k := range stranger.Thread.Len() {
			if budget -= stranger.Sizes[k]; budget < 0 {
				break
			}
			r.Other = append(r.Other, *stranger.Thread.At(k))
		}
		return r
	})
	if r := share(other.bound, other.needs); r > 0.10 {
		t.Errorf("the prompt of another conversation finds %.3f", r)
	}
	dump := recalls(t, set, "20%", func(_ *references.Session, m *references.Moment, budget int) *references.Shown {
		return dumped(m, budget, counter)
	})
	if d, b := share(dump.direct, dump.needs), share(dump.bound, dump.needs); d < 0.6 || b > d/2 {
		t.Errorf("a list of identifiers finds %.3f, and %.3f (%.3f strictly) with what tells what they are", d, b, share(dump.strict, dump.needs))
	}
}

// dumped lists identifiers alone, the newest that fit, by name: in the order of
// the conversation, they would tell of each other.
func dumped(m *references.Moment, budget int, counter *token.Counter) *references.Shown {
	r := m.TailOnly(nil)
	var list []string
	seen := map[string]bool{}
	size := 0
	for i := m.Tail - 1; i >= 0 && r.Tokens+size/3 < budget; i-- {
		for _, x := range ident.All(m.Texts[i]) {
			if !seen[x.Norm] {
				seen[x.Norm] = true
				size += len(x.Norm) + 1
				list = append(list, x.Norm)
			}
		}
	}
	slices.Sort(list)
	r.Other = []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: strings.Join(list, "\n")}}}}
	return r
}

// TestSameFigures: the result does not depend on the number of processors.
func TestSameFigures(t *testing.T) {
	set := load(t, "../../testdata/sessions/import-csv.openai-chat.json")
	o := Options{Budgets: []string{"3k"}}
	if !corpus.Long() {
		o.Contenders = []string{references.AutoName, references.WindowName}
	}
	var tables [2]bytes.Buffer
	for i, n := range []int{1, 4} {
		old := runtime.GOMAXPROCS(n)
		r, err := Run(t.Context(), set, &o)
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
	if !strings.Contains(tables[0].String(), references.AutoName) {
		t.Errorf("nothing was measured:\n%s", &tables[0])
	}
	fits(t, tables[0].String())
}

// fits fails where a table is wider than a terminal.
func fits(t *testing.T, table string) {
	t.Helper()
	for line := range strings.SplitSeq(table, "\n") {
		if n := utf8.RuneCountInString(line); n > texttable.Width+4 {
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
	if _, err := references.Load(t.Context(), []string{"no such file"}, nil, nil); err == nil {
		t.Error("a missing file is no error")
	}
}

// TestF1: the harmonic mean of precision and recall.
func TestF1(t *testing.T) {
	if f := f1(2, 3, 3); f < 0.66 || f > 0.67 {
		t.Errorf("f1 is %.3f", f)
	}
}
