package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/keyring"
	"github.com/palimpsest-ai/palimpsest/keyring/wrapdir"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/care"
	"github.com/palimpsest-ai/palimpsest/store/dsn"
)

// dataKeysDir is where wrapped data keys are in a directory of keys.
const dataKeysDir = "data"

// masterFlag is the --master-key flag: the keys that wrap data keys.
type masterFlag struct{ file string }

// The variables that hold master keys, or name a file of them.
const (
	masterVariable     = "PALIMPSEST_MASTER_KEY"
	masterFileVariable = "PALIMPSEST_MASTER_KEY_FILE"
)

func (f *masterFlag) flags(c *cobra.Command) {
	c.Flags().StringVar(&f.file, "master-key", "", "a `FILE` of master keys, the newest last (default: $"+masterFileVariable+", or the keys in $"+masterVariable+")")
}

func (f *masterFlag) masters() (keyring.Masters, error) {
	file := f.file
	if file == "" {
		file = os.Getenv(masterFileVariable)
	}
	if file == "" {
		text := os.Getenv(masterVariable)
		if text == "" {
			return keyring.Masters{}, fmt.Errorf("%w: no master key: give --master-key FILE, or set %s or %s", errUsage, masterFileVariable, masterVariable)
		}
		masters, err := keyring.ParseMasters(text)
		if err != nil {
			err = fmt.Errorf("$%s: %w", masterVariable, err)
		}
		return masters, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return keyring.Masters{}, err
	}
	masters, err := keyring.ParseMasters(string(text))
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return masters, err
}

// given reports whether there is any master key.
func (f *masterFlag) given() bool {
	return f.file != "" || os.Getenv(masterFileVariable) != "" || os.Getenv(masterVariable) != ""
}

// openRing opens the keys that encrypt what is stored. It is nil, and close does
// nothing, where there is no master key: then nothing is encrypted.
func openRing(keys keysFlag, master masterFlag) (ring *keyring.Keyring, close func() error, err error) {
	if !master.given() {
		return nil, func() error { return nil }, nil
	}
	masters, err := master.masters()
	if err != nil {
		return nil, nil, err
	}
	path, err := keys.path()
	if err != nil {
		return nil, nil, err
	}
	wrapped, err := wrapdir.Open(filepath.Join(path, dataKeysDir))
	if err != nil {
		return nil, nil, fmt.Errorf("keys: %w", err)
	}
	return keyring.New(masters, wrapped, nil), wrapped.Close, nil
}

// sealedDB is a database with the keys that it is sealed with.
type sealedDB struct {
	store.DB
	ring      *keyring.Keyring // nil where there is no master key
	closeKeys func() error
}

// care is how artifacts are looked after: with the keys that there are.
func (db *sealedDB) care() *care.Options {
	o := &artifact.Options{}
	if db.ring != nil {
		o.Sealer, o.KeyedIDs = db.ring, true
	}
	return &care.Options{Artifacts: artifact.NewStore(db.Artifacts(), o)}
}

// Close implements store.DB.
func (db *sealedDB) Close() error { return errors.Join(db.DB.Close(), db.closeKeys()) }

// openDB opens a database with the keys that there are.
func openDB(ctx context.Context, name string, existing bool, keys keysFlag, master masterFlag) (*sealedDB, error) {
	ring, closeKeys, err := openRing(keys, master)
	if err != nil {
		return nil, err
	}
	o := &dsn.Options{Existing: existing}
	if ring != nil {
		o.Sealer = ring
	}
	db, err := dsn.Open(ctx, name, o)
	switch {
	case errors.Is(err, dsn.ErrSyntax):
		err = fmt.Errorf("%w: --store: %w", errUsage, err)
	case err != nil && !errors.Is(err, fs.ErrNotExist): // which names the file
		err = fmt.Errorf("%s: %w", withoutPassword(name), err)
	}
	if err != nil {
		return nil, errors.Join(err, closeKeys())
	}
	return &sealedDB{db, ring, closeKeys}, nil
}

// dataKeys opens the data keys in a directory of keys that must be there.
func dataKeys(keys keysFlag, master masterFlag, use func(*keyring.Keyring, keyring.Keys) error) error {
	masters, err := master.masters()
	if err != nil {
		return err
	}
	path, err := keys.path()
	if err != nil {
		return err
	}
	path = filepath.Join(path, dataKeysDir)
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("there are no data keys at %s: nothing was encrypted with them yet; --keys names another directory", path)
	}
	wrapped, err := wrapdir.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(use(keyring.New(masters, wrapped, nil), wrapped), wrapped.Close())
}

