package gemini_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
)

// plain leaves out where parts came from, to compare what was said.
var plain = cmp.Options{
	cmpopts.IgnoreTypes(thread.Source{}),
	cmpopts.IgnoreFields(thread.Message{}, "Frame"),
	cmpopts.EquateEmpty(),
}

func decode(t testing.TB, body string) *prompt.Prompt {
	t.Helper()
	p, err := gemini.Codec{}.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func encode(t testing.TB, p *prompt.Prompt) string {
	t.Helper()
	out, err := gemini.Codec{}.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// camelBody and snakeBody are the same request in the two spellings.
const (
	camelBody = `{
  "systemInstruction": {"role": "user", "parts": [{"text": "You mend clocks."}, {"text": "Be brief."}]},
  "tools": [{"functionDeclarations": [
    {"name": "read", "description": "Reads.", "parametersJsonSchema": {"type": "object"}},
    {"name": "list", "parameters": {"type": "OBJECT"}}]}, {"googleSearch": {}}],
  "contents": [
    {"parts": [{"text": "Look."}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
    {"role": "model", "parts": [
      {"text": "I think.", "thought": true, "thoughtSignature": "c2Vh"},
      {"text": "I read."},
      {"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "c2Vi"},
      {"functionCall": {"name": "read", "args": {"path": "b"}}},
      {"functionCall": {"name": "list"}}]},
    {"role": "user", "parts": [
      {"functionResponse": {"name": "list", "response": {"files": ["a", "b"]}}},
      {"functionResponse": {"name": "read", "response": {"output": "tick"}}},
      {"functionResponse": {"name": "read", "response": {"error": "gone"}, "parts": [{"fileData": {"fileUri": "https://example.com/v", "mimeType": "video/mp4"}}]}},
      {"text": "And now?"}]},
    {"role": "model", "parts": [
      {"executableCode": {"language": "PYTHON", "code": "1+1"}},
      {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
      {"functionCall": {"id": "x1", "name": "list", "args": {}}}]},
    {"role": "function", "parts": [{"functionResponse": {"id": "x1", "name": "list", "response": {"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}}}]}
  ],
  "generationConfig": {"temperature": 0, "maxOutputTokens": 100}
}`
)

func snakeBody() string {
	r := strings.NewReplacer(
		"systemInstruction", "system_instruction", "functionDeclarations", "function_declarations",
		"parametersJsonSchema", "parameters_json_schema", "googleSearch", "google_search",
		"inlineData", "inline_data", "mimeType", "mime_type", "thoughtSignature", "thought_signature",
		"functionCall", "function_call", "functionResponse", "function_response", "fileData", "file_data",
		"fileUri", "file_uri", "executableCode", "executable_code", "codeExecutionResult", "code_execution_result",
		"generationConfig", "generation_config", "maxOutputTokens", "max_output_tokens")
	return r.Replace(camelBody)
}

func TestDecode(t *testing.T) {
	want := &prompt.Prompt{
		MaxOutput: 100,
		System:    []prompt.System{{Text: "You mend clocks.", Role: "instructions"}, {Text: "Be brief.", Role: "instructions"}},
		Tools: []prompt.Tool{
			{Name: "read", Description: "Reads.", Schema: `{"type": "object"}`},
			{Name: "list", Schema: `{"type": "OBJECT"}`},
			{Name: "googleSearch"},
		},
		Messages: []thread.Message{
			{Role: thread.User, Parts: []thread.Part{
				thread.Text{Text: "Look."},
				thread.Media{Type: thread.Image, MIME: "image/png", Data: "AAAA"},
			}},
			{Role: thread.Assistant, Parts: []thread.Part{
				thread.Reasoning{Text: "I think.", Signature: "c2Vh"},
				thread.Text{Text: "I read."},
				thread.ToolCall{ID: thread.LocalID(0), Name: "read", Arguments: `{"path": "a"}`, Signature: "c2Vi"},
				thread.ToolCall{ID: thread.LocalID(1), Name: "read", Arguments: `{"path": "b"}`},
				thread.ToolCall{ID: thread.LocalID(2), Name: "list", Arguments: `{}`},
			}},
			{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
				CallID: thread.LocalID(2), Tool: "list", Outcome: thread.Success,
				Content: []thread.Part{thread.Text{Text: `{"files": ["a", "b"]}`}}, Structured: `{"files": ["a", "b"]}`,
			}}},
			{Role: thread.Tool, Index: 1, Parts: []thread.Part{thread.ToolResult{
				CallID: thread.LocalID(0), Tool: "read", Outcome: thread.Success,
				Content: []thread.Part{thread.Text{Text: "tick"}}, Structured: `{"output": "tick"}`,
			}}},
			{Role: thread.Tool, Index: 2, Parts: []thread.Part{thread.ToolResult{
				CallID: thread.LocalID(1), Tool: "read", Outcome: thread.Failure,
				Content: []thread.Part{
					thread.Text{Text: "gone"},
					thread.Media{Type: thread.Video, MIME: "video/mp4", URL: "https://example.com/v"},
				},
				Structured: `{"error": "gone"}`,
			}}},
			{Role: thread.User, Index: 3, Parts: []thread.Part{thread.Text{Text: "And now?"}}},
			{Role: thread.Assistant, Parts: []thread.Part{
				thread.Opaque{Kind: "executableCode", Text: "1+1"},
				thread.Opaque{Kind: "codeExecutionResult", Text: "2"},
				thread.ToolCall{ID: "x1", Name: "list", Arguments: `{}`},
			}},
			{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
				CallID: "x1", Tool: "list", Outcome: thread.Success,
				Content:    []thread.Part{thread.Text{Text: "one\ntwo"}},
				Structured: `{"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}`,
			}}},
		},
	}
	for name, body := range map[string]string{"camel": camelBody, "snake": snakeBody()} {
		t.Run(name, func(t *testing.T) {
			want := *want
			if name == "snake" {
				want.Tools = append([]prompt.Tool{}, want.Tools...)
				want.Tools[2].Name = "google_search"
			}
			p := decode(t, body)
			if s := p.Source; s.API != wire.Gemini || s.System != 2 || s.Tools != 3 || s.Elements != 5 || s.Body != body {
				t.Errorf("source: %s, %d blocks, %d tools, %d elements", s.API, s.System, s.Tools, s.Elements)
			}
			if f := p.Messages[4].Frame; f != p.Messages[2].Frame || f.Messages() != 4 || f.Position() != 2 || f.Elements() != 1 {
				t.Errorf("frame of the split content: %+v", f)
			}
			got := *p
			got.Source = nil
			if diff := cmp.Diff(&got, &want, plain); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			if out := encode(t, p); out != body {
				t.Errorf("does not come back byte for byte:\n%s", cmp.Diff(out, body))
			}
		})
	}
}

