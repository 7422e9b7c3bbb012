package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// catalogs is the suite of store.Catalog.
var catalogs = map[string]func(tenant){
	"pages by id": func(s tenant) {
		next := func(after store.Info) ([]store.Info, error) { return s.Catalog.Threads(s.Context(), after.ID, 3) }
		if all := pages(s, 3, next); len(all) != 0 {
			s.Errorf("%+v", all)
		}
		// The order is that of bytes, whatever language a database speaks.
		want := []string{"B", "Z", "a", "a b", "b", "c", "ä"}
		for _, id := range want {
			s.append(id, 0, "one")
		}
		var got []string
		for _, info := range pages(s, 3, next) {
			got = append(got, info.ID)
			if info.Messages != 1 || info.Created.IsZero() || info.Changed.Before(info.Created) {
				s.Errorf("%+v", info)
			}
		}
		if !slices.Equal(got, want) {
			s.Errorf("got %q, want %q", got, want)
		}
		info, err := s.Catalog.Thread(s.Context(), "a b")
		if err != nil || info.ID != "a b" || info.Messages != 1 || info.Plans != 0 || time.Since(info.Created) > time.Hour {
			s.Errorf("%+v, %v", info, err)
		}
		_, err = s.Catalog.Thread(s.Context(), "nobody")
		s.is(store.ErrNotFound, err)
	},
	"what is deleted is gone, and can begin anew": func(s tenant) {
		for _, id := range []string{"t", "other"} {
			th := s.append(id, 0, "one", "two")
			s.commit(id, 0, store.Commit{
				Plan: covering(th, 0), Events: []event.Event{{Type: event.Completed}},
				Documents: []store.Document{{Kind: "state", ID: id, Body: []byte(`{}`)}},
			})
		}
		for range 2 {
			s.need(s.Catalog.Delete(s.Context(), "t"))
		}
		_, infoErr := s.Catalog.Thread(s.Context(), "t")
		_, planErr := s.Plans.Plan(s.Context(), "t", 1)
		s.is(store.ErrNotFound, infoErr, planErr)
		s.document("state", "t", "")
		s.holds("t")
		s.current("t", 0)
		s.events("t", 0)
		if marks := s.marks("t"); len(marks) > 0 {
			s.Errorf("marks %v", marks)
		}
		s.holds("other", "one", "two")
		s.document("state", "other", `{}`)
		// As many messages as before, with others in their place.
		s.append("t", 0, "new one", "new two")
		s.holds("t", "new one", "new two")
	},
}

// events is the suite of store.Events.
var events = map[string]func(tenant){
	"from a cursor": func(s tenant) {
		at := time.Date(2025, 1, 2, 3, 4, 5, 678901234, time.UTC)
		var want []event.Event
		for n := range 7 {
			want = append(want, event.Event{
				Type: event.Cleared, Time: at.Add(time.Duration(n) * time.Second), ThreadID: "t", Policy: "auto", TokensBefore: n,
				Strategy: "clear", Span: &thread.Span{MessageIDs: []thread.ID{"a"}, FirstTurn: 1, LastTurn: 1}, TokensFreed: -n,
				Duration: 1500 * time.Microsecond, Cache: event.Hit, Err: "canceled", Details: map[string]any{"round": float64(n)},
			})
		}
		s.need(s.Events.Record(s.Context()))
		s.need(s.Events.Record(s.Context(), append(want[:5:5], event.Event{Type: event.Failed, ThreadID: "other"})...))
		s.need(s.Events.Record(s.Context(), want[5:]...))
		seen := 0
		got := pages(s, 3, func(event.Event) ([]event.Event, error) {
			page, err := s.Events.Events(s.Context(), "t", seen, 3)
			seen += len(page)
			return page, err
		})
		if !reflect.DeepEqual(got, want) {
			s.Errorf("got  %+v\nwant %+v", got, want)
		}
		if page, err := s.Events.Events(s.Context(), "t", 99, 0); err != nil || len(page) != 0 {
			s.Errorf("behind the end: %v, %v", page, err)
		}
	},
	"no content is kept": func(s tenant) {
		s.need(s.Events.Record(s.Context(), event.Event{Type: event.Failed, ThreadID: "t", Details: map[string]any{"said": "a whole sentence"}}))
		if e := s.events("t", 1)[0]; e.Details["said"] == "a whole sentence" {
			s.Errorf("%+v", e)
		}
	},
	"all or none": func(s tenant) {
		for _, name := range badNames {
			s.is(store.ErrName, s.Events.Record(s.Context(), event.Event{Type: event.Failed, ThreadID: "t"}, event.Event{Type: event.Failed, ThreadID: name}))
		}
		s.events("t", 0)
	},
	"writers at once leave no gap": func(s tenant) {
		s.race(8, 8, func(n int) error {
			for range 5 {
				if err := s.Events.Record(s.Context(), event.Event{Type: event.Cleared, ThreadID: "t", TokensBefore: n}); err != nil {
					return err
				}
			}
			return nil
		})
		s.events("t", 40)
	},
}

