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

// addFlags adds the flags of commands that keep or read one tenant's conversations.
func (f *storeFlag) addFlags(c *cobra.Command) {
	f.addStoreFlag(c, "where conversations are kept whole when something is taken out of them")
	c.Flags().StringVar(&f.tenant, "tenant", "", "whose conversations, in a store of several tenants: `NAME`")
}

func (f *storeFlag) addStoreFlag(c *cobra.Command, what string) {
	c.Flags().StringVar(&f.name, "store", "", what+"; "+storeUsage)
}

// addKeyFlags adds the flags of commands that read what is encrypted.
func (f *storeFlag) addKeyFlags(c *cobra.Command, what string) {
	f.addStoreFlag(c, what)
	c.Flags().StringVar(&f.master, "master-key", "", "a `FILE` of master keys, the newest last (default: $"+masterKeyFileEnv+", or the keys in $"+masterKeyEnv+")")
}

// withDatabase opens the store and calls do with it.
func (f *storeFlag) withDatabase(ctx context.Context, existing bool, do func(*database) error) error {
	db, err := f.open(ctx, existing)
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}

// withTenant calls do with what is kept for the tenant, in a store that is there.
func (f *storeFlag) withTenant(ctx context.Context, do func(*tenantStore) error) error {
	return f.withDatabase(ctx, true, func(db *database) error { return do(f.tenantIn(db)) })
}

// location is the name of the store.
func (f *storeFlag) location() (string, error) {
	if f.name != "" {
		return f.name, nil
	}
	folder, err := config.DataDir()
	return filepath.Join(folder, dsn.File), err
}

// displayName is the name of the store for people.
func (f *storeFlag) displayName() string {
	name, _ := f.location() // without a folder it is the file's
	return config.WithoutPassword(name)
}

// database is a store with the keys that it is sealed with.
type database struct {
	store.DB
	keys    store.Keyed
	keyring *keyring.Keyring // nil where there is no master key
}

// artifacts is what is true of artifacts, with the keys that there are.
func (db *database) artifacts() *artifact.Store {
	o := &artifact.Options{}
	if db.keyring != nil {
		o.Keyring, o.KeyedIDs = db.keyring, true
	}
	return artifact.NewStore(db.Artifacts(), o)
}

// open opens the store with the keys that there are. An existing one is never made
// by a mistyped name.
func (f *storeFlag) open(ctx context.Context, existing bool) (*database, error) {
	masters, err := f.masterKeys()
	if err != nil && !errors.Is(err, errNoMaster) {
		return nil, err
	}
	// What is there can be read where nothing can be written.
	o := &dsn.Options{Existing: existing, Readable: true, TenantBytes: f.tenantBytes, CacheBytes: f.cacheBytes, Masters: masters}
	name, err := f.location()
	if err == nil && f.name == "" {
		err = checkOldFiles(filepath.Dir(name))
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
		return nil, fmt.Errorf("there is no store at %s: `palimpsest compact` and `palimpsest serve` make one; --store names another: %w", f.displayName(), errNoStore)
	case errors.Is(err, fs.ErrNotExist): // it names the folder
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.displayName(), err)
	}
	opened := &database{DB: db}
	if keys, ok := db.(store.Keyed); ok {
		opened.keys, opened.keyring = keys, keys.Keyring()
	}
	return opened, nil
}

// errNoStore is wrapped by the error of opening a store that must be there.
var errNoStore = errors.New("nothing was kept there yet")

// isMissing reports whether an error says that the default store does not exist yet.
func (f *storeFlag) isMissing(err error) bool { return f.name == "" && errors.Is(err, errNoStore) }

// checkOldFiles tells of what earlier revisions kept in the data directory and nothing
// reads any more.
func checkOldFiles(folder string) error {
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

// lazyStore is a store that is opened when it is first needed: most compactions ask
// no model, and some take nothing out. It is an llm.Cache of what models answered.
type lazyStore struct {
	flag *storeFlag
	// existing says that the store must be there; where it is not, it may be later.
	existing bool

	mu     sync.Mutex
	tenant *tenantStore
	err    error
}

// open opens the store, which outlives ctx.
func (l *lazyStore) open(ctx context.Context) (*tenantStore, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tenant != nil || l.err != nil && !l.existing {
		return l.tenant, l.err
	}
	if l.tenant, l.err = l.flag.openTenant(context.WithoutCancel(ctx), l.existing); l.err != nil && !l.existing {
		l.err = fmt.Errorf("nowhere to keep what is taken out (see --store): %w", l.err)
	}
	return l.tenant, l.err
}

// Get implements llm.Cache. A store that cannot be opened has nothing; whoever
// keeps something there is told why.
func (l *lazyStore) Get(ctx context.Context, key string) ([]byte, bool) {
	if k, err := l.open(ctx); err == nil {
		return k.tenant.Answers.Get(ctx, key)
	}
	return nil, false
}

// Put implements llm.Cache.
func (l *lazyStore) Put(ctx context.Context, key string, value []byte) {
	if k, err := l.open(ctx); err == nil {
		k.tenant.Answers.Put(ctx, key, value)
	}
}

// Close gives the store back.
func (l *lazyStore) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tenant == nil {
		return nil
	}
	return l.tenant.db.Close()
}
