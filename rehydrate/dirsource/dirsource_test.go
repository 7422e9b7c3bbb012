package dirsource_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/rehydrate/dirsource"
	"github.com/palimpsest-ai/palimpsest/store/dir"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestSource: the tools read and search what was saved in a directory. A10
func TestSource(t *testing.T) {
	s, err := dir.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const output = "FAIL: TestRetryBackoff want 250ms\nexit status 1"
	th, err := thread.New("t").Append(
		thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "run the tests"}}},
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: "c", Name: "Bash", Arguments: `{"command":"go test"}`}}},
		thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "c", Tool: "Bash", Content: []thread.Part{thread.Text{Text: output}}}}},
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: "It fails."}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	id := artifact.IDOf("t", output)
	p := &plan.Plan{ThreadID: "t", ThreadVersion: th.Version(), Externalizations: []plan.Externalization{{Span: th.Range(2, 3), ArtifactID: id}}}
	if err := s.Save(t.Context(), th, p); err != nil {
		t.Fatal(err)
	}
	source := dirsource.Source{Store: s, ThreadID: "t"}
	h := &rehydrate.Handler{Artifacts: source, Recaller: source}
	for _, tt := range []struct {
		tool, arguments string
		outcome         thread.Outcome
		want            []string
	}{
		{rehydrate.ReadArtifact, fmt.Sprintf(`{"artifact_id":%q}`, id), thread.Success, []string{"Output of Bash from turn 1", output}},
		{rehydrate.ReadArtifact, fmt.Sprintf(`{"artifact_id":%q}`, id[:12]), thread.Success, []string{id, output}},
		{rehydrate.ReadArtifact, `{"artifact_id":"art_00000000000000ff"}`, thread.Failure, []string{"there is no artifact"}},
		{rehydrate.Recall, `{"query":"TestRetryBackoff"}`, thread.Success, []string{"1 hit.", id, "turn 1, tool Bash", "want 250ms"}},
		{rehydrate.Recall, `{"query":"unheard"}`, thread.Success, []string{"Nothing that was removed matches"}},
	} {
		r, err := h.Answer(t.Context(), thread.ToolCall{ID: "x", Name: tt.tool, Arguments: tt.arguments})
		if err != nil || r.Outcome != tt.outcome {
			t.Errorf("%s(%s): %s, %v", tt.tool, tt.arguments, r.Outcome, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(r.Text(), want) {
				t.Errorf("%s(%s) does not hold %q:\n%s", tt.tool, tt.arguments, want, r.Text())
			}
		}
		if strings.Contains(r.Text(), s.Path()) {
			t.Errorf("%s(%s) tells where the store is", tt.tool, tt.arguments)
		}
	}
	elsewhere := dirsource.Source{Store: s, ThreadID: "other"}
	if c, err := elsewhere.Artifact(t.Context(), id); err == nil {
		t.Errorf("another thread reads %+v", c)
	}
}

// TestAmbiguous: the beginning of two ids names both.
func TestAmbiguous(t *testing.T) {
	s, err := dir.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	th, err := thread.New("t").Append(
		thread.Message{ID: "message-1", Role: thread.User, Parts: []thread.Part{thread.Text{Text: "first"}}},
		thread.Message{ID: "message-2", Role: thread.User, Parts: []thread.Part{thread.Text{Text: "second"}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{ThreadID: "t", ThreadVersion: th.Version(), Drops: []plan.Removal{{Span: th.Range(0, 2)}}}
	if err := s.Save(t.Context(), th, p); err != nil {
		t.Fatal(err)
	}
	h := &rehydrate.Handler{Artifacts: dirsource.Source{Store: s}}
	r, err := h.Answer(t.Context(), thread.ToolCall{ID: "x", Name: rehydrate.ReadArtifact, Arguments: `{"artifact_id":"message"}`})
	if err != nil || r.Outcome != thread.Failure || !strings.Contains(r.Text(), "message-1") || !strings.Contains(r.Text(), "message-2") {
		t.Errorf("%s: %s, %v", r.Outcome, r.Text(), err)
	}
}
