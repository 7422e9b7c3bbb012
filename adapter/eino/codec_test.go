//lint:file-ignore SA1019 Agents of earlier versions hold the parts that are deprecated.

package eino_test

import (
	"slices"
	"testing"

	"github.com/cloudwego/eino/schema"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/adapter/eino"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func TestCodec(t *testing.T) { adaptertest.TestCodec(t, eino.Codec{}, histories()) }

func TestCodecRefuses(t *testing.T) {
	for name, m := range map[string]*schema.Message{"nil": nil, "a role of its own": {Role: "critic"}} {
		if _, err := (eino.Codec{}).Decode([]*schema.Message{schema.UserMessage("hello"), m}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A client takes the text of a message from Content or from one of the lists, and never from both.
func TestChangedPartStaysInItsList(t *testing.T) {
	url := "https://example.com/a.png"
	picture := schema.MessagePartCommon{URL: &url}
	for name, m := range map[string]*schema.Message{
		"user": {Role: schema.User, UserInputMultiContent: []schema.MessageInputPart{
			{Type: schema.ChatMessagePartTypeText, Text: "a long log"},
			{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageInputImage{MessagePartCommon: picture}},
		}},
		"tool": {Role: schema.Tool, ToolCallID: "1", ToolName: "look", UserInputMultiContent: []schema.MessageInputPart{
			{Type: schema.ChatMessagePartTypeText, Text: "a long log"},
			{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageInputImage{MessagePartCommon: picture}},
		}},
		"assistant": {Role: schema.Assistant, AssistantGenMultiContent: []schema.MessageOutputPart{
			{Type: schema.ChatMessagePartTypeText, Text: "a long log"},
			{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageOutputImage{MessagePartCommon: picture}},
		}},
		"legacy": {Role: schema.User, MultiContent: []schema.ChatMessagePart{
			{Type: schema.ChatMessagePartTypeText, Text: "a long log"},
			{Type: schema.ChatMessagePartTypeImageURL, ImageURL: &schema.ChatMessageImageURL{URL: url}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			messages, err := eino.Codec{}.Decode([]*schema.Message{m})
			if err != nil {
				t.Fatal(err)
			}
			changed := messages[0]
			changed.Frame = nil
			short := thread.Text{Text: "[shortened]"}
			if r, ok := changed.Result(); ok {
				r.Content = append([]thread.Part{short}, r.Content[1:]...)
				changed.Parts = []thread.Part{r}
			} else {
				changed.Parts = append([]thread.Part{short}, changed.Parts[1:]...)
			}
			out, err := eino.Codec{}.Encode([]thread.Message{changed})
			if err != nil {
				t.Fatal(err)
			}
			want := *m
			switch {
			case m.UserInputMultiContent != nil:
				want.UserInputMultiContent = slices.Clone(m.UserInputMultiContent)
				want.UserInputMultiContent[0].Text = short.Text
			case m.AssistantGenMultiContent != nil:
				want.AssistantGenMultiContent = slices.Clone(m.AssistantGenMultiContent)
				want.AssistantGenMultiContent[0].Text = short.Text
			default:
				want.MultiContent = slices.Clone(m.MultiContent)
				want.MultiContent[0].Text = short.Text
			}
			if diff := cmp.Diff(&want, out[0]); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func histories() *rapid.Generator[[]*schema.Message] {
	return rapid.Custom(func(t *rapid.T) []*schema.Message {
		return rapid.SliceOfN(rapid.Custom(message), 0, 8).Draw(t, "messages")
	})
}

func message(t *rapid.T) *schema.Message {
	text := rapid.String()
	m := &schema.Message{Content: text.Draw(t, "content"), Name: text.Draw(t, "name"), Extra: extra(t)}
	switch m.Role = rapid.SampledFrom([]schema.RoleType{schema.System, schema.User, schema.Assistant, schema.Tool}).Draw(t, "role"); m.Role {
	case schema.User:
		m.UserInputMultiContent = rapid.SliceOfN(rapid.Custom(inputPart), 0, 3).Draw(t, "input")
		m.MultiContent = rapid.SliceOfN(rapid.Custom(legacyPart), 0, 2).Draw(t, "legacy")
	case schema.Assistant:
		m.ReasoningContent = text.Draw(t, "reasoning")
		m.AssistantGenMultiContent = rapid.SliceOfN(rapid.Custom(outputPart), 0, 3).Draw(t, "output")
		m.ToolCalls = rapid.SliceOfN(rapid.Custom(toolCall), 0, 3).Draw(t, "calls")
		if rapid.Bool().Draw(t, "meta") {
			m.ResponseMeta = &schema.ResponseMeta{FinishReason: text.Draw(t, "finish"), Usage: &schema.TokenUsage{PromptTokens: rapid.IntRange(0, 1e6).Draw(t, "tokens")}}
		}
	case schema.Tool:
		m.ToolCallID, m.ToolName = text.Draw(t, "call"), text.Draw(t, "tool")
		m.UserInputMultiContent = rapid.SliceOfN(rapid.Custom(inputPart), 0, 2).Draw(t, "result")
	}
	// JSON keeps no difference between an empty list and none.
	if len(m.UserInputMultiContent) == 0 {
		m.UserInputMultiContent = nil
	}
	if len(m.MultiContent) == 0 {
		m.MultiContent = nil
	}
	if len(m.AssistantGenMultiContent) == 0 {
		m.AssistantGenMultiContent = nil
	}
	if len(m.ToolCalls) == 0 {
		m.ToolCalls = nil
	}
	return m
}

func extra(t *rapid.T) map[string]any {
	if rapid.IntRange(0, 2).Draw(t, "extra") > 0 {
		return nil
	}
	return map[string]any{
		"vendor": rapid.String().Draw(t, "value"), "n": rapid.Float64Range(-1e9, 1e9).Draw(t, "number"),
		"list": []any{"a", map[string]any{"deep": true}},
	}
}

func common(t *rapid.T) schema.MessagePartCommon {
	c := schema.MessagePartCommon{MIMEType: rapid.SampledFrom([]string{"", "image/png", "audio/wav"}).Draw(t, "mime"), Extra: extra(t)}
	text := rapid.String().Draw(t, "at")
	if rapid.Bool().Draw(t, "inline") {
		c.Base64Data = &text
	} else {
		c.URL = &text
	}
	return c
}

func inputPart(t *rapid.T) schema.MessageInputPart {
	switch rapid.IntRange(0, 4).Draw(t, "part") {
	case 0:
		return schema.MessageInputPart{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageInputImage{MessagePartCommon: common(t), Detail: schema.ImageURLDetailHigh}}
	case 1:
		return schema.MessageInputPart{Type: schema.ChatMessagePartTypeFileURL, File: &schema.MessageInputFile{MessagePartCommon: common(t), Name: "a.pdf"}}
	case 2:
		return schema.MessageInputPart{Type: "hologram", Extra: extra(t)}
	case 3:
		return schema.MessageInputPart{Type: schema.ChatMessagePartTypeVideoURL, Video: &schema.MessageInputVideo{MessagePartCommon: common(t)}}
	}
	return schema.MessageInputPart{Type: schema.ChatMessagePartTypeText, Text: rapid.String().Draw(t, "text"), Extra: extra(t)}
}

func legacyPart(t *rapid.T) schema.ChatMessagePart {
	if rapid.Bool().Draw(t, "picture") {
		return schema.ChatMessagePart{Type: schema.ChatMessagePartTypeImageURL, ImageURL: &schema.ChatMessageImageURL{URL: rapid.String().Draw(t, "url")}}
	}
	return schema.ChatMessagePart{Type: schema.ChatMessagePartTypeText, Text: rapid.String().Draw(t, "text")}
}

func outputPart(t *rapid.T) schema.MessageOutputPart {
	switch rapid.IntRange(0, 2).Draw(t, "part") {
	case 0:
		return schema.MessageOutputPart{Type: schema.ChatMessagePartTypeReasoning, Reasoning: &schema.MessageOutputReasoning{Text: rapid.String().Draw(t, "text"), Signature: "c2ln"}}
	case 1:
		return schema.MessageOutputPart{Type: schema.ChatMessagePartTypeAudioURL, Audio: &schema.MessageOutputAudio{MessagePartCommon: common(t)}}
	}
	return schema.MessageOutputPart{Type: schema.ChatMessagePartTypeText, Text: rapid.String().Draw(t, "text"), Extra: extra(t)}
}

func toolCall(t *rapid.T) schema.ToolCall {
	c := schema.ToolCall{
		ID: rapid.String().Draw(t, "id"), Type: rapid.SampledFrom([]string{"function", "custom", ""}).Draw(t, "type"), Extra: extra(t),
		Function: schema.FunctionCall{Name: rapid.String().Draw(t, "name"), Arguments: rapid.SampledFrom([]string{"", "{}", `{"n":1}`, "not JSON"}).Draw(t, "arguments")},
	}
	if rapid.Bool().Draw(t, "indexed") {
		n := rapid.IntRange(0, 9).Draw(t, "index")
		c.Index = &n
	}
	return c
}
