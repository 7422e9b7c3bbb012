package palimpsest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// thought is thinking that a provider has signed for the prompt before it.
func thought(n int) thread.Part {
	return thread.Reasoning{Text: "hm", Signature: fmt.Sprint("sig", n), Source: thread.Source{API: wire.Anthropic}}
}

// thoughtful is an answer with thinking.
func thoughtful(n int, text string) thread.Message {
	return thread.Message{Role: thread.Assistant, Parts: []thread.Part{thought(n), thread.Text{Text: text}}}
}

// lookedUp is a call with thinking, and its result.
func lookedUp(n int, result string) []thread.Message {
	id := fmt.Sprint("c", n)
	return []thread.Message{
		{Role: thread.Assistant, Parts: []thread.Part{thought(n), thread.ToolCall{ID: id, Name: "lookup", Arguments: fmt.Sprintf(`{"n":%d}`, n)}}},
		{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "lookup", Content: []thread.Part{thread.Text{Text: result}}}}},
	}
}

// signatures are those of the thinking in a prompt.
func signatures(p *prompt.Prompt) string {
	var out []string
	for _, m := range p.Messages {
		for _, part := range m.Parts {
			if r, ok := part.(thread.Reasoning); ok {
				out = append(out, r.Signature)
			}
		}
	}
	return strings.Join(out, " ")
}

// TestEditsStripBoundThinking: what a user changes by hand is before the thinking too, in the
// messages or in the system prompt, so the thinking of that time goes; what comes after it
// stays, and an edit that shows the model nothing else keeps all.
func TestEditsStripBoundThinking(t *testing.T) {
	undo := func(n int) func(*palimpsest.Session, *thread.Thread) error {
		return func(s *palimpsest.Session, _ *thread.Thread) error { return s.Undo(t.Context(), n) }
	}
	for _, c := range []struct {
		name string
		edit func(*palimpsest.Session, *thread.Thread) error
		want string // of the thinking before the edit
	}{
		{"undo", undo(0), ""},
		{"undo to the same", undo(1), "sig100"},
		{"expand", func(s *palimpsest.Session, log *thread.Thread) error { return s.Expand(t.Context(), log.At(0).ID) }, ""},
		{"pin what is hidden", func(s *palimpsest.Session, log *thread.Thread) error { return s.Pin(t.Context(), log.At(0).ID, true) }, ""},
		{"pin what is shown", func(s *palimpsest.Session, log *thread.Thread) error { return s.Pin(t.Context(), log.Last(), true) }, "sig100"},
		{"remember", func(s *palimpsest.Session, _ *thread.Thread) error {
			return s.Remember(t.Context(), "The port is 8080.")
		}, ""},
		{"remember nothing", func(s *palimpsest.Session, _ *thread.Thread) error { return s.Remember(t.Context()) }, "sig100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := &store.Memory{}
			made, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: log, Plans: log}, Policy: policy.Session{}})
			if err != nil {
				t.Fatal(err)
			}
			s := made.Session("t")
			step := palimpsest.Step{Profile: render.For(wire.Anthropic), Base: &prompt.Prompt{System: []prompt.System{{Text: "Be careful."}}}}
			prepare := func(messages ...thread.Message) string {
				t.Helper()
				step.Messages = messages
				p, err := s.PrepareStep(t.Context(), step)
				if err != nil {
					t.Fatal(err)
				}
				return signatures(p.Prompt)
			}
			var messages []thread.Message
			for n := range 20 {
				messages = append(messages, plain(thread.User, fmt.Sprint("Part ", n, strings.Repeat(" of the queue", 80))), thoughtful(n, "Done."))
			}
			prepare(append(messages, plain(thread.User, "Go on."))...)
			step.Messages = nil
			if _, err := s.Compact(t.Context(), step, ""); err != nil {
				t.Fatal(err)
			}
			prepare()
			if got := prepare(thoughtful(100, "I do."), plain(thread.User, "More.")); got != "sig100" {
				t.Fatalf("after the compaction: %q", got)
			}
			now, err := log.Load(t.Context(), "t")
			if err != nil {
				t.Fatal(err)
			}
			if err := c.edit(s, now); err != nil {
				t.Fatal(err)
			}
			if got := prepare(); got != c.want {
				t.Errorf("after the edit: %q, want %q", got, c.want)
			}
			if got, want := prepare(thoughtful(101, "Yes."), plain(thread.User, "And more.")), strings.TrimSpace(c.want+" sig101"); got != want {
				t.Errorf("a step later: %q, want %q", got, want)
			}
		})
	}
}

