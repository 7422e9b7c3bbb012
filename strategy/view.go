package strategy

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Given is what a view is made from. Thread, Count, CountText and Sizes are required, and
// Summarizer for the rungs that need one.
type Given struct {
	Thread  *thread.Thread
	Pairs   *thread.Pairing // nil: found
	Profile render.Profile
	// Room is what all messages together may take, in tokens.
	Room int
	// Count is the size in tokens of a message in a prompt, CountText that of a text.
	Count     func(*thread.Message) int
	CountText func(string) int
	// Sizes are the tokens of each message as the profile sends it once a plan has changed
	// something.
	Sizes []int
	// Pins are the positions of messages that the user has pinned: no level gives them up.
	Pins []int
	// Tools declares how durable results are; nil holds the built-in policies.
	Tools *toolpolicy.Registry
	// Current describes the source of a replayable result as it is now. Nil or false means
	// unknown, and the result counts as changed.
	Current    func(thread.ToolCall) (thread.Determinism, bool)
	Summarizer summarize.Summarizer
	// Correction is the factor that all figures were multiplied with and that the summarizer
	// does not know; 0 is none.
	Correction float64
	// Sent is the request as the provider has it in its cache; may be nil (see
	// summarize.Input).
	Sent *prompt.Prompt
	// Name makes the ids of externalized content; nil is artifact.IDOf.
	Name artifact.Namer
	// Answers caches what models answered; may be nil.
	Answers *llm.Answers
	// Instructions are what the user asks summaries to keep in mind; mostly empty.
	Instructions   string
	InstructionsBy thread.Role // empty: the user
	// Grows says that later compactions will add to the plan: new summaries leave room for
	// theirs. Otherwise, and in a small room, they fill it.
	Grows bool
}

// View is a thread under pressure: what each message costs, which must not be touched, and
// what has been decided so far.
type View struct {
	Given
	// Pinned messages are never touched.
	Pinned []bool
	// Anchored messages may become shorter in place but not go: the results of pinned
	// calls, the calls of pinned results.
	Anchored []bool
	// Tail is where the protected newest part begins.
	Tail int

	level Protection // what Protect protects

	messages    []thread.Message
	superseded  []string            // why a result is out of date, or ""
	excerpts    *summarize.Excerpts // nil until needed
	fields      []thread.Fields     // per message: its key fields from the registry; nil until needed
	records     []plan.Record       // nil where one was absorbed or undone
	inForce     int                 // how many, the first, are of the plan in force
	cover       []int               // per message: its record, or -1
	now         []int               // per message: the tokens it takes now
	total       int
	asked       *summarize.Input // what the summarizer was asked last, and its answer
	answer      summarize.Result
	proposed    []Proposal // in the order they were tried
	summaries   []summarize.Report
	leaving     []bool               // per message: proposed summaries cover it; may be nil
	pointers    map[thread.ID]string // by message: the artifact of the plan in force
	lastingKept []bool               // per message: kept from summaries and drops with a result that no tool can give again
	groups      []*group             // per message: nil until asked for
}

// NewView makes the view of a thread with only the Pins pinned and nothing decided. Keep,
// ExternalizeLarge and Protect follow, in this order and each as needed, and then
// Ladder.Climb.
func NewView(g Given) *View {
	n := g.Thread.Len()
	v := &View{
		Given: g, Pinned: make([]bool, n), Anchored: make([]bool, n), Tail: n,
		messages: g.Thread.Messages(), cover: make([]int, n), now: make([]int, n),
		fields: make([]thread.Fields, n), pointers: map[thread.ID]string{}, lastingKept: make([]bool, n), groups: make([]*group, n),
	}
	if v.Name == nil {
		v.Name = artifact.IDOf
	}
	if v.Pairs == nil {
		v.Pairs = thread.Pair(g.Thread)
	}
	v.superseded = Superseded(g.Thread, v.Pairs)
	for i, size := range v.Sizes {
		v.cover[i], v.now[i] = -1, size
		v.total += size
	}
	for _, i := range v.Pins {
		v.pin(i)
	}
	return v
}

