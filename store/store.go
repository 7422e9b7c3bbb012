// Package store is where threads and plans are kept, and what belongs to them:
// the contracts, and what holds for every implementation. Memory is here;
// implementations that keep things longer are leaf packages (store/sqlite,
// store/postgres). storetest proves them all.
//
// A log only grows, and a plan only follows another: both writes name the
// position they were made for and are refused when somebody was faster. The
// caller then loads what is there and decides anew; nothing is lost.
//
// # Tenants
//
// A DB holds several tenants. What one of them keeps is reached through its
// Tenant alone, so no call can forget whose rows it means:
//
//	db, err := dsn.Open(ctx, "sqlite:palimpsest.db", nil)   // store/dsn
//	t := db.Tenant("acme")
//	c, err := palimpsest.New(palimpsest.Config{Log: t.Log, Plans: t.Plans})
package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/apikey"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/keyring"
	"github.com/palimpsest-ai/palimpsest/thread"
)

var (
	// ErrNotFound is wrapped by errors about a plan, a thread or a document that
	// does not exist. To Load, a thread that was never written to is empty, not
	// missing.
	ErrNotFound = errors.New("not found")
	// ErrConflict is wrapped by every *ConflictError.
	ErrConflict = errors.New("it was changed meanwhile")
	// ErrName is wrapped by errors about a name (of a thread, a tenant, a
	// document, a message) that not every store can hold.
	ErrName = errors.New("not a name that can be stored")
	// ErrSealed is wrapped by errors about content that was encrypted, when the
	// store was opened without its key, and by those of writes to a store that has
	// data keys, when it was opened without master keys.
	ErrSealed = errors.New("the content is encrypted; open the store with its key")
	// ErrGone is wrapped by errors of writes to a database whose file was removed or
	// replaced: what is written there nobody would find again.
	ErrGone = errors.New("the store's file was removed or replaced since it was opened; put it back, or start again")
	// ErrErased is wrapped by errors about a tenant whose keys were erased.
	ErrErased = errors.New("the tenant's keys were erased: nothing of it can be read or written any more")
	// ErrNewer is wrapped by the error of opening a database that a later version
	// of this module has changed. Nothing was written to it.
	ErrNewer = errors.New("the database was made by a newer version; use that version")
	// ErrFull is wrapped by errors of writes that found no room. What was
	// acknowledged before is still there, and the write can be made again.
	ErrFull = errors.New("no room is left on the disk; free some and try again")
	// ErrQuota is wrapped by errors of writes of a tenant that keeps as much as it may.
	// Deleting makes room.
	ErrQuota = errors.New("the tenant keeps as much as it may; delete threads that nobody needs")
	// ErrReadOnly is wrapped by errors of writes without the right to write.
	ErrReadOnly = errors.New("the store may not be written to; look at the rights of its files and directory, or of the database's user")
	// ErrUnavailable is wrapped by errors of a database that cannot be reached,
	// or whose connection was lost. Whether a write that was under way is there
	// is not known; making it again is safe.
	ErrUnavailable = errors.New("the database cannot be reached")
)

// ConflictError says that a write was made for another version than the one
// that is there. Nothing was written.
type ConflictError struct {
	// ThreadID is the thread, or empty when a document was in the way. Document
	// then is its kind and id.
	ThreadID, Document string
	Want, Have         int
}

// Error names both versions.
func (e *ConflictError) Error() string {
	what := "thread " + e.ThreadID
	if e.Document != "" {
		what = "document " + e.Document
	}
	return fmt.Sprintf("%s: written for version %d, it is at %d: %v", what, e.Want, e.Have, ErrConflict)
}

// Is makes every ConflictError match ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// DefaultCacheBytes is how much of loaded threads stays in memory where Options say
// nothing.
const DefaultCacheBytes = 64 << 20

