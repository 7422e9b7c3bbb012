package storetest

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestQuota tests a store whose tenants may keep 10,000 bytes each (Options.TenantBytes). One
// that keeps more writes nothing new of any kind; it replaces, removes and deletes what is
// there, and others write.
func TestQuota(t *testing.T, db store.DB) {
	ctx, full := t.Context(), tenant{db.Tenant("full"), test{t}}
	full.append("t", 0, "one")
	version := full.put("kind", "list", 0, `["a","b"]`)
	keep := func() error {
		_, err := db.Artifacts().Put(ctx, artifact.Metadata{ID: "art_0", TenantID: "full", Bytes: 20_000}, make([]byte, 20_000), nil)
		return err
	}
	full.need(keep())
	put := func(id string, version int, body string) (int, error) {
		return full.Documents.Put(ctx, store.Document{Kind: "kind", ID: id, Version: version, Body: []byte(body)})
	}
	_, newErr := put("new", 0, `1`)
	_, grownErr := put("list", version, `["a","b","c"]`)
	_, appendErr := full.Log.Append(ctx, "t", 1, []thread.Message{say(thread.User, "two")})
	full.is(store.ErrQuota, newErr, grownErr, appendErr)
	full.document("kind", "list", `["a","b"]`)

	full.need(keep()) // as it is when it is encrypted anew
	version, err := put("list", version, `["b"]`)
	full.need(err)
	full.document("kind", "list", `["b"]`)
	_, err = put("list", version, "")
	full.need(err)
	full.document("kind", "list", "")
	full.need(full.Catalog.Delete(ctx, "t"))
	tenant{db.Tenant("other"), test{t}}.append("t", 0, "one")
}
