package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Open opens a store that was made before, as another process does; what it
// opened is closed with Cleanup. A nil sealer is for none.
type Open func(testing.TB, store.Sealer) store.DB

// TestDurable runs the suite of stores that outlive a process and are used by
// several at once. create makes an empty store.
func TestDurable(t *testing.T, create func(testing.TB) Open) {
	t.Run("opened again", func(t *testing.T) { openedAgain(t, create(t), nil) })
	t.Run("encrypted and opened again", func(t *testing.T) { openedAgain(t, create(t), Sealer{}) })
	t.Run("without the key", func(t *testing.T) { withoutKey(t, create(t)) })
	t.Run("sealed anew", func(t *testing.T) { sealedAnew(t, create(t)) })
	t.Run("records that do not open", func(t *testing.T) { unreadable(t, create(t)) })
	t.Run("an erased tenant", func(t *testing.T) { erased(t, create(t)) })
	t.Run("two processes see each other", func(t *testing.T) { twoProcesses(t, create(t)) })
	t.Run("two processes write at once", func(t *testing.T) { writeAtOnce(t, create(t)) })
	t.Run("processes that start together", func(t *testing.T) { startTogether(t, create(t)) })
}

// Sealer is a store.Sealer for tests: it hides texts, binds them to tenant and
// place, and keeps no secret.
type Sealer struct{}

var _ store.Sealer = Sealer{}

func (Sealer) bind(tenant string, aad []byte) []byte {
	return fmt.Appendf(nil, "%d:%s:%d:%s:", len(tenant), tenant, len(aad), aad)
}

// Seal implements store.Sealer.
func (s Sealer) Seal(_ context.Context, tenant string, aad, plain []byte) ([]byte, string, error) {
	return invert(append(s.bind(tenant, aad), plain...)), "test", nil
}

// Open implements store.Sealer.
func (s Sealer) Open(_ context.Context, tenant string, aad, sealed []byte) ([]byte, error) {
	plain, ok := bytes.CutPrefix(invert(sealed), s.bind(tenant, aad))
	if !ok {
		return nil, errors.New("sealed for another place")
	}
	return plain, nil
}

func invert(data []byte) []byte {
	out := make([]byte, len(data))
	for i, b := range data {
		out[i] = ^b
	}
	return out
}