// Options tune a store that outlives the process; nil or the zero value holds the
// defaults.
type Options struct {
	// Masters encrypt contents: messages, plans, summaries, documents and events.
	// The data keys that they wrap are kept in the database, and Keyed.Keyring has
	// them; a connection of its own reads them. What was written without a key stays
	// readable. The zero value encrypts nothing. Artifacts are encrypted by
	// artifact.Store.
	Masters keyring.Masters
	// Keyring encrypts in place of Masters, with data keys that are kept elsewhere.
	Keyring *keyring.Keyring
	// CacheBytes is about how much of loaded threads stays in memory, as stored;
	// in memory they take about twice that. 0 stands for DefaultCacheBytes, a
	// negative number for nothing.
	CacheBytes int
	// TenantBytes is how much each tenant may keep, as stored, in bytes: writes beyond it
	// wrap ErrQuota, from one write to a minute late where other processes write
	// too. 0 bounds nothing.
	TenantBytes int64
	// Now is the clock that dates rows. Nil is time.Now.
	Now func() time.Time
	// Existing refuses to make a file that is not there, so that a mistyped name
	// makes none; the error then wraps fs.ErrNotExist. It is of files alone.
	Existing bool
	// Readable opens a file that cannot be written to, for want of room or of rights,
	// for reading alone: every write, and Prober.Probe, then gives the error that
	// opening it would have given.
	Readable bool
}

// DB is a store of several tenants. Implementations are safe for concurrent use.
type DB interface {
	// Tenant returns what the tenant keeps. It need not exist yet and costs
	// nothing; "" is the owner of a machine without tenants.
	Tenant(id string) Tenant
	// Tenants yields the tenants that keep threads, documents or artifacts, by
	// id. An error ends it.
	Tenants(ctx context.Context) iter.Seq2[string, error]
	// Artifacts is the backend of an artifact.Store for all tenants.
	Artifacts() artifact.Backend
	// Close gives everything back. What was acknowledged is kept.
	Close() error
}

// Tenant is what one tenant keeps.
type Tenant struct {
	Log       Log
	Plans     Plans
	Catalog   Catalog
	Events    Events
	Documents Documents
	Answers   Answers
}

// Log keeps threads. Implementations are safe for concurrent use.
type Log interface {
	// Load returns a thread as it is now; a thread that was never written to is
	// empty. Loading a thread again costs what was added since.
	Load(ctx context.Context, threadID string) (*thread.Thread, error)
	// Append adds messages to the thread that has `version` messages, and
	// returns it with them. Messages that stand there already, by id and in the
	// same place, are skipped, so that a repeated call changes nothing. A thread
	// that has grown otherwise is a *ConflictError.
	Append(ctx context.Context, threadID string, version int, messages []thread.Message) (*thread.Thread, error)
}

// Info is what is known of a thread without loading it.
type Info struct {
	ID string
	// Messages and Plans are the versions of the log and of its plan; Events is
	// the position of the last event.
	Messages, Plans, Events int
	// Created is when the thread was first written to, Changed when it was last.
	Created, Changed time.Time
}

// Catalog knows which threads there are. Implementations are safe for concurrent
// use.
type Catalog interface {
	// Thread tells of one thread. The error wraps ErrNotFound.
	Thread(ctx context.Context, threadID string) (Info, error)
	// Threads lists, by id, the threads that follow `after`; at most limit, and
	// 0 stands for DefaultLimit. The last id is the cursor of the next page.
	Threads(ctx context.Context, after string, limit int) ([]Info, error)
	// Delete forgets a thread: its log, plans, events, artifacts, and the
	// documents that have its id. One that is not there is no error.
	Delete(ctx context.Context, threadID string) error
}

// Answers is a cache of what models answered (A15): what package llm calls a
// Cache. It forgets what it likes, the oldest first, and one that fails has
// nothing. Nobody writes to a value that was put in or got. Implementations are
// safe for concurrent use.
type Answers interface {
	Get(ctx context.Context, key string) ([]byte, bool)
	Put(ctx context.Context, key string, value []byte)
}

// MaxAnswers is how many answers are kept for a tenant; a store may keep some
// more until it next looks.
const MaxAnswers = 4096

// Keyed is what a DB can do besides that keeps keys.
type Keyed interface {
	// APIKeys keeps the keys that let clients of a daemon in, as hashes.
	APIKeys() apikey.Store
	// DataKeys keeps the keys that encrypt, each wrapped by a master key.
	DataKeys() keyring.Keys
	// Keyring seals with them. It is nil where the store was opened without master
	// keys.
	Keyring() *keyring.Keyring
}

