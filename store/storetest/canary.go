package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/keyring"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/care"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestCanary lets several tenants do random things in one store, with the same
// names of threads, documents and answers and the same content of artifacts.
// Every answer must be what a model of the tenant says, and hold no word of
// another. It returns the beginning of all words: where things are encrypted,
// nothing that the store keeps may hold it. open must open the same store each
// time. A20
func TestCanary(t *testing.T, open Open, operations int) (word string) {
	ring := NewRing(t)
	db := open(t, ring)
	c := &canaries{
		tb: t, ctx: t.Context(), db: db, ring: ring, random: rand.New(rand.NewPCG(5, 6)), done: map[string]int{},
		artifacts: artifact.NewStore(db.Artifacts(), &artifact.Options{Sealer: ring}),
	}
	// Names that SQL, paths and folding of case might take for each other.
	for n, name := range []string{"", "acme", "Acme", "acme%", "ac_me", "acme/..", "acme ", "ε"} {
		c.tenants = append(c.tenants, &canaryTenant{
			Tenant: db.Tenant(name), name: name, word: fmt.Sprintf("%s%d-%016x.", canaryWord, n, c.random.Uint64()),
			threads: map[string]*canaryThread{}, documents: map[string]store.Document{}, answers: map[string]string{}, contents: map[string]string{},
		})
	}
	for n := range operations {
		c.step()
		if t.Failed() {
			t.Fatalf("at operation %d", n)
		}
	}
	for _, what := range []string{"append", "stale", "load", "commit", "plan", "events", "marks", "document", "documents", "answer", "threads", "delete", "artifact", "foreign", "rotate"} {
		if c.done[what] == 0 {
			t.Errorf("it never happened: %s", what)
		}
	}
	if _, err := care.Check(c.ctx, db, func(p care.Problem) { t.Error(p) }, &care.Options{Artifacts: c.artifacts}); err != nil {
		t.Error(err)
	}
	t.Log(c.done)
	return canaryWord
}

// canaryWord is in no other test, whose files may lie beside.
const canaryWord = "canary~7c0d~"

type canaries struct {
	tb        testing.TB
	ctx       context.Context
	db        store.DB
	artifacts *artifact.Store
	ring      *keyring.Keyring
	random    *rand.Rand
	tenants   []*canaryTenant
	done      map[string]int
}

// canaryTenant is a tenant and what it must have.
type canaryTenant struct {
	store.Tenant
	name, word string
	threads    map[string]*canaryThread
	documents  map[string]store.Document // by id; removed ones have no body
	answers    map[string]string
	contents   map[string]string // of artifacts, by id
	ids        []string          // all that ever were
}

type canaryThread struct {
	texts  []string
	plans  []string
	events int
}

func (c *canaries) step() {
	me := c.tenants[c.random.IntN(len(c.tenants))]
	id := fmt.Sprint("thread ", c.random.IntN(3))
	switch n := c.random.IntN(1000); {
	case n < 120:
		c.append(me, id)
	case n < 180:
		c.stale(me, id)
	case n < 400:
		c.load(me, id)
	case n < 430:
		c.commit(me, id)
	case n < 530:
		c.plan(me, id)
	case n < 600:
		c.events(me, id)
	case n < 640:
		c.marks(me, id)
	case n < 690:
		c.put(me, fmt.Sprint("note ", c.random.IntN(3)))
	case n < 760:
		c.documents(me)
	case n < 820:
		c.answer(me)
	case n < 850:
		c.list(me)
	case n < 855:
		c.delete(me, id)
	case n < 885:
		c.artifact(me, id)
	case n < 998:
		c.foreign(me, c.tenants[c.random.IntN(len(c.tenants))])
	default:
		c.rotate(me)
	}
}

// told looks for words of others in what a tenant was told.
func (c *canaries) told(me *canaryTenant, what string, answer any) {
	c.done[what]++
	text, ok := answer.(string)
	if !ok {
		data, err := json.Marshal(answer)
		if err != nil {
			c.tb.Fatal(err)
		}
		text = string(data)
	}
	for rest := text; ; {
		i := strings.Index(rest, canaryWord)
		if i < 0 {
			return
		}
		if rest = rest[i:]; !strings.HasPrefix(rest, me.word) {
			c.tb.Errorf("tenant %q, %s: was told of another: %.60s", me.name, what, rest)
			return
		}
		rest = rest[len(me.word):]
	}
}

