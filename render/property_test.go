package render_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

var codecs = map[string]wire.Codec{
	wire.Anthropic: anthropic.Codec{},
	wire.Chat:      openai.Chat{},
	wire.Responses: openai.Responses{},
	wire.Gemini:    gemini.Codec{},
}

// base is the request around the messages.
func base(api string) *prompt.Prompt {
	p := &prompt.Prompt{
		System:    []prompt.System{{Text: "Be brief."}},
		Tools:     []prompt.Tool{{Name: "Read", Description: "Read a file.", Schema: `{"type":"object","properties":{"file_path":{"type":"string"}}}`}},
		MaxOutput: 1024,
	}
	if api != wire.Gemini {
		p.Model = "model-x"
	}
	return p
}

// TestRenderAnyPlan: whatever the thread, whatever the valid plan, whatever the
// provider, the body is one that the provider accepts, every message is
// accounted for, and nothing is sent that only another provider can read. A16
func TestRenderAnyPlan(t *testing.T) {
	for _, api := range threadgen.APIs {
		t.Run(api, func(t *testing.T) {
			property.Check(t, func(rt *rapid.T) {
				th := threadgen.Thread().Draw(rt, "thread")
				p := drawnPlan(th).Draw(rt, "plan")
				o := &render.Options{Profile: render.For(api)}
				var back []render.Rehydrated
				if rapid.IntRange(0, 3).Draw(rt, "rehydrate") == 0 {
					back = []render.Rehydrated{{ArtifactID: "art_back", Content: threadgen.Text().Draw(rt, "brought back")}}
				}
				out, manifest, err := render.Render(th, p, base(api), o)
				if err != nil {
					rt.Fatal(err)
				}
				out, manifest = render.Append(out, manifest, back, o.Profile)
				accounted(rt, th, p, out, manifest)
				promptHolds(rt, th, p, o.Profile, out, manifest)
				if speechless(out) {
					return // nothing to ask a model
				}
				body := encode(rt, codecs[api], out)
				valid(rt, codecs[api], body)
				foreign(rt, api, body)
				firstWords(rt, th, p, codecs[api], body)
				textsOnce(rt, p, body)

				again, manifest2, err := render.Render(th, p, base(api), o)
				if err != nil {
					rt.Fatal(err)
				}
				again, manifest2 = render.Append(again, manifest2, back, o.Profile)
				if !reflect.DeepEqual(manifest, manifest2) || !bytes.Equal(body, encode(rt, codecs[api], again)) {
					rt.Fatal("the same input gave another prompt")
				}
			})
		})
	}
}

// speechless reports whether nobody says anything in the prompt: every message
// is gone, or all that is left are instructions.
func speechless(p *prompt.Prompt) bool {
	for i := range p.Messages {
		if p.Messages[i].Role != thread.System {
			return false
		}
	}
	return true
}

func encode(t rapid.TB, c wire.Codec, p *prompt.Prompt) []byte {
	t.Helper()
	body, err := c.Encode(p)
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	return body
}

func valid(t rapid.TB, c wire.Codec, body []byte) {
	t.Helper()
	for _, problem := range c.Validate(body) {
		if !problem.Advice {
			t.Fatalf("%s would refuse: %v\n%s", c.API(), problem, body)
		}
	}
}

// accounted checks that every message of the thread is either shown as it is,
// or hidden by its record, or, where neither can be, named by a repair.
func accounted(t rapid.TB, th *thread.Thread, p *plan.Plan, out *prompt.Prompt, m *render.Manifest) {
	t.Helper()
	if m.Format != "v1.0" || len(m.Messages) != len(out.Messages) {
		t.Fatalf("format %q, %d origins of %d messages", m.Format, len(m.Messages), len(out.Messages))
	}
	shown, hidden, repaired := map[thread.ID]int{}, map[thread.ID]int{}, map[thread.ID]int{}
	texts := map[plan.Ref]int{}
	for _, o := range m.Messages {
		switch {
		case o.Record.Action != plan.Include:
			texts[o.Record]++
		case o.ID != "" && !o.Synthetic:
			shown[o.ID]++
		}
	}
	for _, r := range m.Repairs {
		repaired[r.ID]++
	}
	actions := p.Actions()
	for _, h := range m.Hidden {
		hidden[h.ID]++
		if actions[h.ID] != h.Record || h.Record.Action == plan.Include {
			t.Fatalf("%s is hidden by %s, the plan says %s", h.ID, h.Record, actions[h.ID])
		}
	}
	for i, msg := range th.All() {
		wanted := 0
		if actions[msg.ID].Action != plan.Include {
			wanted = 1
		}
		switch {
		case hidden[msg.ID] != wanted:
			t.Fatalf("message %d is hidden %d times, its action is %s", i, hidden[msg.ID], actions[msg.ID])
		case shown[msg.ID]+hidden[msg.ID] > 1:
			t.Fatalf("message %d is shown %d times and hidden %d times", i, shown[msg.ID], hidden[msg.ID])
		case shown[msg.ID]+hidden[msg.ID]+repaired[msg.ID] == 0:
			t.Fatalf("message %d (%s) is nowhere in the manifest", i, msg.Role)
		}
	}
	for _, ref := range p.Refs() {
		if onlyDuplicates(th, p.Record(ref).Covers()) {
			continue // what is left out as it is needs nothing in its place
		}
		switch n := texts[ref]; {
		case ref.Action == plan.Drop && n != 0:
			t.Fatalf("%s left %d messages", ref, n)
		case ref.Action.Removes() && ref.Action != plan.Drop && n == 0:
			t.Fatalf("nothing stands for %s", ref)
		}
	}
}

// onlyDuplicates reports whether a span holds nothing but second results.
func onlyDuplicates(th *thread.Thread, s thread.Span) bool {
	pairs := thread.Pair(th)
	for _, id := range s.MessageIDs {
		if i, _ := th.Index(id); !pairs.Duplicate(i) {
			return false
		}
	}
	return true
}

// foreign checks that no seal of another API is in the body.
func foreign(t rapid.TB, api string, body []byte) {
	t.Helper()
	for _, other := range threadgen.APIs {
		if other != api && bytes.Contains(body, []byte(threadgen.Sealed(other))) {
			t.Fatalf("what only %s can read is sent to %s:\n%s", other, api, body)
		}
	}
}

// firstWords checks that what the user said first, of what the plan keeps, is
// in the body word for word.
func firstWords(t rapid.TB, th *thread.Thread, p *plan.Plan, c wire.Codec, body []byte) {
	t.Helper()
	actions := p.Actions()
	for _, m := range th.All() {
		if !m.StartsTurn() || actions[m.ID].Action != plan.Include || strings.TrimSpace(m.Text()) == "" {
			continue
		}
		back, err := c.Decode(string(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range m.Parts {
			text, ok := part.(thread.Text)
			if !ok || strings.TrimSpace(text.Text) == "" {
				continue
			}
			found := false
			for i := range back.Messages {
				found = found || back.Messages[i].Role == thread.User && strings.Contains(back.Messages[i].Text(), text.Text)
			}
			if !found {
				quoted, _ := json.Marshal(text.Text)
				t.Fatalf("the user's words %s are not in the body:\n%s", quoted, body)
			}
		}
		return
	}
}
