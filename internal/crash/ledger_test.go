package crash_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

var longAgo = time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)

// ledger is what a tenant must have: what was acknowledged, and what was under
// way when the process died, of which all or nothing may be there.
type ledger struct {
	tenant   string
	messages map[string]int // by thread
	plans    int
	key      int
	kept     map[string]string // contents by id that never expire
	over     map[string]bool   // artifacts that have expired, by id
	swept    map[string]bool   // of those, what an acknowledged sweep found
	made     []string          // databases
	underWay *deed
	deeds    int // acknowledged
}

func newLedger(tenant string) *ledger {
	return &ledger{tenant: tenant, messages: map[string]int{}, kept: map[string]string{}, over: map[string]bool{}, swept: map[string]bool{}}
}

// note takes in what a process has said.
func (l *ledger) note(d deed) {
	if !d.Done {
		l.underWay = &d
		return
	}
	l.underWay = nil
	l.deeds++
	switch d.Kind {
	case "append":
		l.messages[d.Name] = d.To
	case "delete":
		l.messages[passing] = 0
	case "commit":
		l.plans = d.To
	case "rotate":
		l.key = d.To
	case "migrate":
		l.made = append(l.made, d.Name)
	case "put":
		if d.Expired {
			l.over[d.ID] = true
		} else {
			l.kept[d.ID] = contentOf(d.Name)
		}
	case "sweep":
		maps.Copy(l.swept, l.over)
		clear(l.over)
	}
}

// under says whether a deed of the kind was under way.
func (l *ledger) under(kind string) bool { return l.underWay != nil && l.underWay.Kind == kind }

// check compares the ledger with the store, and takes from the store how what
// was under way has ended.
func (l *ledger) check(ctx context.Context, t testing.TB, p place, o *opened) {
	t.Helper()
	s := o.db.Tenant(l.tenant)
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("tenant %s, under way %+v: %s", l.tenant, l.underWay, fmt.Sprintf(format, args...))
	}
	for _, id := range []string{lasting, passing} {
		th, err := s.Log.Load(ctx, id)
		if err != nil {
			fail("%s: %v", id, err)
			continue
		}
		l.length(th, id, fail)
		for n, m := range th.All() {
			if m.Text() != textOf(l.tenant, id, n) {
				fail("%s: message %d is %.40q", id, n, m.Text())
			}
		}
	}
	l.commits(ctx, s, fail)
	l.contents(ctx, o, fail)
	if id, err := o.ring.Current(ctx, l.tenant); err != nil || numberOf(id) < l.key {
		fail("the newest key is %s, %v; %d was made", id, err, l.key)
	}
	if l.under("migrate") {
		l.made = append(l.made, l.underWay.Name)
	}
	for _, name := range l.made {
		if err := usable(ctx, p, name); err != nil {
			fail("database %s: %v", name, err)
		}
	}
	l.made, l.underWay = nil, nil
}

func (l *ledger) length(th *thread.Thread, id string, fail func(string, ...any)) {
	allowed := []int{l.messages[id]}
	if l.under("append") && l.underWay.Name == id {
		allowed = append(allowed, l.underWay.To)
	}
	if l.under("delete") && id == passing {
		allowed = append(allowed, 0)
	}
	if !slices.Contains(allowed, th.Len()) {
		fail("%s: %d messages, want one of %d", id, th.Len(), allowed)
	}
	l.messages[id] = th.Len()
}

// commits: plan, event and document of a commit are there together.
func (l *ledger) commits(ctx context.Context, s store.Tenant, fail func(string, ...any)) {
	p, version, err := s.Plans.Current(ctx, lasting)
	if err != nil || version != l.plans && (!l.under("commit") || version != l.underWay.To) {
		fail("plan %d, %v; %d were acknowledged", version, err, l.plans)
	}
	if p != nil && p.CompactedTokens != version {
		fail("plan %d stands in the place of %d", p.CompactedTokens, version)
	}
	l.plans = version
	events, err := s.Events.Events(ctx, lasting, max(0, version-3), 0)
	if err != nil || len(events) != min(version, 3) {
		fail("%d events behind %d, %v", len(events), version-3, err)
	}
	body := "0"
	switch d, err := s.Documents.Document(ctx, "round", lasting); {
	case err == nil:
		body = string(d.Body)
	case !errors.Is(err, store.ErrNotFound):
		fail("%v", err)
	}
	if body != fmt.Sprint(version) {
		fail("the document is of round %s, the plan is %d", body, version)
	}
}

func (l *ledger) contents(ctx context.Context, o *opened, fail func(string, ...any)) {
	who := artifact.Requester{TenantID: l.tenant}
	for id, want := range l.kept {
		if _, got, err := o.artifacts.Get(ctx, who, id); err != nil || got != want {
			fail("artifact %s: %.40q, %v", id, got, err)
		}
	}
	there := map[string]bool{}
	for m, err := range o.db.Artifacts().List(ctx, artifact.Filter{TenantID: l.tenant}) {
		if err != nil {
			fail("%v", err)
		}
		there[m.ID] = true
	}
	for id := range l.over {
		if !there[id] && !l.under("sweep") {
			fail("artifact %s is gone without a sweep", id)
		}
	}
	for id := range l.swept {
		if there[id] {
			fail("artifact %s is still there after a sweep", id)
		}
	}
	if l.under("sweep") { // it may have come to any of them
		clear(l.over)
	}
	clear(l.swept)
	p, _, err := o.db.Tenant(l.tenant).Plans.Current(ctx, lasting)
	if err != nil || p == nil {
		return
	}
	for _, x := range p.Externalizations {
		if !there[x.ArtifactID] {
			fail("the plan in force points to %s, which is gone", x.ArtifactID)
		}
	}
}

// usable opens a database whose tables may be half made, and writes to it.
func usable(ctx context.Context, p place, name string) error {
	p, err := p.another(ctx, name)
	if err != nil {
		return err
	}
	o, err := p.open(ctx)
	if err != nil {
		return err
	}
	_, err = o.db.Tenant("").Log.Append(ctx, "t", 0, []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "one"}}}})
	return errors.Join(err, o.close())
}

// sound lets the store be looked through by its own check.
func sound(ctx context.Context, t testing.TB, o *opened) care.Counts {
	t.Helper()
	counts, err := care.Check(ctx, o.db, func(p care.Problem) { t.Error(p) }, o.artifacts)
	if err != nil {
		t.Error(err)
	}
	return counts
}
