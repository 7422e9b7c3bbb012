// Package artifacttest proves an artifact.Backend: that it keeps records as the
// contract says, and that an artifact.Store over it holds its guarantees.
package artifacttest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestBackend runs the suite. open returns an empty backend each time it is
// called; what must be closed it closes itself, with Cleanup.
func TestBackend(t *testing.T, open func(testing.TB) artifact.Backend) {
	t.Run("records", func(t *testing.T) { records(t, open(t)) })
	t.Run("listing", func(t *testing.T) { listing(t, open(t)) })
	t.Run("tenants", func(t *testing.T) { tenants(t, open(t)) })
	t.Run("content", func(t *testing.T) { contents(t, open(t)) })
	t.Run("cancelled", func(t *testing.T) { cancelled(t, open(t)) })
	t.Run("concurrent", func(t *testing.T) { concurrent(t, open(t)) })
	t.Run("compared", func(t *testing.T) { compared(t, open(t)) })
	t.Run("store", func(t *testing.T) { store(t, open(t)) })
	t.Run("expiry", func(t *testing.T) { expiry(t, open(t)) })
	t.Run("sealed", func(t *testing.T) { sealed(t, open(t)) })
}

var began = time.Date(2025, 5, 12, 9, 30, 0, 123456789, time.UTC)

func metadata(tenant, threadID, content string) artifact.Metadata {
	return artifact.Metadata{
		ID: artifact.IDOf(threadID, content), ThreadID: threadID, TenantID: tenant, CreatedAt: began,
		TTLSeconds: 60, EncryptionKeyID: "key-1", Sensitivity: artifact.Confidential,
		MessageIDs: []thread.ID{"m1", "../m2"}, Tool: "Bash", Turn: 3, Bytes: len(content), MediaType: "text/plain",
	}
}

