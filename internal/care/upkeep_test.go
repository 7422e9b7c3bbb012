package care_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/internal/test/keyringtest"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func put(t *testing.T, s *artifact.Store, tenant, content string, ttl time.Duration) string {
	t.Helper()
	id, err := s.Put(t.Context(), artifact.Metadata{TenantID: tenant, ThreadID: "t", TTLSeconds: int(ttl / time.Second)}, content)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// ids lists what a backend holds for a tenant, readable or not.
func ids(t *testing.T, db store.DB, tenant string) map[string]artifact.Metadata {
	t.Helper()
	all := map[string]artifact.Metadata{}
	for m, err := range db.Artifacts().List(t.Context(), artifact.Filter{TenantID: tenant}) {
		if err != nil {
			t.Fatal(err)
		}
		all[m.ID] = m
	}
	return all
}

// point puts a plan in force that points to artifacts: to one in place of its message, to
// one from a summary, and to one from what is dropped.
func point(t *testing.T, db store.DB, tenant, id, summarized, dropped string) {
	t.Helper()
	s := db.Tenant(tenant)
	var messages []thread.Message
	for _, text := range []string{"one", "two", "three"} {
		messages = append(messages, thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}})
	}
	th, err := s.Log.Append(t.Context(), "t", 0, messages)
	if err != nil {
		t.Fatal(err)
	}
	kept := func(i int, id string) []plan.Kept { return []plan.Kept{{ArtifactID: id, MessageID: th.At(i).ID}} }
	p := &plan.Plan{
		Schema: plan.SchemaVersion, ThreadID: "t", ThreadVersion: 3,
		Externalizations: []plan.Externalization{{
			Span: th.Range(0, 1), ArtifactID: id, Summary: summary.Summary{CurrentTask: "test"}, Origin: plan.Origin{Strategy: "test", Reason: "for a test"},
		}},
		Summarizations: []plan.Summarization{{Span: th.Range(1, 2), Kept: kept(1, summarized)}},
		Drops:          []plan.Removal{{Span: th.Range(2, 3), Kept: kept(2, dropped)}},
	}
	if _, err := s.Plans.Commit(t.Context(), "t", 0, store.Commit{Plan: p}); err != nil {
		t.Fatal(err)
	}
}

// TestSweep: round after round what has expired goes, of every tenant, but for
// what a plan in force points to. A20
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := mem.New()
		s := artifact.NewStore(db.Artifacts(), nil)
		u := &care.Upkeep{Store: db, Artifacts: s, OnError: func(err error) { t.Error(err) }}
		q := job.NewMemory(u.Handlers(), nil)
		kept, live := put(t, s, "a", "kept", 0), put(t, s, "a", "live", time.Minute)
		short, long, other := put(t, s, "a", "short", time.Minute), put(t, s, "a", "long", 90*time.Minute), put(t, s, "b", "other", time.Minute)
		summarized, dropped := put(t, s, "a", "summarized", time.Minute), put(t, s, "a", "dropped", time.Minute)
		point(t, db, "a", live, summarized, dropped)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			u.Run(ctx, q)
		}()
		check := func(when string, wantA, wantB []string) {
			t.Helper()
			synctest.Wait()
			a, b := ids(t, db, "a"), ids(t, db, "b")
			for _, id := range wantA {
				if _, there := a[id]; !there {
					t.Errorf("%s: %s is gone", when, id)
				}
			}
			if len(a) != len(wantA) || len(b) != len(wantB) {
				t.Errorf("%s: %d and %d artifacts, want %d and %d", when, len(a), len(b), len(wantA), len(wantB))
			}
		}
		check("at first", []string{kept, live, summarized, dropped, short, long}, []string{other})
		time.Sleep(time.Hour) // of the bubble's clock
		check("after an hour", []string{kept, live, summarized, dropped, long}, nil)
		time.Sleep(time.Hour)
		check("after two", []string{kept, live, summarized, dropped}, nil)
		cancel()
		<-ended
		if err := q.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// TestReseal: what was sealed under an older key, or not at all, is sealed under
