package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestCatalog runs the suite of store.Catalog.
func TestCatalog(t *testing.T, open func(testing.TB) store.Tenant) {
	ctx := t.Context()
	t.Run("pages by id", func(t *testing.T) {
		s := open(t)
		if page, err := s.Catalog.Threads(ctx, "", 0); err != nil || len(page) != 0 {
			t.Fatalf("%v, %v", page, err)
		}
		// The order is that of bytes, whatever language a database speaks.
		want := []string{"B", "Z", "a", "a b", "b", "c", "ä"}
		for n, id := range want {
			if _, err := s.Log.Append(ctx, id, 0, []thread.Message{say(thread.User, fmt.Sprint(n))}); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for after := ""; ; {
			page, err := s.Catalog.Threads(ctx, after, 3)
			if err != nil || len(page) > 3 {
				t.Fatalf("%d, %v", len(page), err)
			}
			if len(page) == 0 {
				break
			}
			for _, info := range page {
				got = append(got, info.ID)
				if info.Messages != 1 || info.Created.IsZero() || info.Changed.Before(info.Created) {
					t.Errorf("%+v", info)
				}
			}
			after = got[len(got)-1]
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		info, err := s.Catalog.Thread(ctx, "a b")
		if err != nil || info.ID != "a b" || info.Messages != 1 || info.Plans != 0 || time.Since(info.Created) > time.Hour {
			t.Errorf("%+v, %v", info, err)
		}
		if _, err := s.Catalog.Thread(ctx, "nobody"); !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
	})
	t.Run("what is deleted is gone, and can begin anew", func(t *testing.T) {
		s := open(t)
		for _, id := range []string{"t", "other"} {
			th, err := s.Log.Append(ctx, id, 0, []thread.Message{say(thread.User, "one"), say(thread.User, "two")})
			if err != nil {
				t.Fatal(err)
			}
			p := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: id, Drops: []plan.Removal{{Span: th.Range(0, 1)}}}
			c := store.Commit{Plan: p, Events: []event.Event{{Type: event.Completed}}, Documents: []store.Document{{Kind: "state", ID: id, Body: []byte(`{}`)}}}
			if _, err := s.Plans.Commit(ctx, id, 0, c); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := s.Catalog.Delete(ctx, "t"); err != nil {
				t.Fatal(err)
			}
		}
		_, infoErr := s.Catalog.Thread(ctx, "t")
		_, documentErr := s.Documents.Document(ctx, "state", "t")
		_, planErr := s.Plans.Plan(ctx, "t", 1)
		for _, err := range []error{infoErr, documentErr, planErr} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("after Delete: %v", err)
			}
		}
		th, err := s.Log.Load(ctx, "t")
		marks, _ := s.Plans.Compacted(ctx, "t")
		events, _ := s.Events.Events(ctx, "t", 0, 0)
		if p, version, _ := s.Plans.Current(ctx, "t"); err != nil || th.Len() != 0 || p != nil || version != 0 || len(marks)+len(events) != 0 {
			t.Errorf("%v, %v, plan %d %v, marks %v, events %v", th, err, version, p, marks, events)
		}
		if other, err := s.Log.Load(ctx, "other"); err != nil || other.Len() != 2 {
			t.Errorf("the other thread: %v, %v", other, err)
		}
		// As many messages as before, with others in their place.
		again, err := s.Log.Append(ctx, "t", 0, []thread.Message{say(thread.User, "new one"), say(thread.User, "new two")})
		if err != nil || again.Len() != 2 {
			t.Fatalf("%v, %v", again, err)
		}
		if th, err := s.Log.Load(ctx, "t"); err != nil || th.Len() != 2 || th.At(0).Text() != "new one" {
			t.Errorf("%v, %v", th, err)
		}
	})
}

