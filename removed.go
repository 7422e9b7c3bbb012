package palimpsest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// removedContent is what all plans of a conversation removed. An agent may have noted a
// pointer long ago, so every pointer that any plan showed can be read.
type removedContent struct {
	mu          sync.Mutex
	plansRead   int                    // the plans up to this version were read
	hasRemovals bool                   // one of them removed something
	pointers    map[string][]thread.ID // by artifact: the messages that hold its content
	digests     map[string]*plan.Range // of timelines, by path
	building    *removedIndex          // being built; nil for none
	injected    injection
}

// readPlans reads the plans up to a version that were not read yet. The one of that version is current.
func readPlans(ctx context.Context, s *Session, current *plan.Plan, version int) (err error) {
	if s.c.config.Recall == nil {
		return nil
	}
	r := &s.state().removedContent
	r.mu.Lock()
	defer r.mu.Unlock()
	if version < r.plansRead { // the thread was deleted and began anew
		r.plansRead, r.hasRemovals, r.pointers, r.digests, r.building = 0, false, nil, nil, nil
		s.c.config.Memory.indexes.Delete(s.conversation)
	}
	for r.plansRead < version {
		p := current
		if r.plansRead+1 < version {
			if p, err = s.c.config.Store.Plans.Plan(ctx, s.id, r.plansRead+1); err != nil {
				return err
			}
		}
		r.add(p)
		r.plansRead++
	}
	return nil
}

// readAllPlans reads the plans up to the one in force.
func readAllPlans(ctx context.Context, s *Session) error {
	current, version, err := s.c.config.Store.Plans.Current(ctx, s.id)
	if err != nil {
		return err
	}
	return readPlans(ctx, s, current, version)
}

func (r *removedContent) add(p *plan.Plan) {
	if r.pointers == nil {
		r.pointers, r.digests = map[string][]thread.ID{}, map[string]*plan.Range{}
	}
	r.hasRemovals = r.hasRemovals || !p.Empty()
	maps.Copy(r.pointers, rehydrate.Pointers(p))
	for i := range p.Summarizations {
		if s := p.Summarizations[i].Range; s != nil {
			r.digests[s.Path] = s
		}
	}
}

// hasAny reports whether there is anything to read or to search: something was removed, or
// there are earlier conversations.
func (r *removedContent) hasAny(earlier []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hasRemovals || len(earlier) > 0
}

// digest is the one of a timeline's path, nil for none.
func (r *removedContent) digest(path string) *plan.Range {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.digests[path]
}

// artifactsOf are the artifacts that plans made of a message, in order.
func (r *removedContent) artifactsOf(message thread.ID) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for id, messages := range r.pointers {
		if slices.Contains(messages, message) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (r *removedContent) copyPointers() map[string][]thread.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.pointers)
}

// search finds removed messages by words, and by meaning where there is an Embedder. When
// that fails, words alone decide. What has expired, and what only an explicit reading may
// show, is left out.
func search(ctx context.Context, s *Session, log *thread.Thread, p *plan.Plan, version int, query string, o recall.Options) ([]recall.Hit, error) {
	index, err := indexFor(ctx, s, log, p, version)
	if err != nil {
		return nil, err
	}
	if s.c.search != nil {
		hits, err := s.c.search.Search(ctx, index, query, &o)
		if err == nil || ctx.Err() != nil {
			return quotable(ctx, s, hits), ctx.Err()
		}
	}
	return quotable(ctx, s, index.Search(query, &o)), nil
}

// quotable are the hits whose text may be shown, without the messages beside them that may not.
func quotable(ctx context.Context, s *Session, hits []recall.Hit) []recall.Hit {
	hidden := func(threadID, tool string, message thread.ID) bool {
		of := s
		if threadID != s.id {
			of = &Session{conversation: conversation{s.c, threadID}}
		}
		if readAllPlans(ctx, of) != nil {
			return true
		}
		class, err := logSource{session: of}.access(ctx, tool, message)
		return err != nil || !s.c.searchable(class)
	}
	var missing []string
	if len(hits) > 0 {
		missing = hits[0].Missing
	}
	hits = slices.DeleteFunc(hits, func(h recall.Hit) bool { return hidden(h.ThreadID, h.Tool, h.MessageID) })
	for i := range hits {
		h := &hits[i]
		for _, beside := range []**recall.Neighbor{&h.Before, &h.After} {
			if n := *beside; n != nil && hidden(h.ThreadID, "", n.MessageID) {
				*beside = nil
			}
		}
	}
	if len(hits) > 0 {
		hits[0].Missing = missing
	}
	return hits
}

// access says how sensitive it is what a message holds, and why it may not be read. What a
// plan has externalized is what the store makes of it, under any id; all else has the class
// that its tool declares, and does not expire.
func (f logSource) access(ctx context.Context, tool string, message thread.ID) (artifact.Sensitivity, error) {
	c, who := f.session.c, f.session.c.config.Requester
	m := artifact.Metadata{Sensitivity: c.declared(tool)}
	if c.config.Artifacts != nil {
		for _, id := range f.session.state().removedContent.artifactsOf(message) {
			var err error
			if m, err = c.config.Artifacts.Metadata(ctx, who, id); errors.Is(err, artifact.ErrNotFound) {
				err = fmt.Errorf("%s is deleted: %w", id, artifact.ErrExpired) // it was stored before the plan came into force
			}
			if err != nil {
				return "", err
			}
		}
	}
	return m.Sensitivity, m.Permits(who)
}