// documents is the suite of store.Documents.
var documents = map[string]func(tenant){
	"replaced, removed and made again": func(s tenant) { // D10
		s.document("memory", "a", "")
		version := 0
		for _, body := range []string{`{"entries": ["x"] }`, `[1, 2]`, `null`} {
			version = s.put("memory", "a", version, body)
			if d := s.document("memory", "a", body); d.Version != version {
				s.Errorf("%+v, want version %d", d, version)
			}
		}
		gone := s.put("memory", "a", version, "")
		s.document("memory", "a", "")
		// Who holds the version from before must not hit what was made since.
		if again := s.put("memory", "a", 0, `1`); again <= gone {
			s.Errorf("made again with version %d, removed with %d", again, gone)
		}
	},
	"compare and swap": func(s tenant) {
		version := s.put("memory", "a", 0, `1`)
		put := func(id string, version, n int) error {
			_, err := s.Documents.Put(s.Context(), store.Document{Kind: "memory", ID: id, Version: version, Body: fmt.Append(nil, n)})
			return err
		}
		for _, wrong := range []int{0, version + 1, -1} {
			s.conflict(put("a", wrong, 2), "memory/a", wrong, version)
		}
		s.race(8, 1, func(n int) error { return put("a", version, n) })
		s.race(8, 1, func(n int) error { return put("new", 0, n) })
	},
	"pages of one kind": func(s tenant) {
		for _, id := range []string{"c", "a", "b", "gone"} {
			s.put("memory", id, 0, `"`+id+`"`)
		}
		s.put("memory", "gone", 1, "")
		s.put("other", "a", 0, `1`)
		s.put("never there", "a", 0, "")
		var got []string
		for _, d := range pages(s, 2, func(after store.Document) ([]store.Document, error) {
			return s.Documents.Documents(s.Context(), "memory", after.ID, 2)
		}) {
			got = append(got, string(d.Body))
		}
		if want := []string{`"a"`, `"b"`, `"c"`}; !slices.Equal(got, want) {
			s.Errorf("got %v, want %v", got, want)
		}
		if kinds, err := s.Documents.Kinds(s.Context()); err != nil || !slices.Equal(kinds, []string{"memory", "other"}) {
			s.Errorf("kinds %q, %v", kinds, err)
		}
	},
	"what cannot be kept": func(s tenant) {
		bad := []store.Document{
			{ID: "a", Body: []byte(`1`)},
			{Kind: "memory", ID: "a", Body: []byte(`{`)},
			{Kind: "memory", ID: "a", Body: append(append([]byte{'"'}, make([]byte, store.MaxDocument)...), '"')},
		}
		for _, name := range badNames[1:] {
			bad = append(bad, store.Document{Kind: "memory", ID: name, Body: []byte(`1`)}, store.Document{Kind: name, ID: "a", Body: []byte(`1`)})
		}
		for _, d := range bad {
			if _, err := s.Documents.Put(s.Context(), d); err == nil || errors.Is(err, store.ErrConflict) {
				s.Errorf("%.20q/%.20q: %v", d.Kind, d.ID, err)
			}
		}
	},
}

// tenants: who keeps something is known. That nothing of one is seen by another is
// what TestCanary proves.
func tenants(t *testing.T, db store.DB) {
	ctx := t.Context()
	of := func(name string) tenant { return tenant{db.Tenant(name), test{t}} }
	contents := artifact.NewStore(db.Artifacts(), nil)
	keep := func(name string) {
		if _, err := contents.Put(ctx, artifact.Metadata{TenantID: name, ThreadID: "t"}, "same content"); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"", "acme", "acm", "e"} {
		of(name).append("t", 0, "of "+name)
		keep(name)
	}
	// Documents alone, artifacts alone, or answers alone make a tenant: what is encrypted
	// anew, or removed once its keys are erased, must be known.
	of("notes").put("k", "x", 0, `1`)
	keep("files")
	db.Tenant("answers").Answers.Put(ctx, "key", []byte("x"))
	of("nothing").holds("t")
	var known []string
	for name, err := range db.Tenants(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		known = append(known, name)
	}
	if !slices.Equal(known, []string{"", "acm", "acme", "answers", "e", "files", "notes"}) {
		t.Errorf("tenants %q", known)
	}
	of("acm").need(db.Tenant("acm").Catalog.Delete(ctx, "t"))
	for m, err := range db.Artifacts().List(ctx, artifact.Filter{TenantID: "acm"}) {
		t.Errorf("after Delete there is the artifact %s, %v", m.ID, err)
	}
	for _, name := range []string{"", "acme"} {
		of(name).holds("t", "of "+name)
		if _, _, err := contents.Get(ctx, artifact.Requester{TenantID: name}, artifact.IDOf("t", "same content")); err != nil {
			t.Error(err)
		}
	}
}
