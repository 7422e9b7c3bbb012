// Package care looks after the data of a store: it checks that all of it fits
// together, and moves it from any store to any other. It needs nothing but the
// contracts of package store.
package care

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Counts are how much of each kind there is.
type Counts struct {
	Tenants   int `json:"tenants"`
	Threads   int `json:"threads"`
	Messages  int `json:"messages"`
	Plans     int `json:"plans"`
	Events    int `json:"events"`
	Documents int `json:"documents"`
	Artifacts int `json:"artifacts"`
	// ArtifactBytes is the length of all contents of artifacts.
	ArtifactBytes int64 `json:"artifact_bytes"`
	// Erased counts tenants whose keys were erased: nothing of them can be read,
	// and what is left of them is in none of the other counts.
	Erased int `json:"erased_tenants,omitempty"`
	// Brought counts messages whose id was given by a caller, so that it says
	// nothing about their content.
	Brought int `json:"brought_ids,omitempty"`
}

// Problem is something in a store that does not fit together.
type Problem struct {
	Tenant string `json:"tenant,omitempty"`
	Thread string `json:"thread,omitempty"`
	// Where names the message, plan, event, document or artifact.
	Where  string `json:"where,omitempty"`
	Reason string `json:"reason"`
}

// String writes the place and the reason.
func (p Problem) String() string {
	text := ""
	if p.Tenant != "" {
		text += fmt.Sprintf("tenant %s: ", p.Tenant)
	}
	if p.Thread != "" {
		text += fmt.Sprintf("thread %s: ", p.Thread)
	}
	if p.Where != "" {
		text += p.Where + ": "
	}
	return text + p.Reason
}

// Options tune Check, Export and Import; nil or the zero value holds the defaults.
type Options struct {
	// Artifacts holds what is true of artifacts over the store's own backend, with
	// the keys where contents are encrypted. Nil is one without keys, to which
	// encrypted contents are closed: Check cannot look into them, and Export fails.
	Artifacts *artifact.Store
}

func (o *Options) artifacts(db store.DB) *artifact.Store {
	if o != nil && o.Artifacts != nil {
		return o.Artifacts
	}
	return artifact.NewStore(db.Artifacts(), nil)
}

// checker carries what Check finds.
type checker struct {
	db       store.DB
	contents *artifact.Store
	counts   Counts
	tell     func(Problem)
	names    func(id, scope, content string) bool // of the tenant
}

// Check reads everything and tells what does not fit together: messages whose
// ids do not follow from their content and those before, plans that do not hold
// for their thread, marks that do not say what the plans say, pointers that lead
// nowhere, contents that are not what was put in, and whatever cannot be read.
// Tenants whose keys were erased are counted and passed over. It changes nothing,
// and what is written meanwhile does no harm. The error is that of a store that
// cannot be read at all.
func Check(ctx context.Context, db store.DB, tell func(Problem), o *Options) (Counts, error) {
	c := &checker{db: db, contents: o.artifacts(db), tell: tell}
	err := c.tenants(ctx)
	if err != nil {
		err = fmt.Errorf("care.Check: %w", err)
	}
	return c.counts, err
}

