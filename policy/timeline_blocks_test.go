package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestCutPointRules: what may be a cut point, what counts, what starts a turn.
// C4
func TestCutPointRules(t *testing.T) {
	for _, c := range []struct {
		kind, author         string
		cut, message, starts bool
	}{
		{blockResult, "tool", false, true, false},
		{blockResult, "user", false, true, true},
		{blockSummary, "assistant", false, false, false},
		{blockUser, "", true, true, true},
		{blockSaid, "", true, true, false},
		{blockCall, "", true, true, false},
		{blockTurn, "system", true, true, true},
		{blockNote, "user", true, true, true},
		{blockNote, "assistant", true, true, false},
		{blockNote, "harness", true, true, false},
		{blockNote, "system", false, false, false},
		{blockNote, "tool", false, false, false},
		{blockNote, "", false, false, false},
	} {
		b := block{kind: c.kind, author: c.author}
		if b.isCutPoint() != c.cut || b.isMessage() != c.message || b.startsTurn() != c.starts {
			t.Errorf("%s by %q: cut %v, message %v, starts %v", c.kind, c.author, b.isCutPoint(), b.isMessage(), b.startsTurn())
		}
	}
}

// TestBlocks: the mapping of messages to blocks. C1
func TestBlocks(t *testing.T) {
	call := func(id string) thread.Part { return thread.ToolCall{ID: id, Name: "Read"} }
	th, err := thread.New("t").Append(
		thread.Message{Role: thread.System, Parts: []thread.Part{thread.Text{Text: "rule"}}},
		thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "go"}}},
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Reasoning{}, thread.Text{Text: "ok"}, call("a"), call("b")}},
		thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "a"}}},
		thread.Message{Role: thread.User, Kind: thread.Injected, Parts: []thread.Part{thread.Text{Text: "note"}}},
		thread.Message{Role: thread.User, Kind: thread.Recap, Parts: []thread.Part{thread.Text{Text: "earlier"}}},
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{call("c")}},
	)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	sum := 0
	for _, b := range blocksOf(th.Messages(), 0, []int{1, 2, 4, 8, 16, 32, 64}) {
		got = append(got, b.kind)
		sum += b.tokens
	}
	want := "note turn.header user.prompt assistant.completion react.tool.call react.tool.call react.tool.result note conv.range.summary react.tool.call"
	if text := strings.Join(got, " "); text != want || sum != 127 {
		t.Errorf("%d tokens, %s", sum, text)
	}
}

// TestCutIndex walks the rules over small timelines: u user, a answer, c call,
// r result, h header, s summary, n a note of the system, each with a size. C5
func TestCutIndex(t *testing.T) {
	for _, c := range []struct {
		timeline string
		keep     int
		want     int
	}{
		{"u1 a1 u1 a1 u1 a1", 2, 4},
		{"u1 a1 u1 a1 u1 a1", 3, 3},
		{"u1 a1 u1 a1", 99, 0},            // all of it is recent
		{"u1 c1 r9 a1 u1", 5, 3},          // a result counts and is no cut point: the next candidate
		{"u1 c1 r9 n1 a1 u1", 5, 3},       // the note goes with the message after it
		{"s9 n1 u1 a1", 99, 1},            // back to just after the summary
		{"s9 u1 a1 n9 n9 u1", 1, 3},       // notes count nothing
		{"u1 a1 u1 c1 r50", 5, 3},         // nothing follows the result: its call
		{"u1 a1 h0 u5 a1", 5, 3},          // the prompt; its header is the same message
		{"u1 a1 u1 c1 c1 r5 r5 a1", 6, 7}, // after both results
	} {
		var blocks []block
		for f := range strings.FieldsSeq(c.timeline) {
			b := block{tokens: 0, author: "system"}
			for _, d := range f[1:] {
				b.tokens = b.tokens*10 + int(d-'0')
			}
			b.kind = map[byte]string{'u': blockUser, 'a': blockSaid, 'c': blockCall, 'r': blockResult, 'h': blockTurn, 's': blockSummary, 'n': blockNote}[f[0]]
			blocks = append(blocks, b)
		}
		if got, ok := cutIndex(blocks, c.keep); got != c.want || !ok {
			t.Errorf("%s, keep %d: %d %v, want %d", c.timeline, c.keep, got, ok, c.want)
		}
	}
	if _, ok := cutIndex([]block{{kind: blockResult}, {kind: blockSummary}}, 1); ok {
		t.Error("a cut where there is no candidate")
	}
}

// TestCutIndexProperty: the cut begins a run of notes before a candidate, and
// never lies behind a place that the budget needs, while one is left. C4, C5
func TestCutIndexProperty(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		messages := threadgen.Thread().Draw(rt, "thread").Messages()
		sizes := make([]int, len(messages))
		for i := range sizes {
			sizes[i] = rapid.IntRange(0, 50).Draw(rt, "size")
		}
		blocks := blocksOf(messages, 0, sizes)
		i, ok := cutIndex(blocks, rapid.IntRange(1, 500).Draw(rt, "keep"))
		if !ok {
			return
		}
		k := i
		for !blocks[k].isMessage() {
			k++
		}
		if !blocks[k].isCutPoint() || i > 0 && !blocks[i-1].isMessage() && blocks[i-1].kind != blockSummary {
			rt.Fatalf("cut at %d, %+v", i, blocks[i])
		}
	})
}