func (c *canaries) want(me *canaryTenant, what string, ok bool, format string, args ...any) {
	if !ok {
		c.tb.Errorf("tenant %q, %s: %s", me.name, what, fmt.Sprintf(format, args...))
	}
}

// of is what a tenant must have of a thread.
func (t *canaryTenant) of(id string) *canaryThread {
	if m := t.threads[id]; m != nil {
		return m
	}
	return &canaryThread{}
}

func (c *canaries) append(me *canaryTenant, id string) {
	m := me.of(id)
	var list []thread.Message
	for range 1 + c.random.IntN(3) {
		text := fmt.Sprint(me.word, c.random.IntN(1000), strings.Repeat(" more", c.random.IntN(200)*c.random.IntN(2)))
		list = append(list, say(thread.User, text))
		m.texts = append(m.texts, text)
	}
	me.threads[id] = m
	th, err := me.Log.Append(c.ctx, id, len(m.texts)-len(list), list)
	if err != nil {
		c.tb.Fatal(err)
	}
	c.told(me, "append", strings.Join(texts(th), "\n"))
	c.want(me, "append", slices.Equal(texts(th), m.texts), "%d messages, want %d", th.Len(), len(m.texts))
	if len(m.texts) > 40 {
		c.delete(me, id)
	}
}

// stale writes for versions that are not there, and are there of others.
func (c *canaries) stale(me *canaryTenant, id string) {
	m := me.of(id)
	version := c.random.IntN(60)
	if version == len(m.texts) {
		return
	}
	_, err := me.Log.Append(c.ctx, id, version, []thread.Message{say(thread.User, me.word)})
	var conflict *store.ConflictError
	c.want(me, "stale", errors.As(err, &conflict) && conflict.Have == len(m.texts), "append for %d: %v, there are %d", version, err, len(m.texts))
	_, planErr := me.Plans.Commit(c.ctx, id, len(m.plans)+1+c.random.IntN(3), store.Commit{Plan: &plan.Plan{Schema: plan.SchemaVersion, ThreadID: id}})
	c.want(me, "stale", errors.As(planErr, &conflict) && conflict.Have == len(m.plans), "commit: %v, there are %d", planErr, len(m.plans))
	c.told(me, "stale", fmt.Sprint(err, planErr))
}

func (c *canaries) load(me *canaryTenant, id string) {
	th, err := me.Log.Load(c.ctx, id)
	if err != nil {
		c.tb.Fatal(err)
	}
	c.told(me, "load", strings.Join(texts(th), "\n"))
	c.want(me, "load", slices.Equal(texts(th), me.of(id).texts), "%d messages, want %d", th.Len(), len(me.of(id).texts))
}

func (c *canaries) commit(me *canaryTenant, id string) {
	m := me.of(id)
	th, err := me.Log.Load(c.ctx, id)
	if err != nil || th.Len() < 3 {
		return
	}
	task := fmt.Sprint(me.word, "plan ", c.random.IntN(1000))
	d := me.documents["with plan"]
	d.Kind, d.ID, d.Body = "note", "with plan", fmt.Appendf(nil, "%q", task)
	version, err := me.Plans.Commit(c.ctx, id, len(m.plans), store.Commit{
		Plan: &plan.Plan{Schema: plan.SchemaVersion, ThreadID: id, ThreadVersion: th.Len(), Summarizations: []plan.Summarization{{
			Span: th.Range(0, 1+c.random.IntN(2)), Summary: summary.Summary{CurrentTask: task}, SummaryTokens: 3, Origin: plan.Origin{Strategy: "test", Reason: task},
		}}},
		Events:    []event.Event{{Type: event.Completed, TokensFreed: len(me.word)}},
		Documents: []store.Document{d},
	})
	m.plans, m.events = append(m.plans, task), m.events+1
	d.Version++
	me.documents[d.ID] = d
	c.told(me, "commit", fmt.Sprint(version, err))
	c.want(me, "commit", err == nil && version == len(m.plans), "%d, %v, want %d", version, err, len(m.plans))
}

