package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestPlaces: content comes back where an earlier prompt showed it, in the same form, and new
// content at the end; cache points stand behind the one and in front of the other.
func TestPlaces(t *testing.T) {
	text := func(s string) []thread.Part { return []thread.Part{thread.Text{Text: s}} }
	th, err := thread.New("t").Append(
		thread.Message{ID: "first", Role: thread.User, Parts: text("first")},
		thread.Message{ID: "answer", Role: thread.Assistant, Parts: text("answer")},
		thread.Message{ID: "question", Role: thread.User, Parts: text("question")},
		thread.Message{ID: "call", Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: "c", Name: "read", Arguments: "{}"}}},
		thread.Message{ID: "result", Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "c", Tool: "read", Content: text("result")}}},
		thread.Message{ID: "done", Role: thread.Assistant, Parts: text("done")},
		thread.Message{ID: "more", Role: thread.User, Parts: text("more")},
	)
	if err != nil {
		t.Fatal(err)
	}
	said := func(p *prompt.Prompt) (out []string) {
		for _, m := range p.Messages {
			r, _ := m.Result()
			s := m.Text() + r.Text()
			for _, name := range []string{"art_a", "art_b", "art_new"} {
				s = strings.ReplaceAll(s, "[Rehydrated Content - artifact:"+name+"]\n", "")
			}
			out = append(out, string(m.Role)+" "+strings.ReplaceAll(s, "\n", " "))
		}
		return out
	}
	profile := render.For(wire.Anthropic)
	for length, c := range []struct {
		end   thread.ID
		at    []thread.ID // of a and b
		isNew bool
		want  string
		after int
	}{
		3: {"question", nil, true, "user first, assistant answer, assistant new, user question", 1},
		5: {"result", []thread.ID{"question", "question"}, true, "user first, assistant answer, assistant a, assistant b, user question, assistant , tool result  new", 5},
		6: {"", []thread.ID{"question", "gone"}, false, "user first, assistant answer, assistant a, user question, assistant , tool result, assistant done, user b", 6},
		7: {"more", []thread.ID{"result", "question"}, false, "user first, assistant answer, assistant b, user question, assistant , tool result  a, assistant done, user more", 7},
	} {
		if c.want == "" {
			continue
		}
		p, m, err := render.Render(th.Prefix(length), nil, nil, &render.Options{Profile: profile})
		if err != nil {
			t.Fatal(err)
		}
		if got := render.End(p, m); got != c.end {
			t.Errorf("%d messages end at %q, want %q", length, got, c.end)
		}
		var contents []render.Rehydrated
		for i, at := range c.at {
			name := string(rune('a' + i))
			contents = append(contents, render.Rehydrated{ArtifactID: "art_" + name, Content: name, At: at})
		}
		if c.isNew {
			contents = append(contents, render.Rehydrated{ArtifactID: "art_new", Content: "new"})
		}
		p.CachePoints = []prompt.CachePoint{{After: length - 1}}
		out, origins := render.Append(p, m, contents, profile)
		if got := strings.Join(said(out), ", "); got != c.want {
			t.Errorf("%d messages are shown as\n%s\nwant\n%s", length, got, c.want)
		}
		if len(origins.Messages) != len(out.Messages) || fmt.Sprint(out.CachePoints) != fmt.Sprint([]prompt.CachePoint{{After: c.after}}) {
			t.Errorf("%d messages: %d origins for %d, cache points %v, want one after %d", length, len(origins.Messages), len(out.Messages), out.CachePoints, c.after)
		}
		if len(p.Messages) != length || p.CachePoints[0].After != length-1 {
			t.Errorf("%d messages: the given prompt was changed", length)
		}
	}
}
