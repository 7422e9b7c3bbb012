package setup

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestFailedSummarizerFailsTheJob: under workstream a summarizer that fails fails the
// job, and the messages pass as they are meanwhile; three seconds later the job asks
// again, though the model failed a moment ago, and only when that fails too code
// writes the summary. B10, D11, D12
func TestFailedSummarizerFailsTheJob(t *testing.T) {
	answer := llmtest.Say(`{"summary":{"key_facts":["file 1 is tidied"],"conversation_flow":[],"open_threads":[]},"state_delta":{}}`)
	for name, test := range map[string]struct {
		second llmtest.Turn
		by     string
	}{
		"and answers then": {answer, "openai:m"},
		"and fails again":  {llmtest.Fail(llm.ErrServer), "extractive"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := policyfile.Default("workstream")
				s.Workstream.ContextSize, s.Workstream.OutputReserve, s.Workstream.SafetyMargin = 3000, 100, 100
				script := llmtest.Script(llmtest.Fail(llm.ErrServer), test.second)
				c := &Policy{Settings: s, models: []*guardedModel{guard("openai:m", script, &s.Summarizer, &Options{})}}
				config := c.Config(mustCounter(t))
				var by []string
				failures := 0
				config.Events = event.Func(func(_ context.Context, e event.Event) {
					switch e.Type {
					case event.Asked:
						by = append(by, e.Details["summarizer"].(string))
					case event.Failed:
						failures++
					}
				})
				var comp *palimpsest.Compactor
				given := 0
				q := job.NewMemory(job.Handlers{palimpsest.CompactJob: func(ctx context.Context, j job.Job) error { return comp.Work(ctx, j) }},
					&job.Options{Failed: func(job.Job, error) { given++ }})
				config.Jobs = q
				comp, err := palimpsest.New(config)
				if err != nil {
					t.Fatal(err)
				}
				th := comp.Session("t")
				say := func(role thread.Role, text string) thread.Message {
					return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: text}}}
				}
				var log []thread.Message
				for range 7 {
					log = append(log, say(thread.User, "Please tidy file 1."), say(thread.Assistant, "The file 1 is tidied. "+strings.Repeat("It holds orders. ", 60)))
				}
				step := palimpsest.Step{Profile: render.For(wire.Chat), Messages: append(log, say(thread.User, "Go on."))}
				start := time.Now()
				p, err := th.PrepareStep(t.Context(), step)
				if err != nil || len(p.Messages) != len(step.Messages) || p.PlanVersion != 0 {
					t.Fatalf("plan %d: %v: the messages do not pass as they are", p.PlanVersion, err)
				}
				if failures != 1 || len(by) != 0 || time.Since(start) > time.Second {
					t.Errorf("after %v: %d failures, summaries by %v", time.Since(start), failures, by)
				}
				if p, err = th.PrepareStep(t.Context(), palimpsest.Step{Profile: step.Profile}); err != nil || p.PlanVersion != 0 || len(script.Asked()) != 1 {
					t.Errorf("while the job rests: plan %d, asked %d times: %v", p.PlanVersion, len(script.Asked()), err)
				}
				time.Sleep(3 * time.Second) // of the bubble: the second attempt
				synctest.Wait()
				if p, err = th.PrepareStep(t.Context(), palimpsest.Step{Profile: step.Profile}); err != nil || p.PlanVersion != 1 || p.Messages[0].Role != thread.System {
					t.Errorf("after the second attempt: plan %d: %v", p.PlanVersion, err)
				}
				if script.Remaining() != 0 || len(by) != 1 || by[0] != test.by || given != 0 {
					t.Errorf("%d answers left, summaries by %v, given up %d times", script.Remaining(), by, given)
				}
				if err := q.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