// Proposed returns the proposals that the climb tried, in order. The slice must not be
// modified.
func (v *View) Proposed() []Proposal { return v.proposed }

// Summaries returns the reports of the summaries that the climb asked for, in order. The
// slice must not be modified.
func (v *View) Summaries() []summarize.Report { return v.summaries }

// Total is the tokens that all messages take now.
func (v *View) Total() int { return v.total }

// Over is how many tokens are still to be freed; 0 or less when it fits.
func (v *View) Over() int { return v.total - v.Room }

// Free reports whether a strategy may remove the message at i: it is not pinned, anchored,
// in the protected tail, or kept with results that no tool can give again; and the prompt
// still shows it or a text in its place.
func (v *View) Free(i int) bool {
	return i < v.Tail && !v.Anchored[i] && !v.lastingKept[i] && changes(v, i)
}

// Shrinkable reports whether the message at i may be made shorter in its place. What belongs to
// a hosted call goes with all of it, or stays as it is.
func (v *View) Shrinkable(i int) bool {
	first, last := v.Pairs.Unit(i)
	return first == last && changes(v, i)
}

func changes(v *View, i int) bool {
	return !v.Pinned[i] && (!v.action(i).Removes() || v.inPlace(i))
}

func (v *View) action(i int) plan.Action {
	if v.cover[i] < 0 {
		return plan.Include
	}
	return v.records[v.cover[i]].Action()
}

// inPlace reports whether a replacement of message i alone is shown in its place: it is
// the result of a call that stays, or what a harness said.
func (v *View) inPlace(i int) bool {
	if v.messages[i].Role == thread.User {
		return v.cover[i] < 0 || v.records[v.cover[i]].Covers().Len() == 1
	}
	call, ok := v.Pairs.Call(i)
	return ok && !v.action(call).Removes()
}

// call returns the call that the tool message at i answers; the zero call for an orphan.
func (v *View) call(i int) thread.ToolCall {
	if c, ok := v.Pairs.Answered(i); ok {
		return c
	}
	r, _ := v.messages[i].Result()
	return thread.ToolCall{Name: r.Tool}
}

// span makes the span of the given positions, which must be in order.
func (v *View) span(at []int) thread.Span {
	s := thread.Span{MessageIDs: make([]thread.ID, len(at))}
	for n, i := range at {
		s.MessageIDs[n] = v.messages[i].ID
	}
	s.FirstTurn, s.LastTurn = v.messages[at[0]].Turn, v.messages[at[len(at)-1]].Turn
	return s
}

// positions is the inverse of span.
func (v *View) positions(s thread.Span) []int {
	at := make([]int, 0, s.Len())
	for _, id := range s.MessageIDs {
		if i, ok := v.Thread.Index(id); ok {
			at = append(at, i)
		}
	}
	return at
}

// cost is what a record would make the messages at these positions take.
func (v *View) cost(record plan.Record, at []int) (total int, each []int) {
	each = make([]int, len(at))
	removes := record.Action().Removes()
	for n, i := range at {
		if removes && n > 0 {
			break // the span's text stands once, at its first message
		}
		for _, stand := range v.Profile.Replacement(v.messages[i], record, v.inPlace(i)) {
			if sent := v.Profile.Translate(stand, true); len(sent.Parts) > 0 {
				each[n] += v.Count(&sent)
			}
		}
		total += each[n]
	}
	return total, each
}

// apply decides a record. It absorbs records whose spans lie inside its own.
func (v *View) apply(record plan.Record) { v.decide(record, false) }

