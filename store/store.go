// Package store defines where threads, plans and their data are stored. Memory is here;
// durable stores are in store/sqlite and store/postgres. Package storetest tests them
// all.
//
// A log only grows, and a plan only follows another. Both writes name the version that
// they were made for, and are refused if somebody else was faster. The caller then loads
// the current state and decides again; nothing is lost.
//
// # Tenants
//
// A DB holds several tenants. Their data is reached only through a Tenant, so that no
// call can forget whose rows it means:
//
//	db, err := sqlite.Open(ctx, "palimpsest.db", nil)
//	c, err := palimpsest.New(palimpsest.Config{Store: db.Tenant("acme")})
package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/thread"
)

var (
	// ErrNotFound is wrapped by errors about a plan, a thread or a document that does
	// not exist. Load does not return it: a thread that was never written to is empty.
	ErrNotFound = errors.New("not found")
	// ErrConflict is wrapped by every *ConflictError.
	ErrConflict = errors.New("it was changed in the meantime")
	// ErrName is wrapped by errors about a name (of a thread, a tenant, a document, a
	// message) that not every store can hold.
	ErrName = errors.New("the name cannot be stored")
	// ErrSealed is wrapped by errors of a store that was opened without its keys:
	// when it reads encrypted content, and when it writes.
	ErrSealed = errors.New("the content is encrypted; open the store with its key")
	// ErrGone is wrapped by errors of writes to a database whose file was removed or
	// replaced: nobody would find what is written there.
	ErrGone = errors.New("the store's file was removed or replaced since it was opened; put it back, or restart")
	// ErrErased is wrapped by errors about a tenant whose keys were erased.
	ErrErased = errors.New("the tenant's keys were erased: its data can no longer be read or written")
	// ErrNewer is wrapped by the error of opening a database that a later version of
	// this module has migrated. Nothing was written to it.
	ErrNewer = errors.New("the database was made by a newer version; use that version")
	// ErrFull is wrapped by errors of writes to a full disk. Earlier writes are still
	// there, and the write can be tried again.
	ErrFull = errors.New("the disk is full; free some space and try again")
	// ErrQuota is wrapped by errors of writes of a tenant that has used up its quota
	// (Options.TenantBytes).
	ErrQuota = errors.New("the tenant has used up its quota; delete threads that are no longer needed")
	// ErrReadOnly is wrapped by errors of writes without permission.
	ErrReadOnly = errors.New("no permission to write to the store; check the permissions of its files and directory, or of the database user")
	// ErrUnavailable is wrapped by errors of a database that cannot be reached, or
	// whose connection was lost. It is not known whether a write in progress was made;
	// repeating it is safe.
	ErrUnavailable = errors.New("the database cannot be reached")
)

