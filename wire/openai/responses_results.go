package openai

import (
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// responsesFlat finds the calls that cannot be written as calls any more: those
// of the computer tool whose screenshot was taken away (the API wants a
// picture), and requests for approval that were changed (the API wants the
// server's name). Their call and result are told in words instead.
func responsesFlat(messages []thread.Message) map[string]bool {
	var flat map[string]bool
	add := func(id string) {
		if flat == nil {
			flat = map[string]bool{}
		}
		flat[id] = true
	}
	var computer map[string]bool
	for i := range messages {
		m := &messages[i]
		framed := m.Frame != nil && m.Frame.API() == wire.Responses
		for _, part := range m.Parts {
			switch p := part.(type) {
			case thread.ToolCall:
				switch {
				case p.Type == "computer_call":
					if computer == nil {
						computer = map[string]bool{}
					}
					computer[p.ID] = true
				case p.Type == "mcp_approval_request" && !framed && !responsesOwn(p.Source):
					add(p.ID)
				}
			case thread.ToolResult:
				if computer[p.CallID] && !framed && !responsesOwn(p.Source) && responsesScreenshot(p) == "" {
					add(p.CallID)
				}
			}
		}
	}
	return flat
}

func (w *responsesWriter) flattened(m *thread.Message) bool {
	if w.flat == nil {
		return false
	}
	for _, part := range m.Parts {
		switch p := part.(type) {
		case thread.ToolCall:
			if w.flat[p.ID] {
				return true
			}
		case thread.ToolResult:
			if w.flat[p.CallID] {
				return true
			}
		}
	}
	return false
}

// tool writes a tool message.
func (w *responsesWriter) tool(m *thread.Message) {
	r, ok := m.Result()
	if !ok {
		return
	}
	if w.flat[r.CallID] {
		w.add(responsesMessage("user", []string{responsesText("input_text", "[result of "+r.Tool+"]\n"+r.Text())}), -1, 1)
		return
	}
	if responsesOwn(r.Source) {
		w.add(r.Raw, w.next(), 1)
		return
	}
	answer, asked := w.calls[r.CallID]
	if !asked { // the call is in the part of the history that OpenAI keeps, or nowhere
		answer.id = r.CallID
		if w.body == nil {
			answer.id = w.callID(r.CallID)
		}
	}
	id := rawjson.Quote(answer.id)
	switch answer.typ {
	case "custom":
		w.add(`{"type":"custom_tool_call_output","call_id":`+id+`,"output":`+responsesOutput(r)+`}`, -1, 1)
	case "local_shell_call":
		w.add(`{"type":"local_shell_call_output","call_id":`+id+`,"output":`+rawjson.Quote(r.Text())+`}`, -1, 1)
	case "shell_call":
		exit := "0"
		if r.Outcome == thread.Failure {
			exit = "1"
		}
		w.add(`{"type":"shell_call_output","call_id":`+id+`,"output":[{"stdout":`+rawjson.Quote(r.Text())+
			`,"stderr":"","outcome":{"type":"exit","exit_code":`+exit+`}}]}`, -1, 1)
	case "apply_patch_call":
		status := "completed"
		if r.Outcome == thread.Failure {
			status = "failed"
		}
		w.add(`{"type":"apply_patch_call_output","call_id":`+id+`,"status":"`+status+`","output":`+rawjson.Quote(r.Text())+`}`, -1, 1)
	case "computer_call":
		w.add(`{"type":"computer_call_output","call_id":`+id+`,"output":{"type":"computer_screenshot",`+responsesScreenshot(r)+`}}`, -1, 1)
	case "tool_search_call":
		w.add(`{"type":"tool_search_output","call_id":`+id+`,"execution":"client","status":"completed","tools":[]}`, -1, 1)
	case "mcp_approval_request":
		approve := "true"
		if r.Outcome == thread.Failure {
			approve = "false"
		}
		w.add(`{"type":"mcp_approval_response","approval_request_id":`+id+`,"approve":`+approve+`}`, -1, 1)
	default:
		w.add(`{"type":"function_call_output","call_id":`+id+`,"output":`+responsesOutput(r)+`}`, -1, 1)
	}
}

// responsesScreenshot returns the field that names the picture of a result, ""
// when it has none.
func responsesScreenshot(r thread.ToolResult) string {
	for _, part := range r.Content {
		if m, ok := part.(thread.Media); ok && m.Type == thread.Image {
			return responsesImage(m)
		}
	}
	return ""
}

// responsesOutput writes the content of a result: a string, or content parts
// when there is more than text in it.
func responsesOutput(r thread.ToolResult) string {
	media := false
	var content []string
	for _, part := range r.Content {
		switch part.(type) {
		case thread.Media:
			media = true
		case thread.Opaque:
			media = media || responsesOwn(part.From())
		}
		if text := responsesContentText(part, thread.Tool); text != "" {
			content = append(content, text)
		}
	}
	if !media || len(content) == 0 {
		return rawjson.Quote(r.Text())
	}
	return "[" + strings.Join(content, ",") + "]"
}

func responsesIsContent(kind string) bool {
	switch kind {
	case "input_text", "output_text", "text", "refusal", "input_image", "input_file", "input_audio", "content", "unknown":
		return true
	}
	return false
}

// responsesContentText writes one content part for a message of the given role;
// "" when there is nothing that this API could be told.
func responsesContentText(part thread.Part, role thread.Role) string {
	kind := "input_text"
	if role == thread.Assistant {
		kind = "output_text"
	}
	source := part.From()
	if responsesOwn(source) {
		if raw := responsesOwnContent(source.Raw, role); raw != "" {
			return raw
		}
	}
	switch p := part.(type) {
	case thread.Text:
		if p.Text != "" {
			return responsesText(kind, p.Text)
		}
	case thread.Media:
		if p.Text != "" {
			return responsesText(kind, p.Text)
		}
		if role != thread.Assistant {
			if text := responsesMedia(p); text != "" {
				return text
			}
		}
		return responsesText(kind, responsesMissing(p))
	case thread.Opaque:
		if p.Text != "" && role == thread.Tool {
			return responsesText(kind, p.Text)
		}
	}
	return ""
}

// responsesOwnContent returns the content part in a source of this API when it
// may stand in a message of the role: that of a message item, or a bare one.
func responsesOwnContent(raw string, role thread.Role) string {
	if strings.HasPrefix(raw, `"`) {
		return responsesContentString(raw, role)
	}
	if responsesRole(raw) != "" {
		if responsesThreadRole(raw) != role {
			return ""
		}
		content := gjson.Get(raw, "content")
		if content.Type == gjson.String {
			return responsesContentString(content.Raw, role)
		}
		first := ""
		content.ForEach(func(_, c gjson.Result) bool {
			first = c.Raw
			return false
		})
		return first
	}
	switch kind := gjson.Get(raw, "type").Str; {
	case kind == "", kind == "computer_screenshot",
		strings.HasPrefix(kind, "input_") && role == thread.Assistant,
		(kind == "output_text" || kind == "refusal" || kind == "text") && role != thread.Assistant:
		return ""
	}
	return raw
}

func responsesContentString(quoted string, role thread.Role) string {
	if quoted == `""` {
		return ""
	}
	kind := "input_text"
	if role == thread.Assistant {
		kind = "output_text"
	}
	return `{"type":"` + kind + `","text":` + quoted + `}`
}

func responsesText(kind, text string) string {
	return `{"type":"` + kind + `","text":` + rawjson.Quote(text) + `}`
}

// responsesMedia writes an input part; "" for what the API does not take.
func responsesMedia(m thread.Media) string {
	switch m.Type {
	case thread.Image:
		if field := responsesImage(m); field != "" {
			switch m.Detail {
			case "low", "high", "auto":
				field += `,"detail":"` + m.Detail + `"`
			}
			return `{"type":"input_image",` + field + `}`
		}
	case thread.Audio:
		if format, ok := strings.CutPrefix(m.MIME, "audio/"); ok && m.Data != "" && (format == "mp3" || format == "wav") {
			return `{"type":"input_audio","input_audio":{"data":` + rawjson.Quote(m.Data) + `,"format":"` + format + `"}}`
		}
	case thread.Document, thread.File:
		name := ""
		if m.Name != "" {
			name = `,"filename":` + rawjson.Quote(m.Name)
		}
		switch {
		case m.Data != "":
			if name == "" {
				name = `,"filename":"file"` // required beside file_data
			}
			return `{"type":"input_file"` + name + `,"file_data":` + rawjson.Quote(responsesInline(m, "application/octet-stream")) + `}`
		case responsesFetchable(m.URL):
			return `{"type":"input_file","file_url":` + rawjson.Quote(m.URL) + `}`
		case responsesUploaded(m):
			return `{"type":"input_file","file_id":` + rawjson.Quote(m.FileID) + `}`
		}
	}
	return ""
}

// responsesImage returns the field that names a picture; "" when OpenAI could
// not see it.
func responsesImage(m thread.Media) string {
	switch {
	case m.Data != "":
		return `"image_url":` + rawjson.Quote(responsesInline(m, "image/png"))
	case responsesFetchable(m.URL):
		return `"image_url":` + rawjson.Quote(m.URL)
	case responsesUploaded(m):
		return `"file_id":` + rawjson.Quote(m.FileID)
	}
	return ""
}

func responsesInline(m thread.Media, otherwise string) string {
	mime := m.MIME
	if mime == "" {
		mime = otherwise
	}
	return "data:" + mime + ";base64," + m.Data
}

func responsesFetchable(url string) bool {
	return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "data:")
}

// responsesUploaded reports whether a file id is one of OpenAI.
func responsesUploaded(m thread.Media) bool {
	return m.FileID != "" && (m.API == wire.Responses || m.API == wire.Chat)
}

// responsesMissing stands for media that cannot be sent, so that the model
// knows that something was there.
func responsesMissing(m thread.Media) string {
	text := "[" + string(m.Type)
	if m.Name != "" {
		text += " " + m.Name
	}
	if n := base64.StdEncoding.DecodedLen(len(m.Data)); n > 0 {
		return text + ": not shown]"
	}
	return text + ": not available]"
}
