package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Commit is everything that changes when a plan comes into force. A store writes
// all of it or nothing, and marks the messages that the plan covers in the same
// step (B11, D8).
//
// Summary, merged state and the last compacted message are part of the plan.
type Commit struct {
	// Plan is required.
	Plan *plan.Plan
	// Events are added to those of the thread; the ThreadID of each is set.
	Events []event.Event
	// Documents are put as Documents.Put does, such as the one that says that a
	// compaction is running. One that was changed meanwhile is a
	// *ConflictError.
	Documents []Document
}

// Check reports whether a commit can be stored. It is for implementations.
func (c Commit) Check() error {
	if c.Plan == nil {
		return errors.New("a commit needs a plan")
	}
	seen := map[[2]string]bool{}
	for _, d := range c.Documents {
		if err := d.Check(); err != nil {
			return err
		}
		if name := [2]string{d.Kind, d.ID}; seen[name] {
			return fmt.Errorf("document %s/%s is in one commit twice", d.Kind, d.ID)
		} else {
			seen[name] = true
		}
	}
	return nil
}

// Plans keeps the plans of threads. Versions count from 1; 0 stands for a thread
// that has none. What is committed may be changed afterwards, and so may what is
// returned: the store keeps copies. Implementations are safe for concurrent use.
type Plans interface {
	// Current returns the newest plan and its version; nil and 0 when there is
	// none.
	Current(ctx context.Context, threadID string) (*plan.Plan, int, error)
	// Plan returns one version. The error wraps ErrNotFound.
	Plan(ctx context.Context, threadID string, version int) (*plan.Plan, error)
	// Commit makes c.Plan the plan that follows version `expected`, and returns
	// its own version. Another plan in its place is a *ConflictError.
	Commit(ctx context.Context, threadID string, expected int, c Commit) (int, error)
	// Compacted returns the marks of the messages: for each that the newest plan
	// covers, the version since which all plans have covered it. It is what the
	// plans say, kept beside the log; messages that the log does not hold have
	// no mark.
	Compacted(ctx context.Context, threadID string) (map[thread.ID]int, error)
}

// CurrentUncopied is Plans.Current without the copy, where the store can. It is
// for code of this module, which asks at each step and does not write to plans;
// no other code can make the key.
func CurrentUncopied(ctx context.Context, plans Plans, threadID string, key uncopied.Key) (*plan.Plan, int, error) {
	s, ok := plans.(interface {
		CurrentUncopied(ctx context.Context, id string, key uncopied.Key) (*plan.Plan, int, error)
		Itself(key uncopied.Key) any
	})
	if ok && s.Itself(key) == any(plans) { // and not a store that embeds it, whose Current may be another
		return s.CurrentUncopied(ctx, threadID, key)
	}
	return plans.Current(ctx, threadID)
}

// Events keeps what happened to threads, for an audit and for whoever watches.
// The positions of a thread's events count from 1 without gaps, and an event
// never appears before one that has been read. Implementations are safe for
// concurrent use.
type Events interface {
	// Record adds events to the threads that they name, all or none.
	Record(ctx context.Context, events ...event.Event) error
	// Events returns the events of a thread that follow position `after`, the
	// oldest first; at most limit, and 0 stands for DefaultLimit. The n-th of
	// them, counting from 1, has position after+n. They come back as their JSON
	// form holds them, without content.
	Events(ctx context.Context, threadID string, after, limit int) ([]event.Event, error)
}

// MaxDocument is the size of the largest document, in bytes.
const MaxDocument = 1 << 20

// Document is a small piece of JSON that belongs to a tenant: a memory block, the
// state of a workstream, a mark that a job runs.
type Document struct {
	// Kind and ID name it. A document about a thread has the thread's id.
	Kind, ID string
	// Version grows by one with each change.
	Version int
	// Body is JSON, and comes back byte for byte.
	Body json.RawMessage
}

// Check reports whether a document can be put. It is for implementations.
func (d Document) Check() error {
	if err := CheckName("document kind", d.Kind); err != nil {
		return err
	}
	if err := CheckName("document", d.ID); err != nil {
		return err
	}
	switch {
	case d.Kind == "":
		return fmt.Errorf("document %q has no kind: %w", d.ID, ErrName)
	case len(d.Body) > MaxDocument:
		return fmt.Errorf("document %s/%s: %d bytes, the limit is %d", d.Kind, d.ID, len(d.Body), MaxDocument)
	case len(d.Body) > 0 && !rawjson.Valid(d.Body):
		return fmt.Errorf("document %s/%s: the body is not JSON", d.Kind, d.ID)
	}
	return nil
}

// Documents keeps small documents that change in place (D8, D10, D12).
// Implementations are safe for concurrent use.
type Documents interface {
	// Document returns one. The error wraps ErrNotFound.
	Document(ctx context.Context, kind, id string) (Document, error)
	// Put replaces the document whose version is d.Version, and returns the new
	// version; 0 makes one that is not there. An empty body removes it, and its
	// name goes on counting. Another version in its place is a *ConflictError.
	Put(ctx context.Context, d Document) (int, error)
	// Documents lists, by id, the documents of a kind that follow `after`; at
	// most limit, and 0 stands for DefaultLimit.
	Documents(ctx context.Context, kind, after string, limit int) ([]Document, error)
	// Kinds lists the kinds that there are documents of, in order.
	Kinds(ctx context.Context) ([]string, error)
}