func keysMasterCommand(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "master",
		Short: "Print a fresh random master key",
		Long: `Print a fresh random master key. It is not kept: put it in a file that only the
daemon reads, or in a secret store, and not beside the data. Without it nothing that
is encrypted can be read again. To change it, add the new one behind the old one and
run "palimpsest keys rotate --master"; then the old one can go.`,
		Example: "  (umask 077; palimpsest keys master > master.key)",
		Args:    exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(s.Out, keyring.NewMaster())
			return err
		},
	}
}

func keysRotateCommand(s Streams) *cobra.Command {
	var keys keysFlag
	var master masterFlag
	var tenant string
	var wrapping bool
	c := &cobra.Command{
		Use:   "rotate",
		Short: "Give tenants new data keys, or wrap data keys with a new master key",
		Long: `Give tenants new data keys: one tenant with --tenant, else all. What was encrypted
before still opens; a running daemon uses the new key within a minute, and encrypts
anew in the background what is under older ones. "palimpsest db reseal" does so at
once, and says when it is done.

With --master, data keys stay and are wrapped by the newest master key instead, the
last one of those given. When that is done the older master keys can go.`,
		Example: "  palimpsest keys rotate --tenant acme --master-key master.key\n  palimpsest keys rotate --master --master-key master.key",
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			one := c.Flags().Changed("tenant")
			if one && wrapping {
				return fmt.Errorf("%w: --master wraps the keys of all tenants; leave --tenant out", errUsage)
			}
			return dataKeys(keys, master, func(ring *keyring.Keyring, kept keyring.Keys) error {
				switch {
				case wrapping:
					n, err := ring.RotateMaster(c.Context())
					fmt.Fprintf(s.Err, "%s wrapped by the new master key\n", plural(n, "data key"))
					return err
				case one:
					return rotate(c.Context(), s, ring, tenant)
				}
				return rotateAll(c.Context(), s, ring, kept)
			})
		},
	}
	keys.flags(c)
	master.flags(c)
	c.Flags().StringVar(&tenant, "tenant", "", "only the tenant `NAME`")
	c.Flags().BoolVar(&wrapping, "master", false, "change the master key, not the data keys")
	return c
}

// rotate gives one tenant a new key. One that has none is most likely mistyped.
func rotate(ctx context.Context, s Streams, ring *keyring.Keyring, tenant string) error {
	old, err := ring.Current(ctx, tenant)
	if err != nil {
		return err
	}
	if old == "" {
		return fmt.Errorf("%s has no data key: nothing was encrypted for it yet", tenantName(tenant))
	}
	id, err := ring.Rotate(ctx, tenant)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "%s: %s instead of %s\n", tenantName(tenant), id, old)
	return nil
}

func rotateAll(ctx context.Context, s Streams, ring *keyring.Keyring, kept keyring.Keys) error {
	var failed error
	for tenant, err := range kept.Tenants(ctx) {
		if err == nil {
			err = rotate(ctx, s, ring, tenant)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

func keysEraseCommand(s Streams) *cobra.Command {
	var keys keysFlag
	var master masterFlag
	var tenant, confirm string
	c := &cobra.Command{
		Use:   "erase",
		Short: "Forget a tenant's data keys: all that was encrypted for it is lost",
		Long: `Forget the data keys of a tenant. Everything that was encrypted for it can never be
read again, in no copy, as long as no copy of the keys themselves is left (backups
of the directory of keys, with the master key). The name cannot be used again.
There is no way back. Running daemons forget the keys, and what they have in memory,
within a minute; what is left in the store is removed by them, or by "palimpsest db
reseal".`,
		Example: "  palimpsest keys erase --tenant acme --confirm acme --master-key master.key",
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("tenant") || !c.Flags().Changed("confirm") || tenant != confirm {
				return fmt.Errorf("%w: this cannot be undone: give the name twice, as --tenant NAME --confirm NAME", errUsage)
			}
			return dataKeys(keys, master, func(ring *keyring.Keyring, _ keyring.Keys) error {
				current, err := ring.Current(c.Context(), tenant)
				switch {
				case err != nil:
					return err
				case current == "":
					return fmt.Errorf("%s has no data key: nothing was encrypted for it", tenantName(tenant))
				}
				if err := ring.Erase(c.Context(), tenant); err != nil {
					return err
				}
				fmt.Fprintf(s.Err, "%s is erased\n", tenantName(tenant))
				return nil
			})
		},
	}
	keys.flags(c)
	master.flags(c)
	c.Flags().StringVar(&tenant, "tenant", "", "the tenant's `NAME`")
	c.Flags().StringVar(&confirm, "confirm", "", "the `NAME` once more")
	return c
}
