package care_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
)

// deleting is a store in which somebody deletes a thread while its plans are read.
type deleting struct {
	*mem.DB
	thread string
	before func(tenant string)
}

func (d deleting) Tenant(id string) store.Tenant {
	t := d.DB.Tenant(id)
	t.Plans = deletingPlans{t.Plans, d, id}
	return t
}

type deletingPlans struct {
	store.Plans
	deleting
	tenant string
}

func (p deletingPlans) Plan(ctx context.Context, id string, version int) (*plan.Plan, error) {
	if id == p.thread {
		p.before(p.tenant)
	}
	return p.Plans.Plan(ctx, id, version)
}

// TestDeletedMeanwhile: a thread that is deleted while a store is read, or deleted and begun
// anew, is no damage, and not in an export; the others are.
func TestDeletedMeanwhile(t *testing.T) {
	for name, anew := range map[string]bool{"deleted": false, "begun anew": true} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			newDB := func() deleting {
				db := mem.New()
				storetest.FillAll(t, db)
				return deleting{db, "t", func(tenant string) {
					if err := db.Tenant(tenant).Catalog.Delete(ctx, "t"); err != nil {
						t.Error(err)
					}
					if anew {
						storetest.Fill(t, db, tenant, "another text")
					}
				}}
			}
			_, problems := check(t, newDB())
			for _, p := range problems {
				t.Error(p)
			}
			if _, _, err := care.Count(ctx, newDB()); err != nil {
				t.Error(err)
			}
			db := newDB()
			var out bytes.Buffer
			counts, err := care.Export(ctx, db, &out, nil)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(out.Bytes(), []byte(`"thread":"t","message"`)) || counts.Threads != 2 {
				t.Errorf("%+v are exported", counts)
			}
			into := mem.New()
			if _, err := care.Import(ctx, into, &out, nil, nil); err != nil {
				t.Fatal(err)
			}
			if _, problems := check(t, into); len(problems) > 0 {
				t.Error(problems)
			}
		})
	}
}