// TestEditsBeforeThePlan: without a compaction a note changes the prompt too.
func TestEditsBeforeThePlan(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s, step := c.Session("t"), palimpsest.Step{Profile: render.For(wire.Anthropic)}
	for n, want := range []string{"", "sig0", "", "sig2"} {
		if n == 2 {
			if err := s.Remember(t.Context(), "The port is 8080."); err != nil {
				t.Fatal(err)
			}
		}
		step.Messages = []thread.Message{plain(thread.User, fmt.Sprint("Part ", n))}
		p, err := s.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		if got := signatures(p.Prompt); got != want {
			t.Errorf("step %d: %q, want %q", n, got, want)
		}
		if err := s.FinishStep(t.Context(), p, wire.Usage{}, thoughtful(n, "Done.")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLateResultKeepsBoundThinking: a result that comes late for a call that the plan hides leaves the
// plan in force, and the thinking that was made under it.
func TestLateResultKeepsBoundThinking(t *testing.T) {
	log := &store.Memory{}
	c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: log, Plans: log}})
	if err != nil {
		t.Fatal(err)
	}
	s, step := c.Session("t"), palimpsest.Step{Profile: render.For(wire.Anthropic)}
	call, result := work(0)
	step.Messages = []thread.Message{plain(thread.User, "Tidy the queue."), call}
	for n := range 8 {
		step.Messages = append(step.Messages, plain(thread.User, fmt.Sprint("Part ", n, strings.Repeat(" of the queue", 200))), thoughtful(n, "Done"+strings.Repeat(" and done", 200)))
	}
	p, err := s.Compact(t.Context(), palimpsest.Step{Profile: step.Profile, Budget: 3_000, Messages: step.Messages}, "")
	if err != nil {
		t.Fatal(err)
	}
	now, err := log.Load(t.Context(), "t")
	if err != nil || p.Actions()[now.At(1).ID].Action == plan.Include {
		t.Fatalf("the call is not hidden: the test is set up wrong, %v", err)
	}
	for n := range 2 {
		step.Messages = []thread.Message{plain(thread.User, "Go on.")}
		if n == 0 {
			step.Messages = append([]thread.Message{plain(thread.User, "Go on."), thoughtful(8, "I do.")}, step.Messages...)
		} else {
			step.Messages = append([]thread.Message{result}, step.Messages...)
		}
		p, err := s.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		if got := signatures(p.Prompt); got != "sig8" || p.PlanVersion != 1 {
			t.Errorf("%q under plan %d, want sig8 under 1", got, p.PlanVersion)
		}
	}
}

// TestFirstToolsStripBoundThinking: a plan that only externalizes what has just arrived keeps
// the thinking, unless the tools that read it come with it: they stand before everything.
func TestFirstToolsStripBoundThinking(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Auto{}, Recall: &palimpsest.Recall{}})
	if err != nil {
		t.Fatal(err)
	}
	var long strings.Builder
	for n := range 3000 {
		fmt.Fprintf(&long, "line %d of the log says value %d\n", n, n*7)
	}
	s := c.Session("t")
	step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: 8000, Base: &prompt.Prompt{Tools: []prompt.Tool{{Name: "lookup", Schema: `{"type":"object"}`}}}}
	// A new turn, since thinking that was stripped in a loop is stripped up to its end.
	for n, messages := range [][]thread.Message{
		append([]thread.Message{plain(thread.User, "Look things up.")}, lookedUp(1, "short")...),
		lookedUp(2, long.String()),
		append([]thread.Message{thoughtful(3, "Found."), plain(thread.User, "And more.")}, lookedUp(4, "short")...),
		lookedUp(5, strings.ReplaceAll(long.String(), "value", "number")),
	} {
		step.Messages = messages
		p, err := s.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"sig1", "", "sig4", "sig4 sig5"}[n]; signatures(p.Prompt) != want {
			t.Errorf("step %d: thinking %q, want %q", n+1, signatures(p.Prompt), want)
		}
		if want := n == 1 || n == 3; (p.Compacted != nil) != want {
			t.Errorf("step %d: compacted %v", n+1, p.Compacted != nil)
		}
		if want := n > 0; slices.ContainsFunc(p.Tools, func(x prompt.Tool) bool { return x.Name == "recall" }) != want {
			t.Errorf("step %d: tools %v", n+1, p.Tools)
		}
	}
}

