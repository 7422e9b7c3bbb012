package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Commit is everything that changes when a plan becomes current. A store writes all of
// it or nothing, and marks the messages that the plan covers in the same transaction.
type Commit struct {
	// Plan is required.
	Plan *plan.Plan
	// Events are added to those of the thread, whatever their ThreadID is.
	Events []event.Event
	// Documents are written as by Documents.Put, such as the one that says that a
	// compaction is running. If one has another version, the error is a *ConflictError.
	Documents []Document
}

// Check returns an error for a commit that cannot be stored. It is for implementations.
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
			return fmt.Errorf("document %s/%s is twice in one commit", d.Kind, d.ID)
		} else {
			seen[name] = true
		}
	}
	return nil
}

// Plans stores the plans of threads. Versions count from 1; 0 means that a thread has
// none. Nobody changes a plan that was committed or returned: the store and all callers
// share it. plan.Clone makes a copy that can be changed. Implementations are safe for
// concurrent use.
type Plans interface {
	// Current returns the newest plan and its version; nil and 0 if there is none.
	Current(ctx context.Context, threadID string) (*plan.Plan, int, error)
	// Plan returns one version. The error wraps ErrNotFound.
	Plan(ctx context.Context, threadID string, version int) (*plan.Plan, error)
	// Commit makes c.Plan the plan behind version `expected` and returns its version. If
	// there is another plan already, the error is a *ConflictError.
	Commit(ctx context.Context, threadID string, expected int, c Commit) (int, error)
	// Compacted returns, for each message of the log that the newest plan covers, the
	// version since which all plans have covered it.
	Compacted(ctx context.Context, threadID string) (map[thread.ID]int, error)
}

// Events stores the events of threads, for audits and for watching. The positions of a
// thread's events count from 1 without gaps, and no event appears in front of one that
// was already read. Implementations are safe for concurrent use.
type Events interface {
	// Record adds events to their threads, all or none.
	Record(ctx context.Context, events ...event.Event) error
	// Events returns the events of a thread behind position `after`, oldest first: at
	// most limit, where 0 stands for 100. The n-th of them, counting from 1, has
	// position after+n. They hold what their JSON form holds, which has no content.
	Events(ctx context.Context, threadID string, after, limit int) ([]event.Event, error)
}

// MaxDocument is the size of the largest document, in bytes.
const MaxDocument = 1 << 20

// Document is a small piece of JSON of a tenant: a memory block, the state of a
// workstream, a note that a job is running.
type Document struct {
	// Kind and ID identify it. A document about a thread has the thread's id.
	Kind, ID string
	// Version grows by one with each change.
	Version int
	// Body is JSON. It is returned byte for byte.
	Body json.RawMessage
}

// Check returns an error for a document that cannot be stored. It is for
// implementations.
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

// Documents stores small documents that change in place. Implementations are safe for
// concurrent use.
type Documents interface {
	// Document returns one document. The error wraps ErrNotFound.
	Document(ctx context.Context, kind, id string) (Document, error)
	// Put replaces the document of version d.Version and returns the new version. Version
	// 0 creates a document. An empty body removes it; if it is created again, its version
	// goes on from there. If the stored version is another, the error is a *ConflictError.
	Put(ctx context.Context, d Document) (int, error)
	// Documents lists the documents of a kind whose ids follow `after`, ordered by id: at
	// most limit, where 0 stands for 100.
	Documents(ctx context.Context, kind, after string, limit int) ([]Document, error)
	// Kinds lists the kinds of all documents, sorted.
	Kinds(ctx context.Context) ([]string, error)
}
