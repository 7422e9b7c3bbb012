package eino_test

import (
	"encoding/json"
	"testing"

	"github.com/cloudwego/eino/schema"
	"github.com/cloudwego/eino/schema/claude"
	"github.com/cloudwego/eino/schema/openai"
	"github.com/eino-contrib/jsonschema"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/adapter/eino"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func TestAgenticCodec(t *testing.T) {
	adaptertest.TestCodec(t, eino.AgenticCodec{}, agenticHistories())
}

// TestAgenticCodecHolding: the codec of a history keeps to the same rules.
func TestAgenticCodecHolding(t *testing.T) {
	adaptertest.TestCodec(t, remembering{}, agenticHistories())
}

// remembering writes each history with the codec that holds another one.
type remembering struct{ eino.AgenticCodec }

func (c remembering) Encode(messages []thread.Message) ([]*schema.AgenticMessage, error) {
	other := []*schema.AgenticMessage{{ContentBlocks: []*schema.ContentBlock{nil, served("of another"), {
		Type: schema.ContentBlockTypeMCPToolApprovalResponse, MCPToolApprovalResponse: &schema.MCPToolApprovalResponse{ApprovalRequestID: "of another"},
	}}}}
	return c.Holding(other).Encode(messages)
}

func TestAgenticCodecRefuses(t *testing.T) {
	for name, m := range map[string]*schema.AgenticMessage{
		"nil": nil, "a role of its own": {Role: "critic"},
		"what JSON cannot say": {Role: schema.AgenticRoleTypeUser, Extra: map[string]any{"f": func() {}}},
	} {
		if _, err := (eino.AgenticCodec{}).Decode([]*schema.AgenticMessage{schema.UserAgenticMessage("hello"), m}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// query is what a model's own server was asked, in a type of the model's.
type query struct{ Words []string }

func served(id string) *schema.ContentBlock {
	return schema.NewContentBlock(&schema.ServerToolCall{Name: "web_search", CallID: id, Arguments: &query{[]string{"belts"}}})
}

// TestAgenticKeepsTypes: a message that is changed keeps the values in it that were not,
// with their types; and what has no shorter form is written as it was.
func TestAgenticKeepsTypes(t *testing.T) {
	sealed := schema.NewContentBlock(&schema.FunctionToolCall{CallID: "call_1", Name: "read", Arguments: `{"n":1}`})
	sealed.Extra = map[string]any{"seal": []byte{1, 2}}
	request := schema.NewContentBlock(&schema.MCPToolApprovalRequest{ID: "mcpr_1", Name: "rm", Arguments: `{"path":"a"}`, ServerLabel: "files"})
	response := schema.NewContentBlock(&schema.MCPToolApprovalResponse{ApprovalRequestID: "mcpr_1", Reason: "it is mine"})
	search := schema.NewContentBlock(&schema.ToolSearchFunctionToolResult{CallID: "call_2", Name: "tool_search", Result: &schema.ToolSearchResult{}})
	ordinary := schema.NewContentBlock(&schema.FunctionToolResult{CallID: "call_2", Name: "read"})
	history := []*schema.AgenticMessage{
		{Role: schema.AgenticRoleTypeAssistant, ContentBlocks: []*schema.ContentBlock{served("ws_1"), sealed, request}},
		{Role: schema.AgenticRoleTypeUser, ContentBlocks: []*schema.ContentBlock{response, search, ordinary}},
	}
	messages, err := eino.AgenticCodec{}.Decode(history)
	if err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		messages[i].Frame, messages[i].Index = nil, 0
		for j, p := range messages[i].Parts {
			switch p := p.(type) {
			case thread.ToolCall:
				if p.ID == "mcpr_1" {
					p.Arguments, p.Source = "{}", thread.Source{}
					messages[i].Parts[j] = p
				}
			case thread.ToolResult:
				p.Content, p.Source = []thread.Part{thread.Text{Text: "[cleared]"}}, thread.Source{}
				messages[i].Parts[j] = p
			}
		}
	}
	var holder adapter.Holder[*schema.AgenticMessage] = eino.AgenticCodec{}
	got, err := holder.Holding(history).Encode(messages)
	if err != nil {
		t.Fatal(err)
	}
	want := []*schema.AgenticMessage{history[0]}
	for _, b := range []*schema.ContentBlock{response, search, schema.NewContentBlock(&schema.FunctionToolResult{
		CallID: "call_2", Name: "read",
		Content: []*schema.FunctionToolResultContentBlock{{Type: schema.FunctionToolResultContentBlockTypeText, Text: &schema.UserInputText{Text: "[cleared]"}}},
	})} {
		want = append(want, &schema.AgenticMessage{Role: schema.AgenticRoleTypeUser, ContentBlocks: []*schema.ContentBlock{b}})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func agenticHistories() *rapid.Generator[[]*schema.AgenticMessage] {
	return rapid.Custom(func(t *rapid.T) []*schema.AgenticMessage {
		return rapid.SliceOfN(rapid.Custom(agenticMessage), 0, 8).Draw(t, "messages")
	})
}

func agenticMessage(t *rapid.T) *schema.AgenticMessage {
	m := &schema.AgenticMessage{Extra: extra(t)}
	block := userBlock
	switch m.Role = rapid.SampledFrom([]schema.AgenticRoleType{schema.AgenticRoleTypeSystem, schema.AgenticRoleTypeUser, schema.AgenticRoleTypeAssistant}).Draw(t, "role"); m.Role {
	case schema.AgenticRoleTypeSystem:
		block = func(t *rapid.T) *schema.ContentBlock {
			return schema.NewContentBlock(&schema.UserInputText{Text: rapid.String().Draw(t, "text")})
		}
	case schema.AgenticRoleTypeAssistant:
		block = assistantBlock
		if rapid.Bool().Draw(t, "meta") {
			m.ResponseMeta = &schema.AgenticResponseMeta{
				TokenUsage:      &schema.TokenUsage{PromptTokens: rapid.IntRange(0, 1e6).Draw(t, "tokens")},
				OpenAIExtension: &openai.ResponseMetaExtension{ID: rapid.String().Draw(t, "response"), Status: "completed"},
			}
		}
	}
	for range rapid.IntRange(0, 4).Draw(t, "blocks") {
		b := block(t)
		b.Extra = extra(t)
		m.ContentBlocks = append(m.ContentBlocks, b)
	}
	return m
}

func userBlock(t *rapid.T) *schema.ContentBlock {
	text := rapid.String()
	id := text.Draw(t, "id")
	switch rapid.IntRange(0, 8).Draw(t, "block") {
	case 0:
		return schema.NewContentBlock(&schema.UserInputImage{URL: text.Draw(t, "url"), MIMEType: "image/png", Detail: schema.ImageURLDetailHigh})
	case 1:
		return schema.NewContentBlock(&schema.UserInputAudio{Base64Data: text.Draw(t, "data"), MIMEType: "audio/wav"})
	case 2:
		return schema.NewContentBlock(&schema.UserInputVideo{URL: text.Draw(t, "url")})
	case 3:
		return schema.NewContentBlock(&schema.UserInputFile{Base64Data: text.Draw(t, "data"), Name: "a.pdf"})
	case 4:
		return schema.NewContentBlock(&schema.MCPToolApprovalResponse{ApprovalRequestID: id, Approve: rapid.Bool().Draw(t, "approve"), Reason: text.Draw(t, "reason")})
	case 5:
		takes := &jsonschema.Schema{}
		if err := json.Unmarshal([]byte(adaptertest.ReadPartTakes), takes); err != nil {
			t.Fatal(err)
		}
		found := &schema.ToolSearchResult{Tools: []*schema.ToolInfo{{Name: text.Draw(t, "found"), Extra: extra(t)}}}
		return schema.NewContentBlock(&schema.ToolSearchFunctionToolResult{CallID: id, Name: "tool_search", Result: found})
	case 6, 7:
		r := &schema.FunctionToolResult{CallID: id, Name: text.Draw(t, "tool")}
		for range rapid.IntRange(0, 3).Draw(t, "parts") {
			r.Content = append(r.Content, resultBlock(t))
		}
		return schema.NewContentBlock(r)
	}
	return schema.NewContentBlock(&schema.UserInputText{Text: text.Draw(t, "text")})
}

func resultBlock(t *rapid.T) *schema.FunctionToolResultContentBlock {
	b := &schema.FunctionToolResultContentBlock{Extra: extra(t)}
	switch rapid.IntRange(0, 4).Draw(t, "part") {
	case 0:
		b.Type, b.Image = schema.FunctionToolResultContentBlockTypeImage, &schema.UserInputImage{Base64Data: rapid.String().Draw(t, "data")}
	case 1:
		b.Type, b.File = schema.FunctionToolResultContentBlockTypeFile, &schema.UserInputFile{URL: rapid.String().Draw(t, "url")}
	case 2:
		b.Type = "hologram"
	default:
		b.Type, b.Text = schema.FunctionToolResultContentBlockTypeText, &schema.UserInputText{Text: rapid.String().Draw(t, "text")}
	}
	return b
}

func assistantBlock(t *rapid.T) *schema.ContentBlock {
	text := rapid.String()
	id, name := text.Draw(t, "id"), text.Draw(t, "name")
	arguments := rapid.SampledFrom([]string{"", "{}", `{"n":1}`, "not JSON"}).Draw(t, "arguments")
	code := int64(rapid.IntRange(-9, 9).Draw(t, "code"))
	switch rapid.IntRange(0, 13).Draw(t, "block") {
	case 0:
		return schema.NewContentBlock(&schema.Reasoning{
			Text: text.Draw(t, "thought"), Signature: text.Draw(t, "signature"),
			OpenAIExtension: &openai.ReasoningExtension{Content: []*openai.ReasoningContent{{Text: text.Draw(t, "raw")}}},
		})
	case 1:
		return schema.NewContentBlock(&schema.AssistantGenImage{Base64Data: text.Draw(t, "data"), MIMEType: "image/png"})
	case 2:
		return schema.NewContentBlock(&schema.AssistantGenAudio{URL: text.Draw(t, "url")})
	case 3:
		return schema.NewContentBlock(&schema.AssistantGenVideo{URL: text.Draw(t, "url")})
	case 4, 5:
		return schema.NewContentBlock(&schema.FunctionToolCall{CallID: id, Name: name, Arguments: arguments})
	case 6:
		return schema.NewContentBlock(&schema.ServerToolCall{CallID: id, Name: name, Arguments: map[string]any{"q": text.Draw(t, "query")}})
	case 7:
		return schema.NewContentBlock(&schema.ServerToolResult{CallID: id, Name: name, Content: []any{text.Draw(t, "found"), 1.5}})
	case 8:
		return schema.NewContentBlock(&schema.MCPToolCall{ServerLabel: "files", CallID: id, Name: name, Arguments: arguments})
	case 9:
		return schema.NewContentBlock(&schema.MCPToolResult{CallID: id, Name: name, Content: text.Draw(t, "said"), Error: &schema.MCPToolCallError{Code: &code, Message: "no"}})
	case 10:
		return schema.NewContentBlock(&schema.MCPListToolsResult{ServerLabel: "files", Tools: []*schema.MCPListToolsItem{{Name: name, Description: text.Draw(t, "does")}}})
	case 11:
		return schema.NewContentBlock(&schema.MCPToolApprovalRequest{ID: id, Name: name, Arguments: arguments, ServerLabel: "files"})
	case 12:
		return &schema.ContentBlock{Type: "hologram"}
	}
	return schema.NewContentBlock(&schema.AssistantGenText{
		Text:            text.Draw(t, "text"),
		ClaudeExtension: &claude.AssistantGenTextExtension{Citations: []*claude.TextCitation{{Type: claude.TextCitationTypePageLocation}}},
		Extension:       extension(t),
	})
}

func extension(t *rapid.T) any {
	if e := extra(t); e != nil {
		return e
	}
	return nil
}
