package dsn_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/internal/dsn"
	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
)

// kept is a store with the keys of its own, or none.
type kept struct {
	store.DB
	ring      *keyring.Keyring
	artifacts *artifact.Store
}

func (k kept) care() *artifact.Store { return k.artifacts }

// kinds are all kinds of stores; each function makes an empty one.
var kinds = map[string]func(*testing.T) kept{
	"memory":           func(t *testing.T) kept { return openKept(t, "memory:", false) },
	"sqlite":           func(t *testing.T) kept { return openKept(t, sqliteName(t), false) },
	"sqlite, sealed":   func(t *testing.T) kept { return openKept(t, sqliteName(t), true) },
	"postgres":         func(t *testing.T) kept { return openKept(t, pgtest.Database(t), false) },
	"postgres, sealed": func(t *testing.T) kept { return openKept(t, pgtest.Database(t), true) },
}

func sqliteName(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "p.db") }

func openKept(t *testing.T, name string, sealed bool) kept {
	t.Helper()
	var k kept
	o, ao := &dsn.Options{CacheBytes: -1}, &artifact.Options{}
	if sealed {
		o.Masters = parsed(t, keyring.NewMaster())
	}
	db, err := dsn.Open(t.Context(), name, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if sealed {
		k.ring = db.(store.Keyed).Keyring()
		ao.Keyring, ao.KeyedIDs = k.ring, true
	}
	k.DB, k.artifacts = db, artifact.NewStore(db.Artifacts(), ao)
	return k
}

func exported(ctx context.Context, t *testing.T, k kept) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := care.Export(ctx, k.DB, &b, k.care()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestMove: from each kind of store to each other, sealed with other keys or not
// at all, everything is the same byte for byte, ids of messages and artifacts
// among it; all of it can be read, and nothing is sealed with the keys of before.
func TestMove(t *testing.T) {
	ctx := t.Context()
	source := kinds["sqlite, sealed"](t)
	storetest.FillAll(t, source.DB)
	ids := map[string]string{}
	for _, content := range []string{"small, under a keyed id", strings.Repeat("large, under a keyed id. ", 10_000)} {
		id, err := source.artifacts.Put(ctx, artifact.Metadata{TenantID: "acme", ThreadID: "t", Sensitivity: artifact.Restricted}, content)
		if err != nil || id == artifact.IDOf("t", content) {
			t.Fatal(id, err)
		}
		ids[id] = content
	}
	over, err := source.artifacts.Put(ctx, artifact.Metadata{TenantID: "acme", ThreadID: "t", TTLSeconds: 1, CreatedAt: time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)}, "its time is over")
	if err != nil {
		t.Fatal(err)
	}
	want := exported(ctx, t, source)
	for _, word := range []string{over, `"said by acme"`} {
		if !strings.Contains(want, word) {
			t.Errorf("the export does not hold %s", word)
		}
	}
	// The export is one and the same, whatever kind it comes from: so each kind that
	// reads it, and gives it back, moves to each other.
	for name, make := range kinds {
		to := make(t)
		fill(ctx, t, to, want)
		fill(ctx, t, to, want) // there is nothing left to do
		if got := exported(ctx, t, to); got != want {
			t.Errorf("%s: the export is another", name)
		}
		if _, err := care.Check(ctx, to.DB, func(p care.Problem) { t.Errorf("%s: %s", name, p) }, to.care()); err != nil {
			t.Error(err)
		}
		for id, content := range ids {
			m, got, err := to.artifacts.Get(ctx, artifact.Requester{TenantID: "acme"}, id)
			if err != nil || got != content || m.Sensitivity != artifact.Restricted || (m.EncryptionKeyID != "") != (to.ring != nil) {
				t.Errorf("%s: %+v, %d bytes, %v", name, m, len(got), err)
			}
		}
		if _, _, err := to.artifacts.Get(ctx, artifact.Requester{TenantID: "acme"}, over); !errors.Is(err, artifact.ErrExpired) {
			t.Errorf("%s: what had expired: %v", name, err)
		}
	}
	// Without its keys a sealed store is not exported at all.
	if _, err := care.Export(ctx, source.DB, &bytes.Buffer{}, nil); err == nil {
		t.Error("contents that could not be read were left out of an export")
	}
	// What is another in the goal is never written over.
	goal := kept{DB: mem.New()}
	goal.artifacts = artifact.NewStore(goal.Artifacts(), nil)
	for id := range ids {
		if err := goal.artifacts.Restore(ctx, artifact.Metadata{ID: id, TenantID: "acme", ThreadID: "t"}, "another"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := care.Import(ctx, goal.DB, strings.NewReader(want), goal.care(), nil); err == nil || !strings.Contains(err.Error(), "another content has this id") {
		t.Errorf("%v", err)
	}
}

func fill(ctx context.Context, t *testing.T, k kept, text string) {
	t.Helper()
	if _, err := care.Import(ctx, k.DB, strings.NewReader(text), k.care(), nil); err != nil {
		t.Fatal(err)
	}
}