// TestEvents runs the suite of store.Events.
func TestEvents(t *testing.T, open func(testing.TB) store.Events) {
	ctx := t.Context()
	at := time.Date(2025, 1, 2, 3, 4, 5, 678901234, time.UTC)
	t.Run("from a cursor", func(t *testing.T) {
		s := open(t)
		var want []event.Event
		for n := range 7 {
			e := event.Event{
				Type: event.Cleared, Time: at.Add(time.Duration(n) * time.Second), ThreadID: "t", Policy: "auto", TokensBefore: n,
				Strategy: "clear", Span: &thread.Span{MessageIDs: []thread.ID{"a"}, FirstTurn: 1, LastTurn: 1}, TokensFreed: -n,
				Duration: 1500 * time.Microsecond, Cache: event.Hit, Err: "canceled", Details: map[string]any{"round": float64(n)},
			}
			want = append(want, e)
		}
		if err := s.Record(ctx); err != nil {
			t.Fatal(err)
		}
		if err := s.Record(ctx, append(want[:5:5], event.Event{Type: event.Failed, ThreadID: "other"})...); err != nil {
			t.Fatal(err)
		}
		if err := s.Record(ctx, want[5:]...); err != nil {
			t.Fatal(err)
		}
		var got []event.Event
		for {
			page, err := s.Events(ctx, "t", len(got), 3)
			if err != nil || len(page) > 3 {
				t.Fatalf("%d, %v", len(page), err)
			}
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if page, err := s.Events(ctx, "t", 99, 0); err != nil || len(page) != 0 {
			t.Errorf("behind the end: %v, %v", page, err)
		}
	})
	t.Run("no content is kept", func(t *testing.T) {
		s := open(t)
		if err := s.Record(ctx, event.Event{Type: event.Failed, ThreadID: "t", Details: map[string]any{"said": "a whole sentence"}}); err != nil {
			t.Fatal(err)
		}
		page, err := s.Events(ctx, "t", 0, 0)
		if err != nil || len(page) != 1 || page[0].Details["said"] == "a whole sentence" {
			t.Errorf("%+v, %v", page, err)
		}
	})
	t.Run("all or none", func(t *testing.T) {
		s := open(t)
		for _, name := range badNames {
			if err := s.Record(ctx, event.Event{Type: event.Failed, ThreadID: "t"}, event.Event{Type: event.Failed, ThreadID: name}); !errors.Is(err, store.ErrName) {
				t.Errorf("%v", err)
			}
		}
		if page, err := s.Events(ctx, "t", 0, 0); err != nil || len(page) != 0 {
			t.Errorf("%v, %v", page, err)
		}
	})
	t.Run("writers at once leave no gap", func(t *testing.T) {
		s := open(t)
		if won := race(8, func(n int) error {
			for range 5 {
				if err := s.Record(ctx, event.Event{Type: event.Cleared, ThreadID: "t", TokensBefore: n}); err != nil {
					return err
				}
			}
			return nil
		}); won != 8 {
			t.Errorf("%d of 8 writers came through", won)
		}
		if page, err := s.Events(ctx, "t", 0, 0); err != nil || len(page) != 40 {
			t.Errorf("%d events, %v", len(page), err)
		}
	})
}

// TestDocuments runs the suite of store.Documents.
func TestDocuments(t *testing.T, open func(testing.TB) store.Documents) {
	ctx := t.Context()
	put := func(t *testing.T, s store.Documents, id string, version int, body string) int {
		t.Helper()
		next, err := s.Put(ctx, store.Document{Kind: "memory", ID: id, Version: version, Body: []byte(body)})
		if err != nil || next <= version {
			t.Fatalf("version %d after %d, %v", next, version, err)
		}
		return next
	}
	t.Run("replaced, removed and made again", func(t *testing.T) { // D10
		s := open(t)
		if _, err := s.Document(ctx, "memory", "a"); !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		version := 0
		for _, body := range []string{`{"entries": ["x"] }`, `[1, 2]`, `null`} {
			version = put(t, s, "a", version, body)
			d, err := s.Document(ctx, "memory", "a")
			if err != nil || string(d.Body) != body || d.Version != version || d.Kind != "memory" || d.ID != "a" {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		gone := put(t, s, "a", version, "")
		if _, err := s.Document(ctx, "memory", "a"); !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		// Who holds the version from before must not hit what was made since.
		if again := put(t, s, "a", 0, `1`); again <= gone {
			t.Errorf("made again with version %d, removed with %d", again, gone)
		}
	})
	t.Run("compare and swap", func(t *testing.T) {
		s := open(t)
		version := put(t, s, "a", 0, `1`)
		for _, wrong := range []int{0, version + 1, -1} {
			_, err := s.Put(ctx, store.Document{Kind: "memory", ID: "a", Version: wrong, Body: []byte(`2`)})
			var conflict *store.ConflictError
			if !errors.As(err, &conflict) || conflict.Document != "memory/a" || conflict.Want != wrong || conflict.Have != version {
				t.Errorf("version %d: %v", wrong, err)
			}
		}
		if won := race(8, func(n int) error {
			_, err := s.Put(ctx, store.Document{Kind: "memory", ID: "a", Version: version, Body: fmt.Append(nil, n)})
			return err
		}); won != 1 {
			t.Errorf("%d writers won", won)
		}
		if won := race(8, func(n int) error {
			_, err := s.Put(ctx, store.Document{Kind: "memory", ID: "new", Body: fmt.Append(nil, n)})
			return err
		}); won != 1 {
			t.Errorf("%d writers made it", won)
		}
	})
	t.Run("pages of one kind", func(t *testing.T) {
		s := open(t)
		for _, id := range []string{"c", "a", "b", "gone"} {
			put(t, s, id, 0, `"`+id+`"`)
		}
		put(t, s, "gone", 1, "")
		if _, err := s.Put(ctx, store.Document{Kind: "other", ID: "a", Body: []byte(`1`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(ctx, store.Document{Kind: "never there", ID: "a"}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for after := ""; ; {
			page, err := s.Documents(ctx, "memory", after, 2)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, d := range page {
				got = append(got, string(d.Body))
				after = d.ID
			}
		}
		if kinds, err := s.Kinds(ctx); err != nil || !reflect.DeepEqual(kinds, []string{"memory", "other"}) {
			t.Errorf("kinds %q, %v", kinds, err)
		}
		if want := []string{`"a"`, `"b"`, `"c"`}; !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
	t.Run("what cannot be kept", func(t *testing.T) {
		s := open(t)
		bad := []store.Document{
			{ID: "a", Body: []byte(`1`)},
			{Kind: "memory", ID: "a", Body: []byte(`{`)},
			{Kind: "memory", ID: "a", Body: append(append([]byte{'"'}, make([]byte, store.MaxDocument)...), '"')},
		}
		for _, name := range badNames[1:] {
			bad = append(bad, store.Document{Kind: "memory", ID: name, Body: []byte(`1`)}, store.Document{Kind: name, ID: "a", Body: []byte(`1`)})
		}
		for _, d := range bad {
			if _, err := s.Put(ctx, d); err == nil || errors.Is(err, store.ErrConflict) {
				t.Errorf("%.20q/%.20q: %v", d.Kind, d.ID, err)
			}
		}
	})
}

// TestAnswers runs the suite of a cache of answers. A15
func TestAnswers(t *testing.T, open func(testing.TB) store.Answers) {
	ctx := t.Context()
	a := open(t)
	if got, ok := a.Get(ctx, "key"); ok {
		t.Fatalf("an empty cache has %q", got)
	}
	for n := range 3 {
		want := fmt.Appendf(nil, "{\"text\":\"answer %d\"}", n)
		a.Put(ctx, "key", want)
		if got, ok := a.Get(ctx, "key"); !ok || string(got) != string(want) {
			t.Errorf("got %q %v, want %q", got, ok, want)
		}
	}
	if got, ok := a.Get(ctx, "other"); ok {
		t.Errorf("another key has %q", got)
	}
}

// TestTenants proves that nothing of one tenant is seen by another, whatever
// names they use. open gives an empty store.
func TestTenants(t *testing.T, open func(testing.TB) store.DB) {
	ctx := t.Context()
	db := open(t)
	names := []string{"", "acme", "acm", "e"}
	for n, name := range names {
		s := db.Tenant(name)
		text := fmt.Sprint("only of ", n)
		th, err := s.Log.Append(ctx, "t", 0, []thread.Message{say(thread.User, text)})
		if err != nil || th.Len() != 1 {
			t.Fatalf("tenant %q: %v", name, err)
		}
		p := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: "t", CompactedTokens: n, Drops: []plan.Removal{{Span: th.Range(0, 1)}}}
		c := store.Commit{Plan: p, Events: []event.Event{{Type: event.Completed, TokensFreed: n}}, Documents: []store.Document{{Kind: "k", ID: "t", Body: fmt.Append(nil, n)}}}
		if _, err := s.Plans.Commit(ctx, "t", 0, c); err != nil {
			t.Fatalf("tenant %q: %v", name, err)
		}
		s.Answers.Put(ctx, "key", []byte(text))
		if _, err := artifact.NewStore(db.Artifacts(), nil).Put(ctx, artifact.Metadata{TenantID: name, ThreadID: "t"}, "same content"); err != nil {
			t.Fatal(err)
		}
	}
	see := func(n int, name string) {
		t.Helper()
		s := db.Tenant(name)
		text := fmt.Sprint("only of ", n)
		th, err := s.Log.Load(ctx, "t")
		if err != nil || th.Len() != 1 || th.At(0).Text() != text {
			t.Errorf("tenant %q: log %v, %v", name, th, err)
		}
		if p, version, err := s.Plans.Current(ctx, "t"); err != nil || version != 1 || p.CompactedTokens != n {
			t.Errorf("tenant %q: plan %+v, %v", name, p, err)
		}
		if events, err := s.Events.Events(ctx, "t", 0, 0); err != nil || len(events) != 1 || events[0].TokensFreed != n {
			t.Errorf("tenant %q: events %+v, %v", name, events, err)
		}
		if d, err := s.Documents.Documents(ctx, "k", "", 0); err != nil || len(d) != 1 || string(d[0].Body) != fmt.Sprint(n) {
			t.Errorf("tenant %q: documents %+v, %v", name, d, err)
		}
		if v, ok := s.Answers.Get(ctx, "key"); !ok || string(v) != text {
			t.Errorf("tenant %q: answer %q, %v", name, v, ok)
		}
		if threads, err := s.Catalog.Threads(ctx, "", 0); err != nil || len(threads) != 1 {
			t.Errorf("tenant %q: threads %+v, %v", name, threads, err)
		}
		if marks, err := s.Plans.Compacted(ctx, "t"); err != nil || len(marks) != 1 {
			t.Errorf("tenant %q: marks %+v, %v", name, marks, err)
		}
	}
	for n, name := range names {
		see(n, name)
	}
	// Documents alone, or artifacts alone, make a tenant; answers are a cache.
	if _, err := db.Tenant("notes").Documents.Put(ctx, store.Document{Kind: "k", ID: "x", Body: []byte(`1`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := artifact.NewStore(db.Artifacts(), nil).Put(ctx, artifact.Metadata{TenantID: "files", ThreadID: "t"}, "content"); err != nil {
		t.Fatal(err)
	}
	db.Tenant("nothing").Answers.Put(ctx, "key", []byte("x"))
	if _, err := db.Tenant("nothing").Log.Load(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	var known []string
	for name, err := range db.Tenants(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		known = append(known, name)
	}
	if !reflect.DeepEqual(known, []string{"", "acm", "acme", "e", "files", "notes"}) {
		t.Errorf("tenants %q", known)
	}
	if err := db.Tenant("acm").Catalog.Delete(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	for m, err := range db.Artifacts().List(ctx, artifact.Filter{TenantID: "acm"}) {
		t.Errorf("after Delete there is the artifact %s, %v", m.ID, err)
	}
	see(0, "")
	see(1, "acme")
	if _, _, err := artifact.NewStore(db.Artifacts(), nil).Get(ctx, artifact.Requester{TenantID: "acme"}, artifact.IDOf("t", "same content")); err != nil {
		t.Error(err)
	}
}
