package palimpsest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// TestOutputIsAsked: the room that a step keeps free for the answer is what its request asks for, unless its base
// says it, or is a request of the client's.
func TestOutputIsAsked(t *testing.T) {
	kept := &store.Memory{}
	c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: kept, Plans: kept}})
	if err != nil {
		t.Fatal(err)
	}
	read, err := (anthropic.Codec{}).Decode(`{"model":"m","messages":[]}`)
	if err != nil {
		t.Fatal(err)
	}
	for id, tt := range map[string]struct {
		base *prompt.Prompt
		want int
	}{"none": {nil, 1000}, "a base": {&prompt.Prompt{Model: "m"}, 1000}, "its own": {&prompt.Prompt{Model: "m", MaxOutput: 700}, 700}, "a request": {read, 0}} {
		p, err := c.Session(id).PrepareStep(t.Context(), palimpsest.Step{Base: tt.base, Window: 8000, Output: 1000, Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}})
		if err != nil || p.Prompt.MaxOutput != tt.want {
			t.Errorf("%s: %+v, %v; want %d", id, p, err, tt.want)
		}
	}
}

// TestAskedOutputIsInTheWindow: where a step says no Output, the answer that its base asks for is kept free. F8
func TestAskedOutputIsInTheWindow(t *testing.T) {
	const window, output = 10_000, 5_000
	var messages []thread.Message
	for range 9 {
		messages = append(messages,
			thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Go on."}}},
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: strings.Repeat("The work goes on. ", 150)}}})
	}
	messages = append(messages, thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "And now?"}}})
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Auto{}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Session("t").PrepareStep(t.Context(), palimpsest.Step{Base: &prompt.Prompt{Model: "m", MaxOutput: output}, Window: window, Messages: messages})
	if err != nil || p.Before+output <= window || p.Tokens+output > window {
		t.Errorf("%d tokens of %d, and %d for the answer, in a window of %d: %v", p.Tokens, p.Before, output, window, err)
	}
}

// TestStepTwice: a step that is prepared or finished again, as a caller does after
// an error, adds nothing again.
func TestStepTwice(t *testing.T) {
	kept := &store.Memory{}
	c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: kept, Plans: kept}})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Session("t")
	step := palimpsest.Step{Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}}
	for n := range 3 {
		for range 2 {
			p, err := s.PrepareStep(t.Context(), step)
			if err != nil || len(p.Messages) != 2*n+1 {
				t.Fatalf("step %d: %d messages, %v", n, len(p.Messages), err)
			}
		}
		call, result := work(n)
		for range 2 {
			if err := s.FinishStep(t.Context(), nil, wire.Usage{}, call); err != nil {
				t.Fatal(err)
			}
		}
		step.Messages = []thread.Message{result}
	}
	// What a person says twice is said twice; an answer is not given twice in a row.
	for range 2 {
		if _, err := s.Append(t.Context(), plain(thread.User, "Go on.")); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := s.Append(t.Context(), plain(thread.Assistant, "I do.")); err != nil {
			t.Fatal(err)
		}
	}
	log, err := kept.Load(t.Context(), "t")
	if err != nil || log.Len() != 6+3 {
		t.Fatalf("%d messages, %v", log.Len(), err)
	}
}

// TestRelease: a conversation that this process has given up in between goes on with
// the same prompts and plans.
func TestRelease(t *testing.T) {
	run := func(release bool) (prompts []string) {
		c, err := palimpsest.New(palimpsest.Config{Now: func() time.Time { return time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC) }})
		if err != nil {
			t.Fatal(err)
		}
		s := c.Session("t")
		messages := []thread.Message{plain(thread.User, "Tidy the queue.")}
		for n := range 30 {
			p, err := s.PrepareStep(t.Context(), palimpsest.Step{Messages: messages, Budget: 8000})
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprint(p.PlanVersion)
			for i := range p.Messages {
				text += "\n" + p.Messages[i].Text()
			}
			prompts = append(prompts, text)
			if release {
				s.Release()
				c.Session("another").Release()
			}
			call, result := work(n)
			messages = []thread.Message{call, result}
		}
		return prompts
	}
	kept, released := run(false), run(true)
	for n := range kept {
		if kept[n] != released[n] {
			t.Fatalf("step %d is\n%.500s\nand was\n%.500s", n, released[n], kept[n])
		}
	}
	if strings.HasPrefix(kept[29], "0") {
		t.Errorf("there was no plan: %.20q", kept[29])
	}
}

// losing is a store in which every plan comes second.
type losing struct {
	store.Memory
	lost int
}

