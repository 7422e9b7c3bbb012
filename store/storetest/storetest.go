// Package storetest proves that a store keeps what package store promises. Run
// it from the tests of an implementation.
package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func say(role thread.Role, text string) thread.Message {
	return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: text}}}
}

// TestLog runs the suite of store.Log; open gives an empty store each time.
func TestLog(t *testing.T, open func(testing.TB) store.Log) {
	ctx := t.Context()
	t.Run("an unknown thread is empty", func(t *testing.T) {
		th, err := open(t).Load(ctx, "nobody")
		if err != nil || th.Len() != 0 || th.ID() != "nobody" {
			t.Fatalf("%v, %v", th, err)
		}
	})
	t.Run("append and load", func(t *testing.T) {
		s := open(t)
		if _, err := s.Append(ctx, "t", 0, []thread.Message{say(thread.User, "one"), say(thread.Assistant, "two")}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(ctx, "t", 2, []thread.Message{say(thread.User, "three")}); err != nil {
			t.Fatal(err)
		}
		want, err := thread.New("t").Append(say(thread.User, "one"), say(thread.Assistant, "two"), say(thread.User, "three"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Load(ctx, "t")
		if err != nil {
			t.Fatal(err)
		}
		if got.Len() != want.Len() || got.Last() != want.Last() || got.Turns() != want.Turns() {
			t.Errorf("%d messages up to %s, want %d up to %s", got.Len(), got.Last(), want.Len(), want.Last())
		}
		if other, _ := s.Load(ctx, "other"); other.Len() != 0 {
			t.Error("threads are not kept apart")
		}
	})
	t.Run("the same append twice is once", func(t *testing.T) {
		s := open(t)
		two := []thread.Message{say(thread.User, "one"), say(thread.Assistant, "two")}
		for range 2 {
			th, err := s.Append(ctx, "t", 0, two)
			if err != nil || th.Len() != 2 {
				t.Fatalf("%v, %v", th, err)
			}
		}
		// A repeat that brings more adds only what is new.
		th, err := s.Append(ctx, "t", 0, append(two, say(thread.User, "three")))
		if err != nil || th.Len() != 3 {
			t.Fatalf("%v, %v", th, err)
		}
	})
	t.Run("a conflict names both versions and writes nothing", func(t *testing.T) {
		s := open(t)
		if _, err := s.Append(ctx, "t", 0, []thread.Message{say(thread.User, "one")}); err != nil {
			t.Fatal(err)
		}
		for _, version := range []int{0, 5} {
			_, err := s.Append(ctx, "t", version, []thread.Message{say(thread.User, "another")})
			var conflict *store.ConflictError
			if !errors.As(err, &conflict) || conflict.Want != version || conflict.Have != 1 || !errors.Is(err, store.ErrConflict) {
				t.Errorf("version %d: %v", version, err)
			}
		}
		if th, _ := s.Load(ctx, "t"); th.Len() != 1 {
			t.Errorf("%d messages after the conflicts", th.Len())
		}
	})
	t.Run("of many writers at one place one wins", func(t *testing.T) {
		s := open(t)
		won := race(8, func(n int) error {
			_, err := s.Append(ctx, "t", 0, []thread.Message{say(thread.User, fmt.Sprint("writer ", n))})
			return err
		})
		if th, _ := s.Load(ctx, "t"); won != 1 || th.Len() != 1 {
			t.Errorf("%d writers won, %d messages", won, th.Len())
		}
	})
}

// TestPlans runs the suite of store.Plans; open gives an empty store each time.
func TestPlans(t *testing.T, open func(testing.TB) store.Plans) {
	ctx := t.Context()
	made := func(tokens int) *plan.Plan {
		return &plan.Plan{Schema: plan.SchemaVersion, ThreadID: "t", CompactedTokens: tokens,
			Drops: []plan.Removal{{Span: thread.Span{MessageIDs: []thread.ID{"a"}}}}}
	}
	t.Run("none", func(t *testing.T) {
		s := open(t)
		if p, version, err := s.Current(ctx, "t"); p != nil || version != 0 || err != nil {
			t.Errorf("%v, %d, %v", p, version, err)
		}
		if _, err := s.Plan(ctx, "t", 1); !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
	})
	t.Run("every plan is kept, the newest is current", func(t *testing.T) { // A14
		s := open(t)
		for n := range 3 {
			if version, err := s.Commit(ctx, "t", n, made(n+1)); err != nil || version != n+1 {
				t.Fatalf("%d, %v", version, err)
			}
		}
		for n := range 3 {
			if p, err := s.Plan(ctx, "t", n+1); err != nil || p.CompactedTokens != n+1 || len(p.Drops) != 1 {
				t.Errorf("version %d: %+v, %v", n+1, p, err)
			}
		}
		if p, version, err := s.Current(ctx, "t"); err != nil || version != 3 || p.CompactedTokens != 3 {
			t.Errorf("%+v, %d, %v", p, version, err)
		}
		if p, _, _ := s.Current(ctx, "other"); p != nil {
			t.Error("threads are not kept apart")
		}
	})
	t.Run("of many commits on one version one wins", func(t *testing.T) { // A14
		s := open(t)
		won := race(8, func(n int) error {
			_, err := s.Commit(ctx, "t", 0, made(n))
			return err
		})
		if _, version, _ := s.Current(ctx, "t"); won != 1 || version != 1 {
			t.Errorf("%d commits won, version %d", won, version)
		}
		var conflict *store.ConflictError
		if _, err := s.Commit(ctx, "t", 0, made(9)); !errors.As(err, &conflict) || conflict.Want != 0 || conflict.Have != 1 {
			t.Errorf("%v", err)
		}
	})
}

// race runs n writers at once and counts those that did not meet a conflict.
func race(n int, write func(int) error) int {
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range n {
		wg.Go(func() {
			if err := write(i); err == nil {
				mu.Lock()
				won++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return won
}
