package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/apikey"
	"github.com/palimpsest-ai/palimpsest/keyring"
)

// keysStoreUsage is what --store means to the commands for keys.
const keysStoreUsage = "the store of the daemon, which keeps its keys"

// withAPIKeys opens the API keys of a store, and calls use with them.
func (f *storeFlag) withAPIKeys(ctx context.Context, existing bool, use func(*apikey.Keys) error) error {
	return f.withDatabase(ctx, existing, func(db *database) error { return use(apikey.New(db.keys.APIKeys(), nil)) })
}

func keysCommand(s Streams) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "keys",
		Short: "Make and take back API keys, change the keys that encrypt",
		Long: `API keys let clients of the daemon in: each opens one tenant's data with some
rights. They are kept as hashes. Data keys encrypt what is kept for a tenant; they
are kept encrypted under a master key, which you keep elsewhere. Both are in the
store of the daemon.`,
		Example: `  palimpsest keys add --tenant acme --rights read,write --name "build server"
  palimpsest keys revoke KEYID
  (umask 077; palimpsest keys master > master.key)
  palimpsest keys rotate --tenant acme --master-key master.key`,
	},
		keysAddCommand(s), keysListCommand(s), keysRevokeCommand(s),
		keysMasterCommand(s), keysRotateCommand(s), keysEraseCommand(s),
	)
}

func keysAddCommand(s Streams) *cobra.Command {
	var store storeFlag
	var g apikey.Grant
	var rights string
	var life time.Duration
	c := &cobra.Command{
		Use:     "add",
		Short:   "Make an API key and print it, once",
		Example: "  palimpsest keys add --tenant acme --rights read,write --name \"build server\"",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if g.Rights, err = apikey.ParseRights(rights); err != nil {
				return fmt.Errorf("%w: --rights: %w", errUsage, err)
			}
			if life < 0 {
				return fmt.Errorf("%w: --expires: want a time that is to come, such as 720h", errUsage)
			}
			if life > 0 {
				g.Expires = time.Now().Add(life)
			}
			return store.withAPIKeys(c.Context(), false, func(all *apikey.Keys) error {
				first := true
				for range all.List(c.Context()) {
					first = false
					break
				}
				token, k, err := all.Add(c.Context(), g)
				if err != nil {
					return err
				}
				fmt.Fprintln(s.Out, token)
				fmt.Fprintf(s.Err, "key %s: %s for %s, kept in %s. It is shown this once; clients send it as \"Authorization: Bearer …\"\n",
					k.ID, k.Rights, tenantName(k.Tenant), store.displayName())
				if first {
					fmt.Fprintln(s.Err, "It is the first: a daemon that runs without keys goes on without until it is started anew")
				}
				return nil
			})
		},
	}
	store.addStoreFlag(c, keysStoreUsage)
	c.Flags().StringVar(&g.Tenant, "tenant", "", "whose data the key opens, a `NAME` (default: that of a machine without tenants)")
	c.Flags().StringVar(&rights, "rights", "read,write", "what it may do: `RIGHTS` out of read, write, admin")
	c.Flags().StringVar(&g.Name, "name", "", "what it is used for, a `TEXT` for the list")
	c.Flags().DurationVar(&life, "expires", 0, "it ends after `TIME`, such as 720h (default: never)")
	return c
}

func tenantName(tenant string) string {
	if tenant == "" {
		return "the default tenant"
	}
	return "tenant " + printable(tenant)
}

// keyRow is an API key as it is listed: without its hash.
type keyRow struct {
	ID      string    `json:"id"`
	Tenant  string    `json:"tenant"`
	Rights  string    `json:"rights"`
	Name    string    `json:"name,omitempty"`
	State   string    `json:"state"`
	Created time.Time `json:"created_at"`
	Expires time.Time `json:"expires_at,omitzero"`
	Revoked time.Time `json:"revoked_at,omitzero"`
}

func newKeyRow(k apikey.Key, now time.Time) keyRow {
	row := keyRow{ID: k.ID, Tenant: k.Tenant, Rights: k.Rights.String(), Name: k.Name, State: "active", Created: k.Created, Expires: k.Expires, Revoked: k.Revoked}
	if !k.Expires.IsZero() && !now.Before(k.Expires) {
		row.State = "expired"
	}
	if !k.Revoked.IsZero() {
		row.State = "revoked"
	}
	return row
}

func keysListCommand(s Streams) *cobra.Command {
	var store storeFlag
	var tenant string
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the API keys, without their secrets",
		Example: "  palimpsest keys list --tenant acme",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			rows := []keyRow{}
			var damaged error
			err := store.withAPIKeys(c.Context(), true, func(all *apikey.Keys) error {
				for k, err := range all.List(c.Context()) {
					switch {
					case err != nil:
						damaged = errors.Join(damaged, err)
					case !c.Flags().Changed("tenant") || k.Tenant == tenant:
						rows = append(rows, newKeyRow(k, time.Now()))
					}
				}
				return nil
			})
			if errors.Is(err, errNoStore) { // it holds no keys, and listing them makes none
				err = nil
			}
			if err == nil {
				err = writeResult(s.Out, c, rows, func(p *printer) { printKeys(p, rows, store.displayName()) })
			}
			return errors.Join(err, damaged)
		},
	}
	store.addStoreFlag(c, keysStoreUsage)
	c.Flags().StringVar(&tenant, "tenant", "", "only those of the tenant `NAME`")
	c.Flags().Bool("json", false, "write a JSON array")
	return c
}