func openedAgain(t *testing.T, open Open, sealer store.Sealer) {
	ctx := t.Context()
	const text = "canary-text-of-a-message"
	Fill(t, open(t, sealer), "acme", text)
	content := string(bytes.Repeat([]byte("large "), 50_000))
	id, err := artifact.NewStore(open(t, sealer).Artifacts(), nil).Put(ctx, artifact.Metadata{TenantID: "acme", ThreadID: "t"}, content)
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, sealer)
	s := db.Tenant("acme")
	want, err := thread.New("t").Append(append(everything(), say(thread.User, text))...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Log.Load(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	Same(t, got, want) // A1
	p, version, err := s.Plans.Current(ctx, "t")
	if err != nil || version != 1 || len(p.Summarizations) != 1 || p.Summarizations[0].Summary.CurrentTask != text {
		t.Errorf("plan %d %+v, %v", version, p, err)
	}
	if err := p.Validate(got); err != nil {
		t.Error(err)
	}
	marks, err := s.Plans.Compacted(ctx, "t")
	if want := map[thread.ID]int{want.At(1).ID: 1, want.At(2).ID: 1}; err != nil || !maps.Equal(marks, want) {
		t.Errorf("marks %v, %v, want %v", marks, err, want) // B11
	}
	events, err := s.Events.Events(ctx, "t", 0, 0)
	if err != nil || len(events) != 1 || events[0].TokensBefore != 7 || events[0].Details["round"] != 1.0 {
		t.Errorf("events %+v, %v", events, err) // B8
	}
	d, err := s.Documents.Document(ctx, "memory", "t")
	if err != nil || string(d.Body) != `"`+text+`"` || d.Version != 1 {
		t.Errorf("document %+v, %v", d, err)
	}
	if v, ok := s.Answers.Get(ctx, "key"); !ok || string(v) != text {
		t.Errorf("answer %q, %v", v, ok) // A15
	}
	if _, again, err := artifact.NewStore(db.Artifacts(), nil).Get(ctx, artifact.Requester{TenantID: "acme"}, id); err != nil || again != content {
		t.Errorf("artifact of %d bytes, %v", len(again), err) // A20
	}
}

// withoutKey: what was encrypted is an error that says so, and what was not
// stays readable when a key is set later.
func withoutKey(t *testing.T, open Open) {
	ctx := t.Context()
	Fill(t, open(t, nil), "plain", "in the clear")
	keyed := open(t, Sealer{})
	if th, err := keyed.Tenant("plain").Log.Load(ctx, "t"); err != nil || th.Len() == 0 {
		t.Errorf("what was there before the key: %v", err)
	}
	Fill(t, keyed, "acme", "secret")
	s := open(t, nil).Tenant("acme")
	_, loadErr := s.Log.Load(ctx, "t")
	_, _, planErr := s.Plans.Current(ctx, "t")
	_, eventErr := s.Events.Events(ctx, "t", 0, 0)
	_, documentErr := s.Documents.Document(ctx, "memory", "t")
	_, listErr := s.Documents.Documents(ctx, "memory", "", 0)
	for _, err := range []error{loadErr, planErr, eventErr, documentErr, listErr} {
		if !errors.Is(err, store.ErrSealed) {
			t.Errorf("without the key: %v", err)
		}
	}
	if v, ok := s.Answers.Get(ctx, "key"); ok {
		t.Errorf("answer %q", v)
	}
	if info, err := s.Catalog.Thread(ctx, "t"); err != nil || info.Messages == 0 || info.Events != 1 {
		t.Errorf("counts stay clear: %+v, %v", info, err)
	}
}

func twoProcesses(t *testing.T, open Open) {
	ctx := t.Context()
	a, b := open(t, nil).Tenant("acme"), open(t, nil).Tenant("acme")
	load := func(s store.Tenant, want ...string) *thread.Thread {
		t.Helper()
		th, err := s.Log.Load(ctx, "t")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range th.All() {
			got = append(got, m.Text())
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		return th
	}
	add := func(s store.Tenant, version int, text string) error {
		_, err := s.Log.Append(ctx, "t", version, []thread.Message{say(thread.User, text)})
		return err
	}
	// Each goes on from what it knows, and sees what the other wrote.
	for n, s := range []store.Tenant{a, b, a, b} {
		if err := add(s, n, fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}
	load(a, "0", "1", "2", "3")
	th := load(b, "0", "1", "2", "3")
	var conflict *store.ConflictError
	if err := add(a, 4, "4"); err != nil {
		t.Fatal(err)
	}
	if err := add(b, 4, "other"); !errors.As(err, &conflict) || conflict.Want != 4 || conflict.Have != 5 {
		t.Errorf("%v", err)
	}
	load(b, "0", "1", "2", "3", "4")
	commit := func(s store.Tenant, version int) error {
		p := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: "t", ThreadVersion: 4, CompactedTokens: version + 1, Drops: []plan.Removal{{Span: th.Range(0, 1)}}}
		_, err := s.Plans.Commit(ctx, "t", version, store.Commit{Plan: p})
		return err
	}
	for n, s := range []store.Tenant{a, b, a} {
		if err := commit(s, n); err != nil {
			t.Fatal(err)
		}
		for _, s := range []store.Tenant{a, b} {
			if p, version, err := s.Plans.Current(ctx, "t"); err != nil || version != n+1 || p.CompactedTokens != n+1 {
				t.Fatalf("plan %d %+v, %v", version, p, err)
			}
		}
	}
	if err := commit(b, 1); !errors.As(err, &conflict) || conflict.Want != 1 || conflict.Have != 3 {
		t.Errorf("%v", err)
	}
	// What one deletes and begins anew is not mixed with what the other knows.
	if err := a.Catalog.Delete(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	load(b)
	for n := range 5 {
		if err := add(a, n, fmt.Sprint("new ", n)); err != nil {
			t.Fatal(err)
		}
	}
	load(b, "new 0", "new 1", "new 2", "new 3", "new 4")
	if p, version, err := b.Plans.Current(ctx, "t"); p != nil || version != 0 || err != nil {
		t.Errorf("plan %d %+v, %v", version, p, err)
	}
}

// writeAtOnce: two processes with several writers each, that try again when they
// were slower. Nothing is lost, nothing is there twice, and each writer's
// messages keep their order.
func writeAtOnce(t *testing.T, open Open) {
	const writers, each = 4, 10
	ctx := t.Context()
	var wg sync.WaitGroup
	for process := range 2 {
		s := open(t, nil).Tenant("acme")
		for w := range writers {
			wg.Go(func() {
				for n := 0; n < each; {
					th, err := s.Log.Load(ctx, "t")
					if err != nil {
						t.Error(err)
						return
					}
					m := say(thread.User, fmt.Sprint(process, " ", w, " ", n))
					next, err := s.Log.Append(ctx, "t", th.Len(), []thread.Message{m})
					switch {
					case errors.Is(err, store.ErrConflict):
						continue
					case err != nil:
						t.Error(err)
						return
					case next.At(th.Len()).Text() != m.Text():
						t.Errorf("%q stands where %q was written", next.At(th.Len()).Text(), m.Text())
					}
					n++
				}
			})
		}
	}
	wg.Wait()
	th, err := open(t, nil).Tenant("acme").Log.Load(ctx, "t")
	if err != nil || th.Len() != 2*writers*each {
		t.Fatalf("%d messages, %v", th.Len(), err)
	}
	last := map[[2]int]int{}
	for _, m := range th.All() {
		var process, w, n int
		if _, err := fmt.Sscan(m.Text(), &process, &w, &n); err != nil {
			t.Fatal(err)
		}
		if next := last[[2]int{process, w}]; n != next {
			t.Errorf("writer %d of process %d: message %d where %d was due", w, process, n, next)
		}
		last[[2]int{process, w}] = n + 1
	}
}

// startTogether: each finds the tables whole, whoever makes them.
func startTogether(t *testing.T, open Open) {
	var wg sync.WaitGroup
	for n := range 6 {
		wg.Go(func() {
			s := open(t, nil).Tenant("acme")
			if _, err := s.Log.Append(t.Context(), fmt.Sprint(n), 0, []thread.Message{say(thread.User, "one")}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if page, err := open(t, nil).Tenant("acme").Catalog.Threads(t.Context(), "", 0); err != nil || len(page) != 6 {
		t.Errorf("%d threads, %v", len(page), err)
	}
}
