package palimpsest_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/artifact/mem"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestGoesOn: an agent that summed up its own history and began anew reaches
// what stood before: it finds it, reads it, and reads the pointers that plans of
// the earlier thread handed out; what is still to be seen is not found again.
func TestGoesOn(t *testing.T) {
	for name, store := range map[string]*artifact.Store{"log": nil, "artifacts": artifact.NewStore(mem.New(), nil)} {
		t.Run(name, func(t *testing.T) {
			c, err := palimpsest.New(palimpsest.Config{Recall: &palimpsest.Recall{}, Artifacts: store, Requester: artifact.Requester{TenantID: "acme"}})
			if err != nil {
				t.Fatal(err)
			}
			pointer := worked(t, c)

			next := c.Session("after")
			step := palimpsest.Step{
				Base: &prompt.Prompt{Model: "m", MaxOutput: 1000}, Profile: render.For(wire.Anthropic), Budget: loopBudget,
				Messages: []thread.Message{
					{Role: thread.User, Kind: thread.Recap, Parts: []thread.Part{thread.Text{Text: "So far: files were read."}}},
					plain(thread.Assistant, "I am about to go on."), plain(thread.User, "Go on."),
				},
			}
			if p, err := next.PrepareStep(t.Context(), step); err != nil || len(p.Tools) > 0 {
				t.Fatalf("%v; %d tools are offered to a thread that goes on from nothing", err, len(p.Tools))
			}
			if text, _ := answer(t, next, "recall", map[string]any{"query": "handle3"}); strings.Contains(text, "line of file") {
				t.Fatal("a thread of its own finds what another holds")
			}
			next = c.Session("after", "first")
			step.Messages = nil
			p, err := next.PrepareStep(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(p.Tools, func(x prompt.Tool) bool { return x.Name == "recall" }) {
				t.Error("there is something to recall, and no tool for it")
			}
			found, _ := answer(t, next, "recall", map[string]any{"query": "handle3"})
			if !strings.Contains(found, "line of file 3") {
				t.Errorf("what stood before is not found: %s", found)
			}
			id := regexp.MustCompile(`message (\w+)`).FindStringSubmatch(found)
			if id == nil {
				t.Fatalf("no id to read: %s", found)
			}
			for _, id := range []string{id[1], pointer, pointer[:12]} {
				if text, outcome := answer(t, next, "read_artifact", map[string]any{"artifact_id": id}); outcome != thread.Success || !strings.Contains(text, "line of file") {
					t.Errorf("%s cannot be read: %s", id, text)
				}
			}
			if text, outcome := answer(t, next, "read_artifact", map[string]any{"artifact_id": "art_0000000000000000"}); outcome != thread.Failure {
				t.Errorf("an id that nobody gave is read: %s", text)
			}
			if text, _ := answer(t, next, "recall", map[string]any{"query": "about to go on"}); strings.Contains(text, "I am about") {
				t.Errorf("what is in sight is found: %s", text)
			}
		})
	}
}

// worked makes a thread called "first" that was compacted, and returns one of its
// pointers.
func worked(t *testing.T, c *palimpsest.Compactor) (pointer string) {
	t.Helper()
	th := c.Session("first")
	step := palimpsest.Step{
		Base: &prompt.Prompt{Model: "m", MaxOutput: 1000}, Profile: render.For(wire.Anthropic), Budget: loopBudget,
		Messages: []thread.Message{plain(thread.User, "Tidy the queue.")},
	}
	for n := range 40 {
		if _, err := th.PrepareStep(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		call, result := work(n)
		if err := th.FinishStep(t.Context(), nil, llm.Usage{}, call); err != nil {
			t.Fatal(err)
		}
		step.Messages = []thread.Message{result}
	}
	if _, err := th.Append(t.Context(), append(step.Messages, plain(thread.Assistant, "I am about to go on."))...); err != nil {
		t.Fatal(err)
	}
	plans, err := th.Plans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plans {
		for _, x := range p.Externalizations {
			pointer = x.ArtifactID
		}
	}
	if pointer == "" {
		t.Fatal("no plan handed out a pointer")
	}
	return pointer
}
