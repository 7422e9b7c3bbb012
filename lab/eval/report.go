package eval

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
)

// Report is the result of Run.
type Report struct {
	Split    references.Split `json:"split"`
	Counter  string           `json:"counter"`
	Sessions int              `json:"sessions"`
	// Read counts the conversations of the split, measured or not.
	Read int `json:"read"`
	// Left counts the conversations that were not measured because the run was canceled.
	Left int `json:"left,omitempty"`
	// Corpus is a hash over the conversations, whatever their order and files.
	Corpus  string   `json:"corpus"`
	Columns []Column `json:"columns"`
	// Areas are recall over all budgets of one kind, tokens or shares of the history,
	// where there are three or more: the area under the curve of recall over the
	// logarithm of the budget, over the length of that axis, so that Bound and Lookup
	// are a mean recall. They are over the sessions that have moments at each of the
	// budgets. Fields that are not recall are zero.
	Areas []Column `json:"areas,omitempty"`
	// Misses are what auto lost, in the order of the sessions.
	Misses []Miss `json:"misses"`
}

// Column is one budget over one group of sessions.
type Column struct {
	Name     string `json:"name"`
	Sessions int    `json:"sessions"`
	Moments  int    `json:"moments"`
	// Eligible counts the references that can be lost, Used all identifiers that the
	// agent wrote within the horizon.
	Eligible int `json:"eligible"`
	Used     int `json:"used"`
	// Share is Eligible over Used.
	Share  float64 `json:"eligible_share"`
	Scores []Score `json:"scores"`
}

// Score is what a contender reached, as means over sessions. A reference is direct when
// the identifier stands in the prompt, and bound when it stands beside a word that tells
// what it is.
type Score struct {
	Contender string  `json:"contender"`
	Direct    float64 `json:"direct"`
	Bound     float64 `json:"bound"`
	// Strict: bound by a word that stood beside it at its first mention.
	Strict float64 `json:"strict"`
	// Lookup: bound, or one search brings it. First: bound, or the best hit shows it.
	Lookup float64 `json:"lookup"`
	First  float64 `json:"lookup_first"`
	// Pointer: bound, or something in the prompt points at a message that holds it,
	// which is what an ideal user of pointers would reach.
	Pointer float64 `json:"pointer"`
	// Said is Bound for what the agent says in its answers, End for all its later
	// calls; Answers and Ends count these references.
	Said    float64 `json:"said"`
	Answers int     `json:"said_references"`
	End     float64 `json:"to_the_end"`
	Ends    int     `json:"to_the_end_references"`
	// Stale is the share of the changed values of which the prompt shows only an old one,
	// among the Values of which it shows any.
	Stale  float64 `json:"stale"`
	Values int     `json:"changed_values"`
	// StaleLines is the share of lines that are gone from their file, among the Lines that
	// a file lost at some time and that summaries in the prompt quote.
	StaleLines float64 `json:"stale_lines"`
	Lines      int     `json:"lost_lines"`
	// Low and High are the 95 percent interval of Bound, BestLow and BestHigh
	// that of its difference to the best simple contender, by session.
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Best     float64 `json:"minus_best"`
	BestLow  float64 `json:"minus_best_low"`
	BestHigh float64 `json:"minus_best_high"`
	// Ahead is how much more auto recalls than this contender, in the same sessions;
	// nil where auto did not run, and for auto itself.
	Ahead *Interval `json:"auto_minus,omitempty"`
	// Adjusted is Bound with chance taken out, Gap the share of the way from the
	// sliding window to the oracle.
	Adjusted float64 `json:"adjusted"`
	Gap      float64 `json:"gap_closed"`
	// Trail is the F1 of the files and their last state, over the Files sessions that
	// touched any.
	Trail float64 `json:"trail_f1"`
	Files int     `json:"trail_sessions"`
	// TrailPrecision is the share of right ones among the states in the prompt, TrailRecall
	// the share of the files whose last state is there.
	TrailPrecision float64 `json:"trail_precision"`
	TrailRecall    float64 `json:"trail_recall"`
	// StaleFiles is the share of wrong ones among the states in the prompt.
	StaleFiles float64 `json:"stale_files"`
	// Full is the share of the budget that was used, Over the share of prompts over it,
	// Worst the largest excess as a share of it, and Failed the share of prompts that were
	// not made.
	Full   float64 `json:"budget_used"`
	Over   float64 `json:"over_budget"`
	Worst  float64 `json:"worst_overshoot"`
	Failed float64 `json:"failed"`
	// Strata are recall by type, age, origin and state, over all references. A reference
	// is superseded when every mention of it is out of date: an old value, or a reading
	// of a file that was read or changed again since.
	Strata map[string]Stratum `json:"strata,omitempty"`
}

// Stratum is the recall of one kind of references.
type Stratum struct {
	Needs  int     `json:"needs"`
	Bound  float64 `json:"bound"`
	Lookup float64 `json:"lookup"`
}

func newReport(set *references.Set, columns []*column, o *Options) *Report {
	r := &Report{Split: o.Split, Counter: set.Counter.Name()}
	r.Split = cmp.Or(r.Split, references.All)
	seen := map[*references.Session]bool{}
	for _, c := range columns {
		for _, s := range c.sessions {
			seen[s] = true
		}
		r.Columns = append(r.Columns, c.report())
		r.Misses = append(r.Misses, c.misses...)
	}
	r.Sessions = len(seen)
	r.Corpus = references.CorpusHash(maps.Keys(seen))
	r.Areas = areas(columns)
	return r
}

