package recall_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestRemoved: every action, with full texts, and what the call says of its
// result. A22
func TestRemoved(t *testing.T) {
	made := time.Date(2025, 5, 12, 9, 0, 0, 0, time.UTC)
	planned := made.Add(time.Hour)
	th, err := thread.New("t").Append(
		thread.Message{Role: thread.User, Time: made, Parts: []thread.Part{thread.Text{Text: "look at this"}, thread.Media{Type: thread.Image, MIME: "image/png", Name: "shot.png", Data: "AAAA"}}},
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{
			thread.Reasoning{Text: "a timeout, perhaps"}, thread.ToolCall{ID: "c", Name: "Bash", Arguments: `{"command":"go test ./retry","timeout":30}`},
		}},
		thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
			CallID: "c", Tool: "Bash", Outcome: thread.Failure, Content: []thread.Part{thread.Text{Text: "\n--- FAIL: TestBackoff\n"}, thread.Text{Text: "exit 1"}},
		}}},
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: "the cap is missing"}, thread.Opaque{Kind: "server_note", Source: thread.Source{Raw: `{"type":"server_note","k":7}`}}}},
		thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "kept"}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{
		ThreadID: "t", ThreadVersion: 5, CreatedAt: planned,
		Drops:            []plan.Removal{{Span: th.Range(0, 1), Origin: plan.Origin{Reason: "oldest"}}},
		Clearings:        []plan.Clearing{{Span: th.Range(1, 2)}},
		Externalizations: []plan.Externalization{{Span: th.Range(2, 3), ArtifactID: "art_x"}},
		Summarizations:   []plan.Summarization{{Span: th.Range(3, 4), Kept: []plan.Kept{{ArtifactID: "art_y", MessageID: th.At(3).ID}}}},
	}
	got := recall.Removed(th, p)
	recall.AddKeywords(got)
	for i := range got {
		if len(got[i].Keywords) == 0 {
			t.Errorf("entry %d has no keywords", i)
		}
		got[i].Keywords = nil
	}
	want := []recall.Entry{
		{Action: plan.Drop, Role: thread.User, Turn: 1, Time: made, Reason: "oldest", Summary: "look at this", Text: "look at this\n[image image/png shot.png 3 bytes]"},
		{Action: plan.Clear, Role: thread.Assistant, Turn: 1, Time: planned, Summary: "calls Bash go test ./retry 30", Text: "a timeout, perhaps\nBash {\"command\":\"go test ./retry\",\"timeout\":30}"},
		{Action: plan.Externalize, Role: thread.Tool, Tool: "Bash", Turn: 1, Time: planned, ArtifactID: "art_x", Call: "Bash go test ./retry 30", Summary: "Bash go test ./retry 30 failed: --- FAIL: TestBackoff", Text: "\n--- FAIL: TestBackoff\n\nexit 1"},
		{Action: plan.Summarize, Role: thread.Assistant, Turn: 1, Time: planned, ArtifactID: "art_y", Summary: "the cap is missing", Text: "the cap is missing\n[server_note]\n{\"type\":\"server_note\",\"k\":7}"},
	}
	for i := range want {
		want[i].ThreadID, want[i].MessageID, want[i].Position = "t", th.At(i).ID, i
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	p.ThreadID = "other"
	if got := recall.Removed(th, p); got != nil {
		t.Errorf("another thread's plan removes %d messages", len(got))
	}
	if got := recall.Removed(th, nil); got != nil {
		t.Errorf("no plan removes %d messages", len(got))
	}
}

