package storetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
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
		db: db, ring: ring, random: rand.New(rand.NewPCG(5, 6)),
		artifacts: artifact.NewStore(db.Artifacts(), &artifact.Options{Keyring: ring}),
	}
	// Names that SQL, paths and folding of case might take for each other.
	for n, name := range []string{"", "acme", "Acme", "acme%", "ac_me", "acme/..", "acme ", "ε"} {
		c.tenants = append(c.tenants, &canary{
			tenant: tenant{db.Tenant(name), test{t}}, canaries: c, name: name, word: fmt.Sprintf("%s%d-%016x.", canaryWord, n, c.random.Uint64()),
			threads: map[string]*canaryThread{}, documents: map[string]store.Document{}, answers: map[string]string{}, contents: map[string]string{},
		})
	}
	done := map[string]int{}
	for n := range operations {
		done[c.step()]++
		if t.Failed() {
			t.Fatalf("at operation %d", n)
		}
	}
	for _, s := range canarySteps {
		if done[s.name] == 0 {
			t.Errorf("it never happened: %s", s.name)
		}
	}
	if _, err := care.Check(t.Context(), db, func(p care.Problem) { t.Error(p) }, c.artifacts); err != nil {
		t.Error(err)
	}
	t.Log(done)
	return canaryWord
}

// canaryWord is in no other test, whose files may lie beside.
const canaryWord = "canary~7c0d~"

type canaries struct {
	db        store.DB
	artifacts *artifact.Store
	ring      *keyring.Keyring
	random    *rand.Rand
	tenants   []*canary
}

