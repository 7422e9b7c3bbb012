package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Open opens a store that was made before, as another process does; what it
// opened is closed with Cleanup. Without a keyring nothing is encrypted.
type Open func(testing.TB, *keyring.Keyring) store.DB

// of opens a store for one of its tenants.
func (open Open) of(t *testing.T, ring *keyring.Keyring, name string) tenant {
	return tenant{open(t, ring).Tenant(name), test{t}}
}

// TestDurable runs the suite of stores that outlive a process and are used by
// several at once. create makes an empty store.
func TestDurable(t *testing.T, create func(testing.TB) Open) {
	for name, proves := range map[string]func(*testing.T, Open){
		"opened again":                  func(t *testing.T, open Open) { openedAgain(t, open, nil) },
		"encrypted and opened again":    func(t *testing.T, open Open) { openedAgain(t, open, NewRing(t)) },
		"without the key":               withoutKey,
		"sealed anew":                   sealedAnew,
		"records that do not open":      unreadable,
		"an erased tenant":              erased,
		"two processes see each other":  twoProcesses,
		"two processes write at once":   writeAtOnce,
		"processes that start together": startTogether,
	} {
		group(t, name, func(t *testing.T) { proves(t, create(t)) })
	}
}

func openedAgain(t *testing.T, open Open, ring *keyring.Keyring) {
	ctx := t.Context()
	const text = "canary-text-of-a-message"
	Fill(t, open(t, ring), "acme", text)
	content := string(bytes.Repeat([]byte("large "), 50_000))
	id, err := artifact.NewStore(open(t, ring).Artifacts(), nil).Put(ctx, artifact.Metadata{TenantID: "acme", ThreadID: "t"}, content)
	if err != nil {
		t.Fatal(err)
	}
	s := open.of(t, ring, "acme")
	want, err := thread.New("t").Append(append(everything(), say(thread.User, text))...)
	s.need(err)
	got := s.holds("t", texts(want)...)
	Same(t, got, want) // A1
	p := s.current("t", 1)
	if len(p.Summarizations) != 1 || p.Summarizations[0].Summary.CurrentTask != text {
		t.Errorf("plan %+v", p)
	}
	s.need(p.Validate(got))
	if marks, want := s.marks("t"), map[thread.ID]int{want.At(1).ID: 1, want.At(2).ID: 1}; !maps.Equal(marks, want) {
		t.Errorf("marks %v, want %v", marks, want) // B11
	}
	if e := s.events("t", 1)[0]; e.TokensBefore != 7 || e.Details["round"] != 1.0 {
		t.Errorf("event %+v", e) // B8
	}
	if d := s.document("memory", "t", `"`+text+`"`); d.Version != 1 {
		t.Errorf("document %+v", d)
	}
	if v, ok := s.Answers.Get(ctx, "key"); !ok || string(v) != text {
		t.Errorf("answer %q, %v", v, ok) // A15
	}
	contents := artifact.NewStore(open(t, ring).Artifacts(), nil)
	if _, again, err := contents.Get(ctx, artifact.Requester{TenantID: "acme"}, id); err != nil || again != content {
		t.Errorf("artifact of %d bytes, %v", len(again), err) // A20
	}
}

// withoutKey: what was encrypted is an error that says so, and what was not
// stays readable when a key is set later.
func withoutKey(t *testing.T, open Open) {
	ctx, ring := t.Context(), NewRing(t)
	Fill(t, open(t, nil), "plain", "in the clear")
	if th, err := open.of(t, ring, "plain").Log.Load(ctx, "t"); err != nil || th.Len() == 0 {
		t.Errorf("what was there before the key: %v", err)
	}
	Fill(t, open(t, ring), "acme", "secret")
	s := open.of(t, nil, "acme")
	_, loadErr := s.Log.Load(ctx, "t")
	_, _, planErr := s.Plans.Current(ctx, "t")
	_, eventErr := s.Events.Events(ctx, "t", 0, 0)
	_, documentErr := s.Documents.Document(ctx, "memory", "t")
	_, listErr := s.Documents.Documents(ctx, "memory", "", 0)
	s.is(store.ErrSealed, loadErr, planErr, eventErr, documentErr, listErr)
	if v, ok := s.Answers.Get(ctx, "key"); ok {
		t.Errorf("answer %q", v)
	}
	if info, err := s.Catalog.Thread(ctx, "t"); err != nil || info.Messages == 0 || info.Events != 1 {
		t.Errorf("counts stay clear: %+v, %v", info, err)
	}
}

