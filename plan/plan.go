// Package plan describes a compaction as pure data: which messages of a thread are hidden,
// and what the prompt shows in their place.
//
// A plan lists records. Each record covers a span of message ids with one action:
// externalize (a pointer and a summary), summarize (a summary), clear (a placeholder) or
// drop (nothing). Messages that no record covers are included as they are. Summaries are
// embedded, so rendering a plan needs nothing but the thread.
//
//	draft := plan.Plan{ThreadID: t.ID(), Clearings: …}
//	p, warnings := draft.Normalize()     // overlaps resolved by precedence
//	err := p.Validate(t)                 // an error, never a repair
//	data, err := json.Marshal(p)         // versioned; read it back with Parse
//
// A plan is complete: it also holds the records it took over from the plan before it.
// Since tells which of them are new. To undo a plan is to choose an earlier one.
//
// Plans are values: nothing changes one after it was validated, so they are safe for
// concurrent reading. All sizes are tokens, as counted by Plan.Counter.
package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// SchemaVersion is the version of a plan's JSON form.
const SchemaVersion = 1

// ErrSchema is wrapped by the error of Parse when the data is no plan, or a plan of a
// newer version of this module.
var ErrSchema = errors.New("not a plan this version can read")

// Plan is a complete compaction of a thread. The zero value includes everything.
type Plan struct {
	Schema   int    `json:"schema_version"`
	ThreadID string `json:"thread_id"`
	// ThreadVersion is how many messages the thread had when the plan was made. The plan
	// also holds for every longer version of the thread.
	ThreadVersion int `json:"thread_version"`
	// Arrived is how many of the newest messages no model had been sent yet when the plan
	// was made. It is set only where the plan changes nothing that was sent: it adds
	// records for new messages alone, and no tools come with it.
	Arrived int `json:"arrived,omitempty"`
	// Edited is how many messages the thread had when something but a compaction last
	// changed what is sent: an undo, a message shown again, an entry of the memory block;
	// 0 if nothing did. The next plan takes it over.
	Edited    int       `json:"edited,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	// Policy names the policy that made the plan, or "undo", "memory" or "cleared".
	Policy string `json:"policy,omitempty"`
	// Round counts the compactions of the thread up to this plan. Undoing one, or adding
	// to the memory block, is no new round. 0 in plans that no policy made.
	Round int `json:"round,omitempty"`
	// Refused is how often the provider had refused the request as too long when this plan
	// was made for it. The next attempt counts on from there.
	Refused int `json:"refused,omitempty"`
	// Counter names the token counter behind all token figures of the plan.
	Counter string `json:"counter,omitempty"`

	// The records. A record taken over from the plan before is the same in both (see
	// Since).
	Externalizations []Externalization `json:"externalizations"`
	Summarizations   []Summarization   `json:"summarizations"`
	Clearings        []Clearing        `json:"clearings"`
	Drops            []Removal         `json:"drops"`

	// Cache says where cached prefixes end; nil for the renderer's own rule.
	Cache *CacheRule `json:"cache,omitempty"`

	// Instructions are what the user asked this compaction to keep in mind, word for word;
	// mostly empty.
	Instructions string `json:"instructions,omitempty"`
	// Memory is the memory block of the thread, shown behind the system prompt; nil while
	// it is empty. The next plan takes it over; undoing a plan brings back the block of
	// the plan that is chosen.
	Memory *state.Memory `json:"memory,omitempty"`
	// Pinned are the messages that the user wants to see as they were said. Ladders leave
	// them alone, and the next plan takes the list over.
	Pinned []thread.ID `json:"pinned,omitempty"`

	// Notes are those of the model when the plan was made, shown behind its last summary.
	Notes []Note `json:"notes,omitempty"`

	// OriginalTokens and CompactedTokens are the whole request before and after.
	OriginalTokens  int `json:"original_token_count"`
	CompactedTokens int `json:"compacted_token_count"`
}

// MemoryText is the memory block as a prompt shows it; empty for none.
func (p *Plan) MemoryText() string {
	if p == nil || p.Memory == nil {
		return ""
	}
	return p.Memory.Render()
}

// Empty reports whether the plan has no records. A nil plan has none.
func (p *Plan) Empty() bool {
	return p == nil || len(p.Externalizations)+len(p.Summarizations)+len(p.Clearings)+len(p.Drops) == 0
}

// WithoutRecords returns a plan that hides nothing and keeps the memory block and the pins,
// for a thread that p no longer holds for. What p hid stands before every message again, so
// all of them count as rewritten.
func (p *Plan) WithoutRecords(t *thread.Thread) *Plan {
	return &Plan{Schema: SchemaVersion, ThreadID: p.ThreadID, Edited: t.Len(), CreatedAt: p.CreatedAt, Round: p.Round, Memory: p.Memory, Pinned: p.Pinned}
}

// Rewritten is how many messages a model had been sent when the plan, or an edit, changed
// something among them or before them. Whatever a provider binds to the text before it,
// such as reasoning, is no longer valid in these messages.
func (p *Plan) Rewritten() int {
	switch {
	case p == nil:
		return 0
	case p.Empty():
		return p.Edited
	}
	return max(p.ThreadVersion-p.Arrived, p.Edited)
}

// Clone returns a deep copy; nil for nil.
func (p *Plan) Clone() *Plan { return copyOf(p) }

// Parse reads a plan from JSON. The error wraps ErrSchema when the version is missing or
// newer than SchemaVersion. Parse does not validate, since that takes the thread; only a
// summary of no messages is refused at once.
func Parse(data []byte) (*Plan, error) {
	type plain Plan // without its methods
	var read struct {
		plain
		Summarizations summaries `json:"summarizations"`
	}
	if err := json.Unmarshal(data, &read); err != nil {
		return nil, fmt.Errorf("plan.Parse: %w: %w", ErrSchema, err)
	}
	p := Plan(read.plain)
	p.Summarizations = read.Summarizations
	switch {
	case p.Schema == 0:
		return nil, fmt.Errorf("plan.Parse: %w: it has no schema_version", ErrSchema)
	case p.Schema != SchemaVersion:
		return nil, fmt.Errorf("plan.Parse: %w: schema_version is %d, this version reads %d", ErrSchema, p.Schema, SchemaVersion)
	}
	return &p, nil
}

// summaries are read one by one and end at the first of no messages: that takes three
// bytes of JSON and a kilobyte of memory, so that a small file would take much.
type summaries []Summarization

func (s *summaries) UnmarshalJSON(data []byte) error {
	from := json.NewDecoder(bytes.NewReader(data))
	if start, err := from.Token(); err != nil || start != json.Delim('[') {
		return json.Unmarshal(data, (*[]Summarization)(s)) // null, or the usual error
	}
	*s = summaries{}
	for from.More() {
		var r Summarization
		if err := from.Decode(&r); err != nil {
			return err
		}
		if r.Span.Len() == 0 {
			return fmt.Errorf("%s has no messages", Ref{Summarize, len(*s)})
		}
		*s = append(*s, r)
	}
	return nil
}

// MarshalJSON writes the plan with its schema version, and empty lists as [] rather than
// null.
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
