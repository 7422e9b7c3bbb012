package openai

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// responsesContent reads the content of a message item or the output of a
// result: a string, or an array of content parts. The first part carries raw,
// the others the text of their own content part.
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
	content.ForEach(func(_, part gjson.Result) bool {
		source := raw
		if own || len(parts) > 0 {
			source = part.Raw
		}
		parts = append(parts, responsesContentPart(part, responsesSource(source)))
		return true
	})
	return parts
}

func responsesContentPart(part gjson.Result, source thread.Source) thread.Part {
	var kind, text, refusal, url, fileID, fileData, fileURL, filename, detail string
	var audio gjson.Result
	part.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "type":
			kind = v.Str
		case "text":
			text = v.Str
		case "refusal":
			refusal = v.Str
		case "image_url":
			url = v.Str
			if v.IsObject() { // as in Chat Completions; seen from gateways
				url, detail = v.Get("url").Str, v.Get("detail").Str
			}
		case "file_id":
			fileID = v.Str
		case "file_data":
			fileData = v.Str
		case "file_url":
			fileURL = v.Str
		case "filename":
			filename = v.Str
		case "detail":
			detail = v.Str
		case "input_audio":
			audio = v
		}
		return true
	})
	switch kind {
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		return thread.Text{Text: text, Source: source}
	case "refusal":
		return thread.Text{Text: refusal, Source: source}
	case "input_image", "computer_screenshot":
		m := thread.Media{Type: thread.Image, Detail: detail, FileID: fileID, Source: source}
		responsesDataURL(&m, url)
		return m
	case "input_file":
		m := thread.Media{Type: thread.File, Name: filename, FileID: fileID, Source: source}
		if fileData != "" {
			if m.Data = fileData; strings.HasPrefix(fileData, "data:") {
				m.Data = ""
				responsesDataURL(&m, fileData)
			}
		} else {
			m.URL = fileURL
		}
		if m.MIME == "application/pdf" || strings.HasSuffix(strings.ToLower(filename), ".pdf") {
			m.Type = thread.Document
		}
		return m
	case "input_audio":
		m := thread.Media{Type: thread.Audio, Data: audio.Get("data").Str, Source: source}
		if format := audio.Get("format").Str; format != "" {
			m.MIME = "audio/" + format
		}
		return m
	}
	if kind == "" {
		kind = "unknown"
	}
	return thread.Opaque{Kind: kind, Text: text, Source: source}
}

// responsesDataURL sets MIME and Data from a base64 data URL, or URL from any
// other.
func responsesDataURL(m *thread.Media, url string) {
	if head, ok := strings.CutPrefix(url, "data:"); ok {
		if mime, data, ok := strings.Cut(head, ";base64,"); ok {
			m.MIME, m.Data = mime, data
			return
		}
	}
	m.URL = url
}

// responsesPlain joins the texts of a content with newlines.
func responsesPlain(content gjson.Result) string {
	if content.Type == gjson.String {
		return content.Str
	}
	if !content.IsArray() {
		return ""
	}
	var one string
	var more []string
	content.ForEach(func(_, part gjson.Result) bool {
		text := part.Get("text").Str
		switch {
		case text == "":
		case one == "":
			one = text
		default:
			more = append(more, text)
		}
		return true
	})
	if more == nil {
		return one
	}
	return one + "\n" + strings.Join(more, "\n")
}

// responsesShellOutput reads the output of the shell tool: one entry for each
// command.
func responsesShellOutput(output gjson.Result) []thread.Part {
	var parts []thread.Part
	output.ForEach(func(_, e gjson.Result) bool {
		text := e.Get("stdout").Str
		if stderr := e.Get("stderr").Str; stderr != "" {
			if text != "" && !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
			text += stderr
		}
		parts = append(parts, thread.Text{Text: text, Source: responsesSource(e.Raw)})
		return true
	})
	return parts
}

// responsesOutputObject reads an output that is an object: a screenshot, or the
// form {content, success} of old Codex transcripts. It reports whether the
// object says that the call failed.
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