// the newest in the next round, and reads as before. A20
func TestReseal(t *testing.T) {
	db := mem.New()
	masters, err := keyring.ParseMasters(keyring.NewMaster())
	if err != nil {
		t.Fatal(err)
	}
	ring := keyring.New(masters, &keyringtest.Memory{}, nil)
	plain := put(t, artifact.NewStore(db.Artifacts(), nil), "a", "from before", 0)
	s := artifact.NewStore(db.Artifacts(), &artifact.Options{Keyring: ring})
	sealed := put(t, s, "a", "sealed", 0)
	key, err := ring.Rotate(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	u := &care.Upkeep{Store: db, Artifacts: s, Reseal: true}
	for range 2 { // a second time changes nothing
		if err := u.Handlers()[care.ResealJob](t.Context(), job.Job{}); err != nil {
			t.Fatal(err)
		}
		for id, m := range ids(t, db, "a") {
			if m.EncryptionKeyID != key {
				t.Errorf("%s is under %q, want %q", id, m.EncryptionKeyID, key)
			}
		}
	}
	for id, want := range map[string]string{plain: "from before", sealed: "sealed"} {
		if _, got, err := s.Get(t.Context(), artifact.Requester{TenantID: "a"}, id); err != nil || got != want {
			t.Errorf("%q, %v", got, err)
		}
	}
	u.Artifacts = artifact.NewStore(db.Artifacts(), nil)
	if err := u.Handlers()[care.ResealJob](t.Context(), job.Job{}); err == nil {
		t.Error("no keys, and no error")
	}
}

// TestRecords: in a database the job seals everything anew, what has expired too,
// and removes what is left of a tenant whose keys were erased. A20
func TestRecords(t *testing.T) {
	ctx := t.Context()
	masters, err := keyring.ParseMasters(keyring.NewMaster())
	if err != nil {
		t.Fatal(err)
	}
	ring := keyring.New(masters, &keyringtest.Memory{}, nil)
	db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "p.db"), &sqlite.Options{Keyring: ring})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := artifact.NewStore(db.Artifacts(), &artifact.Options{Keyring: ring})
	for _, tenant := range []string{"a", "b"} {
		id, err := s.Put(ctx, artifact.Metadata{TenantID: tenant, ThreadID: "t", TTLSeconds: 1, CreatedAt: time.Unix(0, 0)}, "long over")
		if err != nil {
			t.Fatal(err)
		}
		point(t, db, tenant, id, id, id)
		if _, err := ring.Rotate(ctx, tenant); err != nil {
			t.Fatal(err)
		}
	}
	u := &care.Upkeep{Store: db, Artifacts: s, Reseal: true}
	do := func(kind string) {
		t.Helper()
		if err := u.Handlers()[kind](ctx, job.Job{}); err != nil {
			t.Fatal(err)
		}
	}
	do(care.ResealJob)
	for _, tenant := range []string{"a", "b"} {
		if n, err := db.Reseal(ctx, tenant); n != 0 || err != nil {
			t.Errorf("tenant %s: %d records were left, %v", tenant, n, err)
		}
		for id, m := range ids(t, db, tenant) {
			if m.EncryptionKeyID != "dk-2" {
				t.Errorf("tenant %s: %s is under %s", tenant, id, m.EncryptionKeyID)
			}
		}
	}
	if err := ring.Erase(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	do(care.SweepJob)
	var left []string
	for tenant, err := range db.Tenants(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, tenant)
	}
	if len(left) != 1 || left[0] != "b" || len(ids(t, db, "a")) != 0 || len(ids(t, db, "b")) != 1 {
		t.Errorf("left: tenants %q, %d artifacts of a, %d of b", left, len(ids(t, db, "a")), len(ids(t, db, "b")))
	}
	do(care.ResealJob)
}

// blind are plans that cannot be read.
type blind struct{ store.DB }

func (b blind) Tenant(id string) store.Tenant {
	t := b.DB.Tenant(id)
	t.Plans = unreadable{t.Plans}
	return t
}

type unreadable struct{ store.Plans }

var errBlind = errors.New("the plans cannot be read")

func (unreadable) Current(context.Context, string) (*plan.Plan, int, error) { return nil, 0, errBlind }

// TestUnknown: what may still be pointed to is not swept.
func TestUnknown(t *testing.T) {
	db := mem.New()
	now := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	s := artifact.NewStore(db.Artifacts(), &artifact.Options{Now: func() time.Time { return now }})
	for n := range 3 {
		put(t, s, "a", fmt.Sprint(n), time.Minute)
	}
	now = now.Add(time.Hour)
	u := &care.Upkeep{Store: blind{db}, Artifacts: s}
	if err := u.Handlers()[care.SweepJob](t.Context(), job.Job{}); !errors.Is(err, errBlind) {
		t.Errorf("%v", err)
	}
	if n := len(ids(t, db, "a")); n != 3 {
		t.Errorf("%d artifacts are left", n)
	}
}
