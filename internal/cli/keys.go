package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/store/apikey"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// keysStoreUsage describes --store of the commands for keys.
const keysStoreUsage = "the store of the daemon, which keeps its keys"

func keysCommand(s Streams) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "keys",
		Short: "Make and revoke API keys, change the keys that encrypt",
		Long: `API keys let clients use the daemon: each gives some rights on one tenant's data.
The store keeps only their hashes. Data keys encrypt what a tenant keeps; the store
keeps them encrypted under a master key, which you keep elsewhere.`,
		Example: `  palimpsest keys add --tenant acme --rights read,write --name "build server"
  palimpsest keys revoke KEYID
  (umask 077; palimpsest keys master > master.key)
  palimpsest keys rotate --tenant acme --master-key master.key`,
	},
		keysAddCommand(s), keysListCommand(s), keysRevokeCommand(s),
		keysMasterCommand(s), keysRotateCommand(s), keysEraseCommand(s),
	)
}

// withAPIKeys opens the store and calls use with its API keys.
func (f *storeFlag) withAPIKeys(ctx context.Context, existing bool, use func(*apikey.Keys) error) error {
	if !f.lasts() {
		return fmt.Errorf("%w: --store memory: keeps no keys; name the store of the daemon that is to ask for them", errUsage)
	}
	return f.withDatabase(ctx, existing, func(db *database) error { return use(db.apiKeys()) })
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
				return fmt.Errorf("%w: --expires: want a time in the future, such as 720h", errUsage)
			}
			if life > 0 {
				g.Expires = time.Now().Add(life)
			}
			return store.withAPIKeys(c.Context(), false, func(keys *apikey.Keys) error {
				first := true
				for range keys.List(c.Context()) {
					first = false
					break
				}
				token, k, err := keys.Add(c.Context(), g)
				if err != nil {
					return err
				}
				fmt.Fprintln(s.Out, token)
				fmt.Fprintf(s.Err, "key %s: %s for %s, kept in %s. It is shown only now; clients send it as \"Authorization: Bearer …\", agents behind the proxy as \"X-Palimpsest-Key: …\"\n",
					k.ID, k.Rights, tenantName(k.Tenant), store.displayName())
				if first {
					fmt.Fprintln(s.Err, "It is the first key: a running daemon asks for keys only after a restart")
				}
				return nil
			})
		},
	}
	store.addStoreFlag(c, keysStoreUsage)
	c.Flags().StringVar(&g.Tenant, "tenant", "", "whose data the key opens, a `NAME` (default: the default tenant)")
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

// keyRow is an API key in a list, without its hash.
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
			err := store.withAPIKeys(c.Context(), true, func(keys *apikey.Keys) error {
				for k, err := range keys.List(c.Context()) {
					switch {
					case err != nil:
						damaged = errors.Join(damaged, err)
					case !c.Flags().Changed("tenant") || k.Tenant == tenant:
						rows = append(rows, newKeyRow(k, time.Now()))
					}
				}
				return nil
			})
			if err != nil && !errors.Is(err, errNoStore) { // no store, no keys
				return errors.Join(err, damaged)
			}
			err = writeResult(s.Out, c, rows, func(p *printer) {
				if len(rows) == 0 {
					p.line("no API keys (looked in %s): `palimpsest keys add` makes one", store.displayName())
					return
				}
				p.table([]string{"id", "tenant", "rights", "state", "made", "ends", "name"}, mapSlice(rows, func(r keyRow) []string {
					ends := "never"
					if !r.Expires.IsZero() {
						ends = r.Expires.Format(time.DateOnly)
					}
					return []string{r.ID, r.Tenant, r.Rights, r.State, r.Created.Format(time.DateOnly), ends, r.Name}
				}))
			})
			return errors.Join(err, damaged)
		},
	}
	store.addStoreFlag(c, keysStoreUsage)
	c.Flags().StringVar(&tenant, "tenant", "", "only those of the tenant `NAME`")
	c.Flags().Bool("json", false, "write a JSON array")
	return c
}

func keysRevokeCommand(s Streams) *cobra.Command {
	var store storeFlag
	c := &cobra.Command{
		Use:     "revoke KEYID…",
		Short:   "Revoke API keys, at once and for good",
		Example: "  palimpsest keys revoke KEYID",
		Args:    nonBlankArgs("want the ids of the keys; `palimpsest keys list` shows them"),
		RunE: func(c *cobra.Command, ids []string) error {
			return store.withAPIKeys(c.Context(), true, func(keys *apikey.Keys) error {
				var failed error
				for _, id := range ids {
					failed = errors.Join(failed, revokeKey(c.Context(), s, keys, id))
				}
				return failed
			})
		},
	}
	store.addStoreFlag(c, keysStoreUsage)
	return c
}

