package palimpsest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestCaptureOfTools: the capture function of a tool says what its source looked
// like when its result came, and whether it still does when room is needed. A result
// whose source has drifted, or cannot be looked at any more, is not cleared. A7, A9
func TestCaptureOfTools(t *testing.T) {
	for _, now := range []string{"same", "drifted", "gone"} {
		version := "1"
		capture := func(thread.ToolCall) (thread.Determinism, error) {
			if version == "" {
				return thread.Determinism{}, errors.New("gone")
			}
			return thread.Determinism{Version: version}, nil
		}
		memory := &store.Memory{}
		c, err := palimpsest.New(palimpsest.Config{
			Policy: policy.Ladder{MaxInputTokens: 6_000, DisableSummarization: true, DisableExternalization: true, DisableDropping: true, RehydrationReserve: -1},
			Tools:  toolpolicy.New(map[string]toolpolicy.Policy{"Read": {Capture: capture}}), Log: memory, Plans: memory,
		})
		if err != nil {
			t.Fatal(err)
		}
		s := c.Session("t")
		news := []thread.Message{plain(thread.User, "Read the files.")}
		for n := range 8 {
			if n == 5 {
				version = map[string]string{"same": "1", "drifted": "2", "gone": ""}[now]
			}
			if _, err := s.PrepareStep(t.Context(), palimpsest.Step{Messages: news}); err != nil {
				t.Fatal(err)
			}
			id := fmt.Sprint("c", n)
			call := thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: "Read", Arguments: fmt.Sprintf(`{"file_path":"f%d"}`, n)}}}
			if err := s.FinishStep(t.Context(), nil, wire.Usage{}, call); err != nil {
				t.Fatal(err)
			}
			var text string
			for i := range 120 {
				text += fmt.Sprintf("line %d of file %d\n", i, n)
			}
			news = []thread.Message{{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "Read", Content: []thread.Part{thread.Text{Text: text}}}}}}
		}
		log, err := memory.Load(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		if r, _ := log.At(2).Result(); r.Determinism == nil || r.Determinism.Version != "1" {
			t.Errorf("%s: the log does not know what the source looked like: %+v", now, r.Determinism)
		}
		p, _, err := memory.Current(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		cleared := 0
		if p != nil {
			for _, x := range p.Clearings {
				i, _ := log.Index(x.Span.First())
				if r, _ := log.At(i).Result(); r.Determinism.Version == version {
					cleared++ // it could be had again as it was
				} else {
					t.Errorf("%s: what was read at version %s is cleared, it is at %q", now, r.Determinism.Version, version)
				}
			}
		}
		if now == "same" && cleared == 0 {
			t.Error("nothing was cleared: the test shows nothing")
		}
	}
}

// TestSourcesAreLookedAtOnce: planning a step looks at each source once, since that may be
// slow and the source may change in between. A9
func TestSourcesAreLookedAtOnce(t *testing.T) {
	looks, capturing := map[string]int{}, false
	capture := func(c thread.ToolCall) (thread.Determinism, error) {
		if capturing {
			looks[c.Arguments]++
		}
		return thread.Determinism{Version: "1"}, nil
	}
	c, err := palimpsest.New(palimpsest.Config{Tools: toolpolicy.New(map[string]toolpolicy.Policy{"Read": {Capture: capture, Durability: thread.Replayable}})})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Session("t")
	log := []thread.Message{plain(thread.User, "Read the files.")}
	for n := range 12 {
		call, result := work(n)
		log = append(log, call, result)
	}
	if _, err := s.Append(t.Context(), log...); err != nil {
		t.Fatal(err)
	}
	capturing = true
	for _, budget := range []int{9_000, 5_000} {
		clear(looks)
		if _, err := s.Compact(t.Context(), palimpsest.Step{Budget: budget}, ""); err != nil {
			t.Fatal(err)
		}
		if len(looks) == 0 {
			t.Error("nothing was looked at: the test shows nothing")
		}
		for arguments, n := range looks {
			if n > 1 {
				t.Errorf("%d tokens: %s was looked at %d times", budget, arguments, n)
			}
		}
	}
}