// TestPlanDuringAnAnswer: an answer that the model gives while a job compacts, or while the
// user changes something, was made for the prompt before that; with and without a store, and
// also where another process takes the next step.
func TestPlanDuringAnAnswer(t *testing.T) {
	for name, change := range map[string]func(*palimpsest.Session, palimpsest.Step) error{
		"compaction": func(s *palimpsest.Session, step palimpsest.Step) error {
			_, err := s.Compact(t.Context(), palimpsest.Step{Profile: step.Profile, Budget: 1_500}, "")
			return err
		},
		"note": func(s *palimpsest.Session, _ palimpsest.Step) error {
			return s.Remember(t.Context(), "The port is 8080.")
		},
		"nothing": func(s *palimpsest.Session, _ palimpsest.Step) error {
			now, err := s.Append(t.Context())
			if err != nil {
				return err
			}
			return s.Pin(t.Context(), now.Log.Last(), true)
		},
	} {
		for _, processes := range []string{"one, no documents", "one", "many"} {
			t.Run(name+"/"+processes, func(t *testing.T) {
				kept := &store.Memory{}
				config := palimpsest.Config{Store: store.Tenant{Log: kept, Plans: kept, Documents: kept}}
				if processes == "one, no documents" {
					config.Store.Documents = nil
				}
				open := func() *palimpsest.Session {
					c, err := palimpsest.New(config)
					if err != nil {
						t.Fatal(err)
					}
					return c.Session("t")
				}
				s, provider := open(), binding{}
				step := palimpsest.Step{Profile: render.For(wire.Anthropic)}
				for n := range 8 {
					step.Messages = append(step.Messages, plain(thread.User, fmt.Sprint("Part ", n, strings.Repeat(" of the queue", 100))), plain(thread.Assistant, "Done."))
				}
				sent := 0
				for n := range 6 {
					step.Messages = append(step.Messages, plain(thread.User, fmt.Sprint("Part ", 10+n, strings.Repeat(" of the queue", 100))))
					if processes == "many" {
						s = open()
					}
					p, err := s.PrepareStep(t.Context(), step)
					if err != nil {
						t.Fatal(err)
					}
					provider.check(t, p.Prompt, n)
					sent += len(strings.Fields(signatures(p.Prompt)))
					if n == 1 || n == 3 {
						if err := change(s, step); err != nil {
							t.Fatal(err)
						}
					}
					answer := thread.Message{Role: thread.Assistant, Parts: []thread.Part{provider.think(p.Prompt, n), thread.Text{Text: "Done."}}}
					if err := s.FinishStep(t.Context(), p, wire.Usage{}, answer); err != nil {
						t.Fatal(err)
					}
					step.Messages = nil
				}
				want := 0 + 1 + 0 + 1 + 0 + 1
				if name == "nothing" {
					want = 0 + 1 + 2 + 3 + 4 + 5
				}
				if sent != want {
					t.Errorf("thinking was sent %d times, want %d", sent, want)
				}
			})
		}
	}
}

// binding is a provider that binds thinking to the prompt before it: by signature, what the
// prompt was when the thinking was made.
type binding map[string]string

// check fails where a prompt has thinking that was made behind another one.
func (b binding) check(t *testing.T, p *prompt.Prompt, step int) {
	t.Helper()
	for i, m := range p.Messages {
		for _, part := range m.Parts {
			if r, ok := part.(thread.Reasoning); ok && b[r.Signature] != textBefore(p, i) {
				t.Errorf("step %d: %s is sent behind another prompt than it was made for", step, r.Signature)
			}
		}
	}
}

// think signs thinking for the prompt.
func (b binding) think(p *prompt.Prompt, n int) thread.Part {
	part := thought(n)
	b[fmt.Sprint("sig", n)] = textBefore(p, len(p.Messages))
	return part
}

// textBefore is what a prompt says before message i.
func textBefore(p *prompt.Prompt, i int) string {
	var b strings.Builder
	for _, s := range p.System {
		fmt.Fprintf(&b, "system %s\n", s.Text)
	}
	for _, tool := range p.Tools {
		fmt.Fprintf(&b, "tool %s\n", tool.Name)
	}
	for _, m := range p.Messages[:i] {
		fmt.Fprintf(&b, "%s %s\n", m.Role, m.Text())
		for _, part := range m.Parts {
			switch part := part.(type) {
			case thread.Reasoning:
				fmt.Fprintf(&b, "thinking %s\n", part.Signature)
			case thread.ToolCall:
				fmt.Fprintf(&b, "call %s %s\n", part.ID, part.Arguments)
			case thread.ToolResult:
				fmt.Fprintf(&b, "result %s %s\n", part.CallID, part.Text())
			}
		}
	}
	return b.String()
}

