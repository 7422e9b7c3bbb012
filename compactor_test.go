package palimpsest_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// firstWords is a summarizer for tests: the first words of each message, as
// many as fit.
type firstWords struct{ count func(string) int }

func (f firstWords) Summarize(_ context.Context, in summarize.Input) (summarize.Result, error) {
	var s summary.Summary
	for _, m := range in.Messages {
		words := strings.Fields(m.Text())
		next := s
		next.Facts = append(next.Facts[:len(next.Facts):len(next.Facts)], summary.Item{Text: strings.Join(words[:min(6, len(words))], " "), Turn: m.Turn})
		if f.count(next.Render()) > in.Budget {
			break
		}
		s = next
	}
	if f.count(s.Render()) > in.Budget {
		return summarize.Result{}, errors.New("no room")
	}
	return summarize.Result{Summary: s}, nil
}

// TestCompactHolds: whatever the thread, the budget, the ladder and the
// provider, a compaction covers every message once, keeps pairs whole, meets
// the budget or names what does not fit, and comes out the same again. A4, A12, A21
func TestCompactHolds(t *testing.T) {
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	policies := map[string]policy.Policy{"auto": policy.Auto{}, "seed": policy.Ladder{}}
	property.Check(t, func(rt *rapid.T) {
		th := threadgen.Thread().Draw(rt, "thread")
		name := rapid.SampledFrom([]string{"auto", "seed"}).Draw(rt, "ladder")
		api := rapid.SampledFrom([]string{wire.Anthropic, wire.Chat, wire.Responses, wire.Gemini}).Draw(rt, "api")
		c, err := palimpsest.New(palimpsest.Config{Counter: counter, Policy: policies[name], Summarizer: firstWords{counter.Text}})
		if err != nil {
			rt.Fatal(err)
		}
		budget := rapid.IntRange(20, 6000).Draw(rt, "budget")
		q := palimpsest.Request{Thread: th, Budget: budget, Profile: render.For(api)}
		res, err := c.Compact(t.Context(), q)
		var over *policy.BudgetError
		if errors.As(err, &over) {
			if len(over.Parts) == 0 || !errors.Is(err, policy.ErrOverBudget) {
				rt.Fatalf("a refusal names no parts: %v", err)
			}
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		if got := counter.Prompt(res.Prompt); got != res.After || got > budget {
			rt.Fatalf("the request takes %d tokens, reported %d, budget %d", got, res.After, budget)
		}
		if err := res.Plan.Validate(th); err != nil {
			rt.Fatal(err)
		}
		if again, warnings := res.Plan.Normalize(); len(warnings) > 0 || !reflect.DeepEqual(again.Refs(), res.Plan.Refs()) {
			rt.Fatalf("the plan was not normal: %v", warnings)
		}
		for _, m := range res.Prompt.Messages {
			for _, p := range m.Parts {
				switch p.(type) {
				case thread.Reasoning, thread.Opaque: // what no codec can translate
					if p.From().API != api {
						rt.Fatalf("a part of %s is sent to %s", p.From().API, api)
					}
				}
			}
		}
		second, err := c.Compact(t.Context(), q)
		if err != nil {
			rt.Fatal(err)
		}
		if !reflect.DeepEqual(res.Prompt, second.Prompt) {
			rt.Fatal("the same input gave another prompt")
		}
		covered(rt, res, th.Len())
	})
}

func covered(rt *rapid.T, res *palimpsest.Result, messages int) {
	hidden := len(res.Manifest.Hidden)
	shown := 0
	for _, o := range res.Manifest.Messages {
		if o.Record.Action == plan.Include && o.ID != "" {
			shown++
		}
	}
	if hidden+shown > messages {
		rt.Fatalf("%d hidden and %d shown of %d messages: one is in both", hidden, shown, messages)
	}
}

// TestRenderWithoutPlan: before the first compaction there is no plan, and the
// thread is rendered as it is.
func TestRenderWithoutPlan(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	th, err := thread.New("short").Append(thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "hello"}}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Render(nil, palimpsest.Request{Thread: th, Profile: render.For(wire.Chat)})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Prompt.Messages) != 1 || !res.Plan.Empty() || res.After != res.Before {
		t.Errorf("%d messages, %d of %d tokens", len(res.Prompt.Messages), res.After, res.Before)
	}
}

