// Package truth checks summaries against the log that they were made from: nothing that
// a summary says about the log may be untrue. It replays the log by itself and shares no
// code with what makes summaries.
//
// A statement is false when the log refutes it. It is unproved when it would need a
// proof that the log does not hold, such as that a line is gone from a file. Where the
// log cannot tell, as with a file that a script may have written, it is counted and not
// judged.
package truth

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Kind is a kind of statement.
type Kind string

// The kinds of statements, by the fields of a summary.
const (
	kindSource Kind = "source" // a message that an item names is in the log

	kindTask       Kind = "task"
	kindRequest    Kind = "request"
	kindConstraint Kind = "constraint"
	kindConclusion Kind = "conclusion"
	kindDecision   Kind = "decision"
	kindOpenItem   Kind = "open item"
	kindPlan       Kind = "plan"

	kindFileRead    Kind = "file read"
	kindFileCreated Kind = "file created"
	kindFileEdited  Kind = "file edited"
	kindFileDeleted Kind = "file deleted"
	kindFileTurn    Kind = "file turn" // the turn of the last touch
	kindFileNote    Kind = "file note" // line ranges, moves

	kindCallInput   Kind = "call input" // the call was made, with this input
	kindCallOutcome Kind = "call outcome"
	kindMasked      Kind = "call outcome: what the output says" // where a pipe hides the exit code
	kindCallField   Kind = "call field"                         // key fields stand in the result
	kindCallRuns    Kind = "call runs"
	kindCallError   Kind = "call error"

	kindAttempt      Kind = "failed attempt" // the call failed
	kindAttemptQuote Kind = "failed attempt: quote"
	kindAttemptThen  Kind = "failed attempt: the assistant's words"
	kindAttemptEdit  Kind = "failed attempt: edited next"
	kindAttemptLater Kind = "failed attempt: later success"

	kindChange      Kind = "change"
	kindChangeLines Kind = "change: how many lines"
	kindChangeWords Kind = "change: words"
	kindLabel       Kind = "label" // what a quoted line is said to be from
	kindLine        Kind = "line"  // a quoted line stands in its source
	kindGone        Kind = "gone line"

	// Places where lines of an item were left out: a line "…" must mark them.
	kindLeftOut  Kind = "characters left out" // as many as the mark says
	kindWordsGap Kind = "gap in words"
	kindLinesGap Kind = "gap in lines"

	kindDirectory   Kind = "work: directory"
	kindBranch      Kind = "work: branch"
	kindPullRequest Kind = "work: pull request"
	kindCommit      Kind = "work: commit"
	kindPushed      Kind = "work: pushed"
	kindEdited      Kind = "work: edited"
	kindCheck       Kind = "work: check"
	kindSince       Kind = "work: changed since a check"
	kindRefused     Kind = "work: refused"
	kindRunning     Kind = "work: running"
	kindNext        Kind = "work: next"
	kindOperation   Kind = "work: operation"

	kindArtifact Kind = "artifact"
)

// Count counts the statements of one kind. Judged includes False and Unproved.
type Count struct {
	Judged, False, Unproved, Unjudged int
}

// Finding is a statement that is false or unproved.
type Finding struct {
	Kind      Kind
	Unproved  bool
	Statement string
	Reason    string
	// Refuting are messages that refute it, where known; Sources are those that the
	// statement names.
	Refuting, Sources []thread.ID
}

// Report is what a check found. The zero value is that of an empty summary.
type Report struct {
	Counts   map[Kind]Count
	Findings []Finding
}

// Add adds what another check found.
func (r *Report) Add(other Report) {
	if r.Counts == nil {
		r.Counts = map[Kind]Count{}
	}
	for k, c := range other.Counts {
		sum := r.Counts[k]
		sum.Judged += c.Judged
		sum.False += c.False
		sum.Unproved += c.Unproved
		sum.Unjudged += c.Unjudged
		r.Counts[k] = sum
	}
	r.Findings = append(r.Findings, other.Findings...)
}

// String is the table of the counts, by kind.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-40s %8s %8s %8s %8s\n", "kind", "judged", "false", "unproved", "unjudged")
	var all Count
	for _, k := range slices.Sorted(maps.Keys(r.Counts)) {
		c := r.Counts[k]
		fmt.Fprintf(&b, "%-40s %8d %8d %8d %8d\n", k, c.Judged, c.False, c.Unproved, c.Unjudged)
		all.Judged += c.Judged
		all.False += c.False
		all.Unproved += c.Unproved
		all.Unjudged += c.Unjudged
	}
	fmt.Fprintf(&b, "%-40s %8d %8d %8d %8d\n", "all", all.Judged, all.False, all.Unproved, all.Unjudged)
	return b.String()
}