// TestRemovedByAnyPlan: what any of several plans removed is there once, as the first of them
// removed it, with the artifact that any of them names.
func TestRemovedByAnyPlan(t *testing.T) {
	var messages []thread.Message
	for _, text := range []string{"a.go", "b.go", "c.go"} {
		messages = append(messages, thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}})
	}
	th, err := thread.New("t").Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	of := func(from, to int, why string) plan.Removal {
		return plan.Removal{Span: th.Range(from, to), Origin: plan.Origin{Reason: why}}
	}
	newer := &plan.Plan{ThreadID: "t", Drops: []plan.Removal{of(1, 2, "newer")}}
	older := &plan.Plan{ThreadID: "t", Externalizations: []plan.Externalization{{Span: th.Range(0, 1), ArtifactID: "art_0"}, {Span: th.Range(1, 2), ArtifactID: "art_1", Origin: plan.Origin{Reason: "older"}}}}
	other := &plan.Plan{ThreadID: "u", Drops: []plan.Removal{of(2, 3, "of another thread")}}
	got := recall.Removed(th, newer, nil, older, other)
	if len(got) != 2 || got[0].ArtifactID != "art_0" || got[0].Action != plan.Externalize || got[1].Reason != "newer" || got[1].Action != plan.Drop || got[1].ArtifactID != "art_1" {
		t.Errorf("got %+v", got)
	}
}

// TestRemovedIsHidden: for any thread and any valid plan the entries are the
// manifest's hidden messages; summaries and keywords keep their bounds; every
// line of every text is found as it stands. A22, A23
func TestRemovedIsHidden(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		th := threadgen.Thread().Draw(rt, "thread")
		if th.Len() == 0 {
			return
		}
		p := &plan.Plan{ThreadID: th.ID(), ThreadVersion: th.Version()}
		pairs := thread.Pair(th)
		unit := func(i int) bool { // what ran at the provider goes whole
			first, last := pairs.Unit(i)
			return first < last
		}
		end := rapid.IntRange(1, th.Len()).Draw(rt, "end")
		for i := range end {
			m := th.At(i)
			clears := m.Role == thread.Tool || rapid.Bool().Draw(rt, "clear")
			switch {
			case unit(i) || pairs.Open(i) || rapid.IntRange(0, 4).Draw(rt, "keep") == 0:
			case clears || len(m.Calls()) > 0:
				p.Clearings = append(p.Clearings, plan.Clearing{Span: th.Range(i, i+1)})
			default:
				p.Drops = append(p.Drops, plan.Removal{Span: th.Range(i, i+1)})
			}
		}
		_, manifest, err := render.Render(th, p, nil, nil)
		if err != nil {
			rt.Fatal(err)
		}
		entries := recall.Removed(th, p)
		if !reflect.DeepEqual(entries, recall.Removed(th, p)) {
			rt.Fatal("the same plan gave other entries")
		}
		if len(entries) != len(manifest.Hidden) {
			rt.Fatalf("%d entries of %d hidden messages", len(entries), len(manifest.Hidden))
		}
		recall.AddKeywords(entries)
		x := recall.NewIndex(entries)
		for i, e := range entries {
			if e.MessageID != manifest.Hidden[i].ID || e.Action != manifest.Hidden[i].Record.Action {
				rt.Fatalf("entry %d is %s %s, hidden is %+v", i, e.Action, e.MessageID, manifest.Hidden[i])
			}
			if n := utf8.RuneCountInString(e.Summary); n > 161 || strings.ContainsAny(e.Summary, "\n\r") || len(e.Keywords) > 12 {
				rt.Fatalf("summary of %d characters %q, keywords %q", n, e.Summary, e.Keywords)
			}
			for line := range strings.SplitSeq(e.Text, "\n") {
				line = strings.TrimSpace(line)
				if line == "" || strings.Contains(line, `"`) {
					continue
				}
				hits := x.Search(line, &recall.Options{Limit: 10 * len(entries), Tokens: 1 << 20})
				if !slices.ContainsFunc(hits, func(h recall.Hit) bool {
					return h.MessageID == e.MessageID || slices.Contains(h.Also, e.MessageID)
				}) {
					rt.Fatalf("%s is not found by its line %q", e.MessageID, line)
				}
			}
		}
	})
}
