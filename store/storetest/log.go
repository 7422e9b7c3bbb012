package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

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
	t.Run("messages that the caller changes are not changed here", func(t *testing.T) { // A1
		s := open(t)
		mine := []thread.Message{say(thread.User, "one"), {Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
			Tool: "x", Content: []thread.Part{thread.Text{Text: "two"}}, KeyFields: thread.Fields{"k": []any{"v"}},
		}}}}
		want, err := thread.New("t").Append(mine...)
		if err != nil {
			t.Fatal(err)
		}
		rewrite := func(messages []thread.Message) {
			r, _ := messages[1].Result()
			r.Content[0], r.KeyFields["k"] = thread.Text{Text: "z"}, "z"
			messages[0].Parts[0] = thread.Text{Text: "z"}
		}
		got, err := s.Append(ctx, "t", 0, mine)
		for range 3 {
			if err != nil {
				t.Fatal(err)
			}
			rewrite(mine)
			rewrite(got.Messages())
			Same(t, got, want)
			got, err = s.Load(ctx, "t")
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
	t.Run("names that cannot be kept", func(t *testing.T) {
		s := open(t)
		for _, name := range badNames {
			if _, err := s.Append(ctx, name, 0, []thread.Message{say(thread.User, "one")}); !errors.Is(err, store.ErrName) {
				t.Errorf("%.20q: %v", name, err)
			}
			if _, err := s.Load(ctx, name); !errors.Is(err, store.ErrName) {
				t.Errorf("%.20q: %v", name, err)
			}
			if name == "" {
				continue // a message without an id is given one
			}
			m := say(thread.User, "one")
			m.ID = thread.ID(name)
			if _, err := s.Append(ctx, "t", 0, []thread.Message{m}); !errors.Is(err, store.ErrName) {
				t.Errorf("message %.20q: %v", name, err)
			}
		}
	})
	t.Run("an id that is there already", func(t *testing.T) {
		s := open(t)
		m := say(thread.User, "one")
		m.ID = "mine"
		if _, err := s.Append(ctx, "t", 0, []thread.Message{m}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(ctx, "t", 1, []thread.Message{m}); !errors.Is(err, thread.ErrDuplicateID) {
			t.Error(err)
		}
		if th, err := s.Load(ctx, "t"); err != nil || th.Len() != 1 {
			t.Errorf("%v, %v", th, err)
		}
	})
	t.Run("what was loaded stays as it is", func(t *testing.T) {
		s := open(t)
		one, err := s.Append(ctx, "t", 0, []thread.Message{say(thread.User, "one")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(ctx, "t", 1, []thread.Message{say(thread.User, "two")}); err != nil {
			t.Fatal(err)
		}
		two, err := s.Load(ctx, "t")
		if err != nil || one.Len() != 1 || two.Len() != 2 {
			t.Errorf("%d and %d messages, %v", one.Len(), two.Len(), err)
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
