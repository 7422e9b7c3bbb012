package palimpsest_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event/slogsink"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// One step with a client of your own: what to send before the call, what came back after it.
func ExampleSession() {
	ctx := context.Background()
	c, err := palimpsest.New(palimpsest.Config{Model: "claude-haiku-4-5"})
	must(err)
	s := c.Session("ticket-4711")
	p, err := s.PrepareStep(ctx, palimpsest.Step{ // compacts when it is due
		Profile: render.For(wire.Anthropic), Messages: []thread.Message{thread.NewMessage(thread.User, "Tidy the queue.")},
	})
	must(err)
	request, err := anthropic.Codec{}.Encode(p.Prompt) // of wire/anthropic; other APIs have theirs beside it
	must(err)
	answer, err := anthropic.Codec{}.DecodeAnswer(post("/v1/messages", request)) // post is yours
	must(err)
	must(s.FinishStep(ctx, p, answer.Usage, answer.Message))
	fmt.Println(answer.Message.Text())
	// Output:
	// It is tidy.
}

// post stands for a program's way to ask a provider; of an answer with an error it makes llm.Failure.
func post(string, []byte) []byte {
	return []byte(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-haiku-4-5","content":[{"type":"text","text":"It is tidy."}],"stop_reason":"end_turn","usage":{"input_tokens":12,"output_tokens":5}}`)
}

// One conversation is fitted into a budget once, without a loop.
func ExampleCompactor_Compact() {
	f, err := transcript.Open("testdata/sessions/fix-retry.claude-code.jsonl", nil) // a session of an agent, or a request
	must(err)
	t := f.Transcripts[0] // of your own messages: thread.New("ticket-4711").Append(messages...)
	c, err := palimpsest.New(palimpsest.Config{Model: t.Model})
	must(err)
	res, err := c.Compact(context.Background(), palimpsest.Request{
		Thread: t.Thread,
		Base:   &prompt.Prompt{System: t.System, Tools: t.Tools},
		Budget: 16_000, Profile: render.For(wire.Anthropic),
	})
	must(err) // policy.ErrOverBudget: the budget cannot be met
	fmt.Println(res.Before > 100_000, res.After <= 16_000)
	for _, r := range res.Plan.Records() {
		fmt.Println(r.Action(), r.Made().Reason)
	}
	removed := recall.Removed(t.Thread, res.Plan) // each with its full Text
	hits := recall.NewIndex(removed).Search("retry.max_attempts", nil)
	fmt.Println(len(removed), "messages removed; the best of", len(hits), "passages is of turn", hits[0].Turn)
	body, err := anthropic.Codec{}.Encode(res.Prompt)
	must(err)
	fmt.Println(len(body) > 0)
	// Output:
	// true true
	// summarize older than what stays whole
	// externalize its tool gives it only once
	// 219 messages removed; the best of 10 passages is of turn 11
	// true
}

// noChatter is a rung of your own: it drops what the model said between calls.
type noChatter struct{}

func (noChatter) Name() string        { return "no-chatter" }
func (noChatter) Aggressiveness() int { return 1 } // before the others

func (r noChatter) Analyze(v *strategy.View) (proposals []strategy.Proposal) {
	for i, m := range v.Thread.All() {
		if v.Free(i) && m.Role == thread.Assistant && len(m.Calls()) == 0 {
			span, _ := thread.NewSpan(v.Thread, m.ID)
			proposals = append(proposals, strategy.Proposal{Strategy: r.Name(), Span: span, EstimatedTokensFreed: v.Sizes[i], Reason: "chatter"})
		}
	}
	return proposals
}

func (r noChatter) Execute(_ context.Context, _ *strategy.View, p strategy.Proposal) (strategy.Executed, error) {
	return strategy.Executed{Record: plan.Removal{Span: p.Span, Origin: plan.Origin{Strategy: r.Name(), Reason: p.Reason}}}, nil
}

// A summarizer and a rung of your own go into a policy; a logger is told what happens.
func ExampleConfig() {
	c, err := palimpsest.New(palimpsest.Config{
		Summarizer: requests{},
		Policy:     policy.Custom{PolicyName: "requests-only", Ladder: strategy.Ladder{noChatter{}, strategy.Summarize{}, strategy.Drop{}}},
		Events:     slogsink.New(slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime}))),
	})
	must(err)
	s := c.Session("tidy")
	for range 8 {
		p, err := s.PrepareStep(context.Background(), palimpsest.Step{Window: 3_000, Output: 500, Messages: []thread.Message{
			thread.NewMessage(thread.User, "Tidy the queue."+strings.Repeat(" And then?", 100)),
		}})
		must(err)
		must(s.FinishStep(context.Background(), p, wire.Usage{}, thread.NewMessage(thread.Assistant, strings.Repeat("It is tidy. ", 100))))
	}
	// Output:
	// level=INFO msg=compaction_completed thread_id=tidy policy=requests-only tokens_before=2454 tokens_after=1239 budget_limit=2500 tokens_freed=1215 details.round=1
	// level=INFO msg=compaction_completed thread_id=tidy policy=requests-only tokens_before=2667 tokens_after=1019 budget_limit=2500 tokens_freed=1648 details.round=2
	// level=INFO msg=compaction_completed thread_id=tidy policy=requests-only tokens_before=2447 tokens_after=1047 budget_limit=2500 tokens_freed=1400 details.round=3
}

// requests is a summarizer of your own: it keeps the first words of each request.
type requests struct{}

func (requests) Summarize(_ context.Context, in summarize.Input) (out summarize.Result, err error) {
	for _, m := range in.Messages {
		out.Span.MessageIDs = append(out.Span.MessageIDs, m.ID)
		if m.Role == thread.User {
			out.Requests = append(out.Requests, summary.Item{Text: m.Text()[:15], Turn: m.Turn, Sources: []thread.ID{m.ID}})
		}
	}
	return out, nil
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == "duration" {
		return slog.Attr{}
	}
	return a
}

// TestLibraryExample: the examples of docs/library.md are those that run.
func TestLibraryExample(t *testing.T) {
	page, err := os.ReadFile("docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	rest := string(page)
	for _, in := range [][2]string{{"examples_test.go", "ExampleSession"}, {"example_test.go", "Example"}, {"examples_test.go", "ExampleCompactor_Compact"}, {"examples_test.go", "ExampleConfig"}} {
		source, err := os.ReadFile(in[0])
		if err != nil {
			t.Fatal(err)
		}
		name := in[1]
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
