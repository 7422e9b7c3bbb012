package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Memory stores the data of one tenant in memory: for tests, and for agents whose
// conversations need not outlive the process. It implements Log, Plans, Catalog, Events
// and Documents. The zero value is empty and ready to use; it is safe for concurrent use
// and must not be copied.
type Memory struct {
	// Now is the clock; nil is time.Now.
	Now func() time.Time

	mu        sync.Mutex
	threads   map[string]*threadData
	documents map[[2]string]Document
}

// threadData is all data of a thread. Its info.Created is zero until the first write.
type threadData struct {
	info   Info
	log    *thread.Thread
	plans  []*plan.Plan
	marks  map[thread.ID]int
	events [][]byte
}

// thread returns the data of a thread, or that of an empty one.
func (s *Memory) thread(id string) *threadData {
	if r := s.threads[id]; r != nil {
		return r
	}
	return &threadData{info: Info{ID: id}, log: thread.New(id)}
}

// changed updates the info of a thread after a write.
func (s *Memory) changed(r *threadData) {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	if t := now().UTC(); t.After(r.info.Changed) {
		r.info.Changed = t
	}
	if r.info.Created.IsZero() {
		r.info.Created = r.info.Changed
	}
	r.info.Messages, r.info.Plans, r.info.Events = r.log.Len(), len(r.plans), len(r.events)
	if s.threads == nil {
		s.threads = map[string]*threadData{}
	}
	s.threads[r.info.ID] = r
}

// Load implements Log.
func (s *Memory) Load(_ context.Context, id string) (*thread.Thread, error) {
	if err := CheckThread(id); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.thread(id).log, nil
}

// Append implements Log.
func (s *Memory) Append(_ context.Context, id string, version int, messages []thread.Message) (*thread.Thread, error) {
	if err := CheckThread(id); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.thread(id)
	rest, err := Skip(r.log, version, messages)
	if err != nil {
		return nil, err
	}
	next, err := r.log.Append(rest...)
	if err != nil || len(rest) == 0 {
		return next, err
	}
	r.log = next
	s.changed(r)
	return next, nil
}

// Current implements Plans.
func (s *Memory) Current(_ context.Context, id string) (*plan.Plan, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	plans := s.thread(id).plans
	if len(plans) == 0 {
		return nil, 0, nil
	}
	return plans[len(plans)-1], len(plans), nil
}

// Plan implements Plans.
func (s *Memory) Plan(_ context.Context, id string, version int) (*plan.Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if plans := s.thread(id).plans; version >= 1 && version <= len(plans) {
		return plans[version-1], nil
	}
	return nil, fmt.Errorf("thread %s: plan %d: %w", id, version, ErrNotFound)
}

// Commit implements Plans.
func (s *Memory) Commit(_ context.Context, id string, expected int, c Commit) (int, error) {
	if err := CheckThread(id); err != nil {
		return 0, err
	}
	if err := c.Check(); err != nil {
		return 0, err
	}
	encoded, err := encode(c.Events)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.thread(id)
	if have := len(r.plans); have != expected {
		return 0, &ConflictError{ThreadID: id, Want: expected, Have: have}
	}
	if err := s.expect(c.Documents); err != nil {
		return 0, err
	}
	for _, d := range c.Documents {
		s.put(d)
	}
	r.plans = append(r.plans, c.Plan.Clone())
	r.events = append(r.events, encoded...)
	r.mark(c.Plan)
	s.changed(r)
	return expected + 1, nil
}

// mark updates the marks for a plan that was just added.
func (r *threadData) mark(p *plan.Plan) {
	marks := map[thread.ID]int{}
	for id := range p.Actions() {
		if _, held := r.log.Index(id); !held {
			continue
		}
		marks[id] = len(r.plans)
		if since := r.marks[id]; since > 0 {
			marks[id] = since
		}
	}
	r.marks = marks
}

// Compacted implements Plans.
func (s *Memory) Compacted(_ context.Context, id string) (map[thread.ID]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.thread(id).marks), nil
}

// Thread implements Catalog.
func (s *Memory) Thread(_ context.Context, id string) (Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.threads[id]
	if r == nil {
		return Info{}, fmt.Errorf("thread %s: %w", id, ErrNotFound)
	}
	return r.info, nil
}