func (c *canaries) plan(me *canaryTenant, id string) {
	m := me.of(id)
	p, version, err := me.Plans.Current(c.ctx, id)
	c.told(me, "plan", p)
	c.want(me, "plan", err == nil && version == len(m.plans), "current %d, %v, want %d", version, err, len(m.plans))
	n := 1 + c.random.IntN(12)
	p, err = me.Plans.Plan(c.ctx, id, n)
	c.told(me, "plan", p)
	switch {
	case n > len(m.plans):
		c.want(me, "plan", errors.Is(err, store.ErrNotFound), "version %d of %d: %v", n, len(m.plans), err)
	case err != nil:
		c.tb.Fatal(err)
	default:
		c.want(me, "plan", p.Summarizations[0].Summary.CurrentTask == m.plans[n-1], "version %d is another", n)
	}
}

func (c *canaries) events(me *canaryTenant, id string) {
	m := me.of(id)
	if c.random.IntN(3) == 0 {
		err := me.Events.Record(c.ctx, event.Event{Type: event.Completed, ThreadID: id, TokensFreed: len(me.word)})
		if err != nil {
			c.tb.Fatal(err)
		}
		m.events++
		me.threads[id] = m
	}
	after := c.random.IntN(5)
	page, err := me.Events.Events(c.ctx, id, after, store.MaxLimit)
	c.told(me, "events", page)
	c.want(me, "events", err == nil && len(page) == max(0, m.events-after), "%d behind %d, %v, there are %d", len(page), after, err, m.events)
}

func (c *canaries) marks(me *canaryTenant, id string) {
	marks, err := me.Plans.Compacted(c.ctx, id)
	if err != nil {
		c.tb.Fatal(err)
	}
	th, err := me.Log.Load(c.ctx, id)
	if err != nil {
		c.tb.Fatal(err)
	}
	for message := range marks {
		_, mine := th.Index(message)
		c.want(me, "marks", mine, "a mark of %s, which is not in the thread", message)
	}
	c.told(me, "marks", marks)
	c.want(me, "marks", (len(marks) > 0) == (len(me.of(id).plans) > 0), "%d marks, %d plans", len(marks), len(me.of(id).plans))
}

func (c *canaries) put(me *canaryTenant, id string) {
	d := me.documents[id]
	wrong := d
	wrong.Kind, wrong.ID, wrong.Version, wrong.Body = "note", id, d.Version+1+c.random.IntN(3), []byte(`1`)
	_, err := me.Documents.Put(c.ctx, wrong)
	c.want(me, "document", errors.Is(err, store.ErrConflict), "%v", err)
	c.told(me, "document", fmt.Sprint(err))
	if len(d.Body) == 0 {
		d.Version = 0 // one that was removed is made as one that never was
	}
	d.Kind, d.ID, d.Body = "note", id, fmt.Appendf(nil, "%q", fmt.Sprint(me.word, c.random.IntN(1000)))
	if d.Version > 0 && c.random.IntN(4) == 0 {
		d.Body = nil
	}
	version, err := me.Documents.Put(c.ctx, d)
	c.want(me, "document", err == nil && version > d.Version, "%d, %v", version, err)
	d.Version = version
	me.documents[id] = d
}

func (c *canaries) documents(me *canaryTenant) {
	page, err := me.Documents.Documents(c.ctx, "note", "", store.MaxLimit)
	c.told(me, "documents", page)
	n := 0
	for _, d := range me.documents {
		if len(d.Body) > 0 {
			n++
		}
	}
	c.want(me, "documents", err == nil && len(page) == n, "%d, %v, want %d", len(page), err, n)
	for _, d := range page {
		want := me.documents[d.ID]
		c.want(me, "documents", string(d.Body) == string(want.Body) && d.Version == want.Version, "%+v, want %+v", d, want)
		one, err := me.Documents.Document(c.ctx, d.Kind, d.ID)
		c.want(me, "documents", err == nil && string(one.Body) == string(d.Body), "%+v, %v", one, err)
	}
}

