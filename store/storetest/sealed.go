package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/internal/test/keyringtest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// NewRing is a keyring whose keys are in memory. It sees changes at once.
func NewRing(tb testing.TB) *keyring.Keyring {
	tb.Helper()
	ring, _ := newRings(tb)
	return ring
}

// newRings are a keyring and one that has lost all but the newest key of each tenant.
func newRings(tb testing.TB) (ring, newest *keyring.Keyring) {
	tb.Helper()
	masters, err := keyring.ParseMasters(keyring.NewMaster())
	if err != nil {
		tb.Fatal(err)
	}
	keys, o := &keyringtest.Memory{}, &keyring.Options{Fresh: time.Nanosecond}
	return keyring.New(masters, keys, o), keyring.New(masters, newestKeys{keys}, o)
}

type newestKeys struct{ keyring.Keys }

func (k newestKeys) Load(ctx context.Context, tenant string) ([]keyring.Wrapped, error) {
	keys, err := k.Keys.Load(ctx, tenant)
	for i := range len(keys) - 1 {
		keys[i].Sealed = nil
	}
	return keys, err
}

func export(tb testing.TB, db store.DB) string {
	tb.Helper()
	var b bytes.Buffer
	if _, err := care.Export(tb.Context(), db, &b, nil); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// sealedAnew: after a change of keys every record is put under the newest, also
// what was in the clear, while others read and write; nothing is changed by it,
// and nothing needs an older key then. A20
func sealedAnew(t *testing.T, open Open) {
	ctx := t.Context()
	ring, newest := newRings(t)
	Fill(t, open(t, nil), "plain", "from before the key")
	FillAll(t, open(t, ring))
	want := export(t, open(t, ring))
	tenants := []string{"", "acme", "plain"}
	for _, tenant := range tenants {
		if _, err := ring.Rotate(ctx, tenant); err != nil {
			t.Fatal(err)
		}
	}
	db := open(t, ring)
	r, ok := db.(store.Sealed)
	if !ok {
		t.Fatalf("%T encrypts and is no store.Sealed", db)
	}
	s := tenant{db.Tenant("acme"), test{t}}
	if v, ok := open(t, newest).Tenant("acme").Answers.Get(ctx, "key"); ok {
		t.Errorf("before: the answer %q is under the newest key", v)
	}
	_, err := open(t, newest).Tenant("acme").Log.Load(ctx, "t")
	s.is(keyring.ErrOpen, err)

	done, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			_, putErr := s.Documents.Put(ctx, store.Document{Kind: "meanwhile", ID: "meanwhile", Version: n, Body: fmt.Append(nil, n)})
			th, loadErr := open(t, ring).Tenant("").Log.Load(ctx, "long")
			if err := errors.Join(s.add("meanwhile", n, fmt.Sprint(n)), putErr, loadErr); err != nil || th.Len() != 701 {
				t.Errorf("during Reseal: %d messages, %v", th.Len(), err)
				return
			}
		}
	}()
	for _, tenant := range tenants {
		if n, err := r.Reseal(ctx, tenant); n == 0 || err != nil {
			t.Errorf("tenant %q: %d sealed anew, %v", tenant, n, err)
		}
	}
	close(stop)
	<-done
	s.need(s.Catalog.Delete(ctx, "meanwhile"))
	for _, tenant := range tenants {
		if n, err := r.Reseal(ctx, tenant); n != 0 || err != nil {
			t.Errorf("tenant %q: %d sealed anew for the second time, %v", tenant, n, err)
		}
		if v, ok := open(t, newest).Tenant(tenant).Answers.Get(ctx, "key"); !ok || len(v) == 0 {
			t.Errorf("tenant %q: answer %q, %v", tenant, v, ok)
		}
	}
	if got := export(t, open(t, newest)); got != want {
		t.Errorf("the export is another: %d bytes, before %d", len(got), len(want))
	}
	if n, err := open(t, nil).(store.Sealed).Reseal(ctx, "acme"); err == nil {
		t.Errorf("%d sealed anew without keys", n)
	}
}

// unreadable: a record that does not open is told, and does not keep the others
// from being sealed anew.
func unreadable(t *testing.T, open Open) {
	ctx := t.Context()
	lost := NewRing(t)
	ring, newest := newRings(t)
	Fill(t, open(t, lost), "acme", "under keys that are lost")
	open.of(t, ring, "acme").append("z", 0, "one")
	if _, err := ring.Rotate(ctx, "acme"); err != nil {
		t.Fatal(err)
	}
	n, err := open(t, ring).(store.Sealed).Reseal(ctx, "acme")
	if n != 1 || !errors.Is(err, keyring.ErrOpen) {
		t.Errorf("%d sealed anew, %v", n, err)
	}
	open.of(t, newest, "acme").holds("z", "one")
}

// erased: when the keys of a tenant are erased, nothing of it can be read or
// written any more, also not by a store that has it in memory; and Erase removes
// what is left, of nobody else. A20
func erased(t *testing.T, open Open) {
	ctx := t.Context()
	ring := NewRing(t)
	db := FillAll(t, open(t, ring))
	s := tenant{db.Tenant("acme"), test{t}}
	if _, err := s.Log.Load(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	s.current("t", 1)
	s.need(ring.Erase(ctx, "acme"))
	_, loadErr := s.Log.Load(ctx, "t")
	_, repeatErr := s.Log.Append(ctx, "t", 0, everything())
	_, _, currentErr := s.Plans.Current(ctx, "t")
	_, planErr := s.Plans.Plan(ctx, "t", 1)
	_, marksErr := s.Plans.Compacted(ctx, "t")
	_, infoErr := s.Catalog.Thread(ctx, "t")
	_, listErr := s.Catalog.Threads(ctx, "", 0)
	_, eventErr := s.Events.Events(ctx, "t", 0, 0)
	_, documentErr := s.Documents.Document(ctx, "memory", "t")
	_, kindsErr := s.Documents.Kinds(ctx)
	_, putErr := s.Documents.Put(ctx, store.Document{Kind: "memory", ID: "new", Body: []byte(`1`)})
	_, resealErr := db.(store.Sealed).Reseal(ctx, "acme")
	s.is(store.ErrErased, loadErr, repeatErr, s.add("new", 0, "one"), currentErr, planErr, marksErr, infoErr, listErr, eventErr, documentErr, kindsErr, putErr, resealErr)
	s.Answers.Put(ctx, "new", []byte("x"))
	for _, key := range []string{"key", "new"} {
		if v, ok := s.Answers.Get(ctx, key); ok {
			t.Errorf("after the keys were erased: %+v", v)
		}
	}
	for range 2 {
		s.need(db.(store.Sealed).Erase(ctx, "acme"))
	}
	for _, db := range []store.DB{db, open(t, ring)} {
		for name, err := range db.Tenants(ctx) {
			if name != "" || err != nil {
				t.Errorf("tenant %q is left, %v", name, err)
			}
		}
		for m, err := range db.Artifacts().List(ctx, artifact.Filter{TenantID: "acme"}) {
			t.Errorf("%s is left, %v", m.ID, err)
		}
		if counts, err := care.Check(ctx, db, func(p care.Problem) { t.Error(p) }, nil); err != nil || counts.Threads != 2 || counts.Artifacts != 2 {
			t.Errorf("%+v, %v", counts, err)
		}
	}
	if l, ok := db.(interface {
		Leftovers(context.Context) ([]string, error)
	}); ok {
		if left, err := l.Leftovers(ctx); err != nil || len(left) > 0 {
			t.Errorf("files %v are left, %v", left, err)
		}
	}
}
