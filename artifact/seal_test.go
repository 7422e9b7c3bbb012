package artifact_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/test/keyringtest"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

func newRing(t testing.TB) *keyring.Keyring {
	masters, err := keyring.ParseMasters(keyring.NewMaster())
	if err != nil {
		t.Fatal(err)
	}
	return keyring.New(masters, &keyringtest.Memory{}, nil)
}

// TestNamer: a keyed id follows from tenant, thread and content, stays over
// restarts and changes of keys, and is not the plain hash; without KeyedIDs it is. A20
func TestNamer(t *testing.T) {
	ring, b := newRing(t), new(artifact.Memory)
	s := artifact.NewStore(b, &artifact.Options{Keyring: ring, KeyedIDs: true})
	name := func(s *artifact.Store, tenant string) artifact.Namer {
		t.Helper()
		n, err := s.Namer(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	id := name(s, "a")("t", "4711")
	if !artifact.IsID(id) {
		t.Errorf("%s is no id", id)
	}
	if _, err := ring.Rotate(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	again := artifact.NewStore(b, &artifact.Options{Keyring: ring, KeyedIDs: true})
	if got := name(again, "a")("t", "4711"); got != id {
		t.Errorf("after a change of keys %s, want %s", got, id)
	}
	for _, other := range []string{
		artifact.IDOf("t", "4711"), name(s, "b")("t", "4711"), name(s, "a")("u", "4711"), name(s, "a")("t4", "711"),
		name(artifact.NewStore(b, &artifact.Options{Keyring: newRing(t), KeyedIDs: true}), "a")("t", "4711"),
	} {
		if other == id {
			t.Error("something else has the same id")
		}
	}
	if got := name(artifact.NewStore(b, nil), "a")("t", "4711"); got != artifact.IDOf("t", "4711") {
		t.Errorf("without keys %s", got)
	}
	if got := name(artifact.NewStore(b, &artifact.Options{Keyring: ring}), "a")("t", "4711"); got != artifact.IDOf("t", "4711") {
		t.Errorf("without KeyedIDs %s", got)
	}
	if _, err := artifact.NewStore(b, &artifact.Options{KeyedIDs: true}).Put(t.Context(), artifact.Metadata{ThreadID: "t"}, "x"); err == nil {
		t.Error("keyed ids without keys")
	}
	put, err := s.Put(t.Context(), artifact.Metadata{ThreadID: "t", TenantID: "a"}, "4711")
	if err != nil || put != id {
		t.Errorf("Put gave %s, %v, want %s", put, err, id)
	}
}

// TestGivenID: Put takes the id that a plan points with, and only if it is one
// of the content.
func TestGivenID(t *testing.T) {
	s := artifact.NewStore(new(artifact.Memory), &artifact.Options{Keyring: newRing(t), KeyedIDs: true})
	plain := artifact.IDOf("t", "x")
	name, err := s.Namer(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{plain, name("t", "x")} {
		got, err := s.Put(t.Context(), artifact.Metadata{ThreadID: "t", ID: id}, "x")
		if err != nil || got != id {
			t.Errorf("%s, %v, want %s", got, err, id)
		}
		if m, content, err := s.Get(t.Context(), artifact.Requester{}, id); err != nil || content != "x" || m.EncryptionKeyID != "dk-1" {
			t.Errorf("%+v %q %v", m, content, err)
		}
	}
	for _, id := range []string{artifact.IDOf("t", "y"), "../x", name("u", "x")} {
		if got, err := s.Put(t.Context(), artifact.Metadata{ThreadID: "t", ID: id}, "x"); err == nil {
			t.Errorf("x was kept as %s", got)
		}
	}
}

// TestMovedContent: sealed content of one record opens in no other, of the same
// tenant or another. A20
func TestMovedContent(t *testing.T) {
	ctx, b := t.Context(), new(artifact.Memory)
	s := artifact.NewStore(b, &artifact.Options{Keyring: newRing(t)})
	ids := map[string]string{}
	for _, tenant := range []string{"a", "b"} {
		for _, content := range []string{"one", "two"} {
			id, err := s.Put(ctx, artifact.Metadata{ThreadID: "t", TenantID: tenant}, content)
			if err != nil {
				t.Fatal(err)
			}
			ids[tenant+content] = id
		}
	}
	moved := func(fromTenant, from, toTenant, to string) {
		t.Helper()
		_, data, err := b.Get(ctx, fromTenant, from)
		if err != nil {
			t.Fatal(err)
		}
		m, good, err := b.Get(ctx, toTenant, to)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{m.EncryptionKeyID, ""} {
			m.EncryptionKeyID = key
			if _, err := b.Put(ctx, m, data, nil); err != nil {
				t.Fatal(err)
			}
			_, content, err := s.Get(ctx, artifact.Requester{TenantID: toTenant}, to)
			if !errors.Is(err, artifact.ErrSealed) && !errors.Is(err, artifact.ErrCorrupt) || content != "" {
				t.Errorf("%s of %s as %s of %s: %q, %v", from, fromTenant, to, toTenant, content, err)
			}
		}
		if _, err := b.Put(ctx, m, good, nil); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Get(ctx, artifact.Requester{TenantID: toTenant}, to); err != nil {
			t.Errorf("put back: %v", err)
		}
	}
	moved("a", ids["aone"], "b", ids["bone"])
	moved("a", ids["aone"], "a", ids["atwo"])
	m, data, err := b.Get(ctx, "a", ids["aone"])
	if err != nil {
		t.Fatal(err)
	}
	m.TenantID = "b" // the whole record, under the same id
	if _, err := b.Put(ctx, m, data, nil); err != nil {
		t.Fatal(err)
	}
	if _, content, err := s.Get(ctx, artifact.Requester{TenantID: "b"}, m.ID); !errors.Is(err, artifact.ErrSealed) || content != "" {
		t.Errorf("a whole record of another tenant: %q, %v", content, err)
	}
}

// TestHalfWritten: a crash between content and metadata, in a backend that keeps
// them apart, loses nothing, whichever of both is sealed.
func TestHalfWritten(t *testing.T) {
	ctx, ring := t.Context(), newRing(t)
	for _, sealedFirst := range []bool{false, true} {
		b := new(artifact.Memory)
		plain, sealed := artifact.NewStore(b, nil), artifact.NewStore(b, &artifact.Options{Keyring: ring})
		first, then := plain, sealed
		if sealedFirst {
			first, then = sealed, plain
		}
		m := artifact.Metadata{ThreadID: "t", ID: artifact.IDOf("t", "x")}
		id, err := first.Put(ctx, m, "x")
		if err != nil {
			t.Fatal(err)
		}
		before, _, err := b.Get(ctx, "", id)
		if err != nil {
			t.Fatal(err)
		}
		m.Sensitivity = artifact.Restricted // so that it is written again
		if _, err := then.Put(ctx, m, "x"); err != nil {
			t.Fatal(err)
		}
		_, after, err := b.Get(ctx, "", id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Put(ctx, before, after, nil); err != nil {
			t.Fatal(err)
		}
		if _, content, err := sealed.Get(ctx, artifact.Requester{}, id); err != nil || content != "x" {
			t.Errorf("sealed first: %v: %q, %v", sealedFirst, content, err)
		}
	}
}

// TestPutSealsAndHeals: putting again seals what was plain, and writes anew what
// does not open, with all that was known about it.
func TestPutSealsAndHeals(t *testing.T) {
	ctx, b := t.Context(), new(artifact.Memory)
	s := artifact.NewStore(b, &artifact.Options{Keyring: newRing(t)})
	m := artifact.Metadata{ThreadID: "t", ID: artifact.IDOf("t", "x"), MessageIDs: ids("m1")}
	if _, err := artifact.NewStore(b, nil).Put(ctx, m, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(ctx, m, "x"); err != nil {
		t.Fatal(err)
	}
	held, data, err := b.Get(ctx, "", m.ID)
	if err != nil || held.EncryptionKeyID == "" || bytes.Equal(data, []byte("x")) {
		t.Fatalf("%+v %q %v", held, data, err)
	}
	data[len(data)-1]++
	if _, err := b.Put(ctx, held, data, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get(ctx, artifact.Requester{}, m.ID); !errors.Is(err, artifact.ErrSealed) || !errors.Is(err, keyring.ErrOpen) {
		t.Errorf("damaged: %v", err)
	}
	m.MessageIDs = ids("m2")
	if _, err := s.Put(ctx, m, "x"); err != nil {
		t.Fatal(err)
	}
	if held, content, err := s.Get(ctx, artifact.Requester{}, m.ID); err != nil || content != "x" || len(held.MessageIDs) != 2 {
		t.Errorf("%+v %q %v", held, content, err)
	}
}

// stuck is a backend that fails to write from some point on.
type stuck struct {
	artifact.Backend
	left int
}

var errFull = errors.New("disk full")

func (s *stuck) Put(ctx context.Context, m artifact.Metadata, content []byte, c artifact.Condition) (bool, error) {
	if s.left == 0 {
		return false, errFull
	}
	s.left--
	return s.Backend.Put(ctx, m, content, c)
}

// TestResealGoesOn: what a fault interrupted is done by the next call, and at
// every moment everything can be read.
func TestResealGoesOn(t *testing.T) {
	ctx, ring := t.Context(), newRing(t)
	b := &stuck{new(artifact.Memory), 10}
	s := artifact.NewStore(b, &artifact.Options{Keyring: ring})
	var all []string
	for n := range 10 {
		id, err := s.Put(ctx, artifact.Metadata{ThreadID: "t"}, fmt.Sprint(n))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, id)
	}
	if _, err := ring.Rotate(ctx, ""); err != nil {
		t.Fatal(err)
	}
	total := 0
	for round, left := range []int{3, 0, 6, 5} {
		b.left = left
		n, err := s.Reseal(ctx, artifact.Requester{})
		total += n
		if done := total == 10; done != (err == nil) || !done && !errors.Is(err, errFull) || n != min(left, 10-total+n) {
			t.Errorf("round %d: %d, %v", round, n, err)
		}
		for n, id := range all {
			if _, content, err := s.Get(ctx, artifact.Requester{}, id); err != nil || content != fmt.Sprint(n) {
				t.Errorf("round %d: %q, %v", round, content, err)
			}
		}
	}
	if total != 10 {
		t.Errorf("%d sealed anew", total)
	}
	if _, err := artifact.NewStore(b, nil).Reseal(ctx, artifact.Requester{}); err == nil {
		t.Error("sealed without keys")
	}
}

// TestClearance: content above it is refused, whatever class was stored; what is
// known about it is told.
func TestClearance(t *testing.T) {
	ctx, b := t.Context(), new(artifact.Memory)
	s := artifact.NewStore(b, nil)
	classes := []artifact.Sensitivity{artifact.Public, artifact.Internal, artifact.Confidential, artifact.Restricted}
	for stored, class := range classes {
		id, err := s.Put(ctx, artifact.Metadata{ThreadID: "t", Sensitivity: class}, string(class))
		if err != nil {
			t.Fatal(err)
		}
		for may, clearance := range append(classes, "", "secret") {
			who := artifact.Requester{Clearance: clearance}
			want := clearance == "" || clearance != "secret" && may >= stored
			_, content, err := s.Get(ctx, who, id)
			if want != (err == nil) || !want && (!errors.Is(err, artifact.ErrForbidden) || content != "") {
				t.Errorf("%s with clearance %q: %q, %v", class, clearance, content, err)
			}
			if m, err := s.Metadata(ctx, who, id); err != nil || m.Sensitivity != class {
				t.Errorf("%s with clearance %q: %+v, %v", class, clearance, m, err)
			}
		}
	}
	odd := artifact.Metadata{ID: artifact.IDOf("t", "odd"), ThreadID: "t", Sensitivity: "odd"}
	if _, err := b.Put(ctx, odd, []byte("odd"), nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get(ctx, artifact.Requester{Clearance: artifact.Restricted}, odd.ID); !errors.Is(err, artifact.ErrForbidden) {
		t.Errorf("an unknown class: %v", err)
	}
}

// TestSweepLeavesTheLive: what a plan still points at stays, unreadable.
func TestSweepLeavesTheLive(t *testing.T) {
	ctx, now := t.Context(), time.Unix(1e9, 0)
	b := new(artifact.Memory)
	s := artifact.NewStore(b, &artifact.Options{Now: func() time.Time { return now }})
	var all []string
	for n := range 4 {
		id, err := s.Put(ctx, artifact.Metadata{ThreadID: "t", TTLSeconds: 10 * (1 + n%2)}, fmt.Sprint(n))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, id)
	}
	now = now.Add(10 * time.Second) // all[0] and all[2] are over
	live := func(m artifact.Metadata) bool { return m.ID == all[2] }
	if n, err := s.Sweep(ctx, artifact.Requester{}, live); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	for n, want := range []error{artifact.ErrNotFound, nil, artifact.ErrExpired, nil} {
		if _, _, err := s.Get(ctx, artifact.Requester{}, all[n]); !errors.Is(err, want) {
			t.Errorf("%d: %v, want %v", n, err, want)
		}
	}
	if n, err := s.Sweep(ctx, artifact.Requester{}, nil); n != 1 || err != nil {
		t.Errorf("swept %d when told to, %v", n, err)
	}
}

// TestIDsStay: plans hold ids, so the way they are made may not change.
func TestIDsStay(t *testing.T) {
	if got := artifact.IDOf("thread", "content"); got != "art_2732dead24e1c9e2" {
		t.Errorf("plain %s", got)
	}
	masters, err := keyring.ParseMasters(strings.Repeat("07", 32))
	if err != nil {
		t.Fatal(err)
	}
	wrapped, err := base64.StdEncoding.DecodeString("h6msN8ar3bS7bTaJtD/Xw7ixfVbFYHcWrU1wQQiGftYD8xjlpVuZOqdu+kGfafXn3+R91Vw024FBc8g+")
	if err != nil {
		t.Fatal(err)
	}
	keys := &keyringtest.Memory{}
	if err := keys.Put(t.Context(), keyring.Wrapped{Tenant: "acme", Version: 1, Revision: 1, Master: "mk-bfde789bdca249b1", Sealed: wrapped}); err != nil {
		t.Fatal(err)
	}
	name, err := artifact.NewStore(new(artifact.Memory), &artifact.Options{Keyring: keyring.New(masters, keys, nil), KeyedIDs: true}).Namer(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	if got := name("thread", "content"); got != "art_8888d8d33af45d72" {
		t.Errorf("keyed %s", got)
	}
}

// TestForeignIDs: content that was restored under the id of another store proves
// itself by its digest, but never to a store with keys: who can write to the
// backend could put content of his own in the place of what was sealed.
func TestForeignIDs(t *testing.T) {
	ctx, backend, who := t.Context(), new(artifact.Memory), artifact.Requester{TenantID: "a"}
	plain := artifact.NewStore(backend, nil)
	const id = "art_0123456789abcdef"
	m := artifact.Metadata{ID: id, TenantID: "a", ThreadID: "t"}
	for range 2 {
		if err := plain.Restore(ctx, m, "content"); err != nil {
			t.Fatal(err)
		}
	}
	if err := plain.Restore(ctx, m, "other"); !errors.Is(err, artifact.ErrConflict) {
		t.Errorf("another content: %v", err)
	}
	for _, bad := range []string{"", "art_x", "../art_0123456789abcdef"} {
		if err := plain.Restore(ctx, artifact.Metadata{ID: bad, TenantID: "a", ThreadID: "t"}, "x"); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if _, content, err := plain.Get(ctx, who, id); err != nil || content != "content" {
		t.Errorf("%q, %v", content, err)
	}
	held, _, err := backend.Get(ctx, "a", id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backend.Put(ctx, held, []byte("forged"), nil); err != nil {
		t.Fatal(err)
	}
	if _, content, err := plain.Get(ctx, who, id); !errors.Is(err, artifact.ErrCorrupt) {
		t.Errorf("with another content: %q, %v", content, err)
	}
	if _, err := backend.Put(ctx, held, []byte("content"), nil); err != nil {
		t.Fatal(err)
	}
	sealed := artifact.NewStore(backend, &artifact.Options{Keyring: newRing(t), KeyedIDs: true})
	if _, content, err := sealed.Get(ctx, who, id); !errors.Is(err, artifact.ErrCorrupt) {
		t.Errorf("in the clear, to a store with keys: %q, %v", content, err)
	}
	if err := sealed.Restore(ctx, m, "content"); err != nil {
		t.Fatal(err)
	}
	if m, content, err := sealed.Get(ctx, who, id); err != nil || content != "content" || m.Digest != "" || m.EncryptionKeyID == "" {
		t.Errorf("%+v, %q, %v", m, content, err)
	}
}

// meanwhile is a backend in which another process is faster: it is called just
// before each deletion.
type meanwhile struct {
	*artifact.Memory
	other func()
}

func (b meanwhile) Delete(ctx context.Context, tenant, id string, c artifact.Condition) (bool, error) {
	b.other()
	return b.Memory.Delete(ctx, tenant, id, c)
}

// TestSweepAndPut: what another process puts again just before it is swept stays.
func TestSweepAndPut(t *testing.T) {
	ctx, backend := t.Context(), new(artifact.Memory)
	m := artifact.Metadata{ThreadID: "t", TTLSeconds: 1, CreatedAt: time.Unix(0, 0)}
	id, err := artifact.NewStore(backend, nil).Put(ctx, m, "content")
	if err != nil {
		t.Fatal(err)
	}
	s := artifact.NewStore(meanwhile{backend, func() {
		if _, err := artifact.NewStore(backend, nil).Put(ctx, artifact.Metadata{ThreadID: "t"}, "content"); err != nil {
			t.Error(err)
		}
	}}, nil)
	if n, err := s.Sweep(ctx, artifact.Requester{}, nil); n != 0 || err != nil {
		t.Errorf("%d swept, %v", n, err)
	}
	if _, content, err := s.Get(ctx, artifact.Requester{}, id); err != nil || content != "content" {
		t.Errorf("%q, %v", content, err)
	}
}
