// Package store is where threads and plans are kept: the contracts, and what
// holds for every implementation. Memory is here; implementations that keep
// things longer are leaf packages. storetest proves them all.
//
// A log only grows, and a plan only follows another: both writes name the
// position they were made for and are refused when somebody was faster. The
// caller then loads what is there and decides anew; nothing is lost.
package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

var (
	// ErrNotFound is wrapped by errors about a plan that does not exist. A thread
	// that was never written to is empty, not missing.
	ErrNotFound = errors.New("not found")
	// ErrConflict is wrapped by every *ConflictError.
	ErrConflict = errors.New("somebody else was faster")
)

// ConflictError says that a write was made for another version than the one
// that is there. Nothing was written.
type ConflictError struct {
	ThreadID   string
	Want, Have int
}

// Error names both versions.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("thread %s: written for version %d, it is at %d: %v", e.ThreadID, e.Want, e.Have, ErrConflict)
}

// Is makes every ConflictError match ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// Log keeps threads. Implementations are safe for concurrent use.
type Log interface {
	// Load returns a thread as it is now; a thread that was never written to is
	// empty.
	Load(ctx context.Context, threadID string) (*thread.Thread, error)
	// Append adds messages to the thread that has `version` messages, and
	// returns it with them. Messages that stand there already, by id and in the
	// same place, are skipped, so that a repeated call changes nothing. A thread
	// that has grown otherwise is a *ConflictError.
	Append(ctx context.Context, threadID string, version int, messages []thread.Message) (*thread.Thread, error)
}

// Plans keeps the plans of threads. Versions count from 1; 0 stands for a thread
// that has none. Implementations are safe for concurrent use.
type Plans interface {
	// Current returns the newest plan and its version; nil and 0 when there is
	// none.
	Current(ctx context.Context, threadID string) (*plan.Plan, int, error)
	// Plan returns one version. The error wraps ErrNotFound.
	Plan(ctx context.Context, threadID string, version int) (*plan.Plan, error)
	// Commit makes p the plan that follows version `expected`, and returns its
	// own version. Another plan in its place is a *ConflictError.
	Commit(ctx context.Context, threadID string, expected int, p *plan.Plan) (int, error)
}

// Skip returns the messages that the thread, which is longer than version, does
// not hold yet: the whole rest when a repeated append already wrote the
// beginning. It is for implementations; the error is a *ConflictError.
func Skip(t *thread.Thread, version int, messages []thread.Message) ([]thread.Message, error) {
	if version > t.Len() {
		return nil, &ConflictError{ThreadID: t.ID(), Want: version, Have: t.Len()}
	}
	parent := t.Prefix(version).Last()
	for n := range messages {
		m := messages[n]
		if m.ID == "" {
			m.ID = thread.ChainID(parent, &m)
		}
		if version+n == t.Len() {
			return messages[n:], nil
		}
		if t.At(version+n).ID != m.ID {
			return nil, &ConflictError{ThreadID: t.ID(), Want: version, Have: t.Len()}
		}
		parent = m.ID
	}
	return nil, nil
}