// Prober is what a DB can do besides that can lose the place that it writes to, its
// room, its rights or its keys.
type Prober interface {
	// Probe proves that what is written now is kept: it writes some kilobytes and
	// takes them away again. The error wraps ErrFull, ErrReadOnly, ErrGone,
	// ErrUnavailable, ErrSealed or keyring.ErrNoMaster.
	Probe(ctx context.Context) error
	// Damage looks for damage that reading everything would not show, such as a
	// broken index, and returns a line for each. It takes as long as reading all.
	Damage(ctx context.Context) ([]string, error)
}

// Sealed is implemented by a DB that can encrypt what it keeps. One that was opened
// without keys has nothing to encrypt with, and no tenant of it is erased.
type Sealed interface {
	// Reseal seals anew, under the tenant's newest key, all records that are under
	// an older one or in the clear, and returns how many they were. Artifacts are
	// those of artifact.Store. Each record is replaced by the same, so it can be
	// read at every moment, and after a crash Reseal goes on where it was. When it
	// returns no error, nothing that was there when it began is under an older key.
	// Records that do not open are named in the error and do not stop the others.
	Reseal(ctx context.Context, tenant string) (n int, err error)
	// Erased reports whether the keys of a tenant were erased. What is left of it
	// can be deleted, and nothing else: all else wraps ErrErased.
	Erased(ctx context.Context, tenant string) (bool, error)
	// Erase removes everything that a tenant keeps, artifacts too, whether it can
	// be read or not. Erasing again, or what was never there, is no error; after an
	// error call it again.
	Erase(ctx context.Context, tenant string) error
}

// DefaultLimit is how many entries a page of a list holds where no limit is
// given, MaxLimit the most that it ever holds.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// AllThreads lists the threads of a tenant, by id, page after page.
func AllThreads(ctx context.Context, c Catalog) (all []Info, err error) {
	for after := ""; ; after = all[len(all)-1].ID {
		page, err := c.Threads(ctx, after, MaxLimit)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
	}
}

// Limit returns the size of a page for the limit that was asked for. It is for
// implementations.
func Limit(limit int) int {
	if limit <= 0 {
		return DefaultLimit
	}
	return min(limit, MaxLimit)
}

// maxName is the length of the longest name, in bytes. Indexes of databases hold
// about 2,700 bytes, and several names share a key.
const maxName = 512

// CheckName reports whether every store can hold a name: valid UTF-8 without
// zero bytes, of at most 512 bytes. What says which name it is, such as "thread".
// It is for implementations.
func CheckName(what, name string) error {
	switch {
	case len(name) > maxName:
		return fmt.Errorf("%s %q…: %d bytes, the limit is %d: %w", what, name[:32], len(name), maxName, ErrName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%s %q: not valid UTF-8: %w", what, name, ErrName)
	}
	for i := range len(name) {
		if name[i] == 0 {
			return fmt.Errorf("%s %q: holds a zero byte: %w", what, name, ErrName)
		}
	}
	return nil
}

// CheckThread is CheckName for the name of a thread, which must not be empty. It
// is for implementations.
func CheckThread(name string) error {
	if name == "" {
		return fmt.Errorf("a thread without a name: %w", ErrName)
	}
	return CheckName("thread", name)
}

// Skip returns the messages that the thread, which is longer than version, does
// not hold yet: the whole rest when a repeated append already wrote the
// beginning. It is for implementations; the error is a *ConflictError, or wraps
// ErrName when a message has an id that cannot be stored.
func Skip(t *thread.Thread, version int, messages []thread.Message) ([]thread.Message, error) {
	if version < 0 || version > t.Len() {
		return nil, &ConflictError{ThreadID: t.ID(), Want: version, Have: t.Len()}
	}
	for n := range messages {
		if err := CheckName("message", string(messages[n].ID)); err != nil {
			return nil, err
		}
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
		if uncopied.At(t, version+n).ID != m.ID {
			return nil, &ConflictError{ThreadID: t.ID(), Want: version, Have: t.Len()}
		}
		parent = m.ID
	}
	return nil, nil
}