// canary is a tenant and what it must have.
type canary struct {
	tenant
	*canaries
	name, word string
	doing      string
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

// canarySteps are what tenants do with one of their threads or besides, and how often
// in a thousand.
var canarySteps = []struct {
	name  string
	often int
	do    func(me *canary, id string)
}{
	{"append", 120, (*canary).says}, {"stale", 60, (*canary).stale}, {"load", 220, (*canary).load}, {"commit", 30, (*canary).compacts},
	{"plan", 100, (*canary).plan}, {"events", 70, (*canary).records}, {"marks", 40, (*canary).marked}, {"document", 50, (*canary).notes},
	{"documents", 70, (*canary).lists}, {"answer", 60, (*canary).answer}, {"threads", 30, (*canary).listsThreads}, {"delete", 5, (*canary).deletes},
	{"artifact", 30, (*canary).externalizes}, {"foreign", 113, (*canary).foreign}, {"rotate", 2, (*canary).rotates},
}

// step does one thing and returns its name.
func (c *canaries) step() string {
	me := c.tenants[c.random.IntN(len(c.tenants))]
	n := c.random.IntN(1000)
	for _, s := range canarySteps {
		if n -= s.often; n < 0 {
			me.doing = s.name
			s.do(me, fmt.Sprint("thread ", c.random.IntN(3)))
			return s.name
		}
	}
	panic("the steps do not add up to a thousand")
}

// told looks for words of others in what the tenant was told.
func (me *canary) told(answer any) {
	me.Helper()
	data, err := json.Marshal(answer)
	me.need(err)
	for rest := string(data); ; rest = rest[len(me.word):] {
		i := strings.Index(rest, canaryWord)
		if i < 0 {
			return
		}
		if rest = rest[i:]; !strings.HasPrefix(rest, me.word) {
			me.want(false, "was told of another: %.60s", rest)
			return
		}
	}
}

func (me *canary) want(ok bool, format string, args ...any) {
	me.Helper()
	if !ok {
		me.Errorf("tenant %q, %s: %s", me.name, me.doing, fmt.Sprintf(format, args...))
	}
}

// of is what the tenant must have of a thread.
func (me *canary) of(id string) *canaryThread {
	if m := me.threads[id]; m != nil {
		return m
	}
	return &canaryThread{}
}

// said is a text of the tenant.
func (me *canary) said(what string) string {
	return fmt.Sprint(me.word, what, me.random.IntN(1000))
}

func (me *canary) says(id string) {
	m := me.of(id)
	from := len(m.texts)
	for range 1 + me.random.IntN(3) {
		m.texts = append(m.texts, me.said("")+strings.Repeat(" more", me.random.IntN(200)*me.random.IntN(2)))
	}
	me.threads[id] = m
	th := me.append(id, from, m.texts[from:]...)
	me.told(texts(th))
	me.want(slices.Equal(texts(th), m.texts), "%d messages, want %d", th.Len(), len(m.texts))
	if len(m.texts) > 40 {
		me.deletes(id)
	}
}

// stale writes for versions that are not there, and are there of others.
func (me *canary) stale(id string) {
	m := me.of(id)
	version := me.random.IntN(60)
	if version == len(m.texts) {
		return
	}
	err := me.add(id, version, me.word)
	me.conflict(err, id, version, len(m.texts))
	next := len(m.plans) + 1 + me.random.IntN(3)
	_, planErr := me.Plans.Commit(me.Context(), id, next, store.Commit{Plan: &plan.Plan{Schema: plan.SchemaVersion, ThreadID: id}})
	me.conflict(planErr, id, next, len(m.plans))
	me.told(fmt.Sprint(err, planErr))
}

func (me *canary) load(id string) { me.told(texts(me.holds(id, me.of(id).texts...))) }

func (me *canary) compacts(id string) {
	m := me.of(id)
	if len(m.texts) < 3 {
		return
	}
	th, task, d := me.holds(id, m.texts...), me.said("plan "), me.documents["with plan"]
	d.Kind, d.ID, d.Body = "note", "with plan", fmt.Appendf(nil, "%q", task)
	me.commit(id, len(m.plans), store.Commit{
		Plan: &plan.Plan{Schema: plan.SchemaVersion, ThreadID: id, ThreadVersion: th.Len(), Summarizations: []plan.Summarization{{
			Span: th.Range(0, 1+me.random.IntN(2)), Summary: summary.Summary{CurrentTask: task}, SummaryTokens: 3, Origin: plan.Origin{Strategy: "test", Reason: task},
		}}},
		Events:    []event.Event{{Type: event.Completed, TokensFreed: len(me.word)}},
		Documents: []store.Document{d},
	})
	m.plans, m.events = append(m.plans, task), m.events+1
	d.Version++
	me.documents[d.ID] = d
}

func (me *canary) plan(id string) {
	m := me.of(id)
	me.told(me.current(id, len(m.plans)))
	n := 1 + me.random.IntN(12)
	p, err := me.Plans.Plan(me.Context(), id, n)
	me.told(p)
	if n > len(m.plans) {
		me.is(store.ErrNotFound, err)
		return
	}
	me.need(err)
	me.want(p.Summarizations[0].Summary.CurrentTask == m.plans[n-1], "version %d is another", n)
}

func (me *canary) records(id string) {
	m := me.of(id)
	if me.random.IntN(3) == 0 {
		me.need(me.Events.Record(me.Context(), event.Event{Type: event.Completed, ThreadID: id, TokensFreed: len(me.word)}))
		m.events++
		me.threads[id] = m
	}
	after := me.random.IntN(5)
	page, err := me.Events.Events(me.Context(), id, after, store.MaxLimit)
	me.told(page)
	me.want(err == nil && len(page) == max(0, m.events-after), "%d behind %d, %v, there are %d", len(page), after, err, m.events)
}

func (me *canary) marked(id string) {
	marks, th := me.marks(id), me.holds(id, me.of(id).texts...)
	for message := range marks {
		_, mine := th.Index(message)
		me.want(mine, "a mark of %s, which is not in the thread", message)
	}
	me.told(marks)
	me.want((len(marks) > 0) == (len(me.of(id).plans) > 0), "%d marks, %d plans", len(marks), len(me.of(id).plans))
}

func (me *canary) notes(string) {
	id := fmt.Sprint("note ", me.random.IntN(3))
	d := me.documents[id]
	d.Kind, d.ID = "note", id
	wrong := d
	wrong.Version, wrong.Body = d.Version+1+me.random.IntN(3), []byte(`1`)
	_, err := me.Documents.Put(me.Context(), wrong)
	me.is(store.ErrConflict, err)
	me.told(fmt.Sprint(err))
	if len(d.Body) == 0 {
		d.Version = 0 // one that was removed is made as one that never was
	}
	d.Body = fmt.Appendf(nil, "%q", me.said(""))
	if d.Version > 0 && me.random.IntN(4) == 0 {
		d.Body = nil
	}
	d.Version = me.put(d.Kind, id, d.Version, string(d.Body))
	me.documents[id] = d
}

func (me *canary) lists(string) {
	page, err := me.Documents.Documents(me.Context(), "note", "", store.MaxLimit)
	me.need(err)
	me.told(page)
	there := maps.Clone(me.documents)
	maps.DeleteFunc(there, func(_ string, d store.Document) bool { return len(d.Body) == 0 })
	me.want(len(page) == len(there), "%d, want %d", len(page), len(there))
	for _, d := range page {
		want := there[d.ID]
		me.want(string(d.Body) == string(want.Body) && d.Version == want.Version, "%+v, want %+v", d, want)
		me.document(d.Kind, d.ID, string(want.Body))
	}
}

func (me *canary) answer(string) {
	key := fmt.Sprint("key ", me.random.IntN(4))
	if me.random.IntN(4) == 0 {
		me.answers[key] = me.said("")
		me.Answers.Put(me.Context(), key, []byte(me.answers[key]))
	}
	got, ok := me.Answers.Get(me.Context(), key)
	me.told(string(got))
	me.want(ok == (me.answers[key] != "") && string(got) == me.answers[key], "%q %v, want %q", got, ok, me.answers[key])
}

func (me *canary) listsThreads(string) {
	page, err := me.Catalog.Threads(me.Context(), "", 0)
	me.told(page)
	me.want(err == nil && len(page) == len(me.threads), "%d, %v, want %d", len(page), err, len(me.threads))
	for _, info := range page {
		m := me.of(info.ID)
		me.want(info.Messages == len(m.texts) && info.Plans == len(m.plans) && info.Events == m.events, "%+v", info)
	}
}

func (me *canary) deletes(id string) {
	me.need(me.Catalog.Delete(me.Context(), id))
	delete(me.threads, id)
	maps.DeleteFunc(me.contents, func(_, content string) bool { return strings.HasPrefix(content, id+" ") })
}

// externalizes keeps content that others have too, and of its own.
func (me *canary) externalizes(id string) {
	content := fmt.Sprint(id, " ", me.said(""), strings.Repeat(" long", 40_000*(me.random.IntN(20)/19)))
	if me.random.IntN(2) == 0 {
		content = fmt.Sprint(id, " of all ", me.random.IntN(5))
	}
	artifactID, err := me.artifacts.Put(me.Context(), artifact.Metadata{TenantID: me.name, ThreadID: id}, content)
	me.need(err)
	me.contents[artifactID] = content
	me.ids = append(me.ids, artifactID)
}

// foreign reads an artifact by an id that somebody has, and lists one's own.
func (me *canary) foreign(string) {
	them := me.tenants[me.random.IntN(len(me.tenants))]
	if len(them.ids) == 0 {
		return
	}
	id := them.ids[me.random.IntN(len(them.ids))]
	m, content, err := me.artifacts.Get(me.Context(), artifact.Requester{TenantID: me.name}, id)
	me.told(fmt.Sprint(m, content, err))
	if want, mine := me.contents[id]; mine {
		me.want(err == nil && content == want, "%s: %.40q, %v", id, content, err)
	} else {
		me.is(artifact.ErrNotFound, err)
	}
	if me.random.IntN(20) > 0 {
		return
	}
	n := 0
	for m, err := range me.artifacts.List(me.Context(), artifact.Requester{TenantID: me.name}, artifact.Filter{TenantID: them.name}) {
		me.told(fmt.Sprint(m, err))
		_, mine := me.contents[m.ID]
		me.want(err == nil && mine, "lists %+v, %v", m, err)
		n++
	}
	me.want(n == len(me.contents), "%d listed, want %d", n, len(me.contents))
}

// rotates changes the key of the tenant, and seals all of it anew now and then.
func (me *canary) rotates(string) {
	_, err := me.ring.Rotate(me.Context(), me.name)
	me.need(err)
	if sealed, ok := me.db.(store.Sealed); ok && me.random.IntN(2) == 0 {
		_, err := sealed.Reseal(me.Context(), me.name)
		me.need(err)
		_, err = me.artifacts.Reseal(me.Context(), artifact.Requester{TenantID: me.name})
		me.need(err)
	}
}