// Responses find their calls by id, else by name in the last model turn.
func TestResponsesFindTheirCalls(t *testing.T) {
	call := func(id, name string) string {
		if id != "" {
			id = `"id":"` + id + `",`
		}
		return `{"functionCall":{` + id + `"name":"` + name + `"}}`
	}
	response := func(id, name string) string {
		return strings.Replace(call(id, name), `"functionCall"`, `"functionResponse"`, 1)
	}
	for _, test := range []struct {
		name             string
		calls, responses []string
		want             []string
	}{
		{"by id, other order", []string{call("a", "f"), call("b", "f")}, []string{response("b", "f"), response("a", "f")}, []string{"b", "a"}},
		{"by name, in order", []string{call("", "f"), call("", "g"), call("", "f")}, []string{response("", "f"), response("", "f"), response("", "g")}, []string{"local_0", "local_2", "local_1"}},
		{"call has an id, response has none", []string{call("a", "f")}, []string{response("", "f")}, []string{"a"}},
		{"response has an id, call has none", []string{call("", "f")}, []string{response("made_up", "f")}, []string{"local_0"}},
		{"orphans", []string{call("", "f")}, []string{response("", "g"), response("z", "h"), response("", "f"), response("", "f")}, []string{"local_-1", "z", "local_0", "local_-2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			messages, err := gemini.DecodeContents(`[{"role":"model","parts":[` + strings.Join(test.calls, ",") + `]},{"parts":[` + strings.Join(test.responses, ",") + `]}]`)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range messages[1:] {
				r, _ := messages[1+i].Result()
				got = append(got, r.CallID)
			}
			if diff := cmp.Diff(got, test.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// An id made up for a call without one stays the same while the conversation
// grows, and another turn's call of the same name is never answered instead.
func TestLocalIDsAreStable(t *testing.T) {
	const step = `{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"parts":[{"functionResponse":{"name":"f","response":{}}}]}`
	short, err := gemini.DecodeContents("[" + step + "]")
	if err != nil {
		t.Fatal(err)
	}
	long, err := gemini.DecodeContents("[" + step + "," + step + "]")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(long[:2], short, plain); diff != "" {
		t.Errorf("the beginning changed (-long +short):\n%s", diff)
	}
	if r, _ := long[3].Result(); r.CallID != long[2].Calls()[0].ID {
		t.Errorf("the second response answers %q, want %q", r.CallID, long[2].Calls()[0].ID)
	}
}

// A call that was never answered is not answered by a later turn's response,
// and a late answer that names its call takes no other's.
func TestLateAnswers(t *testing.T) {
	messages, err := gemini.DecodeContents(`[
		{"role":"model","parts":[{"functionCall":{"id":"old","name":"f"}},{"functionCall":{"name":"f"}}]},
		{"role":"user","parts":[{"text":"stop"}]},
		{"role":"model","parts":[{"functionCall":{"name":"f"}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"old","name":"f","response":{}}},{"functionResponse":{"name":"f","response":{}}}]}]`)
	if err != nil {
		t.Fatal(err)
	}
	late, _ := messages[3].Result()
	now, _ := messages[4].Result()
	if late.CallID != "old" || now.CallID != thread.LocalID(1) {
		t.Errorf("answered %q and %q, want old and %s", late.CallID, now.CallID, thread.LocalID(1))
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, test := range []struct{ body, path string }{
		{`[]`, "body"},
		{`{"contents":[]`, "body"},
		{`{}`, "contents"},
		{`{"contents":{}}`, "contents"},
		{`{"contents":"hello"}`, "contents"},
		{`{"contents":[],"contents":[]}`, "contents"},
		{`{"contents":[1]}`, "contents[0]"},
		{`{"contents":[{},{"role":"assistant"}]}`, "contents[1].role"},
		{`{"contents":[{"role":1}]}`, "contents[0].role"},
		{`{"contents":[{"parts":{}}]}`, "contents[0].parts"},
		{`{"contents":[{"parts":[{},"text"]}]}`, "contents[0].parts[1]"},
		{`{"contents":[{"role":"model","parts":[null]}]}`, "contents[0].parts[0]"},
		{`{"contents":[],"systemInstruction":"text"}`, "systemInstruction"},
		{`{"contents":[],"system_instruction":{"parts":{}}}`, "systemInstruction.parts"},
		{`{"contents":[],"systemInstruction":{"parts":["text"]}}`, "systemInstruction.parts[0]"},
		{`{"contents":[],"systemInstruction":{},"system_instruction":{}}`, "systemInstruction"},
		{`{"contents":[],"tools":{}}`, "tools"},
		{`{"contents":[],"tools":[1]}`, "tools[0]"},
		{`{"contents":[],"tools":[{},{"functionDeclarations":{}}]}`, "tools[1].functionDeclarations"},
	} {
		_, err := gemini.Codec{}.Decode(test.body)
		if !errors.Is(err, wire.ErrFormat) {
			t.Errorf("%s: error %v, want one that wraps ErrFormat", test.body, err)
			continue
		}
		if !strings.HasPrefix(err.Error(), "gemini: "+test.path+": ") {
			t.Errorf("%s: error %q does not name %q", test.body, err, test.path)
		}
	}
	if _, err := gemini.DecodeContents(`[`); !errors.Is(err, wire.ErrFormat) {
		t.Errorf("DecodeContents: error %v, want one that wraps ErrFormat", err)
	}
}

// Nothing unknown is lost: it is kept in its place, and comes back when the
// content around it is written anew.
func TestUnknownIsKept(t *testing.T) {
	const odd = `{"hologram":{"depth":3}}`
	p := decode(t, `{"later":1,"contents":[{"parts":[{"text":"a"},`+odd+`,{"functionCall":{"name":"f"}},{}]}]}`)
	want := []thread.Part{
		thread.Text{Text: "a"}, thread.Opaque{Kind: "hologram"}, thread.Opaque{Kind: "functionCall"}, thread.Opaque{Kind: "part"},
	}
	if diff := cmp.Diff(p.Messages[0].Parts, want, plain); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	p.Messages[0].Frame = nil
	p.Messages[0].Parts = p.Messages[0].Parts[1:2]
	if got, want := encode(t, p), `{"later":1,"contents":[{"role":"user","parts":[`+odd+`]}]}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestResultInResult: a response inside a response is kept as it is, however deep
// they nest.
func TestResultInResult(t *testing.T) {
	nested := strings.Repeat(`{"functionResponse":{"name":"f","response":{"a":1},"parts":[`, 300) + `{"text":"x"}` + strings.Repeat(`]}}`, 300)
	body := `{"contents":[{"role":"user","parts":[` + nested + `]}]}`
	p := decode(t, body)
	r, ok := p.Messages[0].Result()
	if !ok || len(r.Content) != 2 {
		t.Fatalf("%+v", p.Messages[0])
	}
	inner, ok := r.Content[1].(thread.Opaque)
	if !ok || inner.Kind != "functionResponse" || len(inner.Raw) < len(nested)-100 {
		t.Errorf("%T %+v", r.Content[1], inner.Kind)
	}
	if got, err := (gemini.Codec{}).Encode(p); err != nil || string(got) != body {
		t.Errorf("comes back as %.200s, %v", got, err)
	}
}