func (c *canaries) answer(me *canaryTenant) {
	key := fmt.Sprint("key ", c.random.IntN(4))
	if c.random.IntN(4) == 0 {
		me.answers[key] = fmt.Sprint(me.word, c.random.IntN(1000))
		me.Answers.Put(c.ctx, key, []byte(me.answers[key]))
	}
	got, ok := me.Answers.Get(c.ctx, key)
	c.told(me, "answer", string(got))
	c.want(me, "answer", ok == (me.answers[key] != "") && string(got) == me.answers[key], "%q %v, want %q", got, ok, me.answers[key])
}

func (c *canaries) list(me *canaryTenant) {
	page, err := me.Catalog.Threads(c.ctx, "", 0)
	c.told(me, "threads", page)
	c.want(me, "threads", err == nil && len(page) == len(me.threads), "%d, %v, want %d", len(page), err, len(me.threads))
	for _, info := range page {
		m := me.of(info.ID)
		c.want(me, "threads", info.Messages == len(m.texts) && info.Plans == len(m.plans) && info.Events == m.events, "%+v", info)
	}
}

func (c *canaries) delete(me *canaryTenant, id string) {
	c.done["delete"]++
	if err := me.Catalog.Delete(c.ctx, id); err != nil {
		c.tb.Fatal(err)
	}
	delete(me.threads, id)
	for artifactID, content := range me.contents {
		if strings.HasPrefix(content, id+" ") {
			delete(me.contents, artifactID)
		}
	}
}

// artifact keeps content that others have too, and of their own.
func (c *canaries) artifact(me *canaryTenant, id string) {
	content := fmt.Sprint(id, " ", me.word, c.random.IntN(50), strings.Repeat(" long", 40_000*(c.random.IntN(20)/19)))
	if c.random.IntN(2) == 0 {
		content = fmt.Sprint(id, " of all ", c.random.IntN(5))
	}
	artifactID, err := c.artifacts.Put(c.ctx, artifact.Metadata{TenantID: me.name, ThreadID: id}, content)
	c.told(me, "artifact", fmt.Sprint(artifactID, err))
	c.want(me, "artifact", err == nil, "%v", err)
	me.contents[artifactID] = content
	me.ids = append(me.ids, artifactID)
}

// foreign reads an artifact by an id that somebody has, and lists one's own.
func (c *canaries) foreign(me, them *canaryTenant) {
	if len(them.ids) == 0 {
		return
	}
	id := them.ids[c.random.IntN(len(them.ids))]
	m, content, err := c.artifacts.Get(c.ctx, artifact.Requester{TenantID: me.name}, id)
	c.told(me, "foreign", fmt.Sprint(m, content, err))
	want, mine := me.contents[id]
	if mine {
		c.want(me, "foreign", err == nil && content == want, "%s: %.40q, %v", id, content, err)
	} else {
		c.want(me, "foreign", errors.Is(err, artifact.ErrNotFound), "%s: %.40q, %v", id, content, err)
	}
	if c.random.IntN(20) > 0 {
		return
	}
	n := 0
	for m, err := range c.artifacts.List(c.ctx, artifact.Requester{TenantID: me.name}, artifact.Filter{TenantID: them.name}) {
		c.told(me, "foreign", fmt.Sprint(m, err))
		_, mine := me.contents[m.ID]
		c.want(me, "foreign", err == nil && mine, "lists %+v, %v", m, err)
		n++
	}
	c.want(me, "foreign", n == len(me.contents), "%d listed, want %d", n, len(me.contents))
}

// rotate changes the key of a tenant, and seals all of it anew now and then.
func (c *canaries) rotate(me *canaryTenant) {
	c.done["rotate"]++
	_, err := c.ring.Rotate(c.ctx, me.name)
	if sealed, ok := c.db.(store.Sealed); ok && err == nil && c.random.IntN(2) == 0 {
		if _, err = sealed.Reseal(c.ctx, me.name); err == nil {
			_, err = c.artifacts.Reseal(c.ctx, artifact.Requester{TenantID: me.name})
		}
	}
	if err != nil {
		c.tb.Fatal(err)
	}
}