// keepsMost is a policy with rules of its own: it drops the oldest message, whatever the budget.
type keepsMost struct{ policy.Auto }

func (keepsMost) Name() string { return "keeps-most" }

func (keepsMost) Plan(_ context.Context, s *policy.Situation) (*policy.Fitted, error) {
	if s.Thread.Len() < 2 {
		return nil, policy.ErrNothing
	}
	p := s.Draft("keeps-most")
	p.Drops = []plan.Removal{{Span: s.Thread.Range(0, 1), Origin: plan.Origin{Strategy: "drop", Reason: "oldest"}}}
	return s.Render(p)
}

// TestCompactUsesPolicy: a single request is compacted by the policy of the Compactor. One that
// leaves more than the budget says so, with what it made. A17
func TestCompactUsesPolicy(t *testing.T) {
	log, err := thread.New("t").Append(plain(thread.User, strings.Repeat("old words ", 300)), plain(thread.Assistant, strings.Repeat("an answer ", 300)), plain(thread.User, "Go on."))
	if err != nil {
		t.Fatal(err)
	}
	c, err := palimpsest.New(palimpsest.Config{Policy: keepsMost{}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Compact(t.Context(), palimpsest.Request{Thread: log, Budget: 700})
	if err != nil || res.Plan.Policy != "keeps-most" || len(res.Plan.Drops) != 1 || res.Plan.CompactedTokens != res.After {
		t.Errorf("it fits: %+v, %v", res, err)
	}
	res, err = c.Compact(t.Context(), palimpsest.Request{Thread: log, Budget: 100})
	if !errors.Is(err, policy.ErrOverBudget) || res == nil || res.After <= 100 {
		t.Errorf("it is over the budget: %+v, %v", res, err)
	}
	res, err = c.Compact(t.Context(), palimpsest.Request{Thread: log.Prefix(1), Budget: 100})
	if !errors.Is(err, policy.ErrOverBudget) || !errors.Is(err, policy.ErrNothing) || res != nil {
		t.Errorf("nothing is removed: %+v, %v", res, err)
	}
}

// TestCompactNote: the note stands in the prompt only once something is removed, in place of
// that of an earlier compaction, and both figures count it.
func TestCompactNote(t *testing.T) {
	log, err := thread.New("t").Append(plain(thread.User, strings.Repeat("old words ", 300)), plain(thread.Assistant, strings.Repeat("an answer ", 300)), plain(thread.User, "Go on."))
	if err != nil {
		t.Fatal(err)
	}
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Ladder{}})
	if err != nil {
		t.Fatal(err)
	}
	note := render.RemovedNote + " Ask for it.]"
	q := palimpsest.Request{Thread: log, Base: &prompt.Prompt{System: []prompt.System{{Text: "You help."}, {Text: render.RemovedNote + " An earlier note.]"}}}, Note: note}
	for budget, want := range map[int]string{1 << 20: render.RemovedNote + " An earlier note.]", 1000: note} {
		q.Budget = budget
		res, err := c.Compact(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Prompt.System; len(got) != 2 || got[1].Text != want {
			t.Errorf("in %d tokens: %v", budget, got)
		}
		messages := 0
		for _, n := range res.PromptSizes {
			messages += n
		}
		if res.After != res.Fixed+messages || res.Plan.OriginalTokens != res.Before {
			t.Errorf("in %d tokens: %d after, %d fixed, %d of messages; the plan says %d of %d", budget, res.After, res.Fixed, messages, res.Plan.OriginalTokens, res.Before)
		}
	}
}

// TestCompactFillsBudget: a budget means the same to a session as to Compactor.Compact, under
// every policy with a ladder. With OwnTarget the policy leaves less, and a budget that is met
// already asks for nothing.
func TestCompactFillsBudget(t *testing.T) {
	read, err := transcript.Open("testdata/sessions/fix-retry.claude-code.jsonl", nil)
	if err != nil {
		t.Fatal(err)
	}
	log := read.Transcripts[0].Thread
	for _, tt := range []struct{ policy, favor string }{
		{"auto", "quality"}, {"auto", "balanced"}, {"auto", "cost"}, {"ladder", ""}, {"last-turns:3", ""},
	} {
		t.Run(tt.policy+" "+tt.favor, func(t *testing.T) {
			chosen, err := policyfile.ByName(tt.policy)
			if err != nil {
				t.Fatal(err)
			}
			chosen.Auto.Favor = policy.Favor(tt.favor)
			c, err := palimpsest.New(palimpsest.Config{Policy: chosen.Policy(nil)})
			if err != nil {
				t.Fatal(err)
			}
			whole, err := c.Render(nil, palimpsest.Request{Thread: log})
			if err != nil {
				t.Fatal(err)
			}
			budget := whole.Before * 4 / 5
			alone, err := c.Compact(t.Context(), palimpsest.Request{Thread: log, Budget: budget, Profile: render.Profile{Reach: render.Nowhere}})
			if err != nil {
				t.Fatal(err)
			}
			s, step := c.Session(log.ID()), palimpsest.Step{Budget: budget}
			if _, err := s.Append(t.Context(), log.Messages()...); err != nil {
				t.Fatal(err)
			}
			step.OwnTarget = true
			own, err := s.Plan(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			step.OwnTarget = false
			dry, err := s.Plan(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			made, err := s.Compact(t.Context(), step, "")
			if err != nil {
				t.Fatal(err)
			}
			if dry.CompactedTokens != alone.After || made.CompactedTokens != alone.After || own.CompactedTokens > made.CompactedTokens ||
				own.CompactedTokens == made.CompactedTokens && tt.policy != "last-turns:3" { // its summary holds all that is worth it in both
				t.Errorf("in %d tokens of %d: alone %d, the session %d, its dry run %d; to its own target %d",
					budget, whole.Before, alone.After, made.CompactedTokens, dry.CompactedTokens, own.CompactedTokens)
			}
			if tt.policy != "last-turns:3" && made.CompactedTokens < budget*9/10 {
				t.Errorf("%d tokens of %d are filled", made.CompactedTokens, budget)
			}
			if _, err := s.Compact(t.Context(), step, ""); !errors.Is(err, policy.ErrNothing) {
				t.Errorf("once more: %v", err)
			}
		})
	}
}

// TestSomethingIsLeft: whatever the budget, a prompt has messages; where the one
// request is too large for it, the error says so.
func TestSomethingIsLeft(t *testing.T) {
	counter := o200k(t)
	log, err := thread.New("large").Append(
		plain(thread.User, "Sort these: "+strings.Repeat("pear plum fig ", 120)),
		plain(thread.Assistant, "Fig, pear, plum. "+strings.Repeat("Sorted. ", 60)),
	)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for budget := 10; budget < 600; budget += 5 {
		for _, p := range []policy.Policy{policy.Auto{}, policy.Notes{}, policy.Ladder{}} {
			c, err := palimpsest.New(palimpsest.Config{Policy: p, Counter: counter})
			if err != nil {
				t.Fatal(err)
			}
			t.Run(fmt.Sprint(p.Name(), budget), func(t *testing.T) {
				res, err := c.Compact(t.Context(), palimpsest.Request{Thread: log, Budget: budget, Profile: render.For(wire.Anthropic)})
				switch {
				case errors.Is(err, policy.ErrOverBudget):
					refused++
				case err != nil:
					t.Fatal(err)
				case len(res.Prompt.Messages) == 0:
					t.Errorf("%d tokens, and no message is left", budget)
				}
			})
		}
	}
	if refused == 0 {
		t.Error("every budget was met")
	}
}

// TestFactBesideLargeResults: two steps that have to stay have results larger
// than the prompt. Once these are externalized there is room for a summary, so
// nothing may be dropped, and what the user said long before still stands. A21
func TestFactBesideLargeResults(t *testing.T) {
	loop := newLoop(t, o200k(t), wire.Anthropic, nil, 4500, 3000)
	edit := `{"file_path":"pkg/f1.go","edits":[{"new":"` + strings.Repeat(`a\"é `, 100) + `","n":1.50}]}`
	call := func(tool, id, arguments string) thread.Part {
		return thread.ToolCall{ID: id, Name: tool, Arguments: arguments}
	}
	result := func(tool, id string, lines int) thread.Message {
		text := strings.Repeat("2025-05-12 08:14:02 the queue holds orders that no worker has taken yet\n", lines)
		return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: tool, Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text}}}}}
	}
	loop.append(plain(thread.User, "Tidy the queue, step by step."), plain(thread.User, planted[0]),
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{call("Read", "old", edit), call("Read", "older", edit)}})
	for range 6 {
		loop.append(thread.Message{Role: thread.User, Kind: thread.Injected, Parts: []thread.Part{thread.Media{Type: thread.Image, MIME: "image/png",
			Data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}})
	}
	loop.append(plain(thread.User, planted[1]),
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: strings.Repeat("líne of pröse 漢字 👩\u200d👩\u200d👧 e\u0301 \n", 2)}, call("unknown_tool", "a", edit)}}, result("unknown_tool", "a", 311),
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{call("Read", "b", `{"file_path":"b"}`), call("WebFetch", "open", `{"file_path":"c"}`), call("WebFetch", "d", `{"file_path":"d"}`)}},
		result("Read", "b", 206), result("WebFetch", "d", 0))
	res, compacted, err := loop.try()
	if err != nil || !compacted {
		t.Fatal(compacted, err)
	}
	if !strings.Contains(said(res.Prompt), planted[0]) {
		t.Errorf("%d summaries, %d drops, %d tokens: lost %q", len(res.Plan.Summarizations), len(res.Plan.Drops), res.After, planted[0])
	}
}

