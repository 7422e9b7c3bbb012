package palimpsest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/artifact/mem"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestLastingResults: what a search of the web found is externalized before
// anything summarizes or drops it, and can be read word for word ever after. A7
func TestLastingResults(t *testing.T) {
	for _, p := range []policy.Policy{policy.Auto{}, policy.Ladder{}, policy.Ladder{DisableExternalization: true}, policy.Ladder{DisableSummarization: true}} {
		for _, budget := range []int{12_000, 4_000} {
			t.Run(fmt.Sprintf("%+v, %d tokens", p, budget), func(t *testing.T) {
				artifacts := artifact.NewStore(mem.New(), nil)
				c, err := palimpsest.New(palimpsest.Config{Policy: p, Recall: &palimpsest.Recall{}, Artifacts: artifacts, Requester: artifact.Requester{TenantID: "acme"}})
				if err != nil {
					t.Fatal(err)
				}
				s := c.Session("t")
				step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: budget, Messages: []thread.Message{plain(thread.User, "Find out who sells bolts.")}}
				found := map[string]string{}
				for n := range 60 {
					if _, err := s.PrepareStep(t.Context(), step); err != nil {
						t.Fatal(err)
					}
					id := fmt.Sprintf("search_%d", n)
					text := strings.Repeat(fmt.Sprintf("Shop %d sells bolts of size M%d for %d cents. ", n, n%12, 100+n), 12)
					found[artifact.IDOf("t", text)] = text
					call := thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: "WebSearch", Arguments: fmt.Sprintf(`{"query":"bolts %d"}`, n)}}}
					if err := s.FinishStep(t.Context(), nil, llm.Usage{}, call); err != nil {
						t.Fatal(err)
					}
					step.Messages = []thread.Message{{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "WebSearch", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text}}}}}}
				}
				appended, err := s.Append(t.Context(), step.Messages...)
				if err != nil {
					t.Fatal(err)
				}
				plans, err := s.Plans(t.Context())
				if err != nil || len(plans) == 0 {
					t.Fatalf("%d plans, %v", len(plans), err)
				}
				aside, removed := map[thread.ID]bool{}, 0
				for v, p := range plans {
					for _, a := range p.Externalized() {
						for _, id := range a.Messages {
							aside[id] = true
						}
					}
					for id, ref := range p.Actions() {
						i, _ := appended.Log.Index(id)
						if appended.Log.At(i).Role != thread.Tool || ref.Action != plan.Summarize && ref.Action != plan.Drop {
							continue
						}
						if removed++; !aside[id] {
							t.Errorf("plan %d: the result %s is gone by %s and was never externalized", v+1, id, ref.Action)
						}
					}
				}
				for id, text := range found {
					if _, got, err := artifacts.Get(t.Context(), artifact.Requester{TenantID: "acme"}, id); err == nil && got != text {
						t.Errorf("%s reads %q", id, got)
					}
				}
				t.Logf("%d plans, %d results in summaries or dropped", len(plans), removed)
			})
		}
	}
}
