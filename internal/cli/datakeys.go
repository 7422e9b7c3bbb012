package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/keyring"
)

// masterFlag is the --master-key flag: the keys that wrap data keys.
type masterFlag struct{ file string }

// The variables that hold master keys, or name a file of them.
const (
	masterVariable     = "PALIMPSEST_MASTER_KEY"
	masterFileVariable = "PALIMPSEST_MASTER_KEY_FILE"
)

// errNoMaster is the error of what needs a master key.
var errNoMaster = fmt.Errorf("%w: no master key: give --master-key FILE, or set %s or %s", errUsage, masterFileVariable, masterVariable)

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
			return keyring.Masters{}, errNoMaster
		}
		masters, err := keyring.ParseMasters(text)
		if err != nil {
			err = fmt.Errorf("$%s: %w", masterVariable, err)
		}
		return masters, err
	}
	text, err := readPrivate(file)
	if err != nil {
		return keyring.Masters{}, err
	}
	masters, err := keyring.ParseMasters(string(text))
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
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

// given reports whether there is any master key.
func (f *masterFlag) given() bool {
	return f.file != "" || os.Getenv(masterFileVariable) != "" || os.Getenv(masterVariable) != ""
}

// withRing opens the data keys of a store that must be there, and calls use with
// them.
func (f *keysFlag) withRing(ctx context.Context, use func(*keyring.Keyring) error) error {
	if !f.master.given() {
		return errNoMaster
	}
	db, err := f.store.open(ctx, true, f.master)
	if err != nil {
		return err
	}
	if db.ring == nil {
		err = fmt.Errorf("%w: nothing is encrypted in memory", errUsage)
	} else {
		err = use(db.ring)
	}
	return errors.Join(err, db.Close())
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
			return keys.withRing(c.Context(), func(ring *keyring.Keyring) error {
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
	keys.flags(c)
	keys.master.flags(c)
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
	var keys keysFlag
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
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("tenant") || !c.Flags().Changed("confirm") || tenant != confirm {
				return fmt.Errorf("%w: this cannot be undone: give the name twice, as --tenant NAME --confirm NAME", errUsage)
			}
			return keys.withRing(c.Context(), func(ring *keyring.Keyring) error {
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
	keys.master.flags(c)
	c.Flags().StringVar(&tenant, "tenant", "", "the tenant's `NAME`")
	c.Flags().StringVar(&confirm, "confirm", "", "the `NAME` once more")
	return c
}