// paid is a summarizer whose every answer costs money.
type paid struct {
	summarize.Summarizer
	answers int
}

func (p *paid) Summarize(ctx context.Context, in summarize.Input) (summarize.Result, error) {
	out, err := p.Summarizer.Summarize(ctx, in)
	if err == nil {
		p.answers++
		out.Report = summarize.Report{By: "dear-model", Cache: event.Miss}
	}
	return out, err
}

// TestPaidSummariesAreReported: every summary that a model has written is reported, also
// when its attempt failed and another made the plan, and when none did.
func TestPaidSummariesAreReported(t *testing.T) {
	for _, p := range []policy.Policy{policy.Auto{}, policy.Ladder{MaxInputTokens: 16_000, DisableExternalization: true, DisableClearing: true}} {
		for _, pinned := range []int{0, 3, 12} {
			t.Run(fmt.Sprintf("%s, %d pinned", p.Name(), pinned), func(t *testing.T) {
				told, model := &recorder{}, &paid{Summarizer: &summarize.Extractive{Counter: o200k(t).Text}}
				c, err := palimpsest.New(palimpsest.Config{Policy: p, Summarizer: model, Events: told})
				if err != nil {
					t.Fatal(err)
				}
				s := c.Session("t")
				step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: 16_000, Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}}
				compacted := 0
				var failed error
				for n := range 40 {
					p, err := s.PrepareStep(t.Context(), step)
					if err != nil {
						t.Fatal(err)
					}
					if p.Compacted != nil {
						compacted++
					}
					failed = p.Failed
					if got := told.count(event.Asked); got != model.answers {
						t.Fatalf("step %d: the model has written %d summaries, %d are reported (%v)", n, model.answers, got, p.Failed)
					}
					call, result := work(n)
					if n%7 == 6 {
						result = toolMessage(fmt.Sprint("call_", n), strings.Repeat(fmt.Sprintf("line %d of many in a large file\n", n), 600))
					}
					if err := s.FinishStep(t.Context(), nil, wire.Usage{}, call); err != nil {
						t.Fatal(err)
					}
					step.Messages = []thread.Message{result}
					if n < pinned {
						log, err := s.Append(t.Context(), result)
						if err != nil {
							t.Fatal(err)
						}
						if err := s.Pin(t.Context(), log.Log.At(log.Log.Len()-1).ID, true); err != nil {
							t.Fatal(err)
						}
						step.Messages = nil
					}
				}
				t.Logf("%d compactions, %d summaries, at last %v", compacted, model.answers, failed)
				over, ok := errors.AsType[*policy.BudgetError](failed)
				if ok != (pinned == 12) {
					t.Fatal(failed)
				}
				if !ok {
					return
				}
				named := 0
				for _, part := range over.Parts {
					if part.Name == "pinned messages" {
						named = part.Tokens
					}
				}
				if named < 12*1_000 {
					t.Errorf("twelve results are pinned, and the refusal says: %v", over)
				}
			})
		}
	}
}

