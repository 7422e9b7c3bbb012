package policy_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// counted counts the questions that a model gets; fresh has it asked each time.
type counted struct {
	liar
	fresh bool

	mu        sync.Mutex
	questions map[string]int
	calls     int
}

func (a *counted) Adjust(o *llm.Options) *llm.Options {
	out := *o
	out.Fresh = a.fresh
	return &out
}

func (a *counted) Generate(ctx context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := ""
	for _, s := range p.System {
		key += s.Text + "\x00"
	}
	key += everything(&prompt.Prompt{Messages: p.Messages})
	if o != nil {
		key += fmt.Sprint("\x00", o.MaxOutput, o.Schema != nil, o.Temperature != nil)
	}
	if a.questions == nil {
		a.questions = map[string]int{}
	}
	a.questions[key]++
	a.calls++
	return a.liar.Generate(ctx, p, o)
}

// rival says of every other commit that somebody else was faster.
type rival struct {
	store.Plans
	commits int
}

func (r *rival) Commit(ctx context.Context, id string, version int, c store.Commit) (int, error) {
	if r.commits++; r.commits%2 == 1 {
		return 0, &store.ConflictError{ThreadID: id, Want: version, Have: version + 1}
	}
	return r.Plans.Commit(ctx, id, version, c)
}

// work has an agent work on a queue for many steps, under a policy whose commits
// are in conflict every other time, in a process that is started anew all the
// time. It returns how often summaries were asked for, known or not.
func work(t *testing.T, config palimpsest.Config) (hits, misses int) {
	const steps, life = 45, 6
	path := filepath.Join(t.TempDir(), "queue.db")
	fight := &rival{}
	rounds := 0
	for from := 0; from < steps; from += life {
		db, err := sqlite.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		kept := db.Tenant("")
		fight.Plans = kept.Plans
		c := config
		c.Store = kept
		c.Store.Plans = fight
		c.Events = event.Func(func(_ context.Context, e event.Event) {
			switch e.Details["cache"] {
			case string(event.Hit):
				hits++
			case string(event.Miss):
				misses++
			}
			if e.Type == event.Completed && e.Cache == "" {
				t.Error("a compaction with a model does not say whether its answer was known")
			}
		})
		comp, err := palimpsest.New(c)
		if err != nil {
			t.Fatal(err)
		}
		th := comp.Session("queue")
		for n := from; n < min(from+life, steps); n++ {
			step := palimpsest.Step{Profile: render.For(wire.Chat), Budget: window}
			news, answer := queueWork(n)
			step.Messages = news
			if _, err := th.PrepareStep(t.Context(), step); err != nil {
				t.Fatal(err)
			}
			if err := th.FinishStep(t.Context(), nil, wire.Usage{}, answer); err != nil {
				t.Fatal(err)
			}
		}
		plans, err := th.Plans(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rounds = len(plans)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if rounds < 3 {
		t.Errorf("%d compactions: the test shows nothing", rounds)
	}
	return hits, misses
}

// TestAskedOnce: whatever a policy tries, however often its plan is in conflict and
// its process dies, no model is asked the same twice. A15
func TestAskedOnce(t *testing.T) {
	names := slices.Sorted(maps.Keys(withModel(&counted{})))
	if !corpus.Long() {
		names = []string{"workstream"} // it takes the least time
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			without := &counted{fresh: true}
			work(t, withModel(without)[name])
			with := &counted{}
			hits, misses := work(t, withModel(with)[name])
			t.Logf("%d questions: %d calls, %d without a cache; %d hits, %d misses", len(with.questions), with.calls, without.calls, hits, misses)
			if with.calls != len(with.questions) {
				t.Errorf("%d questions were asked %d times", len(with.questions), with.calls)
			}
			if without.calls <= with.calls || hits == 0 || misses == 0 {
				t.Error("nothing is asked twice: the test shows nothing")
			}
		})
	}
}
