package palimpsest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/llm"
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
			made, err := palimpsest.New(palimpsest.Config{Log: log, Plans: log, Policy: policy.Session{}})
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
		if err := s.FinishStep(t.Context(), p, llm.Usage{}, thoughtful(n, "Done.")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLateResultStripsBoundThinking: a plan that no longer holds gives the hidden messages
// back, before thinking that was made without them.
func TestLateResultStripsBoundThinking(t *testing.T) {
	log := &store.Memory{}
	c, err := palimpsest.New(palimpsest.Config{Log: log, Plans: log})
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
	for _, want := range []string{"sig8", ""} {
		step.Messages = []thread.Message{plain(thread.User, "Go on.")}
		if want != "" {
			step.Messages = append([]thread.Message{plain(thread.User, "Go on."), thoughtful(8, "I do.")}, step.Messages...)
		} else {
			step.Messages = append([]thread.Message{result}, step.Messages...)
		}
		p, err := s.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		if got := signatures(p.Prompt); got != want {
			t.Errorf("%q, want %q", got, want)
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
				config := palimpsest.Config{Log: kept, Plans: kept, Documents: kept}
				if processes == "one, no documents" {
					config.Documents = nil
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
					if err := s.FinishStep(t.Context(), p, llm.Usage{}, answer); err != nil {
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