func (c *checker) tenants(ctx context.Context) error {
	for tenant, err := range c.db.Tenants(ctx) {
		if err != nil {
			return err
		}
		switch gone, err := erased(ctx, c.db, tenant); {
		case err != nil:
			return err
		case gone:
			c.counts.Erased++
			continue
		}
		c.counts.Tenants++
		if c.names, err = c.contents.Names(ctx, tenant); err != nil {
			return err
		}
		for info, err := range threads(ctx, c.db.Tenant(tenant)) {
			if err != nil {
				return err
			}
			if err := c.thread(ctx, tenant, info); err != nil {
				return err
			}
		}
		if err := c.artifacts(ctx, tenant); err != nil {
			return err
		}
		for d, err := range documents(ctx, c.db.Tenant(tenant)) {
			c.counts.Documents++
			if err != nil {
				c.tell(Problem{Tenant: tenant, Where: "documents of kind " + d.Kind, Reason: err.Error()})
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// erased reports whether the keys of a tenant were erased. A store says so, where
// its keys can be erased at all.
func erased(ctx context.Context, db store.DB, tenant string) (bool, error) {
	k, ok := db.(store.Sealed)
	if !ok {
		return false, nil
	}
	return k.Erased(ctx, tenant)
}

// threads yields all threads of a tenant.
func threads(ctx context.Context, s store.Tenant) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for after := ""; ; {
			page, err := s.Catalog.Threads(ctx, after, store.MaxLimit)
			if err != nil {
				yield(store.Info{}, err)
				return
			}
			for _, info := range page {
				if !yield(info, nil) {
					return
				}
				after = info.ID
			}
			if len(page) == 0 {
				return
			}
		}
	}
}

// documents yields all documents of a tenant. A kind that cannot be read comes
// as an error, and the next one follows.
func documents(ctx context.Context, s store.Tenant) iter.Seq2[store.Document, error] {
	return func(yield func(store.Document, error) bool) {
		kinds, err := s.Documents.Kinds(ctx)
		if err != nil {
			yield(store.Document{}, err)
			return
		}
		for _, kind := range kinds {
			for after := ""; ; {
				page, err := s.Documents.Documents(ctx, kind, after, store.DefaultLimit)
				if err != nil {
					if !yield(store.Document{Kind: kind}, err) {
						return
					}
					break
				}
				for _, d := range page {
					if !yield(d, nil) {
						return
					}
					after = d.ID
				}
				if len(page) == 0 {
					break
				}
			}
		}
	}
}

// events yields all events of a thread, up to those that there were when it was
// looked up.
func events(ctx context.Context, s store.Tenant, info store.Info) iter.Seq2[recorded, error] {
	return func(yield func(recorded, error) bool) {
		for n := 0; n < info.Events; {
			page, err := s.Events.Events(ctx, info.ID, n, store.MaxLimit)
			if err == nil && len(page) == 0 {
				err = errors.New("it is missing")
			}
			if err != nil {
				yield(recorded{position: n + 1}, err)
				return
			}
			for _, e := range page[:min(len(page), info.Events-n)] {
				n++
				if !yield(recorded{position: n, Event: e}, nil) {
					return
				}
			}
		}
	}
}

func (c *checker) thread(ctx context.Context, tenant string, info store.Info) error {
	s := c.db.Tenant(tenant)
	c.counts.Threads++
	tell := func(where string, format string, args ...any) {
		c.tell(Problem{Tenant: tenant, Thread: info.ID, Where: where, Reason: fmt.Sprintf(format, args...)})
	}
	log, err := s.Log.Load(ctx, info.ID)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		tell("the log", "%v", err)
		return nil
	}
	if log.Len() < info.Messages {
		tell("the log", "%d messages where %d were written", log.Len(), info.Messages)
	}
	c.messages(log, tell)
	pairs := thread.Pair(log)
	for v := 1; v <= info.Plans; v++ {
		p, err := s.Plans.Plan(ctx, info.ID, v)
		if err != nil {
			tell(fmt.Sprint("plan ", v), "%v", err)
			continue
		}
		c.counts.Plans++
		if err := p.ValidatePairs(log, pairs); err != nil {
			tell(fmt.Sprint("plan ", v), "%v", err)
			continue
		}
		c.pointers(ctx, tenant, log, p, func(format string, args ...any) { tell(fmt.Sprint("plan ", v), format, args...) })
	}
	c.marks(ctx, s, log, info, tell)
	for e, err := range events(ctx, s, info) {
		if err != nil {
			tell(fmt.Sprint("event ", e.position), "%v", err)
			break
		}
		c.counts.Events++
	}
	return ctx.Err()
}

// chained is the form of the ids that thread.ChainID makes.
var chained = regexp.MustCompile(`^[0-9a-f]{32}$`)

func (c *checker) messages(log *thread.Thread, tell func(string, string, ...any)) {
	parent := thread.ID("")
	for i, m := range uncopied.All(log) {
		c.counts.Messages++
		switch want := thread.ChainID(parent, m); {
		case m.ID == want:
		case chained.MatchString(string(m.ID)):
			tell(fmt.Sprintf("message %d, %s", i, m.ID), "its content and the messages before it give the id %s: one of them is not what was written", want)
		default:
			c.counts.Brought++
		}
		parent = m.ID
	}
}

// pointers looks for the content that the plan's pointers mean: in the
// artifacts, or in the log, which still has all that was said.
func (c *checker) pointers(ctx context.Context, tenant string, log *thread.Thread, p *plan.Plan, tell func(string, ...any)) {
	for _, x := range p.Externalizations {
		if c.inLog(log, x) {
			continue
		}
		_, _, err := c.contents.Dump(ctx, tenant, x.ArtifactID)
		if err != nil {
			tell("its pointer %s leads nowhere: %v", x.ArtifactID, err)
		}
	}
}

// inLog reports whether one of the messages of the span holds just the content
// that the pointer names.
func (c *checker) inLog(log *thread.Thread, x plan.Externalization) bool {
	for _, id := range x.Span.MessageIDs {
		i, ok := log.Index(id)
		if !ok {
			continue
		}
		m := uncopied.At(log, i)
		contents := []string{recall.FullText(m), m.Text()}
		if r, ok := m.Result(); ok {
			contents = append(contents, r.Text())
		}
		for _, content := range contents {
			if c.names(x.ArtifactID, log.ID(), content) {
				return true
			}
		}
	}
	return false
}

// marks compares the marks with what the newest plan covers, unless a newer one
// came meanwhile.
func (c *checker) marks(ctx context.Context, s store.Tenant, log *thread.Thread, info store.Info, tell func(string, string, ...any)) {
	marks, err := s.Plans.Compacted(ctx, info.ID)
	if err != nil {
		tell("the marks", "%v", err)
		return
	}
	p, version, err := s.Plans.Current(ctx, info.ID)
	if err != nil || version != info.Plans {
		return // told with the plans, or another plan
	}
	covered := 0
	if p != nil {
		for id := range p.Actions() {
			if _, held := log.Index(id); !held {
				continue
			}
			covered++
			if since := marks[id]; since < 1 || since > version {
				tell("message "+string(id), "it is marked as compacted since plan %d, and plan %d covers it", since, version)
			}
		}
	}
	if len(marks) > covered {
		tell("the marks", "%d messages are marked as compacted, plan %d covers %d", len(marks), version, covered)
	}
}

func (c *checker) artifacts(ctx context.Context, tenant string) error {
	for m, err := range c.db.Artifacts().List(ctx, artifact.Filter{TenantID: tenant}) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.counts.Artifacts++
		where := "artifact " + m.ID
		if err != nil {
			c.tell(Problem{Tenant: tenant, Thread: m.ThreadID, Where: where, Reason: err.Error()})
			continue
		}
		_, content, err := c.contents.Dump(ctx, tenant, m.ID)
		if errors.Is(err, artifact.ErrNotFound) { // deleted meanwhile
			continue
		}
		if err != nil {
			c.tell(Problem{Tenant: tenant, Thread: m.ThreadID, Where: where, Reason: err.Error()})
		}
		c.counts.ArtifactBytes += int64(len(content))
	}
	return nil
}

// Count counts without reading contents, but for those of documents.
func Count(ctx context.Context, db store.DB) (Counts, error) {
	var c Counts
	err := count(ctx, db, &c)
	if err != nil {
		err = fmt.Errorf("care.Count: %w", err)
	}
	return c, err
}

func count(ctx context.Context, db store.DB, c *Counts) error {
	for tenant, err := range db.Tenants(ctx) {
		if err != nil {
			return err
		}
		switch gone, err := erased(ctx, db, tenant); {
		case err != nil:
			return err
		case gone:
			c.Erased++
			continue
		}
		c.Tenants++
		s := db.Tenant(tenant)
		for info, err := range threads(ctx, s) {
			if err != nil {
				return err
			}
			c.Threads++
			c.Messages += info.Messages
			c.Plans += info.Plans
			c.Events += info.Events
		}
		for _, err := range documents(ctx, s) {
			if err != nil {
				return err
			}
			c.Documents++
		}
		for m, err := range db.Artifacts().List(ctx, artifact.Filter{TenantID: tenant}) {
			if err != nil {
				return err
			}
			c.Artifacts++
			c.ArtifactBytes += int64(m.Bytes)
		}
	}
	return nil
}
