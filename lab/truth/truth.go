// Package truth checks summaries against the log that they were made from: nothing that
// a summary says about the log may be untrue. It shares no code with what makes summaries
// but the reader of command lines.
//
// It goes through the entries of a summary (entries.go says what must stand in the log if one of a
// kind is true); how they are written as text, tests of plan/summary show. The log is not played back:
// an index says what was said and printed, by whom, in which turn and by which call. An entry is
// false if nothing in the index shows it, or if something later contradicts it.
package truth

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Count counts the statements of one kind.
type Count struct{ Judged, False int }

// Finding is a statement that is false.
type Finding struct {
	Kind      string
	Statement string
	Reason    string
}

// String tells a finding over several lines.
func (f Finding) String() string {
	indent := func(s string) string { return strings.ReplaceAll(s, "\n", "\n    ") }
	return fmt.Sprintf("FALSE %s: %s\n    because %s", f.Kind, indent(f.Statement), indent(f.Reason))
}

// Report is what a check found. The zero value is that of an empty summary.
type Report struct {
	Counts   map[string]Count // by kind
	Findings []Finding
}

// Add adds what another check found.
func (r *Report) Add(other Report) {
	if r.Counts == nil {
		r.Counts = map[string]Count{}
	}
	for k, c := range other.Counts {
		r.Counts[k] = Count{r.Counts[k].Judged + c.Judged, r.Counts[k].False + c.False}
	}
	r.Findings = append(r.Findings, other.Findings...)
}

// String is the table of the counts, by kind.
func (r Report) String() string {
	var b strings.Builder
	var all Count
	fmt.Fprintf(&b, "%-40s %8s %8s\n", "kind", "judged", "false")
	for _, k := range slices.Sorted(maps.Keys(r.Counts)) {
		c := r.Counts[k]
		fmt.Fprintf(&b, "%-40s %8d %8d\n", k, c.Judged, c.False)
		all = Count{all.Judged + c.Judged, all.False + c.False}
	}
	fmt.Fprintf(&b, "%-40s %8d %8d\n", "all", all.Judged, all.False)
	return b.String()
}

// Log is a log that summaries are checked against. It is not safe for concurrent use: what was
// looked up once is kept.
type Log struct {
	span, all *index
	judged    map[string]verdict // by kind and entry
}

// verdict is why an entry is false, and why the log has not the messages that it names as its sources.
type verdict struct{ reason, source string }

// Read reads a log, which has ids and turns set, as those of a thread. Summaries are of its first
// end messages. Those after them stand beside a summary: only the current task, the plan and the
// state of the work may be taken from there.
func Read(log []thread.Message, end int) *Log {
	end = len(hosted.Unfold(log[:min(max(end, 0), len(log))]))
	log = hosted.Unfold(log) // calls of the provider are calls too
	return &Log{span: newIndex(log[:end]), all: newIndex(log), judged: map[string]verdict{}}
}

// Check judges what a summary says of the log.
func (l *Log) Check(s summary.Summary) Report {
	c := checker{l, Report{Counts: map[string]Count{}}}
	c.entries(s)
	slices.SortStableFunc(c.report.Findings, func(a, b Finding) int { return cmp.Compare(a.Kind, b.Kind) })
	return c.report
}

// checker collects verdicts.
type checker struct {
	*Log
	report Report
}

func (c *checker) say(kind, statement, reason string) {
	n := c.report.Counts[kind]
	n.Judged++
	if reason != "" {
		n.False++
		c.report.Findings = append(c.report.Findings, Finding{kind, statement, reason})
	}
	c.report.Counts[kind] = n
}

// origin is where an entry says that it is from.
type origin struct {
	turn  int   // 0 when none is told
	named []int // the positions of the messages that it names
}

// includes reports whether something of a turn that stands in one of these messages may be it.
func (o origin) includes(turn int, at ...int) bool {
	return (o.turn == 0 || o.turn == turn) &&
		(len(o.named) == 0 || slices.ContainsFunc(at, func(i int) bool { return slices.Contains(o.named, i) }))
}

// judge judges the entries of a list, or finds how they were judged before. Proof looks for what
// shows an entry; it returns why it is false, or nothing.
func judge[T any](c *checker, kind string, in *index, list []T, proof func(*index, T, origin) string) {
	for i := range list {
		data, _ := json.Marshal(list[i]) // plain values
		statement := string(data)
		v, ok := c.judged[kind+statement]
		o, sourced, missing := in.origin(data)
		if !ok {
			v.reason = proof(in, list[i], o)
			if v.source = missing; missing == "" && sourced && o.turn > 0 && in == c.span && !in.ofTurn(o) {
				v.source = fmt.Sprintf("none of the messages that it names is of turn %d", o.turn)
			}
			c.judged[kind+statement] = v
		}
		if c.say(kind, statement, v.reason); sourced {
			c.say("source", statement, v.source)
		}
	}
}

// origin reads where an entry is from, and whether it names messages that the log does not have.
func (x *index) origin(entry []byte) (o origin, sourced bool, missing string) {
	var of struct {
		Turn    int         `json:"turn"`
		Sources []thread.ID `json:"sources"`
	}
	if json.Unmarshal(entry, &of) != nil {
		return o, false, "" // a text
	}
	o.turn = of.Turn
	for _, id := range of.Sources {
		if at, ok := x.position[id]; ok {
			o.named = append(o.named, at)
		} else {
			missing = fmt.Sprintf("the log up to the end of the span has no message %s", id)
		}
	}
	return o, len(of.Sources) > 0, missing
}

func (x *index) ofTurn(o origin) bool {
	return slices.ContainsFunc(o.named, func(at int) bool { return x.log[at].Turn == o.turn })
}
