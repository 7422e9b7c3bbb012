package policy_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// played is a thread that was compacted a few times, and what its agent saw.
type played struct {
	*palimpsest.Session
	config  palimpsest.Config
	step    palimpsest.Step
	said    []thread.Message
	prompts map[int]*prompt.Prompt // by the version of the plan: the first under it
	events  []event.Event
}

// play lets an agent work under a policy until there are three plans.
func play(t *testing.T, name string) *played {
	t.Helper()
	memory, told := &store.Memory{}, &trace{}
	p := &played{config: withModel(&ill{cured: true})[name], prompts: map[int]*prompt.Prompt{}}
	p.config.Store.Log, p.config.Store.Plans, p.config.Events = memory, memory, told
	p.config.Now = func() time.Time { return time.Unix(1_700_000_000, 0) }
	c, err := palimpsest.New(p.config)
	if err != nil {
		t.Fatal(err)
	}
	p.Session, p.step = c.Session("queue"), palimpsest.Step{Profile: render.For(wire.Chat), Budget: window}
	n := 0
	for ; len(p.prompts) < 4; n++ {
		if n > 200 {
			t.Fatal("it was not compacted")
		}
		var answer thread.Message
		p.step.Messages, answer = queueWork(n)
		out, err := p.PrepareStep(t.Context(), p.step)
		if err != nil {
			t.Fatal(err)
		}
		all, err := p.Plans(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, seen := p.prompts[len(all)]; !seen {
			p.prompts[len(all)] = out.Prompt
		}
		if err := p.FinishStep(t.Context(), nil, wire.Usage{}, answer); err != nil {
			t.Fatal(err)
		}
		p.said = append(append(p.said, p.step.Messages...), answer)
	}
	end := toolResult(n-1, "Bash", "nothing more") // the last call is answered
	if _, err := p.Append(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	p.said, p.events, p.step.Messages = append(p.said, end), told.events, nil
	return p
}

// shown is what is in force, without a new compaction.
func (p *played) shown(t *testing.T) []thread.Message {
	t.Helper()
	// Windows that are too large to be due; policies that have their own mark
	// are asked by one that has none.
	config := p.config
	config.Policy, config.Events = nil, nil
	c, err := palimpsest.New(config)
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Session("queue").PrepareStep(t.Context(), palimpsest.Step{Profile: p.step.Profile})
	if err != nil {
		t.Fatal(err)
	}
	return out.Messages
}

// TestUndoAndExpandUnderEveryPolicy give back exactly what was there: everything
// as it was said, what an earlier plan showed, and the span of a record that is
// taken out. The thread goes on from there.
func TestUndoAndExpandUnderEveryPolicy(t *testing.T) {
	for name := range withModel(&ill{}) {
		t.Run(name, func(t *testing.T) {
			p := play(t, name)
			if err := p.Undo(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			everything := p.shown(t)
			if len(everything) != len(p.said) {
				t.Fatalf("undone it shows %d messages of %d", len(everything), len(p.said))
			}
			for i := range everything {
				if everything[i].Role != p.said[i].Role || !reflect.DeepEqual(everything[i].Parts, p.said[i].Parts) {
					t.Fatalf("message %d does not stand as it was said", i)
				}
			}
			for version := 1; version <= 3; version++ {
				if err := p.Undo(t.Context(), version); err != nil {
					t.Fatal(err)
				}
				before := p.prompts[version].Messages
				if now := p.shown(t); len(now) < len(before) || cmp.Diff(before, now[:len(before)]) != "" {
					t.Errorf("under plan %d it shows something else than it did", version)
				}
			}
			all, err := p.Plans(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			last := all[len(all)-1]
			span := last.Record(last.Refs()[0]).Covers()
			if err := p.Expand(t.Context(), span.Last()); err != nil {
				t.Fatal(err)
			}
			expanded := p.shown(t)
			if all, err = p.Plans(t.Context()); err != nil {
				t.Fatal(err)
			}
			now := all[len(all)-1].Actions()
			for _, id := range span.MessageIDs {
				if now[id].Action != plan.Include && id != span.Last() {
					continue
				}
				same := func(m thread.Message) bool { return m.ID == id && m.Kind != thread.Recap }
				got, want := slices.IndexFunc(expanded, same), slices.IndexFunc(everything, same)
				if got < 0 || !reflect.DeepEqual(expanded[got], everything[want]) {
					t.Errorf("message %s does not stand as it was said", id)
				}
			}
			for id, ref := range last.Actions() {
				if !span.Contains(id) && now[id].Action != ref.Action {
					t.Errorf("message %s was not to be touched: %s, now %s", id, ref.Action, now[id].Action)
				}
			}
			if err := p.Expand(t.Context(), span.Last()); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("expanded twice: %v", err)
			}
			p.step.Messages = []thread.Message{say(thread.User, "Go on.")}
			if out, err := p.PrepareStep(t.Context(), p.step); err != nil || len(out.Messages) == 0 {
				t.Errorf("it does not go on: %v", err)
			}
		})
	}
}

// TestReload: who loads the thread anew sees what begins with the latest summary,
// as the one who made it does; the log still has everything. C8
func TestReload(t *testing.T) {
	for name := range withModel(&ill{}) {
		t.Run(name, func(t *testing.T) {
			p := play(t, name)
			log, err := p.config.Store.Log.Load(t.Context(), "queue")
			if err != nil || log.Len() != len(p.said) {
				t.Fatalf("%d messages of %d, %v", log.Len(), len(p.said), err)
			}
			before, now := p.prompts[3].Messages, p.shown(t)
			if len(now) < len(before) || cmp.Diff(before, now[:len(before)]) != "" {
				t.Error("it shows something else than before")
			}
			if name == "timeline" && (now[0].Kind != thread.Recap || log.At(0).ID == now[0].ID && now[0].Text() == log.At(0).Text()) {
				t.Errorf("it begins with %q", now[0].Text())
			}
		})
	}
}

// TestPlansCompare: plans of all policies over one log can be compared with one
// another; what they differ in is exactly what they treat differently.
func TestPlansCompare(t *testing.T) {
	var messages []thread.Message
	for n := range 24 {
		news, answer := queueWork(n)
		messages = append(append(messages, news...), answer)
	}
	messages = append(messages, toolResult(23, "Bash", queueReport(23)), say(thread.User, "Go on."))
	for i := range messages {
		messages[i].ID = thread.ID("m" + string(rune('A'+i/26)) + string(rune('a'+i%26)))
	}
	plans := map[string]*plan.Plan{}
	for name, config := range withModel(&ill{cured: true}) {
		c, err := palimpsest.New(config)
		if err != nil {
			t.Fatal(err)
		}
		made, err := c.Session("queue").Plan(t.Context(), palimpsest.Step{Profile: render.For(wire.Chat), Budget: window, Messages: messages})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if made.Policy != name {
			t.Errorf("a plan of %s says that it is of %s", name, made.Policy)
		}
		plans[name] = made
	}
	differ := 0
	for a, from := range plans {
		for b, to := range plans {
			changed := map[thread.ID]bool{}
			for _, c := range plan.Diff(from, to) {
				changed[c.ID] = true
			}
			if a == b && len(changed) > 0 {
				t.Errorf("%s differs from itself: %v", a, changed)
			}
			for i := range messages {
				id := messages[i].ID
				if from.Actions()[id].Action != to.Actions()[id].Action && !changed[id] {
					t.Errorf("%s and %s treat message %s differently, and Diff says nothing", a, b, id)
				}
			}
			differ += len(changed)
		}
	}
	if differ == 0 {
		t.Error("all plans are the same: the test shows nothing")
	}
}

// TestSizesOfEvents: what is told before and after a compaction are the same
// figures, under every policy, with what the request may take. A18, C11
func TestSizesOfEvents(t *testing.T) {
	for name := range withModel(&ill{}) {
		t.Run(name, func(t *testing.T) {
			before, completed := 0, 0
			limit := window
			if name == "workstream" {
				limit -= 2 // its two reserves
			}
			for _, e := range play(t, name).events {
				switch e.Type {
				case event.PreCompact:
					before = e.TokensBefore
				case event.Completed:
					completed++
					if e.TokensBefore != before || e.TokensAfter >= before || e.TokensAfter <= 0 || e.TokensFreed != e.TokensBefore-e.TokensAfter {
						t.Errorf("before %d: %+v", before, e)
					}
				default:
					continue
				}
				if e.BudgetLimit != limit {
					t.Errorf("%s with a limit of %d", e.Type, e.BudgetLimit)
				}
			}
			if completed < 3 {
				t.Errorf("%d compactions", completed)
			}
		})
	}
}
