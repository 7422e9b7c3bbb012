package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/keyring"
)

// The variables that hold master keys, or name a file of them.
const (
	masterVariable     = "PALIMPSEST_MASTER_KEY"
	masterFileVariable = "PALIMPSEST_MASTER_KEY_FILE"
)

// errNoMaster is the error of what needs a master key.
var errNoMaster = fmt.Errorf("%w: no master key: give --master-key FILE, or set %s or %s", errUsage, masterFileVariable, masterVariable)

// masters are the keys that wrap data keys; the error wraps errNoMaster where there are
// none.
func (f *storeFlag) masters() (keyring.Masters, error) {
	from, text := "$"+masterVariable, []byte(os.Getenv(masterVariable))
	if file := cmp.Or(f.master, os.Getenv(masterFileVariable)); file != "" {
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

// readPrivate reads a file that others must not read.
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
		return nil, fmt.Errorf("%s: everybody on this machine may use it (mode %04o); make it its owner's alone: chmod 600 %s", name, mode, name)
	}
	return io.ReadAll(f)
}

// withRing calls use with the data keys of a store that must be there.
func (f *storeFlag) withRing(ctx context.Context, use func(*keyring.Keyring) error) error {
	if _, err := f.masters(); err != nil {
		return err
	}
	return f.use(ctx, true, func(db *database) error {
		if db.ring == nil {
			return fmt.Errorf("%w: nothing is encrypted in memory", errUsage)
		}
		return use(db.ring)
	})
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
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(s.Out, keyring.NewMaster())
			return err
		},
	}
}

func keysRotateCommand(s Streams) *cobra.Command {
	var store storeFlag
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
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			one := c.Flags().Changed("tenant")
			if one && wrapping {
				return fmt.Errorf("%w: --master wraps the keys of all tenants; leave --tenant out", errUsage)
			}
			return store.withRing(c.Context(), func(ring *keyring.Keyring) error {
				switch {
				case wrapping:
					n, err := ring.RotateMaster(c.Context())
					fmt.Fprintf(s.Err, "%s wrapped by the new master key\n", plural(n, "data key"))
					return err
				case one:
					return rotate(c.Context(), s, ring, tenant)
				}
				return rotateAll(c.Context(), s, ring)
			})
		},
	}
	store.keyedFlags(c, keysStore)
	c.Flags().StringVar(&tenant, "tenant", "", "only the tenant `NAME`")
	c.Flags().BoolVar(&wrapping, "master", false, "change the master key, not the data keys")
	return c
}

// dataKey is the tenant's newest data key. One that has none is most likely mistyped.
func dataKey(ctx context.Context, ring *keyring.Keyring, tenant string) (string, error) {
	id, err := ring.Current(ctx, tenant)
	if err == nil && id == "" {
		err = fmt.Errorf("%s has no data key: nothing was encrypted for it yet", tenantName(tenant))
	}
	return id, err
}

// rotate gives one tenant a new key.
func rotate(ctx context.Context, s Streams, ring *keyring.Keyring, tenant string) error {
	old, err := dataKey(ctx, ring, tenant)
	if err != nil {
		return err
	}
	id, err := ring.Rotate(ctx, tenant)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "%s: %s instead of %s\n", tenantName(tenant), id, old)
	return nil
}

func rotateAll(ctx context.Context, s Streams, ring *keyring.Keyring) error {
	var failed error
	none := true
	for tenant, err := range ring.Tenants(ctx) {
		if none = false; err == nil {
			err = rotate(ctx, s, ring, tenant)
		}
		failed = errors.Join(failed, err)
	}
	if none {
		return errors.New("there are no data keys: nothing was encrypted yet")
	}
	return failed
}

func keysEraseCommand(s Streams) *cobra.Command {
	var store storeFlag
	var tenant, confirm string
	c := &cobra.Command{
		Use:   "erase",
		Short: "Forget a tenant's data keys: all that was encrypted for it is lost",
		Long: `Forget the data keys of a tenant. Everything that was encrypted for it can never be
read again, as long as no copy of the keys themselves is left: a backup of the store
has them, for whoever has the master key. The name cannot be used again.
There is no way back. Running daemons forget the keys, and what they have in memory,
within a minute; what is left in the store is removed by them, or by "palimpsest db
reseal".`,
		Example: "  palimpsest keys erase --tenant acme --confirm acme --master-key master.key",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("tenant") || !c.Flags().Changed("confirm") || tenant != confirm {
				return fmt.Errorf("%w: this cannot be undone: give the name twice, as --tenant NAME --confirm NAME", errUsage)
			}
			return store.withRing(c.Context(), func(ring *keyring.Keyring) error {
				if _, err := dataKey(c.Context(), ring, tenant); err != nil {
					return err
				}
				if err := ring.Erase(c.Context(), tenant); err != nil {
					return err
				}
				fmt.Fprintf(s.Err, "%s is erased\n", tenantName(tenant))
				return nil
			})
		},
	}
	store.keyedFlags(c, keysStore)
	c.Flags().StringVar(&tenant, "tenant", "", "the tenant's `NAME`")
	c.Flags().StringVar(&confirm, "confirm", "", "the `NAME` once more")
	return c
}
