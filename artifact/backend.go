package artifact

import (
	"context"
	"errors"
	"iter"
)

var (
	// ErrNotFound says that the requester's tenant has no such artifact. Whether
	// another tenant has it is not told.
	ErrNotFound = errors.New("no such artifact")
	// ErrExpired says that the artifact is past its time to live.
	ErrExpired = errors.New("artifact has expired")
	// ErrTooLarge says that content exceeds Options.MaxBytes.
	ErrTooLarge = errors.New("content is too large to be stored")
	// ErrCorrupt says that a stored record is not as it was written.
	ErrCorrupt = errors.New("stored artifact is damaged")
	// ErrSealed says that content is encrypted and could not be opened. The error of
	// the keyring, if there is one, is wrapped with it.
	ErrSealed = errors.New("artifact is encrypted and does not open")
	// ErrConflict says that other content is stored under the id.
	ErrConflict = errors.New("another content has this id")
	// ErrForbidden says that the artifact is more sensitive than the requester
	// may read.
	ErrForbidden = errors.New("artifact is too sensitive for the requester")
	// ErrLimited is wrapped by every *LimitError.
	ErrLimited = errors.New("too many reads of artifacts")
)

// Backend stores records: metadata and bytes under a tenant and an id. Two tenants may
// have the same id. All methods are safe for concurrent use. Package artifacttest tests
// implementations.
type Backend interface {
	// Put writes a record, or replaces the one of the same tenant and id. It does
	// nothing if the condition refuses the stored record, so that no process
	// overwrites what it has not seen. When Put has returned, the record survives a
	// crash if the backend is durable; no reader ever sees half of a record.
	Put(ctx context.Context, m Metadata, content []byte, c Condition) (done bool, err error)
	// Get returns a record. The error wraps ErrNotFound, or ErrCorrupt if the record
	// is damaged.
	Get(ctx context.Context, tenant, id string) (Metadata, []byte, error)
	// List yields the metadata of the records that match, ordered by id. A record that
	// cannot be read is yielded as an error, with its id in the metadata if that is
	// known, and the listing goes on.
	List(ctx context.Context, f Filter) iter.Seq2[Metadata, error]
	// Delete removes a record if the condition admits the stored one. A record that
	// does not exist is not an error.
	Delete(ctx context.Context, tenant, id string, c Condition) (done bool, err error)
}

// Condition decides from the stored record whether it may be replaced or deleted. It
// gets nil if there is no record, or none that can be read. A nil Condition is always
// true.
type Condition func(stored *Metadata) bool

// Filter selects records of one tenant.
type Filter struct {
	TenantID string
	// ThreadID selects the records of one thread; "" selects all.
	ThreadID string
	// Prefix selects ids that begin with it; "" selects all.
	Prefix string
}
