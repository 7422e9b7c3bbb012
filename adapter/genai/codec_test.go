package genai_test

import (
	"fmt"
	"testing"

	sdk "google.golang.org/genai"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/adapter/genai"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
)

func TestCodec(t *testing.T) { adaptertest.TestCodec(t, genai.Codec{}, histories()) }

func histories() *rapid.Generator[[]*sdk.Content] {
	return rapid.Custom(func(t *rapid.T) []*sdk.Content {
		var out []*sdk.Content
		for range rapid.IntRange(0, 4).Draw(t, "rounds") {
			out = append(out, &sdk.Content{Role: sdk.RoleUser, Parts: rapid.SliceOfN(rapid.Custom(said), 1, 3).Draw(t, "user")})
			model := &sdk.Content{Role: sdk.RoleModel, Parts: rapid.SliceOfN(rapid.Custom(said), 1, 2).Draw(t, "model")}
			if out = append(out, model); rapid.Bool().Draw(t, "calls") {
				results := &sdk.Content{Role: sdk.RoleUser}
				named := rapid.Bool().Draw(t, "named")
				for n := range rapid.IntRange(1, 3).Draw(t, "parallel") {
					id := ""
					if named { // as ADK does, or not at all
						id = fmt.Sprintf("call-%d-%d", len(out), n)
					}
					call := &sdk.FunctionCall{ID: id, Name: "read_part", Args: arguments(t)}
					model.Parts = append(model.Parts, &sdk.Part{FunctionCall: call, ThoughtSignature: signature(t)})
					results.Parts = append(results.Parts, &sdk.Part{FunctionResponse: &sdk.FunctionResponse{ID: call.ID, Name: call.Name, Response: map[string]any{"result": rapid.String().Draw(t, "result"), "n": 1.5}}})
				}
				out = append(out, results, &sdk.Content{Role: sdk.RoleModel, Parts: rapid.SliceOfN(rapid.Custom(said), 1, 2).Draw(t, "then")})
			}
		}
		return out
	})
}

func arguments(t *rapid.T) map[string]any {
	return map[string]any{"n": rapid.Float64Range(-1e6, 1e6).Draw(t, "n"), "path": rapid.String().Draw(t, "path"), "deep": map[string]any{"list": []any{true, nil, "x"}}}
}

func signature(t *rapid.T) []byte {
	if rapid.Bool().Draw(t, "signed") {
		return []byte("c2lnbmF0dXJl")
	}
	return nil
}

func said(t *rapid.T) *sdk.Part {
	text := rapid.StringMatching(`[^\x00]{1,40}[a-z]`)
	switch rapid.IntRange(0, 6).Draw(t, "part") {
	case 0:
		return &sdk.Part{InlineData: &sdk.Blob{Data: []byte(text.Draw(t, "data")), MIMEType: "image/png"}}
	case 1:
		return &sdk.Part{FileData: &sdk.FileData{FileURI: "gs://bucket/file", MIMEType: "application/pdf"}}
	case 2:
		return &sdk.Part{Text: text.Draw(t, "thought"), Thought: true, ThoughtSignature: signature(t)}
	case 3:
		return &sdk.Part{ExecutableCode: &sdk.ExecutableCode{Code: text.Draw(t, "code"), Language: sdk.LanguagePython}}
	}
	return &sdk.Part{Text: text.Draw(t, "text")}
}
