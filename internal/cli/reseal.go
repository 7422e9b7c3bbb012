package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/store"
)

// resealed is the report of db reseal.
type resealed struct {
	Tenants   int `json:"tenants"`
	Records   int `json:"records"`
	Artifacts int `json:"artifacts"`
	// Erased counts tenants whose keys were erased and what was left of them was
	// removed.
	Erased int `json:"erased_tenants"`
}

func dbResealCommand(s Streams) *cobra.Command {
	var f dbFlag
	c := &cobra.Command{
		Use:   "reseal",
		Short: "Encrypt anew what is under an older key, or under none",
		Long: `Encrypts under each tenant's newest key what is under an older one or in the clear,
messages, plans, events, documents, cached summaries and artifacts, and removes what
is left of tenants whose keys were erased. A daemon does the same every hour. Others
may use the store meanwhile; where it is stopped it goes on when it is run again.

When it ends without an error, nothing that was there when it began is under an older
key. Processes that run take up to a minute to use a new key: run it after that.`,
		Example: "  palimpsest db reseal --store sqlite:palimpsest.db --master-key master.key",
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			db, err := f.open(c.Context(), true)
			if err != nil {
				return err
			}
			var r resealed
			if db.ring == nil {
				err = fmt.Errorf("%w: no master key: give --master-key FILE, or set %s or %s", errUsage, masterFileVariable, masterVariable)
			} else {
				err = r.all(c.Context(), db)
			}
			if err = errors.Join(err, db.Close()); err != nil {
				return err
			}
			if f.asJSON {
				return writeJSON(s.Out, r)
			}
			p := newPrinter(s.Out)
			p.line("%s and %s encrypted anew", plural(r.Records, "record"), plural(r.Artifacts, "artifact"))
			if r.Erased > 0 {
				p.line("what was left of %s whose keys were erased is removed", plural(r.Erased, "tenant"))
			}
			p.line("all of %s is under the newest keys", plural(r.Tenants, "tenant"))
			return nil
		},
	}
	f.flags(c)
	return c
}

func (r *resealed) all(ctx context.Context, db *sealedDB) error {
	records, ok := db.DB.(store.Sealed)
	if !ok {
		return fmt.Errorf("%w: a store in memory is not encrypted", errUsage)
	}
	artifacts := db.care().Artifacts
	var failed error
	for tenant, err := range db.Tenants(ctx) {
		if err == nil {
			err = r.tenant(ctx, records, artifacts, tenant)
		}
		failed = errors.Join(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	return failed
}

func (r *resealed) tenant(ctx context.Context, records store.Sealed, artifacts *artifact.Store, tenant string) error {
	switch erased, err := records.Erased(ctx, tenant); {
	case err != nil:
		return err
	case erased:
		r.Erased++
		return records.Erase(ctx, tenant)
	}
	r.Tenants++
	n, err := records.Reseal(ctx, tenant)
	r.Records += n
	m, artifactErr := artifacts.Reseal(ctx, artifact.Requester{TenantID: tenant})
	r.Artifacts += m
	return errors.Join(err, artifactErr)
}
