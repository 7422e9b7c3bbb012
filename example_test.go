package palimpsest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// reader stands for a model: it reads twenty files, one a step, and is done. Its
// provider refuses the seventh request as too long, once.
type reader struct{ asked, step int }

func (*reader) Model() string { return "reader" }

func (r *reader) Generate(context.Context, *prompt.Prompt, *llm.Options) (*llm.Reply, error) {
	if r.asked++; r.asked == 7 {
		return nil, &llm.APIError{Kind: llm.ErrOverflow}
	}
	if r.step++; r.step > 20 {
		return &llm.Reply{Message: plain(thread.Assistant, "All files are tidy.")}, nil
	}
	call := thread.ToolCall{ID: fmt.Sprint("call_", r.step), Name: "Read", Arguments: fmt.Sprintf(`{"file_path":"queue/%d.go"}`, r.step)}
	return &llm.Reply{Message: thread.Message{Role: thread.Assistant, Parts: []thread.Part{call}}}, nil
}

// setup stands for what an agent has: a model client and what the user asks.
func setup() (context.Context, llm.Generator, []thread.Message) {
	return context.Background(), &reader{}, []thread.Message{plain(thread.User, "Tidy the queue.")}
}

// runTools stands for the agent's tools.
func runTools(reply thread.Message) []thread.Message {
	var results []thread.Message
	for _, c := range reply.Calls() {
		results = append(results, toolMessage(c.ID, strings.Repeat("func handle(order Order) error { return nil }\n", 300)))
	}
	return results
}

// must stands for the agent's way with errors.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// An agent loop calls PrepareStep before each model call and FinishStep after.
func Example() {
	ctx, model, task := setup()                   // yours: llm/anthropic, llm/openai or any other client
	c, err := palimpsest.New(palimpsest.Config{}) // or your own policy, stores, counter, event sink
	must(err)
	s := c.Session("ticket-4711")
	step := palimpsest.Step{Profile: render.For(wire.Anthropic), Window: 40_000, Output: 8_000, Messages: task}
	for len(step.Messages) > 0 {
		p, err := s.PrepareStep(ctx, step) // adds what is new, compacts when it is due
		must(err)
		reply, err := model.Generate(ctx, p.Prompt, nil)
		if palimpsest.IsOverflow(err) {
			p, err = s.Overflowed(ctx, p, err) // compacts harder
			must(err)
			reply, err = model.Generate(ctx, p.Prompt, nil)
		}
		must(err)
		must(s.FinishStep(ctx, p, reply.Usage, reply.Message))
		step.Messages = runTools(reply.Message) // none: it is done
	}
	plans, err := s.Plans(ctx)
	must(err)
	fmt.Println("compacted", len(plans), "times")
	// Output:
	// compacted 3 times
}

// One conversation is fitted into a budget once, without a loop.
func ExampleCompactor_Compact() {
	f, err := transcript.Open("testdata/sessions/fix-retry.claude-code.jsonl", nil) // a session of an agent, or a request
	must(err)
	t := f.Transcripts[0] // of your own messages: thread.New("ticket-4711").Append(messages...)
	c, err := palimpsest.New(palimpsest.Config{})
	must(err)
	res, err := c.Compact(context.Background(), palimpsest.Request{
		Thread: t.Thread,
		Base:   &prompt.Prompt{Model: t.Model, System: t.System, Tools: t.Tools},
		Budget: 16_000, Profile: render.For(wire.Anthropic),
	})
	must(err)                                         // policy.ErrOverBudget: the budget cannot be met
	body, err := anthropic.Codec{}.Encode(res.Prompt) // of wire/anthropic; other APIs have theirs beside it
	must(err)
	fmt.Println(res.Before <= 16_000, res.After <= 16_000, len(body) > 0)
	// Output:
	// false true true
}

// TestLibraryExample: the examples of docs/library.md are those that run.
func TestLibraryExample(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	rest := string(page)
	for _, name := range []string{"Example", "ExampleCompactor_Compact"} {
		_, body, _ := strings.Cut(string(source), "\nfunc "+name+"() {\n")
		body, _, ok := strings.Cut(body, "\t// Output:\n")
		if !ok {
			t.Fatalf("%s has no output", name)
		}
		var want strings.Builder
		for line := range strings.Lines(body) {
			want.WriteString(strings.TrimPrefix(line, "\t"))
		}
		_, got, _ := strings.Cut(rest, "```go\n")
		got, rest, _ = strings.Cut(got, "```\n")
		if got != want.String() {
			t.Errorf("docs/library.md shows\n%s\n%s is\n%s", got, name, want.String())
		}
	}
}

// TestDocFitsAScreen: what go doc says of the package is read at one look.
func TestDocFitsAScreen(t *testing.T) {
	out, err := exec.Command("go", "doc", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go doc: %v\n%s", err, out)
	}
	const screen = 40
	if n := strings.Count(string(out), "\n"); n > screen || !strings.Contains(string(out), "func New(c Config)") {
		t.Errorf("go doc has %d lines, a screen has %d:\n%s", n, screen, out)
	}
}

// A ladder of rungs of your own goes into a policy.
func ExampleCompactor_Compact_rungs() {
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Custom{
		PolicyName: "results-first",
		Ladder:     strategy.Ladder{strategy.Externalize{Threshold: 500}, strategy.Drop{}},
	}})
	must(err)
	call := thread.ToolCall{ID: "1", Name: "Read", Arguments: `{"file_path":"queue.go"}`}
	log, err := thread.New("tidy").Append(append([]thread.Message{
		plain(thread.User, "Tidy the queue."), {Role: thread.Assistant, Parts: []thread.Part{call}},
	}, append(runTools(thread.Message{Role: thread.Assistant, Parts: []thread.Part{call}}), plain(thread.Assistant, "It is tidy."), plain(thread.User, "Thanks. Now the cache."))...)...)
	must(err)
	res, err := c.Compact(context.Background(), palimpsest.Request{Thread: log, Budget: 1000})
	must(err)
	fmt.Println(res.Plan.Policy, len(res.Plan.Externalizations), "externalized,", len(res.Plan.Drops), "dropped")
	// Output: results-first 1 externalized, 0 dropped
}
