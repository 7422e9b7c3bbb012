package care

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Problem is an inconsistency in a store.
type Problem struct {
	Tenant string `json:"tenant,omitempty"`
	Thread string `json:"thread,omitempty"`
	// Where is the message, plan, event, document or artifact.
	Where  string `json:"where,omitempty"`
	Reason string `json:"reason"`
}

// String writes the place and the reason.
func (p Problem) String() string {
	text := ""
	for _, place := range []struct{ of, name string }{{"tenant ", p.Tenant}, {"thread ", p.Thread}, {"", p.Where}} {
		if place.name != "" {
			text += place.of + place.name + ": "
		}
	}
	return text + p.Reason
}

// checker is the state of Check.
type checker struct {
	db       store.DB
	contents *artifact.Store
	counts   Counts
	tell     func(Problem)
	names    func(id, scope, content string) bool // of the tenant
}

// Check reads everything and calls tell for each problem: messages whose ids do not follow
// from their content and the messages before, plans that are not valid for their thread,
// marks that do not match the plans, pointers to missing content, changed content, damage
// that the database engine reports, and whatever cannot be read. Tenants whose keys were
// erased are counted and skipped. Check changes nothing, and other processes may write at
// the same time. The error is that of a store that cannot be read at all.
func Check(ctx context.Context, db store.DB, tell func(Problem), artifacts *artifact.Store) (_ Counts, err error) {
	defer wrap(&err, "Check")
	c := &checker{db: db, contents: contentsOf(db, artifacts), tell: tell}
	c.counts.Tenants, c.counts.Erased, err = walk(ctx, db, visitor{
		tenant: func(tenant string) (err error) {
			c.names, err = c.contents.Names(ctx, tenant)
			return err
		},
		thread:   func(tenant string, info store.Info) error { return c.thread(ctx, tenant, info) },
		artifact: func(tenant string, m artifact.Metadata, err error) error { return c.artifact(ctx, tenant, m, err) },
		document: func(tenant string, d store.Document, err error) error {
			c.counts.Documents++
			if err != nil {
				c.tell(Problem{Tenant: tenant, Where: "documents of kind " + d.Kind, Reason: err.Error()})
			}
			return nil
		},
	})
	if p, ok := db.(store.Prober); ok && err == nil {
		var damage []string
		damage, err = p.Damage(ctx)
		for _, line := range damage {
			tell(Problem{Where: "the database", Reason: line})
		}
	}
	return c.counts, err
}

func (c *checker) thread(ctx context.Context, tenant string, info store.Info) error {
	s, before := c.db.Tenant(tenant), c.counts
	var problems []Problem
	err := c.readThread(ctx, tenant, info, func(where string, format string, args ...any) {
		problems = append(problems, Problem{Tenant: tenant, Thread: info.ID, Where: where, Reason: fmt.Sprintf(format, args...)})
	})
	if len(problems) > 0 && replaced(ctx, s, info) {
		c.counts = before
		return err
	}
	for _, p := range problems {
		c.tell(p)
	}
	return err
}

func (c *checker) readThread(ctx context.Context, tenant string, info store.Info, tell func(where, format string, args ...any)) error {
	s := c.db.Tenant(tenant)
	c.counts.Threads++
	log, err := s.Log.Load(ctx, info.ID)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		tell("the log", "%v", err)
		return nil
	}
	if log.Len() < info.Messages {
		tell("the log", "it has %d messages, %d were written", log.Len(), info.Messages)
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
	read := 0
	for _, err := range events(ctx, s, info) {
		if err != nil {
			tell(fmt.Sprint("event ", read+1), "%v", err)
			break
		}
		read++
	}
	c.counts.Events += read
	return ctx.Err()
}

// chained is the form of the ids that thread.ChainID makes.
var chained = lazyregexp.New(`^[0-9a-f]{32}$`)

func (c *checker) messages(log *thread.Thread, tell func(string, string, ...any)) {
	parent := thread.ID("")
	for i, m := range log.All() {
		c.counts.Messages++
		switch want := thread.ChainID(parent, m); {
		case m.ID == want:
		case chained().MatchString(string(m.ID)):
			tell(fmt.Sprintf("message %d, %s", i, m.ID), "its content and the messages before it give the id %s: one of them was changed", want)
		default:
			c.counts.Brought++
		}
		parent = m.ID
	}
}

// pointers looks for the content that the plan points to, in the log and in the artifacts.
func (c *checker) pointers(ctx context.Context, tenant string, log *thread.Thread, p *plan.Plan, tell func(string, ...any)) {
	for _, x := range p.Externalized() {
		if c.inLog(log, x) {
			continue
		}
		if _, _, err := c.contents.Dump(ctx, tenant, x.ArtifactID); err != nil {
			tell("its pointer %s is broken: %v", x.ArtifactID, err)
		}
	}
}

// inLog reports whether one of the messages of the pointer has its content.
func (c *checker) inLog(log *thread.Thread, x plan.External) bool {
	for _, id := range x.Messages {
		i, ok := log.Index(id)
		if !ok {
			continue
		}
		if _, ok := recall.FindContent(log.At(i), func(content string) bool { return c.names(x.ArtifactID, log.ID(), content) }); ok {
			return true
		}
	}
	return false
}

// marks compares the marks with what the newest plan covers, unless it has just been
// replaced.
func (c *checker) marks(ctx context.Context, s store.Tenant, log *thread.Thread, info store.Info, tell func(string, string, ...any)) {
	marks, err := s.Plans.Compacted(ctx, info.ID)
	if err != nil {
		tell("the marks", "%v", err)
		return
	}
	p, version, err := s.Plans.Current(ctx, info.ID)
	if err != nil || version != info.Plans {
		return // reported with the plans, or a newer plan
	}
	covered := 0
	for id := range cmp.Or(p, &plan.Plan{}).Actions() {
		if _, held := log.Index(id); !held {
			continue
		}
		covered++
		if since := marks[id]; since < 1 || since > version {
			tell("message "+string(id), "it is marked as compacted since plan %d, and plan %d covers it", since, version)
		}
	}
	if len(marks) > covered {
		tell("the marks", "%d messages are marked as compacted, plan %d covers %d", len(marks), version, covered)
	}
}

func (c *checker) artifact(ctx context.Context, tenant string, m artifact.Metadata, err error) error {
	c.counts.Artifacts++
	content := ""
	if err == nil {
		_, content, err = c.contents.Dump(ctx, tenant, m.ID)
	}
	if err != nil && !errors.Is(err, artifact.ErrNotFound) { // just deleted
		c.tell(Problem{Tenant: tenant, Thread: m.ThreadID, Where: "artifact " + m.ID, Reason: err.Error()})
	}
	c.counts.ArtifactBytes += int64(len(content))
	return nil
}
