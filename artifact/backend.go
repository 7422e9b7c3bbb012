package artifact

import (
	"context"
	"errors"
	"iter"
)

var (
	// ErrNotFound says that there is no such artifact, or none of the
	// requester's tenant: which of both is not told.
	ErrNotFound = errors.New("no such artifact")
	// ErrExpired says that the artifact's time to live is over.
	ErrExpired = errors.New("artifact has expired")
	// ErrTooLarge says that content is over the store's limit.
	ErrTooLarge = errors.New("content is too large to be stored")
	// ErrCorrupt says that what the backend holds is not what was put in.
	ErrCorrupt = errors.New("stored artifact is damaged")
	// ErrSealed says that content is encrypted and could not be opened. The error of
	// the keyring, if there is one, is wrapped with it.
	ErrSealed = errors.New("artifact is encrypted and does not open")
	// ErrConflict says that another content has the id already.
	ErrConflict = errors.New("another content has this id")
	// ErrForbidden says that the artifact is more sensitive than the requester
	// may read.
	ErrForbidden = errors.New("artifact is too sensitive for the requester")
	// ErrLimited is wrapped by every *LimitError.
	ErrLimited = errors.New("too many reads of artifacts")
)

// Backend keeps records, and knows nothing of what they mean. A record is named
// by tenant and id together: two tenants may hold the same id. All methods are
// safe for concurrent use. Package artifacttest holds what a backend must do.
type Backend interface {
	// Put keeps a record in place of the one of the same tenant and id, if may says
	// yes to what is held, so that of several processes none overwrites what it has
	// not seen; there is false where nothing is, or nothing that can be read. A nil
	// may says yes. After it returns, the record survives a crash, as far as the
	// backend keeps things at all; before, no reader sees half of it.
	Put(ctx context.Context, m Metadata, content []byte, may func(held Metadata, there bool) bool) (done bool, err error)
	// Get returns a record. The error wraps ErrNotFound when there is none and
	// ErrCorrupt when it cannot be read as it was written.
	Get(ctx context.Context, tenant, id string) (Metadata, []byte, error)
	// List yields the metadata of the records that match, ordered by id, without
	// reading content. What cannot be read comes as an error in its place, with
	// the id in the metadata as far as it is known, and the listing goes on.
	List(ctx context.Context, f Filter) iter.Seq2[Metadata, error]
	// Delete removes a record if may says yes to what is held; a nil may says yes.
	// Where nothing is, it is not asked, and nothing is done, which is no error.
	Delete(ctx context.Context, tenant, id string, may func(held Metadata) bool) (done bool, err error)
}

// Filter selects records of one tenant.
type Filter struct {
	TenantID string
	// ThreadID selects the records of one thread; "" selects all.
	ThreadID string
	// Prefix selects ids that begin with it; "" selects all.
	Prefix string
}
