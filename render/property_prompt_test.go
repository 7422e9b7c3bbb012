package render_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// promptHolds checks what the renderer owes to a profile, apart from what the
// codec would put right by itself.
func promptHolds(t rapid.TB, th *thread.Thread, p *plan.Plan, profile render.Profile, out *prompt.Prompt, m *render.Manifest) {
	t.Helper()
	first := slices.IndexFunc(out.Messages, func(m thread.Message) bool { return m.Role != thread.System })
	own := func(p thread.Part) bool { // a compaction of the provider's own: nothing stands before it
		o, ok := p.(thread.Opaque)
		return ok && o.Kind == "compaction" && o.From().API == profile.API
	}
	if profile.FirstUser && first >= 0 && out.Messages[first].Role != thread.User && !slices.ContainsFunc(out.Messages[first].Parts, own) {
		t.Fatalf("the first message is the %s's", out.Messages[first].Role)
	}
	if last := len(out.Messages) - 1; profile.LastUser && last >= 0 && m.Messages[last].Synthetic && out.Messages[last].Role == thread.Assistant {
		t.Fatal("what stands for the end is the model's")
	}
	changed := !p.Empty()
	for n := range out.Messages {
		msg, origin := &out.Messages[n], m.Messages[n]
		if len(msg.Parts) == 0 {
			t.Fatalf("message %d is empty", n)
		}
		at, known := th.Index(origin.ID)
		for _, part := range msg.Parts {
			switch part.(type) {
			case thread.Reasoning, thread.Opaque:
				if part.From().API != profile.API {
					t.Fatalf("message %d holds a %T of %q", n, part, part.From().API)
				}
			}
			// All reasoning that existed when the plan was made goes, or none.
			if _, thinks := part.(thread.Reasoning); thinks && profile.BoundReasoning && changed && known && at < p.ThreadVersion {
				t.Fatalf("message %d keeps reasoning that is bound to what is gone", n)
			}
		}
		if known && origin.Record.Action == plan.Include && !origin.Synthetic {
			keepsParts(t, profile, changed, th.At(at), msg)
		}
	}
	pairsHold(t, profile, out)
	if marks := len(out.CachePoints); marks > profile.CachePoints {
		t.Fatalf("%d cache points, the provider takes %d", marks, profile.CachePoints)
	}
}

// keepsParts checks that an included message lost nothing but what cannot be sent.
func keepsParts(t rapid.TB, profile render.Profile, changed bool, was, is *thread.Message) {
	t.Helper()
	count := func(m *thread.Message) (texts, calls, own int) {
		for _, part := range m.Parts {
			switch part := part.(type) {
			case thread.Text:
				if strings.TrimSpace(part.Text) != "" && !strings.HasPrefix(part.Text, "[") {
					texts++
				}
			case thread.ToolCall:
				calls++
			case thread.Reasoning:
				if part.API == profile.API && !(changed && profile.BoundReasoning) {
					own++
				}
			case thread.Opaque:
				if part.API == profile.API {
					own++
				}
			}
		}
		return texts, calls, own
	}
	a, b, c := count(was)
	x, y, z := count(is)
	if a != x || b != y || c != z {
		t.Fatalf("message %s had %d texts, %d calls and %d parts of the provider's own, and is sent with %d, %d and %d", was.ID, a, b, c, x, y, z)
	}
}

// pairsHold checks that results stand directly behind their calls, one for
// each, in the order of the calls where the provider counts on it.
func pairsHold(t rapid.TB, profile render.Profile, out *prompt.Prompt) {
	t.Helper()
	var open, hosted []string
	for n := range out.Messages {
		msg := &out.Messages[n]
		for _, part := range msg.Parts {
			if o, ok := part.(thread.Opaque); ok && o.Call != "" && !o.Answers {
				hosted = append(hosted, o.Call)
			}
		}
		if r, ok := msg.Result(); ok {
			if len(open) == 0 && slices.Contains(hosted, r.CallID) {
				continue // of a call that ran at the provider
			}
			at := slices.Index(open, r.CallID)
			if at < 0 || profile.ResultsInCallOrder && at != 0 {
				t.Fatalf("message %d answers %q, open are %q", n, r.CallID, open)
			}
			open = slices.Delete(open, at, at+1)
			continue
		}
		if len(open) > 0 {
			t.Fatalf("message %d comes before the results of %q", n, open)
		}
		for _, call := range msg.Calls() {
			open = append(open, call.ID)
		}
	}
	if len(open) > 0 {
		t.Fatalf("the prompt ends without results of %q", open)
	}
}

// textsOnce checks that the text of every record stands in the body once, and
// in the seed's format. A16
func textsOnce(t rapid.TB, p *plan.Plan, body []byte) {
	t.Helper()
	once := func(s summary.Summary, head string) {
		quoted, _ := json.Marshal(s.Facts[0].Text)
		fact := quoted[1 : len(quoted)-1]
		if n := bytes.Count(body, fact); n > 1 {
			t.Fatalf("%s stands %d times in the body", fact, n)
		} else if n == 1 && !bytes.Contains(body, []byte(head)) {
			t.Fatalf("%q is not in the body", head)
		}
	}
	for _, r := range p.Summarizations {
		once(r.Summary, fmt.Sprintf(`[Context Summary - Turns %d-%d]\n[Summary v1.0]`, r.Span.FirstTurn, r.Span.LastTurn))
	}
	for _, r := range p.Externalizations {
		once(r.Summary, fmt.Sprintf(`[Externalized Content - artifact:%s]\nSummary: [Summary v1.0]`, r.ArtifactID))
		if bytes.Contains(body, fmt.Appendf(nil, `artifact:%s]`, r.ArtifactID)) && !bytes.Contains(body, fmt.Appendf(nil, `read_artifact(\"%s\")`, r.ArtifactID)) {
			t.Fatalf("nothing says how to read %s", r.ArtifactID)
		}
	}
	shown := 0
	for n := 1; n <= len(p.Refs()); n++ {
		shown += bytes.Count(body, []byte(planFact(n)))
	}
	if want := len(p.Summarizations) + len(p.Externalizations); shown > want {
		t.Fatalf("%d texts in the body for %d records", shown, want)
	}
}
