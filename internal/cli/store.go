package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/dsn"
	"github.com/palimpsest-ai/palimpsest/internal/durable"
	"github.com/palimpsest-ai/palimpsest/internal/redact"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// storeFlag says where conversations and keys are kept, and how to open that store.
type storeFlag struct {
	name, tenant string
	master       string // a file of master keys
	tenantBytes  int64  // how much a tenant may keep; 0 is unlimited
	cacheBytes   int    // memory for loaded threads; 0 is the store's default
	settled      bool   // without a name it is the data directory's, whatever the settings say
}

const storeUsage = "`STORE` is a SQLite FILE, postgres://USER@HOST/NAME or memory: (default: the setting store, else " + dsn.File + " in palimpsest's data directory)"

// addFlags is for commands about one tenant's conversations.
func (f *storeFlag) addFlags(c *cobra.Command) {
	f.addStoreFlag(c, "where whole conversations are kept when parts are removed from their prompts")
	c.Flags().StringVar(&f.tenant, "tenant", "", "whose conversations, in a store of several tenants: `NAME`")
}

func (f *storeFlag) addStoreFlag(c *cobra.Command, what string) {
	c.Flags().StringVar(&f.name, "store", "", what+"; "+storeUsage)
}

// addKeyFlags is for commands that read everything in a store.
func (f *storeFlag) addKeyFlags(c *cobra.Command, what string) {
	f.addStoreFlag(c, what)
	c.Flags().StringVar(&f.master, "master-key", "", "a `FILE` of master keys, the newest last (default: $"+config.MasterFileEnv+", or the keys in $"+config.MasterEnv+")")
}

// withDatabase opens the store for the time of a call.
func (f *storeFlag) withDatabase(ctx context.Context, existing bool, do func(*database) error) error {
	db, err := f.open(ctx, existing)
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}

// withTenant opens a store that must exist, for one tenant.
func (f *storeFlag) withTenant(ctx context.Context, do func(*tenantStore) error) error {
	return f.withDatabase(ctx, true, func(db *database) error { return do(db.forTenant(f.tenant)) })
}

// inTenant is withTenant for a call with a result.
func inTenant[T any](ctx context.Context, f *storeFlag, do func(*tenantStore) (T, error)) (made T, err error) {
	err = f.withTenant(ctx, func(k *tenantStore) (err error) {
		made, err = do(k)
		return err
	})
	return made, err
}

// location names the store: that of the flag or, without one, that of the daemon's settings.
func (f *storeFlag) location() (string, error) {
	if f.name != "" {
		return f.name, nil
	}
	if set, err := f.settings(); err != nil || set != nil && set.Text("store") != "" {
		if err != nil {
			return "", err
		}
		return set.Text("store"), nil
	}
	return defaultStore()
}

// settings are the daemon's, of which the commands heed where its data is and its master key:
// they read what it keeps. They are nil for a store that is named.
func (f *storeFlag) settings() (*config.Config, error) {
	if f.name != "" || f.settled {
		return nil, nil
	}
	return loadSettings("", nil)
}

// defaultStore is the store in the data directory.
func defaultStore() (string, error) {
	folder, err := config.DataDir()
	return filepath.Join(folder, dsn.File), err
}

// files are the store's file and its journal, which no output may replace; none for a store
// that is no file.
func (f *storeFlag) files() []string {
	name, err := f.location()
	file := dsn.Path(name)
	if err != nil || file == "" {
		return nil
	}
	return []string{file, file + "-wal", file + "-shm"}
}

// inMemory is the name of a store that is lost when the process ends.
const inMemory = "memory:"

// lasts reports whether another process finds what is stored.
func (f *storeFlag) lasts() bool {
	name, _ := f.location() // opening the store reports the error
	return name != inMemory
}

// displayName is the location without its password.
func (f *storeFlag) displayName() string {
	name, _ := f.location() // opening the store reports the error
	return redact.URL(name)
}

// anywhere is the flag for a reader who may be in any folder, and has perhaps not the same environment.
func (f *storeFlag) anywhere() *storeFlag {
	named := *f
	usual, _ := defaultStore() // opening the store reports the error
	if name, err := f.location(); err == nil && name != usual {
		if dir, err := os.Getwd(); err == nil {
			name = dsn.In(dir, name)
		}
		named.name = name
	}
	return &named
}

// explainCommand shows a stored conversation, also where a session has its id.
func (f *storeFlag) explainCommand(id string) string {
	named := f.anywhere()
	if named.name == "" && namesFile(id) {
		named.name = f.displayName()
	}
	return "palimpsest explain " + printable(shellQuote(id)) + named.arguments()
}

// recallNote is the line that tells the reader of a prompt how to read what was removed.
func (f *storeFlag) recallNote() string {
	flags := f.anywhere().arguments()
	return render.RemovedNote + " To read one in full, run: palimpsest artifact get ID" + flags + "; to search them: palimpsest recall \"WORDS\"" + flags + "]"
}