// ConflictError says that a write was made for another version than the stored one.
// Nothing was written.
type ConflictError struct {
	// ThreadID is the thread. It is empty for a conflict about a document, whose kind
	// and id, as "kind/id", are in Document.
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

// DefaultCacheBytes is the default of Options.CacheBytes.
const DefaultCacheBytes = 64 << 20

// Options configure a durable store; nil or the zero value holds the defaults.
type Options struct {
	// Masters encrypt the content of messages, plans, answers, documents and events.
	// The data keys that they wrap are stored in the database; Keyed.Keyring returns
	// them. Content that was written without keys stays readable. The zero value
	// encrypts nothing. Artifacts are encrypted by artifact.Store.
	Masters keyring.Masters
	// Keyring encrypts instead of Masters, with data keys that are stored elsewhere.
	Keyring *keyring.Keyring
	// CacheBytes bounds the threads that are kept in memory, in bytes as stored; in
	// memory they take about twice that. 0 is DefaultCacheBytes, and a negative number
	// turns the cache off.
	CacheBytes int
	// TenantBytes is the quota of each tenant, in bytes as stored. Writes beyond it wrap
	// ErrQuota; where other processes write too, up to a minute late. 0 is no limit.
	TenantBytes int64
	// Now is the clock that dates rows. Nil is time.Now.
	Now func() time.Time
	// Existing opens only a file that exists, so that a mistyped name does not create
	// one; the error wraps fs.ErrNotExist. It applies to files only.
	Existing bool
	// Readable opens a file that cannot be written (full disk, no permission) read-only:
	// every write, and Prober.Probe, then returns the error that Open would have
	// returned.
	Readable bool
}

// DB is a store of several tenants. Implementations are safe for concurrent use.
type DB interface {
	// Tenant returns the data of a tenant, which need not exist yet. "" is the tenant
	// of a machine that has only one.
	Tenant(id string) Tenant
	// Tenants yields the tenants that have threads, documents, artifacts or answers,
	// ordered by id. It ends at the first error.
	Tenants(ctx context.Context) iter.Seq2[string, error]
	// Artifacts is the backend of an artifact.Store for all tenants.
	Artifacts() artifact.Backend
	// Close releases all resources.
	Close() error
}

// Tenant is the data of one tenant.
type Tenant struct {
	Log       Log
	Plans     Plans
	Catalog   Catalog
	Events    Events
	Documents Documents
	Answers   Answers
}

// Log stores threads. Implementations are safe for concurrent use.
type Log interface {
	// Load returns a thread; one that was never written to is empty. Loading it again
	// reads only what was added since.
	Load(ctx context.Context, threadID string) (*thread.Thread, error)
	// Append adds messages to a thread of `version` messages and returns the new
	// thread. It skips messages that are already there, with the same id at the same
	// position, so that it can be repeated. If the thread has grown otherwise, the error
	// is a *ConflictError.
	Append(ctx context.Context, threadID string, version int, messages []thread.Message) (*thread.Thread, error)
}

// Info describes a thread without loading it.
type Info struct {
	ID string
	// Messages and Plans are the versions of the log and of its plan; Events is the
	// position of the last event.
	Messages, Plans, Events int
	// Created and Changed are the times of the first and the last write.
	Created, Changed time.Time
}

// Catalog lists threads. Implementations are safe for concurrent use.
type Catalog interface {
	// Thread describes one thread. The error wraps ErrNotFound.
	Thread(ctx context.Context, threadID string) (Info, error)
	// Threads lists the threads whose ids follow `after`, ordered by id: at most limit,
	// where 0 stands for 100. The last id is the cursor of the next page.
	Threads(ctx context.Context, after string, limit int) ([]Info, error)
	// Delete removes a thread: its log, plans, events, artifacts, and the documents that
	// have its id. A thread that does not exist is not an error.
	Delete(ctx context.Context, threadID string) error
}

// Answers caches the answers of models; it is an llm.Cache. It evicts the oldest first,
// and after a failure it has no entry. Values must not be written to after Put or Get.
// Implementations are safe for concurrent use.
type Answers interface {
	Get(ctx context.Context, key string) ([]byte, bool)
	Put(ctx context.Context, key string, value []byte)
}

// MaxAnswers is how many answers are kept for a tenant. A store may exceed it for a
// while.
const MaxAnswers = 4096

// Keyed is implemented by a DB that says what it has of keys.
type Keyed interface {
	// APIKeys stores the API keys of a daemon's clients, as hashes. One in memory stores none.
	APIKeys() apikey.Store
	// Keyring encrypts content. It is nil if the store was opened without keys.
	Keyring() *keyring.Keyring
}

// Prober is implemented by a DB that can become unable to write: because of its disk,
// its permissions or its keys.
type Prober interface {
	// Probe checks that writing works: it writes some kilobytes and removes them. The
	// error wraps ErrFull, ErrReadOnly, ErrGone, ErrUnavailable, ErrSealed or
	// keyring.ErrNoMaster.
	Probe(ctx context.Context) error
	// Damage looks for damage that reading everything would not find, such as a broken
	// index, and returns a line for each. It takes as long as reading everything.
	Damage(ctx context.Context) ([]string, error)
}

// Sealed is implemented by a DB that can encrypt what it keeps. One that was opened
// without keys has nothing to encrypt with, and no tenant of it is erased.
type Sealed interface {
	// Reseal encrypts, under the tenant's newest data key, all records that are under an
	// older one or not encrypted, and returns their number; for artifacts see
	// artifact.Store.Reseal. Records can be read at any time, and after a crash Reseal
	// may be called again. Records that cannot be decrypted are named in the error and
	// do not stop the others.
	Reseal(ctx context.Context, tenant string) (n int, err error)
	// Erased reports whether the keys of a tenant were erased. Its data can then only be
	// deleted; all other calls wrap ErrErased.
	Erased(ctx context.Context, tenant string) (bool, error)
	// Erase removes all data of a tenant, artifacts too, whether it can be read or not.
	// It may be called again, also after an error.
	Erase(ctx context.Context, tenant string) error
}

// defaultLimit is the size of a page of a list if no limit is given, MaxLimit the largest.
const (
	defaultLimit = 100
	MaxLimit     = 1000
)

// Limit returns the size of a page for a given limit. It is for implementations.
func Limit(limit int) int {
	if limit <= 0 {
		return defaultLimit
	}
	return min(limit, MaxLimit)
}

// maxName is the longest name, in bytes. An index of PostgreSQL holds about 2,700 bytes,
// and a key has several names.
const maxName = 512

// CheckName returns an error for a name that not every store can hold. A name is valid
// UTF-8 of at most 512 bytes without zero bytes. what says in the error which name it
// is, such as "thread". It is for implementations.
func CheckName(what, name string) error {
	switch {
	case len(name) > maxName:
		return fmt.Errorf("%s %q…: %d bytes, the limit is %d: %w", what, name[:32], len(name), maxName, ErrName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%s %q: not valid UTF-8: %w", what, name, ErrName)
	case strings.Contains(name, "\x00"):
		return fmt.Errorf("%s %q: contains a zero byte: %w", what, name, ErrName)
	}
	return nil
}

// CheckThread is CheckName for the id of a thread, which must not be empty. It is for
// implementations.
func CheckThread(name string) error {
	if name == "" {
		return fmt.Errorf("a thread without a name: %w", ErrName)
	}
	return CheckName("thread", name)
}

// Skip returns those of the messages for position `version` that the thread does not
// have yet: an earlier try of the same Append may have written some or all of them. It
// is for implementations. The error is a *ConflictError, or wraps ErrName if the id of a
// message cannot be stored.
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
		if t.At(version+n).ID != m.ID {
			return nil, &ConflictError{ThreadID: t.ID(), Want: version, Have: t.Len()}
		}
		parent = m.ID
	}
	return nil, nil
}

// secretTries bounds how often Secret tries when other processes create or remove the
// secret at the same time.
const secretTries = 4

// Secret returns the random 256-bit key in the document of a kind and id, and creates it
// if it does not exist, so that all processes with one store share it. The error is that
// of Documents.
func Secret(ctx context.Context, documents Documents, kind, id string) ([]byte, error) {
	version := 0
	for range secretTries {
		d, err := documents.Document(ctx, kind, id)
		switch {
		case err == nil:
			var text string
			if err := json.Unmarshal(d.Body, &text); err != nil {
				return nil, fmt.Errorf("secret %s/%s: %w", kind, id, err)
			}
			return hex.DecodeString(text)
		case !errors.Is(err, ErrNotFound):
			return nil, err
		}
		key := make([]byte, 32)
		rand.Read(key) // never fails
		_, err = documents.Put(ctx, Document{Kind: kind, ID: id, Version: version, Body: []byte(`"` + hex.EncodeToString(key) + `"`)})
		var conflict *ConflictError
		switch {
		case errors.As(err, &conflict):
			version = conflict.Have // another process has created or removed it
		case err != nil:
			return nil, err
		}
	}
	return nil, ErrConflict
}
