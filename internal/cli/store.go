package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/durable"
	"github.com/palimpsest-ai/palimpsest/keyring"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/dsn"
)

// storeFlag is the --store flag: where conversations and keys are kept, and what goes
// with it.
type storeFlag struct {
	name, tenant string
	master       string // a file of master keys
	tenantBytes  int64  // what a tenant may keep; 0 for any amount
	cacheBytes   int    // of loaded threads in memory; 0 for what the store takes by itself
}

const storeUsage = "`STORE` is a SQLite FILE, postgres://USER@HOST/NAME or memory: (default: " + dsn.File + " in palimpsest's data directory)"

// flags adds the flags of commands that keep or read one tenant's conversations.
func (f *storeFlag) flags(c *cobra.Command) {
	f.storeFlag(c, "where conversations are kept whole when something is taken out of them")
	c.Flags().StringVar(&f.tenant, "tenant", "", "whose conversations, in a store of several tenants: `NAME`")
}

func (f *storeFlag) storeFlag(c *cobra.Command, what string) {
	c.Flags().StringVar(&f.name, "store", "", what+"; "+storeUsage)
}

// keyedFlags adds the flags of commands that read what is encrypted.
func (f *storeFlag) keyedFlags(c *cobra.Command, what string) {
	f.storeFlag(c, what)
	c.Flags().StringVar(&f.master, "master-key", "", "a `FILE` of master keys, the newest last (default: $"+masterFileVariable+", or the keys in $"+masterVariable+")")
}

// use opens the store and calls do with it.
func (f *storeFlag) use(ctx context.Context, existing bool, do func(*database) error) error {
	db, err := f.open(ctx, existing)
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}

// read calls do with what is kept for the tenant, in a store that is there.
func (f *storeFlag) read(ctx context.Context, do func(*kept) error) error {
	return f.use(ctx, true, func(db *database) error { return do(f.keptIn(db)) })
}

// place is the name of the store.
func (f *storeFlag) place() (string, error) {
	if f.name != "" {
		return f.name, nil
	}
	folder, err := config.DataDir()
	return filepath.Join(folder, dsn.File), err
}

// shown is the name of the store for people.
func (f *storeFlag) shown() string {
	name, _ := f.place() // without a folder it is the file's
	return config.WithoutPassword(name)
}

// database is a store with the keys that it is sealed with.
type database struct {
	store.DB
	keys store.Keyed
	ring *keyring.Keyring // nil where there is no master key
}

// artifacts is what is true of artifacts, with the keys that there are.
func (db *database) artifacts() *artifact.Store {
	o := &artifact.Options{}
	if db.ring != nil {
		o.Sealer, o.KeyedIDs = db.ring, true
	}
	return artifact.NewStore(db.Artifacts(), o)
}

// open opens the store with the keys that there are. An existing one is never made
// by a mistyped name.
func (f *storeFlag) open(ctx context.Context, existing bool) (*database, error) {
	masters, err := f.masters()
	if err != nil && !errors.Is(err, errNoMaster) {
		return nil, err
	}
	// What is there can be read where nothing can be written.
	o := &dsn.Options{Existing: existing, Readable: true, TenantBytes: f.tenantBytes, CacheBytes: f.cacheBytes, Masters: masters}
	name, err := f.place()
	if err == nil && f.name == "" {
		err = leftBehind(filepath.Dir(name))
	}
	if err == nil && f.name == "" && !existing {
		err = durable.MkdirAll(filepath.Dir(name))
	}
	if err != nil {
		return nil, err
	}
	db, err := dsn.Open(ctx, name, o)
	switch {
	case errors.Is(err, dsn.ErrSyntax):
		return nil, fmt.Errorf("%w: --store: %w", errUsage, err)
	case existing && errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no store at %s: `palimpsest compact` and `palimpsest serve` make one; --store names another: %w", f.shown(), errNoStore)
	case errors.Is(err, fs.ErrNotExist): // it names the folder
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.shown(), err)
	}
	opened := &database{DB: db}
	if keys, ok := db.(store.Keyed); ok {
		opened.keys, opened.ring = keys, keys.Keyring()
	}
	return opened, nil
}

// errNoStore is wrapped by the error of opening a store that must be there.
var errNoStore = errors.New("nothing was kept there yet")

// nothingYet reports whether an error says that nothing was kept on this machine yet.
func (f *storeFlag) nothingYet(err error) bool { return f.name == "" && errors.Is(err, errNoStore) }

// leftBehind tells of what earlier revisions kept in the data directory and nothing
// reads any more.
func leftBehind(folder string) error {
	if _, err := os.Stat(filepath.Join(folder, dsn.File)); err == nil {
		return nil
	}
	for _, name := range []string{"daemon.db", "keys"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return fmt.Errorf("%s is of an earlier revision: threads and keys are in %s now. Rename daemon.db and what stands beside it, make API keys anew, and move the folder keys away; or name a store with --store", filepath.Join(folder, name), dsn.File)
		}
	}
	return nil
}

// lateStore is a store that is opened when it is first needed: most compactions ask
// no model, and some take nothing out. It is an llm.Cache of what models answered.
type lateStore struct {
	flag *storeFlag
	// existing says that the store must be there; where it is not, it may be later.
	existing bool

	mu   sync.Mutex
	kept *kept
	err  error
}

// open opens the store, which outlives ctx.
func (l *lateStore) open(ctx context.Context) (*kept, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept != nil || l.err != nil && !l.existing {
		return l.kept, l.err
	}
	if l.kept, l.err = l.flag.kept(context.WithoutCancel(ctx), l.existing); l.err != nil && !l.existing {
		l.err = fmt.Errorf("nowhere to keep what is taken out (see --store): %w", l.err)
	}
	return l.kept, l.err
}

// Get implements llm.Cache. A store that cannot be opened has nothing; whoever
// keeps something there is told why.
func (l *lateStore) Get(ctx context.Context, key string) ([]byte, bool) {
	if k, err := l.open(ctx); err == nil {
		return k.tenant.Answers.Get(ctx, key)
	}
	return nil, false
}

// Put implements llm.Cache.
func (l *lateStore) Put(ctx context.Context, key string, value []byte) {
	if k, err := l.open(ctx); err == nil {
		k.tenant.Answers.Put(ctx, key, value)
	}
}

// Close gives the store back.
func (l *lateStore) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil {
		return nil
	}
	return l.kept.db.Close()
}
