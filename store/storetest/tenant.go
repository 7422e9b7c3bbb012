package storetest

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// tenant is what a tenant of a test keeps. Where its methods do not say otherwise,
// what fails ends the test.
type tenant struct {
	store.Tenant
	test
}

// test is embedded one level down, so that Log is that of the tenant.
type test struct{ testing.TB }

// need ends the test at an error.
func (s tenant) need(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// is wants each error to be one.
func (s tenant) is(want error, errs ...error) {
	s.Helper()
	for n, err := range errs {
		if !errors.Is(err, want) {
			s.Errorf("%d: %v, want %v", n, err, want)
		}
	}
}

// conflict wants an error to say what was in the way of what: a thread, or a document
// as "kind/id".
func (s tenant) conflict(err error, what string, want, have int) {
	s.Helper()
	var c *store.ConflictError
	if !errors.As(err, &c) || c.ThreadID+c.Document != what || c.Want != want || c.Have != have || !errors.Is(err, store.ErrConflict) {
		s.Errorf("%v, want a conflict of %s for %d at %d", err, what, want, have)
	}
}

func say(role thread.Role, text string) thread.Message {
	return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: text}}}
}

// said are messages of a user.
func said(texts ...string) (all []thread.Message) {
	for _, text := range texts {
		all = append(all, say(thread.User, text))
	}
	return all
}

func (s tenant) add(id string, version int, texts ...string) error {
	_, err := s.Log.Append(s.Context(), id, version, said(texts...))
	return err
}

func (s tenant) append(id string, version int, texts ...string) *thread.Thread {
	s.Helper()
	th, err := s.Log.Append(s.Context(), id, version, said(texts...))
	s.need(err)
	return th
}

func texts(th *thread.Thread) (all []string) {
	for _, m := range th.All() {
		all = append(all, m.Text())
	}
	return all
}

// holds loads a thread, and wants it to hold these texts.
func (s tenant) holds(id string, want ...string) *thread.Thread {
	s.Helper()
	th, err := s.Log.Load(s.Context(), id)
	s.need(err)
	if got := texts(th); !slices.Equal(got, want) || th.ID() != id {
		s.Errorf("thread %s holds %q, want %q in %s", th.ID(), got, want, id)
	}
	return th
}

func (s tenant) commit(id string, version int, c store.Commit) {
	s.Helper()
	got, err := s.Plans.Commit(s.Context(), id, version, c)
	s.need(err)
	if got != version+1 {
		s.Errorf("plan %d comes behind %d", got, version)
	}
}

// current wants the newest plan of a thread to be of a version.
func (s tenant) current(id string, want int) *plan.Plan {
	s.Helper()
	p, version, err := s.Plans.Current(s.Context(), id)
	s.need(err)
	if version != want || (p != nil) != (want > 0) {
		s.Fatalf("plan %d: %+v, want version %d", version, p, want)
	}
	return p
}

func (s tenant) marks(id string) map[thread.ID]int {
	s.Helper()
	marks, err := s.Plans.Compacted(s.Context(), id)
	s.need(err)
	return marks
}

// events wants so many of a thread.
func (s tenant) events(id string, want int) []event.Event {
	s.Helper()
	all, err := s.Events.Events(s.Context(), id, 0, 0)
	s.need(err)
	if len(all) != want {
		s.Fatalf("events %+v, want %d", all, want)
	}
	return all
}

func (s tenant) put(kind, id string, version int, body string) int {
	s.Helper()
	next, err := s.Documents.Put(s.Context(), store.Document{Kind: kind, ID: id, Version: version, Body: []byte(body)})
	s.need(err)
	if next <= version {
		s.Errorf("version %d after %d", next, version)
	}
	return next
}

// document wants one to have a body; "" for none.
func (s tenant) document(kind, id, body string) store.Document {
	s.Helper()
	d, err := s.Documents.Document(s.Context(), kind, id)
	if body == "" && errors.Is(err, store.ErrNotFound) {
		return d
	}
	if err != nil || string(d.Body) != body || d.Kind != kind || d.ID != id {
		s.Errorf("%+v, %v, want %q", d, err, body)
	}
	return d
}

// badNames are names of threads that not every store can hold; the first is
// empty.
var badNames = []string{"", "a\x00b", "a\xffb", string(make([]byte, 600))}

// race runs n writers at once, and wants so many to come through.
func (s tenant) race(n, want int, write func(int) error) {
	s.Helper()
	var wg sync.WaitGroup
	won := make(chan int, n)
	for i := range n {
		wg.Go(func() {
			if err := write(i); err == nil {
				won <- i
			}
		})
	}
	wg.Wait()
	if len(won) != want {
		s.Errorf("%d of %d writers came through, want %d", len(won), n, want)
	}
}

// pages calls next with the last of each page until one is empty, and returns all.
func pages[T any](s tenant, limit int, next func(after T) ([]T, error)) (all []T) {
	s.Helper()
	for {
		var after T
		if len(all) > 0 {
			after = all[len(all)-1]
		}
		page, err := next(after)
		if err != nil || len(page) > limit {
			s.Fatalf("%d, %v", len(page), err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
	}
}