func printKeys(p *printer, rows []keyRow, path string) {
	if len(rows) == 0 {
		p.line("no API keys (looked in %s): `palimpsest keys add` makes one", path)
		return
	}
	p.table([]string{"id", "tenant", "rights", "state", "made", "ends", "name"}, mapSlice(rows, func(r keyRow) []string {
		ends := "never"
		if !r.Expires.IsZero() {
			ends = r.Expires.Format(time.DateOnly)
		}
		return []string{r.ID, r.Tenant, r.Rights, r.State, r.Created.Format(time.DateOnly), ends, r.Name}
	}))
}

func keysRevokeCommand(s Streams) *cobra.Command {
	var store storeFlag
	c := &cobra.Command{
		Use:     "revoke KEYID…",
		Short:   "Take API keys back, at once and for good",
		Example: "  palimpsest keys revoke KEYID",
		Args:    nonBlankArgs("want the ids of the keys; `palimpsest keys list` shows them"),
		RunE: func(c *cobra.Command, ids []string) error {
			return store.withAPIKeys(c.Context(), true, func(all *apikey.Keys) error { return revoke(c.Context(), s, all, ids) })
		},
	}
	store.addStoreFlag(c, keysStoreUsage)
	return c
}

// revoke takes a whole key for its id too, but never shows it.
func revoke(ctx context.Context, s Streams, all *apikey.Keys, ids []string) error {
	var failed error
	for _, id := range ids {
		if rest, whole := strings.CutPrefix(id, "plk_"); whole {
			id, _, _ = strings.Cut(rest, "_")
		}
		if !apikey.IsID(id) { // whatever it is, it may be secret
			failed = errors.Join(failed, fmt.Errorf("%w: want the 16 characters of a key's id; `palimpsest keys list` shows them", errUsage))
			continue
		}
		if err := all.Revoke(ctx, id); err != nil {
			failed = errors.Join(failed, fmt.Errorf("key %s: %w", id, err))
			continue
		}
		fmt.Fprintf(s.Err, "key %s is revoked\n", printable(id))
	}
	return failed
}

// The variables that hold master keys, or name a file of them.
const (
	masterKeyEnv     = "PALIMPSEST_MASTER_KEY"
	masterKeyFileEnv = "PALIMPSEST_MASTER_KEY_FILE"
)

// errNoMaster is the error of what needs a master key.
var errNoMaster = fmt.Errorf("%w: no master key: give --master-key FILE, or set %s or %s", errUsage, masterKeyFileEnv, masterKeyEnv)

// masterKeys are the keys that wrap data keys; the error wraps errNoMaster where there are
// none.
func (f *storeFlag) masterKeys() (keyring.Masters, error) {
	from, text := "$"+masterKeyEnv, []byte(os.Getenv(masterKeyEnv))
	if file := cmp.Or(f.master, os.Getenv(masterKeyFileEnv)); file != "" {
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

// withKeyring calls use with the data keys of a store that must be there.
func (f *storeFlag) withKeyring(ctx context.Context, use func(*keyring.Keyring) error) error {
	if _, err := f.masterKeys(); err != nil {
		return err
	}
	return f.withDatabase(ctx, true, func(db *database) error {
		if db.keyring == nil {
			return fmt.Errorf("%w: nothing is encrypted in memory", errUsage)
		}
		return use(db.keyring)
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
		Args:    noArgs,
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
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			one := c.Flags().Changed("tenant")
			if one && wrapping {
				return fmt.Errorf("%w: --master wraps the keys of all tenants; leave --tenant out", errUsage)
			}
			return store.withKeyring(c.Context(), func(ring *keyring.Keyring) error {
				switch {
				case wrapping:
					n, err := ring.RotateMaster(c.Context())
					fmt.Fprintf(s.Err, "%s wrapped by the new master key\n", plural(n, "data key"))
					return err
				case one:
					return rotateKey(c.Context(), s, ring, tenant)
				}
				return rotateAllKeys(c.Context(), s, ring)
			})
		},
	}
	store.addKeyFlags(c, keysStoreUsage)
	c.Flags().StringVar(&tenant, "tenant", "", "only the tenant `NAME`")
	c.Flags().BoolVar(&wrapping, "master", false, "change the master key, not the data keys")
	return c
}

// newestDataKey is the tenant's newest data key. One that has none is most likely mistyped.
func newestDataKey(ctx context.Context, ring *keyring.Keyring, tenant string) (string, error) {
	id, err := ring.Current(ctx, tenant)
	if err == nil && id == "" {
		err = fmt.Errorf("%s has no data key: nothing was encrypted for it yet", tenantName(tenant))
	}
	return id, err
}

// rotateKey gives one tenant a new key.
func rotateKey(ctx context.Context, s Streams, ring *keyring.Keyring, tenant string) error {
	old, err := newestDataKey(ctx, ring, tenant)
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

func rotateAllKeys(ctx context.Context, s Streams, ring *keyring.Keyring) error {
	var failed error
	none := true
	for tenant, err := range ring.Tenants(ctx) {
		if none = false; err == nil {
			err = rotateKey(ctx, s, ring, tenant)
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
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("tenant") || !c.Flags().Changed("confirm") || tenant != confirm {
				return fmt.Errorf("%w: this cannot be undone: give the name twice, as --tenant NAME --confirm NAME", errUsage)
			}
			return store.withKeyring(c.Context(), func(ring *keyring.Keyring) error {
				if _, err := newestDataKey(c.Context(), ring, tenant); err != nil {
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
	store.addKeyFlags(c, keysStoreUsage)
	c.Flags().StringVar(&tenant, "tenant", "", "the tenant's `NAME`")
	c.Flags().StringVar(&confirm, "confirm", "", "the `NAME` once more")
	return c
}