func twoProcesses(t *testing.T, open Open) {
	a, b := open.of(t, nil, "acme"), open.of(t, nil, "acme")
	// Each goes on from what it knows, and sees what the other wrote.
	for n, s := range []tenant{a, b, a, b} {
		s.append("t", n, fmt.Sprint(n))
	}
	a.holds("t", "0", "1", "2", "3")
	th := b.holds("t", "0", "1", "2", "3")
	a.append("t", 4, "4")
	b.conflict(b.add("t", 4, "other"), "t", 4, 5)
	b.holds("t", "0", "1", "2", "3", "4")
	next := func(version int) store.Commit {
		p := covering(th, 0)
		p.CompactedTokens = version
		return store.Commit{Plan: p}
	}
	for n, s := range []tenant{a, b, a} {
		s.commit("t", n, next(n+1))
		for _, s := range []tenant{a, b} {
			if p := s.current("t", n+1); p.CompactedTokens != n+1 {
				t.Errorf("plan %+v", p)
			}
		}
	}
	_, err := b.Plans.Commit(t.Context(), "t", 1, next(2))
	b.conflict(err, "t", 1, 3)
	// What one deletes and begins anew is not mixed with what the other knows.
	a.need(a.Catalog.Delete(t.Context(), "t"))
	b.holds("t")
	want := []string{"new 0", "new 1", "new 2", "new 3", "new 4"}
	a.append("t", 0, want...)
	b.holds("t", want...)
	b.current("t", 0)
}

// writeAtOnce: two processes with several writers each, that try again when they
// were slower. Nothing is lost, nothing is there twice, and each writer's
// messages keep their order.
func writeAtOnce(t *testing.T, open Open) {
	const writers, each = 8, 10 // half of them in each process
	var wg sync.WaitGroup
	processes := []tenant{open.of(t, nil, "acme"), open.of(t, nil, "acme")}
	for w := range writers {
		s := processes[w%2]
		wg.Go(func() {
			for n := 0; n < each; {
				th, err := s.Log.Load(t.Context(), "t")
				if err == nil {
					err = s.add("t", th.Len(), fmt.Sprint(w, " ", n))
				}
				if err == nil {
					n++
				} else if !errors.Is(err, store.ErrConflict) {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	th, err := open.of(t, nil, "acme").Log.Load(t.Context(), "t")
	if err != nil || th.Len() != writers*each {
		t.Fatalf("%v, %v", th, err)
	}
	var next [writers]int
	for _, text := range texts(th) {
		var w, n int
		if _, err := fmt.Sscan(text, &w, &n); err != nil || n != next[w] {
			t.Errorf("writer %d: message %d where %d was due, %v", w, n, next[w], err)
		}
		next[w]++
	}
}

// startTogether: each finds the tables whole, whoever makes them.
func startTogether(t *testing.T, open Open) {
	var wg sync.WaitGroup
	ids := []string{"0", "1", "2", "3", "4", "5"}
	for _, id := range ids {
		wg.Go(func() {
			if err := open.of(t, nil, "acme").add(id, 0, "one"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	page, err := open.of(t, nil, "acme").Catalog.Threads(t.Context(), "", 0)
	if !slices.EqualFunc(page, ids, func(info store.Info, id string) bool { return info.ID == id }) {
		t.Errorf("%+v, %v", page, err)
	}
}