// Threads implements Catalog.
func (s *Memory) Threads(_ context.Context, after string, limit int) ([]Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var page []Info
	for _, id := range slices.Sorted(maps.Keys(s.threads)) {
		if id > after && len(page) < Limit(limit) {
			page = append(page, s.threads[id].info)
		}
	}
	return page, nil
}

// Delete implements Catalog.
func (s *Memory) Delete(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.threads, id)
	for name, d := range s.documents {
		if name[1] == id {
			s.put(Document{Kind: d.Kind, ID: d.ID, Version: d.Version})
		}
	}
	return nil
}

// encode returns the JSON of events: like every store, Memory must not keep content.
func encode(events []event.Event) ([][]byte, error) {
	out := make([][]byte, len(events))
	for n, e := range events {
		var err error
		if out[n], err = json.Marshal(e); err != nil {
			return nil, fmt.Errorf("event %s: %w", e.Type, err)
		}
	}
	return out, nil
}

// Record implements Events.
func (s *Memory) Record(_ context.Context, events ...event.Event) error {
	for _, e := range events {
		if err := CheckThread(e.ThreadID); err != nil {
			return err
		}
	}
	encoded, err := encode(events)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, e := range events {
		r := s.thread(e.ThreadID)
		r.events = append(r.events, encoded[n])
		s.changed(r)
	}
	return nil
}

// Events implements Events.
func (s *Memory) Events(_ context.Context, id string, after, limit int) ([]event.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.thread(id).events
	page := all[min(max(after, 0), len(all)):]
	page = page[:min(len(page), Limit(limit))]
	events := make([]event.Event, len(page))
	for n, data := range page {
		if err := json.Unmarshal(data, &events[n]); err != nil {
			return nil, fmt.Errorf("thread %s: event %d: %w", id, after+n+1, err)
		}
		events[n].ThreadID = id
	}
	return events, nil
}

// Document implements Documents.
func (s *Memory) Document(_ context.Context, kind, id string) (Document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.documents[[2]string{kind, id}]
	if !ok || len(d.Body) == 0 {
		return Document{}, fmt.Errorf("document %s/%s: %w", kind, id, ErrNotFound)
	}
	d.Body = bytes.Clone(d.Body)
	return d, nil
}

// Put implements Documents.
func (s *Memory) Put(_ context.Context, d Document) (int, error) {
	if err := d.Check(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.expect([]Document{d}); err != nil {
		return 0, err
	}
	return s.put(d), nil
}

// expect returns a *ConflictError for the first document that does not have the version
// that it is written for. Removed ones count as version 0.
func (s *Memory) expect(documents []Document) error {
	for _, d := range documents {
		held := s.documents[[2]string{d.Kind, d.ID}]
		if len(held.Body) == 0 {
			held.Version = 0
		}
		if held.Version != d.Version {
			return &ConflictError{Document: d.Kind + "/" + d.ID, Want: d.Version, Have: held.Version}
		}
	}
	return nil
}

func (s *Memory) put(d Document) int {
	if s.documents == nil {
		s.documents = map[[2]string]Document{}
	}
	name := [2]string{d.Kind, d.ID}
	d.Version = s.documents[name].Version + 1
	d.Body = bytes.Clone(d.Body)
	s.documents[name] = d
	return d.Version
}

// Documents implements Documents.
func (s *Memory) Documents(_ context.Context, kind, after string, limit int) ([]Document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var page []Document
	for name, d := range s.documents {
		if name[0] == kind && name[1] > after && len(d.Body) > 0 {
			d.Body = bytes.Clone(d.Body)
			page = append(page, d)
		}
	}
	slices.SortFunc(page, func(a, b Document) int { return strings.Compare(a.ID, b.ID) })
	return page[:min(len(page), Limit(limit))], nil
}

// Kinds implements Documents.
func (s *Memory) Kinds(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var kinds []string
	for name, d := range s.documents {
		if len(d.Body) > 0 && !slices.Contains(kinds, name[0]) {
			kinds = append(kinds, name[0])
		}
	}
	slices.Sort(kinds)
	return kinds, nil
}