// records: what is put comes back whole, is replaced by the same id and gone
// after Delete.
func records(t *testing.T, b artifact.Backend) {
	ctx := t.Context()
	m := metadata("", "t", "one")
	if _, _, err := b.Get(ctx, "", m.ID); !errors.Is(err, artifact.ErrNotFound) {
		t.Fatalf("an empty backend gave %v", err)
	}
	for _, content := range []string{"one", "two"} {
		m.Turn++
		if _, err := b.Put(ctx, m, []byte(content), nil); err != nil {
			t.Fatal(err)
		}
		got, data, err := b.Get(ctx, "", m.ID)
		if err != nil || string(data) != content || !reflect.DeepEqual(got, m) {
			t.Fatalf("got %+v %q %v, want %+v %q", got, data, err, m, content)
		}
	}
	for range 2 {
		if _, err := b.Delete(ctx, "", m.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := b.Get(ctx, "", m.ID); !errors.Is(err, artifact.ErrNotFound) {
		t.Fatalf("after Delete: %v", err)
	}
}

// listing: ordered by id, by thread and by prefix, metadata whole.
func listing(t *testing.T, b artifact.Backend) {
	want := map[string]artifact.Metadata{}
	for n := range 30 {
		content := fmt.Sprint("content ", n)
		m := metadata("", fmt.Sprint("thread ", n%3), content)
		want[m.ID] = m
		if _, err := b.Put(t.Context(), m, []byte(content), nil); err != nil {
			t.Fatal(err)
		}
	}
	all := list(t, b, artifact.Filter{})
	if len(all) != len(want) {
		t.Fatalf("%d listed, want %d", len(all), len(want))
	}
	for i, m := range all {
		if !reflect.DeepEqual(m, want[m.ID]) {
			t.Errorf("got %+v, want %+v", m, want[m.ID])
		}
		if i > 0 && all[i-1].ID >= m.ID {
			t.Errorf("%s comes after %s", m.ID, all[i-1].ID)
		}
		for _, n := range []int{0, 3, 4, 5, 6, 9, len(m.ID)} {
			prefix := m.ID[:n]
			found := list(t, b, artifact.Filter{Prefix: prefix})
			matching := 0
			for id := range want {
				if strings.HasPrefix(id, prefix) {
					matching++
				}
			}
			if len(found) != matching {
				t.Errorf("prefix %q: %d listed, want %d", prefix, len(found), matching)
			}
		}
	}
	for _, prefix := range []string{"art_zz", "../", "x", "art_0/..", all[0].ID + "0"} {
		if found := list(t, b, artifact.Filter{Prefix: prefix}); len(found) != 0 {
			t.Errorf("prefix %q: %d listed", prefix, len(found))
		}
	}
	if found := list(t, b, artifact.Filter{ThreadID: "thread 1"}); len(found) != 10 {
		t.Errorf("%d listed of thread 1", len(found))
	}
	if found := list(t, b, artifact.Filter{ThreadID: "thread"}); len(found) != 0 {
		t.Errorf("%d listed of a thread that is not there", len(found))
	}
	seen := 0
	for range b.List(t.Context(), artifact.Filter{}) {
		if seen++; seen == 2 {
			break // a listing must stop when its reader does
		}
	}
}

// tenants: the same id of two tenants is two records. A20
func tenants(t *testing.T, b artifact.Backend) {
	ctx := t.Context()
	names := []string{"", "a", "A", "a/b", "..", "../a", ".", "a%2Fb", strings.Repeat("long", 100), "テナント"}
	id := artifact.IDOf("t", "x")
	for turn, tenant := range names {
		m := metadata(tenant, "t", "x")
		m.Turn = turn
		if _, err := b.Put(ctx, m, []byte(tenant), nil); err != nil {
			t.Fatalf("tenant %q: %v", tenant, err)
		}
	}
	for turn, tenant := range names {
		m, data, err := b.Get(ctx, tenant, id)
		if err != nil || string(data) != tenant || m.TenantID != tenant || m.Turn != turn {
			t.Errorf("tenant %q got %q of tenant %q, turn %d, %v", tenant, data, m.TenantID, m.Turn, err)
		}
		if found := list(t, b, artifact.Filter{TenantID: tenant}); len(found) != 1 || found[0].TenantID != tenant {
			t.Errorf("tenant %q lists %v", tenant, found)
		}
	}
	if _, err := b.Delete(ctx, "a", id, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Get(ctx, "", id); err != nil {
		t.Errorf("deleting of one tenant took another's: %v", err)
	}
}

// contents: every byte comes back.
func contents(t *testing.T, b artifact.Backend) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, content := range []string{"", "\n", "a\r\nb\x00", string(all), strings.Repeat("líne 漢字\n", 100_000)} {
		m := metadata("", "t", content)
		if _, err := b.Put(t.Context(), m, []byte(content), nil); err != nil {
			t.Fatal(err)
		}
		if _, data, err := b.Get(t.Context(), "", m.ID); err != nil || string(data) != content {
			t.Errorf("%d bytes came back as %d, %v", len(content), len(data), err)
		}
	}
}

func cancelled(t *testing.T, b artifact.Backend) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := metadata("", "t", "x")
	if _, err := b.Put(ctx, m, []byte("x"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Put: %v", err)
	}
	if _, _, err := b.Get(ctx, "", m.ID); !errors.Is(err, context.Canceled) {
		t.Errorf("Get: %v", err)
	}
	if found := list(t, b, artifact.Filter{}); len(found) != 0 {
		t.Errorf("a cancelled Put kept %v", found)
	}
}

// concurrent: readers see whole records while several writers put the same.
func concurrent(t *testing.T, b artifact.Backend) {
	s := artifact.NewStore(b, nil)
	ctx := t.Context()
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for n := range 20 {
				content := strings.Repeat(fmt.Sprint("shared ", n%5, " "), 1000)
				id, err := s.Put(ctx, artifact.Metadata{ThreadID: "t", MessageIDs: []thread.ID{thread.ID(fmt.Sprint(worker))}}, content)
				if err != nil {
					t.Error(err)
					return
				}
				if _, got, err := s.Get(ctx, artifact.Requester{}, id); err != nil || got != content {
					t.Errorf("%s: %d bytes, %v", id, len(got), err)
				}
			}
		})
	}
	wg.Wait()
	if found := list(t, b, artifact.Filter{}); len(found) != 5 {
		t.Errorf("%d records of 5 contents", len(found))
	}
}

