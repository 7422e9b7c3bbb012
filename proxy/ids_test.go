package proxy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/property"
	"github.com/palimpsest-ai/palimpsest/internal/threadgen"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// TestChainMemo: ids that are remembered are those that would be computed.
func TestChainMemo(t *testing.T) {
	for _, codec := range []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}} {
		memo := newChainMemo()
		property.Check(t, func(rt *rapid.T) {
			th := threadgen.Thread().Draw(rt, "thread")
			out, _, err := render.Render(th, nil, &prompt.Prompt{}, &render.Options{Profile: render.For(codec.API())})
			if err != nil {
				rt.Fatal(err)
			}
			body, err := codec.Encode(out)
			if err != nil {
				rt.Fatal(err)
			}
			p, err := codec.Decode(body)
			if err != nil {
				rt.Skip("nothing to ask a model")
			}
			for range 2 {
				if got, want := memo.ids(nil, p.Messages), chainIDs(p.Messages); !slices.Equal(got, want) {
					rt.Fatalf("%q, want %q", got, want)
				}
			}
		})
	}
}