// revokeKey takes the id of a key or the whole key, which it never shows.
func revokeKey(ctx context.Context, s Streams, keys *apikey.Keys, id string) error {
	if rest, whole := strings.CutPrefix(id, "plk_"); whole {
		id, _, _ = strings.Cut(rest, "_")
	}
	if !apikey.IsID(id) { // not shown, as it may be a secret
		return fmt.Errorf("%w: want the 16 characters of a key's id; `palimpsest keys list` shows them", errUsage)
	}
	if err := keys.Revoke(ctx, id); err != nil {
		return fmt.Errorf("key %s: %w", id, err)
	}
	fmt.Fprintf(s.Err, "key %s is revoked\n", id)
	return nil
}

func keysMasterCommand(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "master",
		Short: "Print a new random master key",
		Long: `Print a new random master key. It is not stored: put it in a file that only the
daemon can read, or in a secret store, and not next to the data. Without it nothing
that is encrypted can be read again. To change it, append the new key to the file with
the old one and run "palimpsest keys rotate --master"; then remove the old one.`,
		Example: "  (umask 077; palimpsest keys master > master.key)",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(s.Out, keyring.NewMaster())
			return err
		},
	}
}

// withKeyring opens a store that must exist and calls use with its data keys.
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

func keysRotateCommand(s Streams) *cobra.Command {
	var store storeFlag
	var tenant string
	var master bool
	c := &cobra.Command{
		Use:   "rotate",
		Short: "Give tenants new data keys, or change the master key",
		Long: `Give one tenant (--tenant) or all tenants a new data key. Data under older keys can
still be read. A running daemon uses the new key within a minute and encrypts older
data again in the background; "palimpsest db reseal" does that at once and says when
it is done.

With --master the data keys stay, and are encrypted under the newest master key, the
last one given. After that the older master keys can be removed.`,
		Example: "  palimpsest keys rotate --tenant acme --master-key master.key\n  palimpsest keys rotate --master --master-key master.key",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			one := c.Flags().Changed("tenant")
			if one && master {
				return fmt.Errorf("%w: --master is for the keys of all tenants; leave --tenant out", errUsage)
			}
			return store.withKeyring(c.Context(), func(ring *keyring.Keyring) error {
				switch {
				case master:
					n, err := ring.RotateMaster(c.Context())
					fmt.Fprintf(s.Err, "%s wrapped by the new master key\n", plural(n, "data key"))
					return err
				case one:
					return rotateKey(c.Context(), s, ring, tenant)
				}
				var failed error
				none := true
				for tenant, err := range ring.Tenants(c.Context()) {
					if none = false; err == nil {
						err = rotateKey(c.Context(), s, ring, tenant)
					}
					failed = errors.Join(failed, err)
				}
				if none {
					return errors.New("there are no data keys: nothing was encrypted yet")
				}
				return failed
			})
		},
	}
	store.addKeyFlags(c, keysStoreUsage)
	c.Flags().StringVar(&tenant, "tenant", "", "only the tenant `NAME`")
	c.Flags().BoolVar(&master, "master", false, "change the master key, not the data keys")
	return c
}

// currentDataKey returns the id of a tenant's newest data key. A tenant without one is an
// error, as its name is most likely mistyped.
func currentDataKey(ctx context.Context, ring *keyring.Keyring, tenant string) (string, error) {
	id, err := ring.Current(ctx, tenant)
	if err == nil && id == "" {
		err = fmt.Errorf("%s has no data key: nothing was encrypted for it yet", tenantName(tenant))
	}
	return id, err
}

func rotateKey(ctx context.Context, s Streams, ring *keyring.Keyring, tenant string) error {
	old, err := currentDataKey(ctx, ring, tenant)
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

func keysEraseCommand(s Streams) *cobra.Command {
	var store storeFlag
	var tenant, confirm string
	c := &cobra.Command{
		Use:   "erase",
		Short: "Destroy a tenant's data keys: everything encrypted for it is lost",
		Long: `Destroy the data keys of a tenant. There is no way back: what was encrypted for it can
never be read again, unless a copy of the keys exists. A backup of the store has one, for
whoever has the master key. The tenant's name cannot be used again. Running daemons
forget the keys, and what they have in memory, within a minute; they or "palimpsest db
reseal" then remove what is left in the store. Its API keys stay; revoke them.`,
		Example: "  palimpsest keys erase --tenant acme --confirm acme --master-key master.key",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("tenant") || !c.Flags().Changed("confirm") || tenant != confirm {
				return fmt.Errorf("%w: this cannot be undone: give the name twice, as --tenant NAME --confirm NAME", errUsage)
			}
			return store.withKeyring(c.Context(), func(ring *keyring.Keyring) error {
				// One that failed half-way is made again.
				if _, err := currentDataKey(c.Context(), ring, tenant); err != nil && !errors.Is(err, keyring.ErrErased) {
					return err
				}
				if err := ring.Erase(c.Context(), tenant); err != nil {
					return err
				}
				fmt.Fprintf(s.Err, "%s is erased; its API keys stay, and open nothing (`palimpsest keys revoke`)\n", tenantName(tenant))
				return nil
			})
		},
	}
	store.addKeyFlags(c, keysStoreUsage)
	c.Flags().StringVar(&tenant, "tenant", "", "the tenant's `NAME`")
	c.Flags().StringVar(&confirm, "confirm", "", "the `NAME` once more")
	return c
}
