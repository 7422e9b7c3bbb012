package storetest

import (
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// logs is the suite of store.Log.
var logs = map[string]func(tenant){
	"an unknown thread is empty": func(s tenant) { s.holds("nobody") },
	"append and load": func(s tenant) {
		s.append("t", 0, "one", "two")
		s.append("t", 2, "three")
		want, err := thread.New("t").Append(said("one", "two", "three")...)
		s.need(err)
		Same(s.TB, s.holds("t", "one", "two", "three"), want)
		s.holds("other")
	},
	"every kind of message": func(s tenant) {
		want := everything()
		half := len(want) / 2
		for n, part := range [][]thread.Message{want[:half], want[half:]} {
			_, err := s.Log.Append(s.Context(), "t", n*half, part)
			s.need(err)
		}
		whole, err := thread.New("t").Append(want...)
		s.need(err)
		got, err := s.Log.Load(s.Context(), "t")
		s.need(err)
		Same(s.TB, got, whole)
	},
	"messages that the caller changes are not changed here": func(s tenant) { // A1
		mine := append(said("one"), thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
			Tool: "x", Content: []thread.Part{thread.Text{Text: "two"}}, KeyFields: thread.Fields{"k": []any{"v"}},
		}}})
		want, err := thread.New("t").Append(mine...)
		s.need(err)
		rewrite := func(messages []thread.Message) {
			r, _ := messages[1].Result()
			r.Content[0], r.KeyFields["k"] = thread.Text{Text: "z"}, "z"
			messages[0].Parts[0] = thread.Text{Text: "z"}
		}
		got, err := s.Log.Append(s.Context(), "t", 0, mine)
		for range 3 {
			s.need(err)
			rewrite(mine)
			Same(s.TB, got, want)
			got, err = s.Log.Load(s.Context(), "t")
		}
	},
	"the same append twice is once": func(s tenant) {
		for range 2 {
			s.append("t", 0, "one", "two")
			s.holds("t", "one", "two")
		}
		// A repeat that brings more adds only what is new.
		s.append("t", 0, "one", "two", "three")
		s.holds("t", "one", "two", "three")
	},
	"a conflict names both versions and writes nothing": func(s tenant) {
		s.append("t", 0, "one")
		for _, version := range []int{0, 5} {
			s.conflict(s.add("t", version, "another"), "t", version, 1)
		}
		s.holds("t", "one")
	},
	"names that cannot be kept": func(s tenant) {
		for _, name := range badNames {
			_, err := s.Log.Load(s.Context(), name)
			s.is(store.ErrName, s.add(name, 0, "one"), err)
			if name == "" {
				continue // a message without an id is given one
			}
			m := say(thread.User, "one")
			m.ID = thread.ID(name)
			_, err = s.Log.Append(s.Context(), "t", 0, []thread.Message{m})
			s.is(store.ErrName, err)
		}
	},
	"an id that is there already": func(s tenant) {
		m := say(thread.User, "one")
		m.ID = "mine"
		_, err := s.Log.Append(s.Context(), "t", 0, []thread.Message{m})
		s.need(err)
		_, err = s.Log.Append(s.Context(), "t", 1, []thread.Message{m})
		s.is(thread.ErrDuplicateID, err)
		s.holds("t", "one")
	},
	"what was loaded stays as it is": func(s tenant) {
		one := s.append("t", 0, "one")
		s.append("t", 1, "two")
		if s.holds("t", "one", "two"); !slices.Equal(texts(one), []string{"one"}) {
			s.Errorf("it holds %q now", texts(one))
		}
	},
	"of many writers at one place one wins": func(s tenant) {
		s.race(8, 1, func(n int) error { return s.add("t", 0, fmt.Sprint("writer ", n)) })
		if th, err := s.Log.Load(s.Context(), "t"); err != nil || th.Len() != 1 {
			s.Errorf("%v, %v", th, err)
		}
	},
}

// cachedAnswers is the suite of store.Answers. A15
var cachedAnswers = map[string]func(tenant){
	"the newest of each key": func(s tenant) {
		if got, ok := s.Answers.Get(s.Context(), "key"); ok {
			s.Fatalf("an empty cache has %q", got)
		}
		for n := range 3 {
			want := fmt.Sprintf("{\"text\":\"answer %d\"}", n)
			s.Answers.Put(s.Context(), "key", []byte(want))
			if got, ok := s.Answers.Get(s.Context(), "key"); !ok || string(got) != want {
				s.Errorf("got %q %v, want %q", got, ok, want)
			}
		}
		if got, ok := s.Answers.Get(s.Context(), "other"); ok {
			s.Errorf("another key has %q", got)
		}
	},
}
