// Package artifacttest tests implementations of artifact.Backend, and an artifact.Store
// over them.
package artifacttest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestBackend runs the suite. open returns a new, empty backend, and closes it with
// Cleanup.
func TestBackend(t *testing.T, open func(testing.TB) artifact.Backend) {
	for name, proves := range map[string]func(tested){
		"records": records, "listing": listing, "tenants": tenants, "content": contents, "cancelled": cancelled,
		"concurrent": concurrent, "conditions": conditions, "processes": processes, "store": store, "expiry": expiry, "sealed": sealed,
	} {
		t.Run(name, func(t *testing.T) { proves(tested{t, open(t)}) })
	}
}

// tested is a backend under test.
type tested struct {
	testing.TB
	artifact.Backend
}

func (b tested) need(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// is wants each error to be one.
func (b tested) is(want error, errs ...error) {
	b.Helper()
	for n, err := range errs {
		if !errors.Is(err, want) {
			b.Errorf("%d: %v, want %v", n, err, want)
		}
	}
}

func (b tested) put(m artifact.Metadata, content string) {
	b.Helper()
	_, err := b.Put(b.Context(), m, []byte(content), nil)
	b.need(err)
}

// holds wants a record to be there, or, with no content, not to be.
func (b tested) holds(tenant, id string, content string) artifact.Metadata {
	b.Helper()
	m, data, err := b.Get(b.Context(), tenant, id)
	if err != nil || string(data) != content {
		b.Errorf("tenant %q, %s: %d bytes, %v, want %d", tenant, id, len(data), err, len(content))
	}
	return m
}

// missing is the error of a record.
func (b tested) missing(tenant, id string) error {
	_, _, err := b.Get(b.Context(), tenant, id)
	return err
}

func (b tested) list(f artifact.Filter) (found []artifact.Metadata) {
	b.Helper()
	for m, err := range b.List(b.Context(), f) {
		b.need(err)
		found = append(found, m)
	}
	return found
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
func records(b tested) {
	m := metadata("", "t", "one")
	b.is(artifact.ErrNotFound, b.missing("", m.ID))
	for _, content := range []string{"one", "two"} {
		m.Turn++
		b.put(m, content)
		if got := b.holds("", m.ID, content); !reflect.DeepEqual(got, m) {
			b.Fatalf("got %+v, want %+v", got, m)
		}
	}
	for range 2 {
		_, err := b.Delete(b.Context(), "", m.ID, nil)
		b.need(err)
	}
	b.is(artifact.ErrNotFound, b.missing("", m.ID))
}

// listing: ordered by id, by thread and by prefix, metadata whole.
func listing(b tested) {
	var want []artifact.Metadata
	for n := range 30 {
		content := fmt.Sprint("content ", n)
		want = append(want, metadata("", fmt.Sprint("thread ", n%3), content))
		b.put(want[n], content)
	}
	slices.SortFunc(want, func(a, b artifact.Metadata) int { return strings.Compare(a.ID, b.ID) })
	prefixes := []string{"art_zz", "../", "x", "art_0/..", want[0].ID + "0"}
	for _, m := range want {
		for _, n := range []int{0, 3, 4, 5, 6, 9, len(m.ID)} {
			prefixes = append(prefixes, m.ID[:n])
		}
	}
	for _, prefix := range prefixes {
		for _, threadID := range []string{"", "thread 1", "thread"} {
			matching := slices.DeleteFunc(slices.Clone(want), func(m artifact.Metadata) bool {
				return !strings.HasPrefix(m.ID, prefix) || threadID != "" && m.ThreadID != threadID
			})
			if found := b.list(artifact.Filter{Prefix: prefix, ThreadID: threadID}); len(found)+len(matching) > 0 && !reflect.DeepEqual(found, matching) {
				b.Errorf("prefix %q, thread %q: got %+v, want %+v", prefix, threadID, found, matching)
			}
		}
	}
	seen := 0
	for range b.List(b.Context(), artifact.Filter{}) {
		if seen++; seen == 2 {
			break // a listing must stop when its reader does
		}
	}
}

// tenants: the same id of two tenants is two records. A20
func tenants(b tested) {
	names := []string{"", "a", "A", "a/b", "..", "../a", ".", "a%2Fb", strings.Repeat("long", 100), "テナント"}
	id := artifact.IDOf("t", "x")
	for _, tenant := range names {
		b.put(metadata(tenant, "t", "x"), tenant)
	}
	for _, tenant := range names {
		if m := b.holds(tenant, id, tenant); m.TenantID != tenant {
			b.Errorf("tenant %q got that of %q", tenant, m.TenantID)
		}
		if found := b.list(artifact.Filter{TenantID: tenant}); len(found) != 1 || found[0].TenantID != tenant {
			b.Errorf("tenant %q lists %v", tenant, found)
		}
	}
	_, err := b.Delete(b.Context(), "a", id, nil)
	b.need(err)
	b.holds("", id, "") // that of another is still there
}

// contents: every byte comes back.
func contents(b tested) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, content := range []string{"", "\n", "a\r\nb\x00", string(all), strings.Repeat("líne 漢字\n", 100_000)} {
		m := metadata("", "t", content)
		b.put(m, content)
		b.holds("", m.ID, content)
	}
}

func cancelled(b tested) {
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	m := metadata("", "t", "x")
	_, put := b.Put(ctx, m, []byte("x"), nil)
	_, _, get := b.Get(ctx, "", m.ID)
	b.is(context.Canceled, put, get)
	if found := b.list(artifact.Filter{}); len(found) != 0 {
		b.Errorf("a cancelled Put kept %v", found)
	}
}

// concurrent: readers see whole records while several writers put the same.
func concurrent(b tested) {
	s := artifact.NewStore(b.Backend, nil)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for n := range 20 {
				content := strings.Repeat(fmt.Sprint("shared ", n%5, " "), 1000)
				id, err := s.Put(b.Context(), artifact.Metadata{ThreadID: "t", MessageIDs: []thread.ID{thread.ID(fmt.Sprint(worker))}}, content)
				if err != nil {
					b.Error(err)
					return
				}
				if _, got, err := s.Get(b.Context(), artifact.Requester{}, id); err != nil || got != content {
					b.Errorf("%s: %d bytes, %v", id, len(got), err)
				}
			}
		})
	}
	wg.Wait()
	if found := b.list(artifact.Filter{}); len(found) != 5 {
		b.Errorf("%d records of 5 contents", len(found))
	}
}
