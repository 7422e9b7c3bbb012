package exam

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
)

// Report says what the readers of an exam knew.
type Report struct {
	Counter  string `json:"counter"`
	Readings int    `json:"readings"`
	// Types are the types of questions, Sessions the sessions, in the order of tables.
	Types    []string `json:"types"`
	Sessions []string `json:"sessions"`
	Rows     []Row    `json:"rows"`
	// Missing are the prompts that were not made; rows are about the others.
	Missing []Missing `json:"not_made,omitempty"`
}

// Row is a contender at a budget.
type Row struct {
	Contender string `json:"contender"`
	Budget    string `json:"budget"`
	// Least and Most are the sizes of its prompts, in tokens. Over counts the sessions
	// in which it is over the budget.
	Least int `json:"least_tokens"`
	Most  int `json:"most_tokens"`
	Over  int `json:"over_budget,omitempty"`
	Tally
	// Scores are those of the readings, each over all sessions.
	Scores []float64 `json:"readings"`
	// ByType and BySession are the results by type of question and by session.
	ByType    map[string]*Tally `json:"by_type"`
	BySession map[string]*Cell  `json:"by_session"`

	readings []Tally // by reading, over all sessions
}

// Cell is a contender in one session: the points of a reading, out of Questions, as the
// mean, lowest and highest of the readings.
type Cell struct {
	Mean      float64 `json:"mean"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Questions int     `json:"questions"`
	Size      int     `json:"tokens"`
	False     int     `json:"false"`

	readings []Tally // by reading
}

// Tally adds grades up. N counts the graded answers, of all readings.
type Tally struct {
	Points float64 `json:"points"`
	N      int     `json:"n"`
	False  int     `json:"false"`
	// Score is Points over N.
	Score float64 `json:"score"`
}

func (t *Tally) add(g grade) {
	t.Points += g.Score
	t.N++
	if g.False {
		t.False++
	}
	t.Score = t.Points / float64(t.N)
}

// spread is the lowest and the highest score of the readings.
func (r *Row) spread() (low, high float64) { return slices.Min(r.Scores), slices.Max(r.Scores) }

// Fold adds up the grades of an exam. The error names every grade that is missing or
// cannot be used.
func Fold(out string) (*Report, error) {
	k, err := readKey(out)
	if err != nil {
		return nil, err
	}
	who, err := readLabels(out)
	if err != nil {
		return nil, err
	}
	grades := map[string]map[string]map[string]grade{}
	var bad []error
	for i := range k.Sessions {
		s := &k.Sessions[i]
		readers := len(k.readersOf(s.Name))
		if readers == 0 {
			continue
		}
		for _, q := range s.Questions {
			if len(who[s.Name][q.ID]) != readers {
				return nil, fmt.Errorf("%w: %s does not fit %s (session %s, question %s): write the sheets again with --exam-grade, and have them graded",
					cli.ErrInvalid, filepath.Join(out, labelFile), keyFile, s.Name, q.ID)
			}
		}
		var problems []error
		grades[s.Name], problems = readGrades(out, i, s, who[s.Name])
		bad = append(bad, problems...)
	}
	if len(bad) > 0 {
		return nil, errors.Join(bad...)
	}
	return foldGrades(k, grades), nil
}

// typeOrder is the order of the usual types in reports.
var typeOrder = []string{"intent", "decision", "state", "failure", "fact", "current"}

// foldGrades adds up grades by session, question and reader.
func foldGrades(k *Key, grades map[string]map[string]map[string]grade) *Report {
	r := &Report{Counter: k.Counter, Readings: k.Readings, Missing: k.Missing}
	for _, s := range k.Sessions {
		r.Sessions = append(r.Sessions, s.Name)
		for _, q := range s.Questions {
			if !slices.Contains(r.Types, q.Type) {
				r.Types = append(r.Types, q.Type)
			}
		}
	}
	place := func(kind string) int {
		if i := slices.Index(typeOrder, kind); i >= 0 {
			return i
		}
		return len(typeOrder)
	}
	slices.SortFunc(r.Types, func(a, b string) int { return cmp.Or(place(a)-place(b), cmp.Compare(a, b)) })

	type name struct{ contender, budget string }
	by := map[name]*Row{}
	for _, one := range k.Readers {
		n := name{one.Contender, one.Budget}
		if by[n] == nil {
			by[n] = &Row{
				Contender: one.Contender, Budget: one.Budget, Least: one.Size,
				ByType: map[string]*Tally{}, BySession: map[string]*Cell{}, readings: make([]Tally, k.Readings),
			}
		}
		by[n].addReader(k.session(one.Session), one, grades[one.Session])
	}
	for _, x := range by {
		x.computeTotals()
		r.Rows = append(r.Rows, *x)
	}
	slices.SortFunc(r.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Most, b.Most), cmp.Compare(a.Contender, b.Contender), cmp.Compare(a.Budget, b.Budget))
	})
	return r
}

// addReader adds the grades of one reader.
func (x *Row) addReader(s *KeySession, r Reader, grades map[string]map[string]grade) {
	x.Least, x.Most = min(x.Least, r.Size), max(x.Most, r.Size)
	if r.Over && r.Reading == 1 {
		x.Over++
	}
	var sum Tally
	for _, q := range s.Questions {
		g := grades[q.ID][r.Number]
		if x.ByType[q.Type] == nil {
			x.ByType[q.Type] = &Tally{}
		}
		for _, t := range []*Tally{&x.Tally, &x.readings[r.Reading-1], x.ByType[q.Type], &sum} {
			t.add(g)
		}
	}
	if x.BySession[s.Name] == nil {
		x.BySession[s.Name] = &Cell{Questions: len(s.Questions)}
	}
	c := x.BySession[s.Name]
	c.Size, c.readings = r.Size, append(c.readings, sum)
}

// computeTotals computes the figures of the row from its readings.
func (x *Row) computeTotals() {
	for _, t := range x.readings {
		x.Scores = append(x.Scores, t.Score)
	}
	for _, c := range x.BySession {
		c.Low = c.readings[0].Points
		for _, t := range c.readings {
			c.Mean += t.Points / float64(len(c.readings))
			c.Low, c.High = min(c.Low, t.Points), max(c.High, t.Points)
			c.False += t.False
		}
	}
}
