package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest/state"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// SchemaVersion is the version of a plan's JSON form.
const SchemaVersion = 1

// ErrSchema is wrapped by the error of Parse when a plan was written by a newer
// version of this module, or is no plan at all.
var ErrSchema = errors.New("not a plan this version can read")

// Action is what happens to a message when the prompt is rendered.
type Action uint8

// The actions, in the order of their precedence: where records overlap, the
// later one in this list wins.
const (
	Include Action = iota
	Clear
	Summarize
	Externalize
	Drop
)

// String returns the seed's word for the action.
func (a Action) String() string {
	return [...]string{"include", "clear", "summarize", "externalize", "drop"}[a]
}

// MarshalText writes the word of String.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the word of String.
func (a *Action) UnmarshalText(word []byte) error {
	for known := Include; known <= Drop; known++ {
		if known.String() == string(word) {
			*a = known
			return nil
		}
	}
	return fmt.Errorf("plan: unknown action %.40q", word)
}

// Removes reports whether the action takes the message itself out of the
// prompt. A cleared message stays in its place, shorter.
func (a Action) Removes() bool { return a >= Summarize }

// Plan is a complete compaction of a thread. The zero value includes everything.
type Plan struct {
	Schema   int    `json:"schema_version"`
	ThreadID string `json:"thread_id"`
	// ThreadVersion is how many messages the thread had when the plan was made. The
	// plan holds for every longer version too.
	ThreadVersion int `json:"thread_version"`
	// Arrived is how many of the newest messages were not sent to a model yet
	// when the plan was made, where it changes nothing that was sent: it only
	// adds to the plan before it what was externalized on arrival.
	Arrived   int       `json:"arrived,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	// Policy names the policy that made the plan, or what else did: "undo" or
	// "memory".
	Policy string `json:"policy,omitempty"`
	// Round counts the compactions of the thread up to this plan: undoing one, or
	// adding to the memory block, makes no new round. 0 in plans that no policy made.
	Round int `json:"round,omitempty"`
	// Refused is how often the provider had refused the request as too long when the
	// plan was made for it; whoever makes it smaller once more goes on from there.
	Refused int `json:"refused,omitempty"`
	// Counter names the token counter of all token figures in the plan.
	Counter string `json:"counter,omitempty"`

	// The records. Those that a plan has taken over from the one before it are the
	// same in both (see Since).
	Externalizations []Externalization `json:"externalizations"`
	Summarizations   []Summarization   `json:"summarizations"`
	Clearings        []Clearing        `json:"clearings"`
	Drops            []Removal         `json:"drops"`

	// Cache says where cached prefixes end; nil for the renderer's own rule.
	Cache *CacheRule `json:"cache,omitempty"`

	// Instructions are what the user asked this compaction to keep in mind, word
	// for word; empty where nobody asked for it.
	Instructions string `json:"instructions,omitempty"`
	// Memory is the memory block of the thread as of this plan (D10); nil while
	// it is empty. It is shown behind the system prompt. A plan that follows takes it
	// over; undoing brings back the block of the plan that is chosen.
	Memory *state.Memory `json:"memory,omitempty"`
	// Pinned are the messages that the user wants to stay as they were said: a wish
	// that ladders keep to. A plan that follows takes them over.
	Pinned []thread.ID `json:"pinned,omitempty"`

	// OriginalTokens and CompactedTokens are the whole request before and after.
	OriginalTokens  int `json:"original_token_count"`
	CompactedTokens int `json:"compacted_token_count"`
}

// Origin says who proposed a record, why, and what it frees.
type Origin struct {
	Strategy     string `json:"strategy,omitempty"`
	Reason       string `json:"reason,omitempty"`
	TokensBefore int    `json:"tokens_before,omitempty"`
	TokensAfter  int    `json:"tokens_after,omitempty"`
}

// Freed is the number of tokens that the record frees.
func (o Origin) Freed() int { return o.TokensBefore - o.TokensAfter }

// Externalization replaces a span by a pointer to its stored content and a
// summary of it.
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
	// Stand is what stands in place of the span, for policies with a form of
	// their own; empty for the default form around the rendered Summary.
	Stand []Replacement `json:"stand,omitempty"`
	// Kept are the results in the span that no tool gives a second time. The summary
	// names the newest of them.
	Kept []Kept `json:"kept,omitempty"`
	// State is the structured state after this compaction, for policies that
	// keep one beside the summary: text and state change in one step (D8).
	State *state.State `json:"state,omitempty"`
	// Range is what a summary block of a timeline carries (C7).
	Range *Range `json:"range,omitempty"`
	Origin
}

// Kept is a result whose content is externalized because no tool gives it a second
// time, while its message goes with a span. MessageID is in that span, ArtifactID
// names the content as that of an Externalization does.
type Kept struct {
	ArtifactID string    `json:"artifact_id"`
	MessageID  thread.ID `json:"message_id"`
}

// Replacement is a message that stands in place of others.
type Replacement struct {
	Role thread.Role `json:"role"`
	Text string      `json:"text"`
}

// ReplacementField is the preserved field of a Clearing whose text stands in place
// of what an assistant message without calls says.
const ReplacementField = "replacement"

// Clearing leaves a placeholder: of a tool message its cleared form, of an
// assistant message its text and its calls with shortened arguments, or, without
// calls, the text of ReplacementField.
type Clearing struct {
	Span thread.Span `json:"span"`
	// PreservedFields stand in the placeholder beside the result's own key
	// fields.
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

// Record is one of Clearing, Summarization, Externalization and Removal.
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

// Add appends a record. It is for building a plan, before Normalize.
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

// Ref points to a record: its action and its index in the list of that action.
// The zero Ref stands for included messages.
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

// Actions maps message ids to the records that cover them. Ids that are not in
// the map are included.
type Actions map[thread.ID]Ref

// Actions indexes the plan. Where records overlap, precedence decides and then
// the earlier record, as in Normalize.
func (p *Plan) Actions() Actions {
	n := 0
	p.each(func(_ Ref, s *thread.Span, _ *Origin) { n += len(s.MessageIDs) })
	actions := make(Actions, n)
	p.each(func(ref Ref, s *thread.Span, _ *Origin) {
		for _, id := range s.MessageIDs {
			if held := actions[id]; ref.Action > held.Action {
				actions[id] = ref
			}
		}
	})
	return actions
}

// Empty reports whether the plan has no records.
func (p *Plan) Empty() bool {
	return p == nil || len(p.Externalizations)+len(p.Summarizations)+len(p.Clearings)+len(p.Drops) == 0
}

// Rewritten is how many messages of the thread a model had been sent when the
// plan changed something among them. What a provider bound to the text before
// it, such as reasoning, no longer holds in these.
func (p *Plan) Rewritten() int {
	if p.Empty() {
		return 0
	}
	return p.ThreadVersion - p.Arrived
}

// Record returns the record that a ref points to. It panics if the plan has no
// such record.
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

// Made returns who made the record, why, and what it frees.
func (o Origin) Made() Origin { return o }

// Refs lists all records, lowest precedence first.
func (p *Plan) Refs() []Ref {
	var refs []Ref
	p.each(func(ref Ref, _ *thread.Span, _ *Origin) { refs = append(refs, ref) })
	return refs
}

// each visits the records, lowest precedence first.
func (p *Plan) each(visit func(Ref, *thread.Span, *Origin)) {
	for i := range p.Clearings {
		visit(Ref{Clear, i}, &p.Clearings[i].Span, &p.Clearings[i].Origin)
	}
	for i := range p.Summarizations {
		visit(Ref{Summarize, i}, &p.Summarizations[i].Span, &p.Summarizations[i].Origin)
	}
	for i := range p.Externalizations {
		visit(Ref{Externalize, i}, &p.Externalizations[i].Span, &p.Externalizations[i].Origin)
	}
	for i := range p.Drops {
		visit(Ref{Drop, i}, &p.Drops[i].Span, &p.Drops[i].Origin)
	}
}

// Clone returns a plan that shares nothing with p that could be written to; nil
// for nil.
func (p *Plan) Clone() *Plan { return copyOf(p) }

// Parse reads a plan from JSON. The error wraps ErrSchema when the version is
// missing or newer than SchemaVersion. Parse does not validate: that needs the
// thread.
func Parse(data []byte) (*Plan, error) {
	var p Plan
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("plan.Parse: %w: %w", ErrSchema, err)
	}
	switch {
	case p.Schema == 0:
		return nil, fmt.Errorf("plan.Parse: %w: it has no schema_version", ErrSchema)
	case p.Schema != SchemaVersion:
		return nil, fmt.Errorf("plan.Parse: %w: schema_version is %d, this version reads %d", ErrSchema, p.Schema, SchemaVersion)
	}
	return &p, nil
}

// MarshalJSON writes the plan with its schema version and with empty lists as
// [] rather than null.
func (p Plan) MarshalJSON() ([]byte, error) {
	type plain Plan
	out := plain(p)
	out.Schema = SchemaVersion
	out.Externalizations = nonNil(out.Externalizations)
	out.Summarizations = nonNil(out.Summarizations)
	out.Clearings = nonNil(out.Clearings)
	out.Drops = nonNil(out.Drops)
	return json.Marshal(out)
}

func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