// declared is the class of the results of a tool.
func (c *Compactor) declared(tool string) artifact.Sensitivity {
	m := artifact.Metadata{Sensitivity: cmp.Or(c.config.Sensitivity, artifact.Internal)}
	describeArtifact(c.config.Tools, &m, tool)
	return m.Sensitivity
}

// searchable reports whether a search may quote what has that class: what may come back
// without being asked for by its id.
func (c *Compactor) searchable(class artifact.Sensitivity) bool {
	return slices.Contains(cmp.Or(c.config.Recall, &Recall{}).Rehydrate.Defaults().Sensitivities, class)
}

// removedEarlier are the messages of earlier threads that this one, under plan p, does not
// show.
func removedEarlier(ctx context.Context, logs store.Log, ids []string, log *thread.Thread, p *plan.Plan) ([]recall.Entry, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	actions := p.Actions()
	known := map[string]bool{}
	for _, m := range log.All() {
		if actions[m.ID].Action == plan.Include {
			known[recall.FullText(m)] = true
		}
	}
	var entries []recall.Entry
	for _, id := range ids {
		old, err := logs.Load(ctx, id)
		if err != nil {
			return nil, err
		}
		var gone []thread.ID
		for _, m := range old.All() {
			text := recall.FullText(m)
			if !known[text] {
				known[text] = true
				gone = append(gone, m.ID)
			}
		}
		if len(gone) == 0 {
			continue
		}
		all := plan.Plan{ThreadID: old.ID(), Drops: []plan.Removal{{
			Span: thread.Span{MessageIDs: gone}, Origin: plan.Origin{Reason: "it stood in the conversation before the agent shortened it"},
		}}}
		entries = append(entries, recall.Removed(old, &all)...)
	}
	return entries, nil
}

// removedIndex is the search index of what one version of the plan removed, and of the
// earlier conversations.
type removedIndex struct {
	version int
	earlier []string
	done    chan struct{} // closed when index and err are set
	index   *recall.Index
	err     error
}

func (x *removedIndex) isFor(version int, earlier []string) bool {
	return x != nil && x.version == version && slices.Equal(x.earlier, earlier)
}

// indexedAhead is from how many tokens on a conversation is indexed before it is searched. That of a smaller one takes
// some 20 ms, which would be half of its steps' time where many conversations take turns in memory.
const indexedAhead = 64_000

// indexInBackground builds the index while the model answers, so that its first search
// need not wait. One is built at a time; the index of a newer plan waits for the next
// step.
func indexInBackground(ctx context.Context, s *Session, log *thread.Thread, p *plan.Plan, version int) {
	if s.c.config.Recall == nil || len(s.earlier) == 0 && (p.Empty() || p.OriginalTokens < indexedAhead) {
		return // nothing to search, or little
	}
	r := &s.state().removedContent
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.building == nil {
		startIndex(ctx, s, r, log, p, version)
	}
}

// indexFor is the index for a plan and the earlier threads, built once.
func indexFor(ctx context.Context, s *Session, log *thread.Thread, p *plan.Plan, version int) (*recall.Index, error) {
	r := &s.state().removedContent
	r.mu.Lock()
	x := startIndex(ctx, s, r, log, p, version)
	r.mu.Unlock()
	select {
	case <-x.done:
		return x.index, x.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// startIndex returns the index of a version, which may still be in the making. r is
// locked.
func startIndex(ctx context.Context, s *Session, r *removedContent, log *thread.Thread, p *plan.Plan, version int) *removedIndex {
	if r.building.isFor(version, s.earlier) {
		return r.building
	}
	if x, _ := s.c.config.Memory.indexes.Get(s.conversation); x.isFor(version, s.earlier) {
		return x
	}
	x := &removedIndex{version: version, earlier: s.earlier, done: make(chan struct{})}
	r.building = x
	go func() {
		// At last, since whoever has waited for it may make the next one at once.
		defer close(x.done)
		bytes := 0
		x.index, bytes, x.err = buildIndex(context.WithoutCancel(ctx), s, log, p)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.building != x {
			return // a newer index is wanted, or the thread was deleted
		}
		r.building = nil
		if x.err == nil {
			s.c.config.Memory.indexes.Put(s.conversation, x, bytesPerSession+indexFactor*bytes)
		}
	}()
	return x
}

// buildIndex builds the index and returns the size of its texts in bytes. A text that
// makes it panic is an error of the search, and must not end the program.
func buildIndex(ctx context.Context, s *Session, log *thread.Thread, p *plan.Plan) (made *recall.Index, bytes int, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("build the recall index: %v", broken)
		}
	}()
	lost, err := removedEarlier(ctx, s.c.config.Store.Log, s.earlier, log, p)
	if err != nil {
		return nil, 0, err
	}
	entries := slices.DeleteFunc(append(lost, recall.Removed(log, p)...), func(e recall.Entry) bool { return !s.c.searchable(s.c.declared(e.Tool)) })
	for i := range entries {
		bytes += len(entries[i].Text)
	}
	made, err = recall.NewIndexContext(ctx, entries)
	return made, bytes, err
}
