package plan

import (
	"fmt"
	"iter"
	"slices"

	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Action is what happens to a message when the prompt is rendered.
type Action uint8

// The actions, by precedence: where records overlap, the later action in this list
// wins.
const (
	Include Action = iota
	Clear
	Summarize
	Externalize
	Drop
)

// String returns the action's name, such as "externalize".
func (a Action) String() string {
	return [...]string{"include", "clear", "summarize", "externalize", "drop"}[a]
}

// MarshalText writes the name.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the name.
func (a *Action) UnmarshalText(word []byte) error {
	for known := Include; known <= Drop; known++ {
		if known.String() == string(word) {
			*a = known
			return nil
		}
	}
	return fmt.Errorf("plan: unknown action %.40q", word)
}

// Removes reports whether the action takes the message out of the prompt. A cleared
// message stays in its place, shorter.
func (a Action) Removes() bool { return a >= Summarize }

// Origin says who proposed a record, why, and what it frees.
type Origin struct {
	Strategy     string `json:"strategy,omitempty"`
	Reason       string `json:"reason,omitempty"`
	TokensBefore int    `json:"tokens_before,omitempty"`
	TokensAfter  int    `json:"tokens_after,omitempty"`
}

// Freed is the number of tokens that the record frees.
func (o Origin) Freed() int { return o.TokensBefore - o.TokensAfter }

// Externalization replaces a span by a pointer to its stored content and a summary of it.
type Externalization struct {
	Span       thread.Span     `json:"span"`
	ArtifactID string          `json:"artifact_id"`
	Summary    summary.Summary `json:"summary"`
	// RehydrateHint says when the agent should read the content back.
	RehydrateHint string `json:"rehydrate_hint,omitempty"`
	Origin
}

// Summarization replaces a span by a summary.
type Summarization struct {
	Span    thread.Span     `json:"span"`
	Summary summary.Summary `json:"summary"`
	// SummaryTokens is the size of the rendered summary.
	SummaryTokens int `json:"summary_token_count"`
	// Stand is what replaces the span, for policies with a format of their own; empty for
	// the default format around the rendered Summary.
	Stand []Replacement `json:"stand,omitempty"`
	// Kept are the results in the span that no tool can give again. The summary names the
	// newest of them.
	Kept []Kept `json:"kept,omitempty"`
	// State is the structured state after this compaction, for policies that keep one
	// beside the summary, so that both change together.
	State *state.State `json:"state,omitempty"`
	// Range is what a summary block of policy.Timeline carries.
	Range *Range `json:"range,omitempty"`
	Origin
}

// Kept is a result that no tool can give again, stored outside the prompt because its
// message is removed. MessageID is in the record's span; ArtifactID names the content, as
// in an Externalization.
type Kept struct {
	ArtifactID string    `json:"artifact_id"`
	MessageID  thread.ID `json:"message_id"`
}

// Replacement is a message that is shown in place of others: one of system, user or
// assistant. Without a role it is the assistant's, or the user's in place of a single
// message of theirs.
type Replacement struct {
	Role thread.Role `json:"role"`
	Text string      `json:"text"`
}

// ReplacementField is the preserved field of a Clearing that holds the text shown in place
// of an assistant message without calls.
const ReplacementField = "replacement"

// MediaField is the preserved field, true, of a Clearing that takes out pictures and files alone: the
// text of a result stays beside the notes that say what was left out.
const MediaField = "media"

// Clearing leaves a placeholder. A tool message keeps its cleared form; an assistant
// message keeps its text and its calls, with shortened arguments; one without calls is
// replaced by the text of ReplacementField.
type Clearing struct {
	Span thread.Span `json:"span"`
	// PreservedFields are shown in the placeholder beside the result's own key fields.
	PreservedFields thread.Fields `json:"preserved_fields,omitempty"`
	Origin
}

// Removal leaves nothing in the prompt.
type Removal struct {
	Span thread.Span `json:"span"`
	// Kept is as in Summarization.
	Kept []Kept `json:"kept,omitempty"`
	Origin
}

// Record is a Clearing, Summarization, Externalization or Removal.
type Record interface {
	// Covers returns the span that the record stands for.
	Covers() thread.Span
	// Action returns what the record does.
	Action() Action
	// Made returns who made the record, why, and what it frees.
	Made() Origin
}

// Covers returns the span.
func (r Clearing) Covers() thread.Span        { return r.Span }
func (r Summarization) Covers() thread.Span   { return r.Span }
func (r Externalization) Covers() thread.Span { return r.Span }
func (r Removal) Covers() thread.Span         { return r.Span }

// Action returns what the record does.
func (Clearing) Action() Action        { return Clear }
func (Summarization) Action() Action   { return Summarize }
func (Externalization) Action() Action { return Externalize }
func (Removal) Action() Action         { return Drop }

// Add appends a record. Use it while building a plan, before Normalize.
func (p *Plan) Add(r Record) {
	switch r := r.(type) {
	case Clearing:
		p.Clearings = append(p.Clearings, r)
	case Summarization:
		p.Summarizations = append(p.Summarizations, r)
	case Externalization:
		p.Externalizations = append(p.Externalizations, r)
	case Removal:
		p.Drops = append(p.Drops, r)
	}
}

// Ref points to a record: its action, and its index in the list of that action. The zero
// Ref stands for an included message.
type Ref struct {
	Action Action `json:"action"`
	Index  int    `json:"index"`
}

// String writes the JSON path of the record, such as summarizations[0].
func (r Ref) String() string {
	if r.Action == Include {
		return "included"
	}
	list := [...]string{Clear: "clearings", Summarize: "summarizations", Externalize: "externalizations", Drop: "drops"}[r.Action]
	return fmt.Sprintf("%s[%d]", list, r.Index)
}

// Actions maps message ids to the records that cover them. Ids that are missing are
// included.
type Actions map[thread.ID]Ref

// Actions indexes the plan. Where records overlap, precedence decides and then the earlier
// record, as in Normalize. A nil plan covers nothing.
func (p *Plan) Actions() Actions {
	n := 0
	for _, s := range p.spans() {
		n += s.Len()
	}
	actions := make(Actions, n)
	for ref, s := range p.spans() {
		for _, id := range s.MessageIDs {
			if ref.Action > actions[id].Action {
				actions[id] = ref
			}
		}
	}
	return actions
}

// Record returns the record behind a ref. It panics if the plan has no such record.
func (p *Plan) Record(ref Ref) Record {
	switch ref.Action {
	case Clear:
		return p.Clearings[ref.Index]
	case Summarize:
		return p.Summarizations[ref.Index]
	case Externalize:
		return p.Externalizations[ref.Index]
	case Drop:
		return p.Drops[ref.Index]
	}
	panic("plan: no record is behind an included message")
}

// Made returns o; records embed it.
func (o Origin) Made() Origin { return o }

// Showing returns the plan with a record that covers the messages no more for which shown is true. They take
// as many tokens. A record that covers nothing more is gone.
func (p *Plan) Showing(ref Ref, shown func(thread.ID) bool, tokens int) Plan {
	next := *p
	next.CompactedTokens += tokens
	without := func(span *thread.Span, made *Origin, kept *[]Kept) (gone bool) {
		*span = span.Without(shown)
		made.TokensBefore = max(0, made.TokensBefore-tokens)
		if kept != nil {
			*kept = slices.DeleteFunc(slices.Clone(*kept), func(k Kept) bool { return shown(k.MessageID) })
		}
		return span.Len() == 0
	}
	switch ref.Action {
	case Clear:
		next.Clearings = changed(p.Clearings, ref.Index, func(r *Clearing) bool { return without(&r.Span, &r.Origin, nil) })
	case Summarize:
		next.Summarizations = changed(p.Summarizations, ref.Index, func(r *Summarization) bool { return without(&r.Span, &r.Origin, &r.Kept) })
	case Externalize:
		next.Externalizations = changed(p.Externalizations, ref.Index, func(r *Externalization) bool { return without(&r.Span, &r.Origin, nil) })
	case Drop:
		next.Drops = changed(p.Drops, ref.Index, func(r *Removal) bool { return without(&r.Span, &r.Origin, &r.Kept) })
	}
	return next
}

// changed returns records with one of them changed, or without it if change says that it is gone.
func changed[T any](records []T, at int, change func(*T) (gone bool)) []T {
	records = slices.Clone(records)
	if change(&records[at]) {
		return slices.Delete(records, at, at+1)
	}
	return records
}

// Records visits all records, lowest precedence first. A nil plan has none.
func (p *Plan) Records() iter.Seq2[Ref, Record] {
	return func(yield func(Ref, Record) bool) {
		for ref := range p.spans() {
			if !yield(ref, p.Record(ref)) {
				return
			}
		}
	}
}

// Refs lists all records, lowest precedence first. A nil plan has none.
func (p *Plan) Refs() []Ref {
	var refs []Ref
	for ref := range p.spans() {
		refs = append(refs, ref)
	}
	return refs
}

// spans visits the spans of all records, lowest precedence first. A nil plan has none.
func (p *Plan) spans() iter.Seq2[Ref, *thread.Span] {
	return func(yield func(Ref, *thread.Span) bool) {
		if p == nil {
			return
		}
		_ = visit(Clear, p.Clearings, func(r *Clearing) *thread.Span { return &r.Span }, yield) &&
			visit(Summarize, p.Summarizations, func(r *Summarization) *thread.Span { return &r.Span }, yield) &&
			visit(Externalize, p.Externalizations, func(r *Externalization) *thread.Span { return &r.Span }, yield) &&
			visit(Drop, p.Drops, func(r *Removal) *thread.Span { return &r.Span }, yield)
	}
}

// visit visits the spans of the records of one action, until yield is false.
func visit[T any](action Action, records []T, span func(*T) *thread.Span, yield func(Ref, *thread.Span) bool) bool {
	for i := range records {
		if !yield(Ref{action, i}, span(&records[i])) {
			return false
		}
	}
	return true
}

// External is content that a plan moved out of the prompt.
type External struct {
	// ArtifactID names the content, Messages hold it.
	ArtifactID string
	Messages   []thread.ID
	// Path is the JSON path of the record, for error messages.
	Path string
}

// Externalized lists what the plan moved out of the prompt: its externalizations, and the
// results that no tool can give again in its summarizations and drops.
func (p *Plan) Externalized() []External {
	var out []External
	kept := func(path string, list []Kept) {
		for i, k := range list {
			out = append(out, External{k.ArtifactID, []thread.ID{k.MessageID}, fmt.Sprintf("%s.kept[%d]", path, i)})
		}
	}
	for n, r := range p.Externalizations {
		out = append(out, External{r.ArtifactID, r.Span.MessageIDs, Ref{Externalize, n}.String()})
	}
	for n, r := range p.Summarizations {
		kept(Ref{Summarize, n}.String(), r.Kept)
	}
	for n, r := range p.Drops {
		kept(Ref{Drop, n}.String(), r.Kept)
	}
	return out
}