// decide is apply; counted says that the record's TokensAfter was counted just now.
func (v *View) decide(record plan.Record, counted bool) {
	at := v.positions(record.Covers())
	counted = counted && v.cover[at[0]] < 0 && (len(at) == 1 || record.Action().Removes())
	for _, i := range at {
		if c := v.cover[i]; c >= 0 {
			v.records[c] = nil
		}
		v.cover[i] = -1
		v.total -= v.now[i]
		v.now[i] = 0
	}
	var each []int
	if counted {
		each = make([]int, len(at))
		each[0] = record.Made().TokensAfter
	} else {
		_, each = v.cost(record, at)
	}
	v.records = append(v.records, record)
	for n, i := range at {
		v.cover[i] = len(v.records) - 1
		v.now[i] = each[n]
		v.total += each[n]
	}
}

// Keep takes over the records of the plan in force, so that the new plan grows out of it:
// they stay as they are, byte for byte, and rungs add to them. A rung may still replace
// several of them by one. Left out are cleared results whose source has changed since,
// summaries in the format of another policy and, unless summaries is set, all summaries.
// Keep comes before anything else is decided; a nil plan has no records.
func (v *View) Keep(p *plan.Plan, summaries bool) {
	for _, record := range p.Records() {
		switch r := record.(type) {
		case plan.Summarization:
			for _, a := range r.Summary.Artifacts {
				for _, id := range a.Sources {
					v.pointers[id] = a.ArtifactID
				}
			}
			if summaries && len(r.Stand) == 0 && r.Range == nil && r.State == nil {
				v.apply(r)
			}
		case plan.Clearing:
			if stillCleared(v, r) {
				v.apply(r)
			}
		case plan.Externalization:
			v.pointers[r.Span.First()] = r.ArtifactID
			v.apply(r)
		default:
			v.apply(r)
		}
	}
	v.inForce = len(v.records)
}

// Hold takes over the records of a plan as they are, with tight only those that hide messages,
// and protects the messages at the positions of whole. What came after the model's last answer
// is the tail. It stands in the place of Keep and Protect; a nil plan has no records.
func (v *View) Hold(p *plan.Plan, tight bool, whole []int) {
	for ref, r := range p.Records() {
		if !tight || ref.Action == plan.Summarize || ref.Action == plan.Drop {
			v.apply(r)
		}
	}
	v.inForce, v.level = len(v.records), LastStep
	for v.Tail > 0 && v.messages[v.Tail-1].Role != thread.Assistant {
		v.Tail--
	}
	for _, i := range whole {
		v.pin(i)
	}
}

// stillCleared reports whether the results that a record clears may still be cleared.
func stillCleared(v *View, r plan.Clearing) bool {
	return !slices.ContainsFunc(v.positions(r.Span), func(i int) bool { return v.messages[i].Role == thread.Tool && !v.clearable(i) })
}

// Summarized is how many tokens the summaries decided so far take.
func (v *View) Summarized() int { return v.summaryTokens(0, len(v.records)) }

// summaryAt is how many tokens the summary at i takes; 0 where there is none.
func (v *View) summaryAt(i int) int {
	if c := v.cover[i]; c >= 0 && v.records[c].Action() == plan.Summarize {
		return v.now[i]
	}
	return 0
}

func (v *View) undo(n int) {
	for _, i := range v.positions(v.records[n].Covers()) {
		v.total += v.Sizes[i] - v.now[i]
		v.cover[i], v.now[i] = -1, v.Sizes[i]
	}
	v.records[n] = nil
}

// origin is the origin of a record over the messages at these positions.
func (v *View) origin(name, reason string, at []int) plan.Origin {
	return plan.Origin{Strategy: name, Reason: reason, TokensBefore: sum(v.Sizes, at)}
}

// Records returns what has been decided, in thread order of the spans' first messages.
func (v *View) Records() []plan.Record {
	var out []plan.Record
	listed := make([]bool, len(v.records))
	for i := range v.messages {
		if c := v.cover[i]; c >= 0 && !listed[c] {
			listed[c] = true
			out = append(out, v.records[c])
		}
	}
	return out
}