// TestRecalledKeepsItsPlace: what is shown for the user's message stands where the model saw
// it first, for the whole turn, so that prompts only grow and the thinking stays. With the
// next message it goes, and the thinking behind it; also where each step is another process's.
func TestRecalledKeepsItsPlace(t *testing.T) {
	for _, processes := range []string{"one", "many"} {
		t.Run(processes, func(t *testing.T) {
			kept := &store.Memory{}
			open := func() *palimpsest.Session {
				c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: kept, Plans: kept, Documents: kept}, Policy: policy.Auto{}, Recall: &palimpsest.Recall{Inject: 2000}})
				if err != nil {
					t.Fatal(err)
				}
				return c.Session("t")
			}
			s, provider := open(), binding{}
			step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: 6000}
			for n := range 30 {
				step.Messages = append(step.Messages, plain(thread.User, fmt.Sprint("What of zebra", n, "?", strings.Repeat(" filler words here", 60))), plain(thread.Assistant, fmt.Sprintf("The port of zebra%d is 80%02d.", n, n)))
			}
			before := ""
			for n, want := range []string{"", "sig0", "sig0 sig1", "", "sig3", "sig3 sig4"} {
				question := n%3 == 0
				if question {
					step.Messages = append(step.Messages, plain(thread.User, fmt.Sprintf("Which port had zebra%d?", 7+n)))
				}
				if processes == "many" {
					s = open()
				}
				p, err := s.PrepareStep(t.Context(), step)
				if err != nil {
					t.Fatal(err)
				}
				provider.check(t, p.Prompt, n)
				text := textBefore(p.Prompt, len(p.Messages))
				if !strings.Contains(text, "[Recalled Content") {
					t.Errorf("step %d: nothing is recalled: what is this test for?", n)
				}
				if got := signatures(p.Prompt); got != want {
					t.Errorf("step %d: thinking %q, want %q", n, got, want)
				}
				if !question && !strings.HasPrefix(text, before) {
					t.Errorf("step %d: the prompt did not only grow", n)
				}
				if first := p.CachePoints[0].After; !question && first != len(p.Messages)-1 {
					t.Errorf("step %d: the most important cache point is after message %d of %d", n, first, len(p.Messages))
				}
				before = text
				turn := lookedUp(n, "short")
				if n%3 == 2 {
					turn = []thread.Message{{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: "That one."}}}}
				}
				turn[0].Parts = append([]thread.Part{provider.think(p.Prompt, n)}, turn[0].Parts[min(1, len(turn[0].Parts)-1):]...)
				if err := s.FinishStep(t.Context(), p, wire.Usage{}, turn[0]); err != nil {
					t.Fatal(err)
				}
				step.Messages = turn[1:]
			}
		})
	}
}

// TestBroughtBackStripsBoundThinking: over a long loop in which the agent names what was
// externalized, asks, and is asked, no prompt has thinking that was made for another.
func TestBroughtBackStripsBoundThinking(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{
		Policy: policy.Ladder{MaxInputTokens: loopBudget}, Artifacts: artifact.NewStore(new(artifact.Memory), nil), Recall: &palimpsest.Recall{Inject: 800},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, provider := c.Session("t"), binding{}
	step := palimpsest.Step{Profile: render.For(wire.Anthropic), Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}}
	back, sent := 0, 0
	for n := range 80 {
		p, err := s.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		provider.check(t, p.Prompt, n)
		if strings.Contains(textBefore(p.Prompt, len(p.Messages)), "[Rehydrated Content") {
			back++
		}
		sent += len(strings.Fields(signatures(p.Prompt)))
		plans, err := s.Plans(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		call, result := work(n)
		if len(plans) > 0 && n%7 == 0 && len(plans[len(plans)-1].Externalizations) > 0 {
			call.Parts = append([]thread.Part{thread.Text{Text: "I look at " + plans[len(plans)-1].Externalizations[0].ArtifactID + " again."}}, call.Parts...)
		}
		step.Messages = []thread.Message{result}
		if n%10 == 9 {
			call, step.Messages = plain(thread.Assistant, "Done so far."), []thread.Message{plain(thread.User, fmt.Sprintf("What was in queue/file%d.go, in handle%d?", n-8, n-8))}
		}
		call.Parts = append([]thread.Part{provider.think(p.Prompt, n)}, call.Parts...)
		if err := s.FinishStep(t.Context(), p, wire.Usage{}, call); err != nil {
			t.Fatal(err)
		}
	}
	if back == 0 || sent == 0 {
		t.Errorf("%d prompts with content brought back, %d times thinking: what is this test for?", back, sent)
	}
}
