package genkit_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/adapter/genkit"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
)

func TestCodec(t *testing.T) { adaptertest.TestCodec(t, genkit.Codec{}, histories()) }

func TestCodecRefuses(t *testing.T) {
	for name, m := range map[string]*ai.Message{"nil": nil, "a role of its own": {Role: "critic"}} {
		if _, err := (genkit.Codec{}).Decode([]*ai.Message{ai.NewUserTextMessage("hello"), m}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// One message of two has the metadata of both; that of the later one where they differ.
func TestJoinKeepsMetadata(t *testing.T) {
	a := &ai.Message{Role: ai.RoleUser, Content: []*ai.Part{ai.NewTextPart("a")}, Metadata: map[string]any{"purpose": "context", "n": 1}}
	b := &ai.Message{Role: ai.RoleUser, Content: []*ai.Part{ai.NewTextPart("b")}, Metadata: map[string]any{"cache": "5m", "n": 2}}
	plain := &ai.Message{Role: ai.RoleUser, Content: []*ai.Part{ai.NewTextPart("c")}}
	for _, tt := range []struct {
		first, second *ai.Message
		want          map[string]any
	}{
		{a, b, map[string]any{"purpose": "context", "cache": "5m", "n": 2}}, {plain, b, b.Metadata}, {a, plain, a.Metadata}, {plain, plain, nil},
	} {
		joined, ok := genkit.Codec{}.Join(tt.first, tt.second)
		if !ok {
			t.Fatal("they stay apart")
		}
		if !maps.Equal(tt.want, joined.Metadata) {
			t.Errorf("%v, want %v", joined.Metadata, tt.want)
		}
	}
	if len(a.Metadata) != 2 || len(b.Metadata) != 2 {
		t.Errorf("the messages were changed: %v, %v", a.Metadata, b.Metadata)
	}
}

func histories() *rapid.Generator[[]*ai.Message] {
	return rapid.Custom(func(t *rapid.T) []*ai.Message {
		var out []*ai.Message
		if rapid.Bool().Draw(t, "system") {
			out = append(out, &ai.Message{Role: ai.RoleSystem, Content: []*ai.Part{text(t)}})
		}
		for range rapid.IntRange(0, 4).Draw(t, "rounds") {
			out = append(out, &ai.Message{Role: ai.RoleUser, Content: rapid.SliceOfN(rapid.Custom(said), 1, 3).Draw(t, "user"), Metadata: metadata(t)})
			model := &ai.Message{Role: ai.RoleModel, Content: rapid.SliceOfN(rapid.Custom(said), 1, 2).Draw(t, "model"), Metadata: metadata(t)}
			out = append(out, model)
			if rapid.Bool().Draw(t, "calls") {
				results := &ai.Message{Role: ai.RoleTool}
				named := rapid.Bool().Draw(t, "named")
				for n := range rapid.IntRange(1, 3).Draw(t, "parallel") {
					ref := ""
					if named {
						ref = fmt.Sprintf("call-%d-%d", len(out), n)
					}
					call := ai.NewToolRequestPart(&ai.ToolRequest{Name: "read_part", Ref: ref, Input: value(t)})
					call.Metadata = metadata(t)
					model.Content = append(model.Content, call)
					result := ai.NewToolResponsePart(&ai.ToolResponse{Name: "read_part", Ref: ref, Output: value(t)})
					if rapid.Bool().Draw(t, "with media") {
						result.ToolResponse.Content = []*ai.Part{said(t)}
					}
					results.Content = append(results.Content, result)
				}
				out = append(out, results)
			}
		}
		return out
	})
}

func value(t *rapid.T) any {
	return rapid.SampledFrom([]any{"text", "", map[string]any{"n": 1.5, "list": []any{"a", nil, true}}, []any{1.0}, nil, 3.0}).Draw(t, "value")
}

func metadata(t *rapid.T) map[string]any {
	return rapid.SampledFrom([]map[string]any{nil, nil, {"signature": []byte("sealed"), "n": 1.0}, {"cache": map[string]any{"ttl": "5m"}}}).Draw(t, "metadata")
}

func text(t *rapid.T) *ai.Part { return ai.NewTextPart(rapid.String().Draw(t, "text")) }

func said(t *rapid.T) *ai.Part {
	var p *ai.Part
	switch rapid.IntRange(0, 8).Draw(t, "part") {
	case 0:
		p = ai.NewMediaPart("image/png", "data:image/png;base64,iVBORw0KGgo=")
	case 1:
		p = ai.NewMediaPart(rapid.SampledFrom([]string{"", "audio/wav", "video/mp4", "application/pdf"}).Draw(t, "type"), "https://example.com/file")
	case 2:
		return ai.NewReasoningPart(rapid.String().Draw(t, "thought"), []byte("sealed"))
	case 3:
		p = ai.NewCustomPart(map[string]any{"vendor": "x", "n": 2.0})
	case 4:
		p = ai.NewResourcePart("file:///report")
	case 5:
		p = ai.NewDataPart(rapid.String().Draw(t, "data"))
	case 6:
		p = ai.NewJSONPart(`{"a":1}`)
	default:
		p = text(t)
	}
	p.Metadata = metadata(t)
	return p
}
