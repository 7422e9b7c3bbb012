package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/apikey"
)

// keysStore is what --store means to the commands for keys.
const keysStore = "the store of the daemon, which keeps its keys"

// apiKeys opens the API keys of a store, and calls use with them.
func (f *storeFlag) apiKeys(ctx context.Context, existing bool, use func(*apikey.Keys) error) error {
	return f.use(ctx, existing, func(db *database) error { return use(apikey.New(db.keys.APIKeys(), nil)) })
}

func keysCommand(s Streams) *cobra.Command {
	return parent(&cobra.Command{
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
		Args:    noArguments,
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
			return store.apiKeys(c.Context(), false, func(all *apikey.Keys) error {
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
					k.ID, k.Rights, tenantName(k.Tenant), store.shown())
				if first {
					fmt.Fprintln(s.Err, "It is the first: a daemon that runs without keys goes on without until it is started anew")
				}
				return nil
			})
		},
	}
	store.storeFlag(c, keysStore)
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
	ID      string     `json:"id"`
	Tenant  string     `json:"tenant"`
	Rights  string     `json:"rights"`
	Name    string     `json:"name,omitempty"`
	State   string     `json:"state"`
	Created time.Time  `json:"created_at"`
	Expires *time.Time `json:"expires_at,omitempty"`
	Revoked *time.Time `json:"revoked_at,omitempty"`
}

func newKeyRow(k apikey.Key, now time.Time) keyRow {
	row := keyRow{ID: k.ID, Tenant: k.Tenant, Rights: k.Rights.String(), Name: k.Name, State: "active", Created: k.Created}
	if !k.Expires.IsZero() {
		row.Expires = &k.Expires
		if !now.Before(k.Expires) {
			row.State = "expired"
		}
	}
	if !k.Revoked.IsZero() {
		row.Revoked, row.State = &k.Revoked, "revoked"
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
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			rows := []keyRow{}
			var damaged error
			err := store.apiKeys(c.Context(), true, func(all *apikey.Keys) error {
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
				err = tell(s.Out, c, rows, func(p *printer) { printKeys(p, rows, store.shown()) })
			}
			return errors.Join(err, damaged)
		},
	}
	store.storeFlag(c, keysStore)
	c.Flags().StringVar(&tenant, "tenant", "", "only those of the tenant `NAME`")
	c.Flags().Bool("json", false, "write a JSON array")
	return c
}

func printKeys(p *printer, rows []keyRow, path string) {
	if len(rows) == 0 {
		p.line("no API keys (looked in %s): `palimpsest keys add` makes one", path)
		return
	}
	p.table([]string{"id", "tenant", "rights", "state", "made", "ends", "name"}, eachOf(rows, func(r keyRow) []string {
		ends := "never"
		if r.Expires != nil {
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
		Args:    some("want the ids of the keys; `palimpsest keys list` shows them"),
		RunE: func(c *cobra.Command, ids []string) error {
			return store.apiKeys(c.Context(), true, func(all *apikey.Keys) error { return revoke(c.Context(), s, all, ids) })
		},
	}
	store.storeFlag(c, keysStore)
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
