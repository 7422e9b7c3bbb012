package render_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// TestFewCachePoints: a request carries no more cache marks than the provider takes. The
// one at the end comes first, then the one after what a compaction froze. A caller's own
// marks count, and what is left of the four goes to the points in this order.
func TestFewCachePoints(t *testing.T) {
	var messages []thread.Message
	for n := range 6 {
		role := thread.User
		if n%2 == 1 {
			role = thread.Assistant
		}
		messages = append(messages, thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: fmt.Sprint("message ", n)}}})
	}
	th, err := thread.New("t").Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: "t", ThreadVersion: th.Version(), Clearings: []plan.Clearing{{Span: th.Range(2, 3)}}}
	for points, want := range map[int][]int{0: nil, 1: {5}, 2: {5, 2}, 3: {5, 2, -1}, 4: {5, 2, -1}} {
		out, _, err := render.Render(th, p, nil, &render.Options{Profile: render.Profile{CachePoints: points}})
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, point := range out.CachePoints {
			got = append(got, point.After)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d cache points: after %v, want %v", points, got, want)
		}
	}

	const mark = `,"cache_control":{"type":"ephemeral"}`
	for marked, want := range map[int][]int{1: {-1, 2, 5}, 2: {2, 5}, 3: {5}, 4: nil} {
		system := ""
		for n := range 5 {
			block := fmt.Sprintf(`{"type":"text","text":"rule %d"`, n)
			if n < marked {
				block += mark
			}
			system += "," + block + "}"
		}
		body := fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":9,"system":[%s],"messages":[{"role":"user","content":"hi"}]}`, system[1:])
		base, err := anthropic.Codec{}.Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		base.Messages = nil
		out, _, err := render.Render(th, p, base, &render.Options{Profile: render.For(wire.Anthropic)})
		if err != nil {
			t.Fatal(err)
		}
		sent, err := anthropic.Codec{}.Encode(out)
		if err != nil {
			t.Fatal(err)
		}
		if gjson.GetBytes(sent, "system.4.cache_control").Exists() != slices.Contains(want, -1) {
			t.Errorf("%d marks of the caller's, and on the system prompt: %s", marked, sent)
		}
		for n, m := range gjson.GetBytes(sent, "messages").Array() {
			if has := strings.Contains(m.Raw, "cache_control"); has != slices.Contains(want, n) {
				t.Errorf("%d marks of the caller's, and on message %d: %v", marked, n, has)
			}
		}
	}
}