// String tells a finding over several lines.
func (f Finding) String() string {
	verdict := "FALSE"
	if f.Unproved {
		verdict = "UNPROVED"
	}
	s := fmt.Sprintf("%s %s: %s\n    because %s", verdict, f.Kind, strings.ReplaceAll(f.Statement, "\n", "\n    "), strings.ReplaceAll(f.Reason, "\n", "\n    "))
	if len(f.Refuting) > 0 {
		s += fmt.Sprintf("\n    see %v", f.Refuting)
	}
	return s
}

// Check judges what a summary says of the first end messages of a log, which has
// ids and turns set, as those of a thread. The messages after them are those that
// stand beside the summary: only the current task may be taken from there.
func Check(log []thread.Message, end int, s summary.Summary) Report {
	end = len(hosted.Unfold(log[:min(max(end, 0), len(log))]))
	log = hosted.Unfold(log) // calls of the provider are calls too
	j := newJudge(log, end)
	j.said(s)
	j.files(s.Files)
	j.outcomes(s.ToolOutcomes)
	j.attempts(s.FailedAttempts)
	j.quotes(s)
	j.artifacts(s.Artifacts)
	now := newJudge(log, len(log)) // these are read off all of the log
	now.plan(s.CurrentPlan)
	now.work(s.Work)
	j.report.Add(now.report)
	slices.SortStableFunc(j.report.Findings, func(a, b Finding) int { return cmp.Compare(a.Kind, b.Kind) })
	return j.report
}

// newJudge judges by the first end messages of a log.
func newJudge(log []thread.Message, end int) *judge {
	return &judge{all: log, replay: follow(log[:end]), report: Report{Counts: map[Kind]Count{}}, clean: map[thread.ID][]text{}}
}

// judge collects verdicts.
type judge struct {
	*replay
	all    []thread.Message
	report Report
	clean  map[thread.ID][]text // what a message holds, by id
}

func (j *judge) count(k Kind, change func(*Count)) {
	c := j.report.Counts[k]
	change(&c)
	j.report.Counts[k] = c
}

func (j *judge) isTrue(k Kind) { j.count(k, func(c *Count) { c.Judged++ }) }

func (j *judge) cannotTell(k Kind) { j.count(k, func(c *Count) { c.Unjudged++ }) }

func (j *judge) isFalse(k Kind, c claim, reason string, refuting ...int) {
	j.count(k, func(c *Count) { c.Judged++; c.False++ })
	j.find(Finding{Kind: k, Statement: c.text, Reason: reason, Sources: c.sources}, refuting)
}

func (j *judge) unproved(k Kind, c claim, reason string, refuting ...int) {
	j.count(k, func(c *Count) { c.Judged++; c.Unproved++ })
	j.find(Finding{Kind: k, Unproved: true, Statement: c.text, Reason: reason, Sources: c.sources}, refuting)
}

func (j *judge) find(f Finding, refuting []int) {
	f.Refuting = j.ids(refuting...)
	j.report.Findings = append(j.report.Findings, f)
}

// say is isTrue or isFalse.
func (j *judge) say(k Kind, ok bool, c claim, reason string, refuting ...int) {
	if ok {
		j.isTrue(k)
		return
	}
	j.isFalse(k, c, reason, refuting...)
}

func (j *judge) ids(at ...int) []thread.ID {
	var out []thread.ID
	for _, i := range at {
		if i >= 0 && i < len(j.log) {
			out = append(out, j.log[i].ID)
		}
	}
	return out
}

// claim is a statement of a summary, and the messages that it names.
type claim struct {
	text    string
	sources []thread.ID
	at      []int // positions of the sources that are in the log
}

// and is the claim with more words.
func (c claim) and(words string) claim {
	c.text += words
	return c
}

// claim makes a claim, and judges whether the log has the messages that it names.
func (j *judge) claim(text string, sources []thread.ID) claim {
	c := claim{text: text, sources: sources}
	for _, id := range sources {
		i, ok := j.index[id]
		j.say(kindSource, ok, c, fmt.Sprintf("the log up to the end of the span has no message %s", id))
		if ok {
			c.at = append(c.at, i)
		}
	}
	return c
}