func (l *losing) Commit(ctx context.Context, id string, expected int, c store.Commit) (int, error) {
	l.lost++
	next := plan.Plan{Schema: plan.SchemaVersion, ThreadID: id}
	if _, err := l.Memory.Commit(ctx, id, expected, store.Commit{Plan: &next}); err != nil {
		return 0, err
	}
	return 0, &store.ConflictError{ThreadID: id, Want: expected, Have: expected + 1}
}

// TestLosingCommitsCostNothing: when every commit loses, the step renders under the
// newest plan and goes on. A14
func TestLosingCommitsCostNothing(t *testing.T) {
	kept, told := &losing{}, &recorder{}
	c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: kept, Plans: kept}, Events: told})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Session("t")
	step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: loopBudget, Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}}
	for n := range 20 {
		p, err := s.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		if want := 2*n + 1; len(p.Messages) != want {
			t.Fatalf("step %d shows %d messages, want all %d", n, len(p.Messages), want)
		}
		call, result := work(n)
		if err := s.FinishStep(t.Context(), p, wire.Usage{}, call); err != nil {
			t.Fatal(err)
		}
		step.Messages = []thread.Message{result}
	}
	if kept.lost == 0 || told.count(event.PlanConflict) != kept.lost {
		t.Errorf("%d commits lost, %d conflicts told", kept.lost, told.count(event.PlanConflict))
	}
}