// TestConcurrentUse: one Compactor serves growing and different threads from
// several goroutines, and gives each what it gives alone.
func TestConcurrentUse(t *testing.T) {
	f, err := transcript.Open("testdata/sessions/import-csv.openai-chat.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := f.Transcripts[0].Thread
	var requests []palimpsest.Request
	for _, length := range []int{whole.Len(), whole.Len() * 3 / 4, whole.Len() / 2} {
		th, err := thread.New(whole.ID()).Append(whole.Messages()[:length]...)
		if err != nil {
			t.Fatal(err)
		}
		for _, api := range []string{wire.Anthropic, wire.Chat} {
			requests = append(requests, palimpsest.Request{Thread: th, Budget: 8_000, Profile: render.For(api)})
		}
	}
	alone := make([]*palimpsest.Result, len(requests))
	for i, q := range requests {
		c, err := palimpsest.New(palimpsest.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if alone[i], err = c.Compact(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	shared, err := palimpsest.New(palimpsest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 2 {
		for i, q := range requests {
			all.Go(func() {
				res, err := shared.Compact(t.Context(), q)
				switch {
				case err != nil:
					t.Errorf("request %d: %v", i, err)
				case res.After != alone[i].After || !reflect.DeepEqual(res.Prompt.Messages, alone[i].Prompt.Messages):
					t.Errorf("request %d: %d tokens together with others, %d alone, or other messages", i, res.After, alone[i].After)
				}
			})
		}
	}
	all.Wait()
}

// TestTypedCommandGivesRoom: the text behind a command that the user typed gives way to
// what happened, where it would take more than a fifth of the room; as much that the user
// wrote stands whole. Where there is room, both do.
func TestTypedCommandGivesRoom(t *testing.T) {
	text := strings.Repeat("Look at each comment and answer below it.\n", 190) + "Tell what is left.\n" + strings.Repeat("Then look at the next one.\n", 50)
	for _, tt := range []struct {
		name, last string
		budget     int
		whole      bool
	}{
		{"a command in a small prompt", "<command-message>answer</command-message>\n<command-name>/answer</command-name>\n" + text, 5_000, false},
		{"the user's words in a small prompt", text, 5_000, true},
		{"a command in a large prompt", "<command-message>answer</command-message>\n<command-name>/answer</command-name>\n" + text, 14_000, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			said := func(role thread.Role, s string) thread.Message {
				return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: s}}}
			}
			messages := []thread.Message{said(thread.User, "Find out why orders are sent twice.")}
			for i := range 40 {
				var found strings.Builder
				for k := range 20 {
					fmt.Fprintf(&found, "Order %d%02d failed in worker_%d since queue/part%d.go:%d was closed too early.\n", i, k, k*i, i+k, 17*k+i)
				}
				messages = append(messages, said(thread.Assistant, found.String()), said(thread.User, fmt.Sprintf("And those of shop %d?", i+1)))
			}
			messages = append(messages, said(thread.User, tt.last), said(thread.Assistant, "I begin with the first comment."))
			log, err := thread.New("t").Append(messages...)
			if err != nil {
				t.Fatal(err)
			}
			c, err := palimpsest.New(palimpsest.Config{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := c.Compact(t.Context(), palimpsest.Request{Thread: log, Budget: tt.budget})
			if err != nil {
				t.Fatal(err)
			}
			var prompt strings.Builder
			for i := range r.Prompt.Messages {
				prompt.WriteString(r.Prompt.Messages[i].Text() + "\n")
			}
			if got := strings.Contains(prompt.String(), "Tell what is left."); got != tt.whole {
				t.Errorf("the text stands whole: %v\n%s", got, prompt.String())
			}
			if strings.HasPrefix(tt.last, "<") && !strings.Contains(prompt.String(), "/answer") {
				t.Errorf("the command is not named:\n%s", prompt.String())
			}
		})
	}
}
