package palimpsest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
			Tools:  toolpolicy.New(map[string]toolpolicy.Policy{"Read": {Capture: capture}}), Store: store.Tenant{Log: memory, Plans: memory},
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

// TestReadingsProve: where no tool tells what a source looks like, only a later reading of it proves that an
// earlier one could be had again, and none does once a command has run or the file was written. A7
func TestReadingsProve(t *testing.T) {
	read := func(id, file, hash string) []thread.Message {
		return []thread.Message{
			{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: "Read", Arguments: fmt.Sprintf(`{"file_path":%q}`, file)}}},
			{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "Read", Determinism: &thread.Determinism{ContentHash: hash}, Content: []thread.Part{thread.Text{Text: strings.Repeat(file+" holds the prices.\n", 100)}}}}},
		}
	}
	ran := func(tool, arguments string) []thread.Message {
		return []thread.Message{
			{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: "w", Name: tool, Arguments: arguments}}},
			{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "w", Tool: tool, Content: []thread.Part{thread.Text{Text: "ok"}}}}},
		}
	}
	for _, tt := range []struct {
		name    string
		then    [][]thread.Message
		cleared bool
	}{
		{"read once", nil, false},
		{"read again", [][]thread.Message{read("c2", "a.go", "h")}, true},
		{"read again, and changed", [][]thread.Message{read("c2", "a.go", "i")}, false},
		{"read again, then a command", [][]thread.Message{read("c2", "a.go", "h"), ran("Bash", `{"command":"sed -i s/1/2/ a.go"}`)}, false},
		{"a command, then read again", [][]thread.Message{ran("Bash", `{"command":"sed -i s/1/2/ b.go"}`), read("c2", "a.go", "h")}, true},
		{"read again, then written", [][]thread.Message{read("c2", "a.go", "h"), ran("Edit", `{"file_path":"a.go"}`)}, false},
		{"read again, then another written", [][]thread.Message{read("c2", "a.go", "h"), ran("Edit", `{"file_path":"b.go"}`)}, true},
		{"read again, then an agent", [][]thread.Message{read("c2", "a.go", "h"), ran("Task", `{"prompt":"Tidy up."}`)}, false},
	} {
		c, err := palimpsest.New(palimpsest.Config{Policy: policy.Ladder{DisableSummarization: true, DisableDropping: true, ExternalizeThreshold: 50_000}})
		if err != nil {
			t.Fatal(err)
		}
		log := append([]thread.Message{plain(thread.User, "Look.")}, read("c1", "a.go", "h")...)
		log = append(append(log, slices.Concat(tt.then...)...), read("c3", "b.go", "h")...)
		p, err := c.Session("t").Compact(t.Context(), palimpsest.Step{Budget: 700, Messages: append(log, plain(thread.User, "Go on."))}, "")
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if (len(p.Clearings) > 0) != tt.cleared {
			t.Errorf("%s: %d cleared, %d externalized", tt.name, len(p.Clearings), len(p.Externalizations))
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
