package openai

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/media"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// responsesFlat returns the calls that can no longer be written as calls: calls of the
// computer tool without their screenshot (the API demands a picture), and changed approval
// requests (the API demands the server's name). Call and result become text instead.
func responsesFlat(messages []thread.Message) map[string]bool {
	flat, computer := map[string]bool{}, map[string]bool{}
	for i := range messages {
		m := &messages[i]
		framed := m.Frame != nil && m.Frame.API() == wire.Responses
		for _, part := range m.Parts {
			switch p := part.(type) {
			case thread.ToolCall:
				switch {
				case p.Type == "computer_call":
					computer[p.ID] = true
				case p.Type == "mcp_approval_request" && !framed && !isResponsesSource(p.Source):
					flat[p.ID] = true
				}
			case thread.ToolResult:
				if computer[p.CallID] && !framed && !isResponsesSource(p.Source) && responsesScreenshot(p) == "" {
					flat[p.CallID] = true
				}
			}
		}
	}
	return flat
}

func (w *responsesWriter) flattenResult(m *thread.Message) bool {
	return len(w.flat) > 0 && slices.ContainsFunc(m.Parts, func(part thread.Part) bool {
		switch p := part.(type) {
		case thread.ToolCall:
			return w.flat[p.ID]
		case thread.ToolResult:
			return w.flat[p.CallID]
		}
		return false
	})
}

func (w *responsesWriter) tool(m *thread.Message) {
	r, ok := m.Result()
	if !ok {
		return
	}
	if w.flat[r.CallID] {
		text := responsesText("input_text", "[result of "+r.Tool+"]\n"+r.Text())
		w.add(responsesMessage("user", rawjson.Array([]string{text})))
		return
	}
	if isResponsesSource(r.Source) {
		w.add(r.Raw)
		return
	}
	answer, asked := w.calls[r.CallID]
	if !asked { // OpenAI keeps the part of the history with the call, or there is none
		answer.id = r.CallID
		if !w.spliced {
			answer.id = w.callID(r.CallID)
		}
	}
	failed := r.Outcome == thread.Failure
	either := func(failure, success string) string {
		if failed {
			return failure
		}
		return success
	}
	of := func(kind string) *rawjson.Object { return rawjson.NewTypedObject(kind).Str("call_id", answer.id) }
	var o *rawjson.Object
	switch answer.typ {
	case "custom":
		o = of("custom_tool_call_output").Raw("output", responsesOutput(r))
	case "local_shell_call":
		o = of("local_shell_call_output").Str("output", r.Text())
	case "shell_call":
		exit := rawjson.NewTypedObject("exit").Raw("exit_code", either("1", "0"))
		output := new(rawjson.Object).Str("stdout", r.Text()).Str("stderr", "").Raw("outcome", exit.String())
		o = of("shell_call_output").Raw("output", "["+output.String()+"]")
	case "apply_patch_call":
		o = of("apply_patch_call_output").Str("status", either("failed", "completed")).Str("output", r.Text())
	case "computer_call":
		o = of("computer_call_output").Raw("output", `{"type":"computer_screenshot",`+responsesScreenshot(r)+`}`)
	case "tool_search_call":
		o = of("tool_search_output").Str("execution", "client").Str("status", "completed").Raw("tools", "[]")
	case "mcp_approval_request":
		o = rawjson.NewTypedObject("mcp_approval_response").Str("approval_request_id", answer.id).Raw("approve", either("false", "true"))
	default:
		o = of("function_call_output").Raw("output", responsesOutput(r))
	}
	w.add(o.String())
}

// responsesScreenshot returns the field with the picture of a result; "" if it has none.
func responsesScreenshot(r thread.ToolResult) string {
	for _, part := range r.Content {
		if m, ok := part.(thread.Media); ok && m.Type == thread.Image {
			return responsesImage(m)
		}
	}
	return ""
}

// responsesOutput writes the content of a result: a string, or content parts if it holds
// more than text.
func responsesOutput(r thread.ToolResult) string {
	mixed := false
	var content []string
	for _, part := range r.Content {
		switch part.(type) {
		case thread.Media:
			mixed = true
		case thread.Opaque:
			mixed = mixed || isResponsesSource(part.From())
		}
		if text := responsesContentText(part, thread.Tool); text != "" {
			content = append(content, text)
		}
	}
	if !mixed || len(content) == 0 {
		return rawjson.Quote(r.Text())
	}
	return rawjson.Array(content)
}

// responsesContentText writes one content part for a message of the given role; "" if there
// is nothing to send to this API.
func responsesContentText(part thread.Part, role thread.Role) string {
	kind, source := responsesTextKind(role), part.From()
	if isResponsesSource(source) {
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
		if role != thread.Assistant && p.Text == "" {
			if text := responsesMedia(p); text != "" {
				return text
			}
		}
		return responsesText(kind, media.Placeholder(p))
	case thread.Opaque:
		if p.Text != "" && role == thread.Tool {
			return responsesText(kind, p.Text)
		}
	}
	return ""
}

// responsesOwnContent returns the content part in a source of this API (a message item, or
// a content part itself) if a message of the role may hold it.
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
		for first := range rawjson.Items(content) {
			return first.Raw
		}
		return ""
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
	return rawjson.NewTypedObject(responsesTextKind(role)).Raw("text", quoted).String()
}

// responsesTextKind is the type of a text in a message of the role.
func responsesTextKind(role thread.Role) string {
	if role == thread.Assistant {
		return "output_text"
	}
	return "input_text"
}

func responsesText(kind, text string) string {
	return rawjson.NewTypedObject(kind).Str("text", text).String()
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
			return rawjson.NewTypedObject("input_audio").Raw("input_audio", new(rawjson.Object).Str("data", m.Data).Str("format", format).String()).String()
		}
	case thread.Document, thread.File:
		o := rawjson.NewTypedObject("input_file")
		switch {
		case m.Data != "": // a name is required beside it
			return o.Str("filename", cmp.Or(m.Name, "file")).Str("file_data", media.DataURL(cmp.Or(m.MIME, "application/octet-stream"), m.Data)).String()
		case responsesFetchable(m.URL):
			return o.Str("file_url", m.URL).String()
		case responsesUploaded(m):
			return o.Str("file_id", m.FileID).String()
		}
	}
	return ""
}

// responsesImage returns the field with a picture; "" if OpenAI could not see it.
func responsesImage(m thread.Media) string {
	switch {
	case m.Data != "":
		return `"image_url":` + rawjson.Quote(media.DataURL(cmp.Or(m.MIME, "image/png"), m.Data))
	case responsesFetchable(m.URL):
		return `"image_url":` + rawjson.Quote(m.URL)
	case responsesUploaded(m):
		return `"file_id":` + rawjson.Quote(m.FileID)
	}
	return ""
}

func responsesFetchable(url string) bool {
	return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "data:")
}

func responsesUploaded(m thread.Media) bool {
	return m.FileID != "" && (m.API == wire.Responses || m.API == wire.Chat)
}