// arguments are the flags that name the store in a command for who ran this one.
func (f *storeFlag) arguments() string {
	flags := ""
	if f.name != "" {
		flags += " --store " + shellQuote(f.displayName())
	}
	if f.tenant != "" {
		flags += " --tenant " + shellQuote(f.tenant)
	}
	return flags
}

// database is an open store with its keys.
type database struct {
	store.DB
	keyring *keyring.Keyring // nil without a master key
	files   []string         // see storeFlag.files
}

// artifacts gives access to all artifacts, encrypted or not.
func (db *database) artifacts() *artifact.Store {
	o := &artifact.Options{}
	if db.keyring != nil {
		o.Keyring, o.KeyedIDs = db.keyring, true
	}
	return artifact.NewStore(db.Artifacts(), o)
}

// apiKeys are the keys of the daemon's clients. Every store implements store.Keyed.
func (db *database) apiKeys() *apikey.Keys { return apikey.New(db.DB.(store.Keyed).APIKeys(), nil) }

func (db *database) forTenant(id string) *tenantStore { return &tenantStore{db.Tenant(id), id, db} }

// open opens the store with the master keys that are given. With existing it creates none:
// otherwise a mistyped name would.
func (f *storeFlag) open(ctx context.Context, existing bool) (*database, error) {
	masters, err := f.masterKeys()
	if err != nil && !errors.Is(err, errNoMaster) {
		return nil, err
	}
	// Readable: a store that cannot be written may still be read.
	o := &dsn.Options{Existing: existing, Readable: true, TenantBytes: f.tenantBytes, CacheBytes: f.cacheBytes, Masters: masters}
	name, err := f.location()
	if usual, _ := defaultStore(); err == nil && name == usual && f.name == "" && !existing {
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
		return nil, fmt.Errorf("there is no store at %s (--store names another): %w", f.displayName(), errNoStore)
	case errors.Is(err, fs.ErrNotExist): // the error names the folder
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.displayName(), err)
	}
	return &database{db, db.(store.Keyed).Keyring(), f.files()}, nil
}

// errNoStore is wrapped by the error of opening a store that does not exist. It says what makes one.
var errNoStore = errors.New("nothing was stored yet. `palimpsest compact FILE --budget 32000`, `palimpsest run --keep`, `palimpsest serve` and the plugins of `palimpsest install` store conversations; what an agent's own compaction lost is shown by `palimpsest lost FILE`")

// isMissing reports whether the error is that the default store does not exist yet.
func (f *storeFlag) isMissing(err error) bool { return f.name == "" && errors.Is(err, errNoStore) }

// errNoMaster is the error of commands that need a master key.
var errNoMaster = fmt.Errorf("%w: no master key: give --master-key FILE, or set %s or %s", errUsage, config.MasterFileEnv, config.MasterEnv)

// masterKeys reads the keys that encrypt data keys. Without any, the error is errNoMaster.
func (f *storeFlag) masterKeys() (keyring.Masters, error) {
	from, text := "$"+config.MasterEnv, []byte(os.Getenv(config.MasterEnv))
	file := cmp.Or(f.master, os.Getenv(config.MasterFileEnv))
	if set, err := f.settings(); err != nil {
		return keyring.Masters{}, err
	} else if file == "" && set != nil {
		file = set.Text("master-key")
	}
	if file != "" {
		var err error
		if text, err = readPrivate(file); err != nil {
			return keyring.Masters{}, err
		}
		from = file
	} else if len(text) == 0 {
		return keyring.Masters{}, errNoMaster
	}
	masters, err := keyring.ParseMasters(string(text))
	if err != nil {
		err = fmt.Errorf("%s: %w", from, err)
	}
	return masters, err
}

// readPrivate reads a file and refuses one that everybody may use.
func readPrivate(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o007 != 0 {
		return nil, fmt.Errorf("%s: everybody on this machine may use it (mode %04o); make it private: chmod 600 %s", name, mode, name)
	}
	return io.ReadAll(f)
}

// lazyStore is a store that is opened on first use: most compactions ask no model, and some
// remove nothing. It is an llm.Cache of models' answers.
type lazyStore struct {
	flag     *storeFlag
	existing bool // it must exist; if it does not, the next call tries again

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
	var db *database
	switch db, l.err = l.flag.open(context.WithoutCancel(ctx), l.existing); {
	case l.err == nil:
		l.tenant = db.forTenant(l.flag.tenant)
	case !l.existing:
		l.err = fmt.Errorf("nowhere to keep what is removed (see --store): %w", l.err)
	}
	return l.tenant, l.err
}

// Get implements llm.Cache. A store that cannot be opened has no answers; saving the plan
// reports the error.
func (l *lazyStore) Get(ctx context.Context, key string) ([]byte, bool) {
	if k, err := l.open(ctx); err == nil {
		return k.Answers.Get(ctx, key)
	}
	return nil, false
}

// Put implements llm.Cache.
func (l *lazyStore) Put(ctx context.Context, key string, value []byte) {
	if k, err := l.open(ctx); err == nil {
		k.Answers.Put(ctx, key, value)
	}
}

// Close closes the store if it was opened.
func (l *lazyStore) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tenant == nil {
		return nil
	}
	return l.tenant.db.Close()
}
