package langchaingo_test

import (
	"testing"
	"time"

	"github.com/tmc/langchaingo/llms"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/adapter/langchaingo"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func TestCodec(t *testing.T) { adaptertest.TestCodec(t, langchaingo.Codec{}, histories()) }

func TestCodecRefuses(t *testing.T) {
	for name, m := range map[string]llms.MessageContent{
		"a role of its own": llms.TextParts("critic", "no"), "no part": {Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{nil}},
	} {
		if _, err := (langchaingo.Codec{}).Decode([]llms.MessageContent{m}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// What a picture costs and whether a provider takes it depends on its class.
func TestMediaClasses(t *testing.T) {
	for mime, want := range map[string]thread.MediaType{
		"image/png": thread.Image, "audio/wav": thread.Audio, "video/mp4": thread.Video, "application/pdf": thread.File, "": thread.File, "image": thread.File,
	} {
		messages, err := langchaingo.Codec{}.Decode([]llms.MessageContent{{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{llms.BinaryPart(mime, []byte("x"))}}})
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := messages[0].Parts[0].(thread.Media); !ok || m.Type != want || m.MIME != mime {
			t.Errorf("%q is %+v, want %s", mime, messages[0].Parts[0], want)
		}
	}
}

func histories() *rapid.Generator[[]llms.MessageContent] {
	return rapid.Custom(func(t *rapid.T) []llms.MessageContent {
		return rapid.SliceOfN(rapid.Custom(message), 0, 8).Draw(t, "messages")
	})
}

func message(t *rapid.T) llms.MessageContent {
	m := llms.MessageContent{Role: rapid.SampledFrom([]llms.ChatMessageType{
		llms.ChatMessageTypeSystem, llms.ChatMessageTypeHuman, llms.ChatMessageTypeAI, llms.ChatMessageTypeTool, llms.ChatMessageTypeGeneric, llms.ChatMessageTypeFunction,
	}).Draw(t, "role")}
	for range rapid.IntRange(0, 3).Draw(t, "parts") {
		if m.Role == llms.ChatMessageTypeTool || m.Role == llms.ChatMessageTypeFunction {
			m.Parts = append(m.Parts, llms.ToolCallResponse{ToolCallID: rapid.String().Draw(t, "id"), Name: "read_part", Content: rapid.String().Draw(t, "result")})
		} else {
			m.Parts = append(m.Parts, part(t))
		}
	}
	return m
}

func part(t *rapid.T) llms.ContentPart {
	text := rapid.String()
	switch rapid.IntRange(0, 6).Draw(t, "part") {
	case 0:
		return llms.ImageURLWithDetailPart(text.Draw(t, "url"), rapid.SampledFrom([]string{"", "low"}).Draw(t, "detail"))
	case 1:
		return llms.BinaryPart("image/png", rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "data"))
	case 2:
		call := llms.ToolCall{ID: text.Draw(t, "id"), Type: rapid.SampledFrom([]string{"function", "custom", ""}).Draw(t, "type")}
		if rapid.Bool().Draw(t, "function") {
			call.FunctionCall = &llms.FunctionCall{Name: text.Draw(t, "name"), Arguments: `{"n":1}`}
		}
		return call
	case 3:
		return llms.WithCacheControl(llms.TextPart(text.Draw(t, "cached")), rapid.SampledFrom([]*llms.CacheControl{nil, {Type: "ephemeral", Duration: time.Hour}}).Draw(t, "mark"))
	}
	return llms.TextPart(text.Draw(t, "text"))
}