// TestRoundsCountCompactions: notes and undos make versions of the plan, and no
// rounds. B8
func TestRoundsCountCompactions(t *testing.T) {
	told := &recorder{}
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Session{ContextLimit: 16_000}, Events: told})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Session("t")
	step := palimpsest.Step{Profile: render.For(wire.Anthropic)}
	for round := 1; round <= 3; round++ {
		for n := range 12 {
			call, result := work(100*round + n)
			if _, err := s.Append(t.Context(), plain(thread.User, fmt.Sprintf("Part %d of round %d.", n, round)), call, result); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Remember(t.Context(), fmt.Sprintf("note %d", round)); err != nil {
			t.Fatal(err)
		}
		p, err := s.Compact(t.Context(), step, "")
		if err != nil {
			t.Fatal(err)
		}
		if text := p.Summarizations[0].Stand[0].Text; p.Round != round || !strings.Contains(text, fmt.Sprintf("(Compaction Round %d)", round)) {
			t.Errorf("round %d: the plan says %d, the summary %.80q", round, p.Round, text)
		}
		plans, err := s.Plans(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Undo(t.Context(), len(plans)-1); err != nil {
			t.Fatal(err)
		}
		if err := s.Undo(t.Context(), len(plans)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestArrivalTimes: a message has a time from the moment it is added, and rules
// that look at times need nothing more: results that have outlived the cache are
// hidden by a timeline with a TTL. F5, C12
func TestArrivalTimes(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	kept := &store.Memory{}
	c, err := palimpsest.New(palimpsest.Config{
		Policy: policy.Timeline{MaxTokens: 1 << 20, TTL: 5 * time.Minute}, Store: store.Tenant{Log: kept, Plans: kept}, Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Session("t")
	step := palimpsest.Step{Profile: render.For(wire.Anthropic), Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}}
	hidden := func() int {
		t.Helper()
		p, err := s.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		return len(p.Manifest.Hidden)
	}
	for n := range 4 {
		if got := hidden(); got != 0 {
			t.Fatalf("step %d hides %d messages while the cache is warm", n, got)
		}
		call, result := work(n)
		now = now.Add(time.Second)
		if err := s.FinishStep(t.Context(), nil, wire.Usage{}, call); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
		step.Messages = []thread.Message{result}
	}
	now = now.Add(time.Hour)
	if got := hidden(); got != 3 {
		t.Errorf("after an hour %d results are hidden, want the 3 that were answered to", got)
	}
	log, err := kept.Load(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range log.All() {
		if m.Time.IsZero() {
			t.Errorf("message %d has no time", i)
		}
	}
}

// TestOpenCallKeepsTheTurn: a turn with a call that waits is not at its end. D2
func TestOpenCallKeepsTheTurn(t *testing.T) {
	w := policy.Workstream{ContextSize: 80_000, Share: 0.1}
	for _, open := range []bool{true, false} {
		messages := []thread.Message{plain(thread.User, "Tidy the queue.")}
		for n := range 20 {
			call, result := work(n)
			messages = append(messages, call, result)
		}
		if open {
			call, _ := work(99)
			messages = append(messages, call)
		} else {
			messages = append(messages, plain(thread.Assistant, "All is tidy."))
		}
		th, err := thread.New("t").Append(messages...)
		if err != nil {
			t.Fatal(err)
		}
		if due, why := w.DueSoon(&policy.Situation{Thread: th}); due == open {
			t.Errorf("a call waits: %v, due: %v (%s)", open, due, why)
		}
	}
}

// TestBroughtBackStandsAtTheEnd: what comes back leaves the prompt before it as it
// was, never makes a request larger than it may be, and undoes nothing. F7, F8
func TestBroughtBackStandsAtTheEnd(t *testing.T) {
	told := &recorder{}
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Ladder{MaxInputTokens: loopBudget}, Recall: &palimpsest.Recall{Inject: 800}, Events: told})
	if err != nil {
		t.Fatal(err)
	}
	counter := o200k(t)
	s := c.Session("t")
	step := palimpsest.Step{Profile: render.For(wire.Anthropic), Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}}
	back, aside := 0, 0
	for n := range 60 {
		p, err := s.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		if size := counter.Prompt(p.Prompt); size > loopBudget {
			t.Errorf("step %d takes %d tokens", n, size)
		}
		body, err := anthropic.Codec{}.Encode(p.Prompt)
		if err != nil {
			t.Fatal(err)
		}
		at := strings.Index(string(body), "[Rehydrated Content - artifact:")
		if at >= 0 {
			back++
			last := p.Messages[len(p.Messages)-1]
			result, _ := last.Result()
			if last.Role != thread.Tool || !strings.Contains(result.Text(), "[Rehydrated Content - artifact:") {
				t.Errorf("step %d: it does not stand in the last result", n)
			}
		}
		plans, err := s.Plans(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		call, result := work(n)
		if len(plans) > 0 {
			newest := plans[len(plans)-1]
			if n%3 == 0 && len(newest.Externalizations) > 0 {
				call.Parts = append([]thread.Part{thread.Text{Text: "I look at " + newest.Externalizations[0].ArtifactID + " again."}}, call.Parts...)
			}
			if held := len(newest.Externalizations) + len(newest.Summarizations); held == 0 {
				t.Errorf("step %d: nothing is externalized any more", n)
			}
			aside = max(aside, len(newest.Externalizations))
		}
		if err := s.FinishStep(t.Context(), p, wire.Usage{}, call); err != nil {
			t.Fatal(err)
		}
		step.Messages = []thread.Message{result}
	}
	if back == 0 || aside == 0 {
		t.Errorf("%d prompts with content brought back, at most %d results externalized: what is this test for?", back, aside)
	}
}

// TestConditions: a write for another version than the one there is is refused, and
// says both.
func TestConditions(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s, ctx := c.Session("t"), t.Context()
	at := func(n int) *int { return &n }
	if _, err := s.OnlyIf(palimpsest.Condition{Log: at(0)}).Append(ctx, plain(thread.User, "one")); err != nil {
		t.Fatal(err)
	}
	var stale *palimpsest.VersionError
	for name, err := range map[string]error{
		"a log that has grown": func() error {
			_, err := s.OnlyIf(palimpsest.Condition{Log: at(0)}).Append(ctx, plain(thread.User, "two"))
			return err
		}(),
		"a log that is not so long": func() error {
			_, err := s.OnlyIf(palimpsest.Condition{Log: at(9)}).PrepareStep(ctx, palimpsest.Step{Messages: []thread.Message{plain(thread.User, "two")}})
			return err
		}(),
		"no messages": func() error {
			_, err := s.OnlyIf(palimpsest.Condition{Log: at(9)}).PrepareStep(ctx, palimpsest.Step{})
			return err
		}(),
		"another plan in a step": func() error {
			_, err := s.OnlyIf(palimpsest.Condition{Plans: at(3)}).PrepareStep(ctx, palimpsest.Step{Budget: 40, Messages: []thread.Message{plain(thread.Assistant, strings.Repeat("words ", 90)), plain(thread.User, "and?")}})
			return err
		}(),
		"another plan": s.OnlyIf(palimpsest.Condition{Plans: at(3)}).Remember(ctx, "a note"),
	} {
		if !errors.As(err, &stale) || stale.Want == stale.Have {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Made again, it changes nothing.
	if a, err := s.OnlyIf(palimpsest.Condition{Log: at(0)}).Append(ctx, plain(thread.User, "one")); err != nil || a.N != 1 || a.First != 0 {
		t.Errorf("%+v, %v", a, err)
	}
}