// store: the guarantees of artifact.Store over this backend. A20
func store(t *testing.T, b artifact.Backend) {
	ctx := t.Context()
	s := artifact.NewStore(b, &artifact.Options{MaxBytes: 100})
	first, err := s.Put(ctx, artifact.Metadata{ThreadID: "t", MessageIDs: []thread.ID{"m1"}, TTLSeconds: 3600, Sensitivity: artifact.Restricted}, "same")
	if err != nil || first != artifact.IDOf("t", "same") {
		t.Fatal(first, err)
	}
	second, err := s.Put(ctx, artifact.Metadata{ThreadID: "t", MessageIDs: []thread.ID{"m2", "m1"}, Sensitivity: artifact.Public}, "same")
	if err != nil || second != first {
		t.Fatal(second, err)
	}
	m, err := s.Metadata(ctx, artifact.Requester{}, first)
	if err != nil || !reflect.DeepEqual(m.MessageIDs, []thread.ID{"m1", "m2"}) || m.Sensitivity != artifact.Restricted || m.TTLSeconds != 0 || m.Bytes != 4 {
		t.Errorf("putting the same twice gave %+v, %v", m, err)
	}
	other, err := s.Put(ctx, artifact.Metadata{ThreadID: "t2"}, "same")
	if err != nil || other == first {
		t.Errorf("another thread's content has the id %s, %v", other, err)
	}
	mine := artifact.Requester{TenantID: "me"}
	for _, err := range []error{
		noMetadata(s.Metadata(ctx, mine, first)), noContent(s.Get(ctx, mine, first)),
		noContent(s.Get(ctx, artifact.Requester{}, "../../etc/passwd")), noContent(s.Get(ctx, artifact.Requester{}, "art_0000000000000000")),
	} {
		if !errors.Is(err, artifact.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	}
	if _, err := s.Put(ctx, artifact.Metadata{ThreadID: "t"}, strings.Repeat("x", 101)); !errors.Is(err, artifact.ErrTooLarge) {
		t.Errorf("101 bytes of 100: %v", err)
	}
	for _, bad := range []artifact.Metadata{{}, {ThreadID: "t", TTLSeconds: -1}, {ThreadID: "t", Sensitivity: "secret"}} {
		if _, err := s.Put(ctx, bad, "x"); err == nil {
			t.Errorf("%+v was kept", bad)
		}
	}
	damaged := metadata("", "t", "right")
	damaged.TTLSeconds, damaged.EncryptionKeyID = 0, ""
	if _, err := b.Put(ctx, damaged, []byte("wrong"), nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get(ctx, artifact.Requester{}, damaged.ID); !errors.Is(err, artifact.ErrCorrupt) {
		t.Errorf("other content under the id: %v", err)
	}
	if _, err := s.Put(ctx, artifact.Metadata{ThreadID: "t"}, "right"); err != nil {
		t.Error(err)
	}
	if _, got, err := s.Get(ctx, artifact.Requester{}, damaged.ID); err != nil || got != "right" {
		t.Errorf("after putting it anew: %q, %v", got, err)
	}
}

// expiry: enforced on read and swept. A20
func expiry(t *testing.T, b artifact.Backend) {
	ctx, now := t.Context(), began
	s := artifact.NewStore(b, &artifact.Options{Now: func() time.Time { return now }})
	short, err := s.Put(ctx, artifact.Metadata{ThreadID: "t", TTLSeconds: 10}, "short")
	if err != nil {
		t.Fatal(err)
	}
	forever, err := s.Put(ctx, artifact.Metadata{ThreadID: "t"}, "for ever")
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(9 * time.Second)
	if _, _, err := s.Get(ctx, artifact.Requester{}, short); err != nil {
		t.Errorf("before its time: %v", err)
	}
	if _, err := s.Put(ctx, artifact.Metadata{ThreadID: "t", TTLSeconds: 10}, "short"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(9 * time.Second)
	if _, _, err := s.Get(ctx, artifact.Requester{}, short); err != nil {
		t.Errorf("putting again did not lengthen its life: %v", err)
	}
	now = now.Add(10 * time.Second)
	if _, _, err := s.Get(ctx, artifact.Requester{}, short); !errors.Is(err, artifact.ErrExpired) {
		t.Errorf("after its time: %v", err)
	}
	if _, err := s.Metadata(ctx, artifact.Requester{}, short); !errors.Is(err, artifact.ErrExpired) {
		t.Errorf("metadata after its time: %v", err)
	}
	for m, err := range s.List(ctx, artifact.Requester{}, artifact.Filter{}) {
		if err != nil || m.ID != forever {
			t.Errorf("listed %s, %v", m.ID, err)
		}
	}
	if n, err := s.Sweep(ctx, artifact.Requester{}, nil); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if _, _, err := s.Get(ctx, artifact.Requester{}, short); !errors.Is(err, artifact.ErrNotFound) {
		t.Errorf("after the sweep: %v", err)
	}
	if _, _, err := s.Get(ctx, artifact.Requester{}, forever); err != nil {
		t.Error(err)
	}
}

func list(t *testing.T, b artifact.Backend, f artifact.Filter) []artifact.Metadata {
	t.Helper()
	var found []artifact.Metadata
	for m, err := range b.List(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, m)
	}
	return found
}

func noMetadata(_ artifact.Metadata, err error) error { return err }

func noContent(_ artifact.Metadata, _ string, err error) error { return err }
