package openai

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/media"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// responsesContent reads the content of a message item or the output of a result: a string,
// or an array of content parts. The first part gets raw as its source, the others their own
// content part.
func responsesContent(content gjson.Result, raw string) []thread.Part {
	switch {
	case content.Type == gjson.Null:
		return nil
	case content.Type == gjson.String:
		return []thread.Part{thread.Text{Text: content.Str, Source: responsesSource(raw)}}
	case !content.IsArray():
		return []thread.Part{thread.Opaque{Kind: "content", Source: responsesSource(raw)}}
	}
	// A result is sent back by its own Raw; its content parts carry theirs.
	own := raw == content.Raw
	var parts []thread.Part
	for part := range rawjson.Items(content) {
		source := raw
		if own || len(parts) > 0 {
			source = part.Raw
		}
		parts = append(parts, responsesContentPart(part, responsesSource(source)))
	}
	return parts
}

func responsesContentPart(part gjson.Result, source thread.Source) thread.Part {
	f := rawjson.FieldsOf(part, make(rawjson.Fields, 0, 6))
	kind, text := f.Str("type"), f.Str("text")
	switch kind {
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		if v := f.Get("text"); v.Type == gjson.String {
			return thread.Text{Text: text, Source: source}
		} else {
			text = v.Raw
		}
	case "refusal":
		return thread.Text{Text: f.Str("refusal"), Source: source}
	case "input_image", "computer_screenshot":
		m := thread.Media{Type: thread.Image, Detail: f.Str("detail"), FileID: f.Str("file_id"), Source: source}
		url := f.Get("image_url")
		if url.IsObject() { // as in Chat Completions; seen from gateways
			m.Detail, url = url.Get("detail").Str, url.Get("url")
		}
		m.MIME, m.Data, m.URL = responsesDataURL(url.Str)
		return m
	case "input_file":
		m := thread.Media{Type: thread.File, Name: f.Str("filename"), FileID: f.Str("file_id"), URL: f.Str("file_url"), Source: source}
		if data := f.Str("file_data"); strings.HasPrefix(data, "data:") {
			m.MIME, m.Data, m.URL = responsesDataURL(data)
		} else if data != "" {
			m.Data, m.URL = data, ""
		}
		if m.MIME == "application/pdf" || strings.HasSuffix(strings.ToLower(m.Name), ".pdf") {
			m.Type = thread.Document
		}
		return m
	case "input_audio":
		audio := f.Get(kind)
		m := thread.Media{Type: thread.Audio, Data: audio.Get("data").Str, Source: source}
		if format := audio.Get("format").Str; format != "" {
			m.MIME = "audio/" + format
		}
		return m
	}
	return thread.Opaque{Kind: cmp.Or(kind, "unknown"), Text: text, Source: source}
}

// responsesDataURL splits a base64 data URL; any other URL is returned as other.
func responsesDataURL(url string) (mime, data, other string) {
	if mime, data, ok := media.ParseDataURL(url); ok {
		return mime, data, ""
	}
	return "", "", url
}

// responsesPlain joins the texts of a content with newlines.
func responsesPlain(content gjson.Result) string {
	if content.Type == gjson.String {
		return content.Str
	}
	return responsesTexts(content, "text")
}

// responsesTexts joins what the objects of a list have in a member with newlines.
func responsesTexts(list gjson.Result, member string) string {
	var texts []string
	for item := range rawjson.Items(list) {
		if text := item.Get(member).Str; text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// responsesShellOutput reads the output of the shell tool: one entry for each
// command.
func responsesShellOutput(output gjson.Result) []thread.Part {
	var parts []thread.Part
	for e := range rawjson.Items(output) {
		text := e.Get("stdout").Str
		if stderr := e.Get("stderr").Str; stderr != "" {
			if text != "" && !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
			text += stderr
		}
		parts = append(parts, thread.Text{Text: text, Source: responsesSource(e.Raw)})
	}
	return parts
}

// responsesOutputObject reads an output that is an object: a screenshot, or the form
// {content, success} of old Codex transcripts, which may say that the call failed.
func responsesOutputObject(output gjson.Result) (part thread.Part, failed bool) {
	source := responsesSource(output.Raw)
	if output.Get("type").Str == "computer_screenshot" {
		return responsesContentPart(output, source), false
	}
	if content := output.Get("content"); content.Type == gjson.String {
		return thread.Text{Text: content.Str, Source: source}, output.Get("success").Type == gjson.False
	}
	return thread.Opaque{Kind: "output", Text: output.Raw, Source: source}, false
}