func (c *column) report() Column {
	out := Column{Name: c.name, Sessions: len(c.sessions), Moments: c.moments, Eligible: c.eligible, Used: c.used, Share: float64(c.eligible) / float64(max(1, c.used))}
	bound := func(t tally) float64 { return t.bound / t.needs }
	resample := newBootstrap(len(c.sessions))
	best := ratios(c.tallies[references.BestSimple], bound)
	ours := ratios(c.tallies[references.AutoName], bound)
	for _, name := range c.order() {
		t := c.tallies[name]
		b := ratios(t, bound)
		mean := func(f func(tally) float64) float64 { return mean(ratios(t, f)) }
		s := Score{
			Contender: name,
			Direct:    mean(func(t tally) float64 { return t.direct / t.needs }),
			Bound:     mean(bound),
			Strict:    mean(func(t tally) float64 { return t.strict / t.needs }),
			Lookup:    mean(func(t tally) float64 { return t.lookup / t.needs }),
			First:     mean(func(t tally) float64 { return t.first / t.needs }),
			Pointer:   mean(func(t tally) float64 { return t.pointer / t.needs }),
			Full:      mean(func(t tally) float64 { return t.tokens / t.budget }),
			Over:      mean(func(t tally) float64 { return t.over / t.prompts }),
			Failed:    mean(func(t tally) float64 { return t.failed / t.prompts }),
			Strata:    map[string]Stratum{},
		}
		s.addOptionalMeasures(t)
		s.addFileTrails(t)
		s.Low, s.High = resample.interval(b)
		d := resample.difference(b, best)
		s.Best, s.BestLow, s.BestHigh = d.Mean, d.Low, d.High
		if name != references.AutoName && len(ours) > 0 {
			ahead := resample.difference(ours, b)
			s.Ahead = &ahead
		}
		for stratum, t := range c.strata[name] {
			s.Strata[stratum] = Stratum{int(t.needs), t.bound / t.needs, t.lookup / t.needs}
		}
		out.Scores = append(out.Scores, s)
	}
	bounds := func(contender string) float64 {
		s, _ := out.Score(contender)
		return s.Bound
	}
	chance, window, oracle := bounds(references.RandomName), bounds(references.WindowName), bounds(references.OracleName)
	for i := range out.Scores {
		s := &out.Scores[i]
		if chance < 1 {
			s.Adjusted = (s.Bound - chance) / (1 - chance)
		}
		if oracle > window {
			s.Gap = (s.Bound - window) / (oracle - window)
		}
	}
	return out
}

// addOptionalMeasures sets the measures that only some sessions have, as means over
// those. Staleness is over all values, since most sessions have few.
func (s *Score) addOptionalMeasures(t []tally) {
	var said, ends []float64
	var stale, lines, files references.Freshness
	for _, x := range t {
		if x.said > 0 {
			said = append(said, x.saidBound/x.said)
			s.Answers += int(x.said + 0.5)
		}
		if x.ends > 0 {
			ends = append(ends, x.endsBound/x.ends)
			s.Ends += int(x.ends + 0.5)
		}
		s.Worst = max(s.Worst, x.worst)
		stale.Add(x.stale)
		lines.Add(x.lines)
		files.Add(references.Freshness{Current: x.right, Old: x.told - x.right})
	}
	s.StaleFiles = files.Rate()
	s.Said, s.End = mean(said), mean(ends)
	s.StaleLines, s.Lines = lines.Rate(), int(lines.Old+lines.Current+0.5)
	s.Stale, s.Values = stale.Rate(), int(stale.Old+stale.Current+0.5)
}

// Score returns the score of a contender, and whether it ran.
func (c *Column) Score(contender string) (s Score, ran bool) {
	i := slices.IndexFunc(c.Scores, func(s Score) bool { return s.Contender == contender })
	if i < 0 {
		return s, false
	}
	return c.Scores[i], true
}

// Contenders are the names in all columns, in the order of their first appearance.
func (r *Report) Contenders() (names []string) {
	for _, c := range r.Columns {
		for _, s := range c.Scores {
			if !slices.Contains(names, s.Contender) {
				names = append(names, s.Contender)
			}
		}
	}
	return names
}

func (c *column) order() []string {
	names := slices.Collect(maps.Keys(c.tallies))
	place := func(name string) int {
		if i := slices.Index(references.ContenderOrder, name); i >= 0 {
			return i
		}
		return len(references.ContenderOrder) // a peer
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(place(a)-place(b), strings.Compare(a, b)) })
	return names
}

func ratios(t []tally, f func(tally) float64) []float64 {
	out := make([]float64, len(t))
	for i := range t {
		out[i] = f(t[i])
	}
	return out
}

// addFileTrails sets the means over the sessions that touched files.
func (s *Score) addFileTrails(t []tally) {
	var both, precision, recall []float64
	for _, x := range t {
		if x.files == 0 {
			continue
		}
		both = append(both, f1(x.right, x.told, x.files))
		precision = append(precision, x.right/max(1, x.told))
		recall = append(recall, x.right/x.files)
	}
	s.Trail, s.TrailPrecision, s.TrailRecall, s.Files = mean(both), mean(precision), mean(recall), len(both)
}

// f1 is the harmonic mean of precision and recall.
func f1(right, told, all float64) float64 {
	if right == 0 {
		return 0
	}
	return 2 * right / (told + all)
}
