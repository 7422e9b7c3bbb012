package render_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestRealRequests: a real request under an empty plan comes out byte for byte,
// and under random plans it breaks no rule of the provider that it kept before.
// A4, A16
func TestRealRequests(t *testing.T) {
	for _, api := range threadgen.APIs {
		t.Run(api, func(t *testing.T) {
			bodies := wiretest.Corpus(t, api)
			for _, name := range slices.Sorted(maps.Keys(bodies)) {
				t.Run(name, func(t *testing.T) { realRequest(t, codecs[api], bodies[name]) })
			}
		})
	}
}

func realRequest(t *testing.T, c wire.Codec, body []byte) {
	source, err := c.Decode(string(body))
	if err != nil {
		t.Fatal(err)
	}
	th, err := thread.New("real").Append(source.Messages...)
	if err != nil {
		t.Fatal(err)
	}
	o := &render.Options{Profile: render.For(c.API())}
	known := map[string]bool{}
	for _, problem := range c.Validate(body) {
		known[problem.Rule] = true
	}
	if same, manifest, err := render.Render(th, nil, source, o); err != nil {
		t.Fatal(err)
	} else if got := encode(t, c, same); len(manifest.Repairs) == 0 && !bytes.Equal(got, body) {
		t.Errorf("an empty plan changed the body, %d bytes became %d", len(body), len(got))
	} else {
		accounted(t, th, &plan.Plan{}, same, manifest)
	}
	for seed := range 4 {
		p := drawnPlan(th).Example(seed)
		out, manifest, err := render.Render(th, p, source, o)
		if err != nil {
			t.Fatal(err)
		}
		accounted(t, th, p, out, manifest)
		promptHolds(t, th, p, o.Profile, out, manifest)
		if speechless(out) {
			continue
		}
		edited := encode(t, c, out)
		for _, problem := range c.Validate(edited) {
			if !problem.Advice && !known[problem.Rule] {
				t.Errorf("plan %d: %v", seed, problem)
			}
		}
		firstWords(t, th, p, c, edited)
		unchanged(t, out, edited)
	}
}

// unchanged checks that what no record touched is sent with its own bytes,
// apart from the block that a cache mark goes onto.
func unchanged(t *testing.T, out *prompt.Prompt, body []byte) {
	t.Helper()
	marked := map[int]bool{}
	for _, point := range out.CachePoints {
		marked[point.After] = true
	}
	for i := range out.Messages {
		m := &out.Messages[i]
		if m.Frame == nil {
			continue
		}
		for k, part := range m.Parts {
			if marked[i] && k == len(m.Parts)-1 || part.From().Cache != "" {
				continue
			}
			if _, thinks := part.(thread.Reasoning); thinks && m.Frame.API() == wire.Chat {
				continue // a member of the message, not a block
			}
			if raw := part.From().Raw; !bytes.Contains(body, []byte(raw)) {
				t.Errorf("message %d, part %d lost its bytes: %.80s", i, k, raw)
			}
		}
	}
}
