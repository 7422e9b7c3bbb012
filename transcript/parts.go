package transcript

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/media"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// textParts makes the parts of a text; none if it is empty.
func textParts(s string) []thread.Part {
	if s == "" {
		return nil
	}
	return []thread.Part{thread.Text{Text: s}}
}

// firstParts are the parts of the first member that is there.
func firstParts(v gjson.Result, paths ...string) []thread.Part {
	for _, path := range paths {
		if got := v.Get(path); got.Type != gjson.Null {
			return readParts(got)
		}
	}
	return nil
}

// partsText are the texts of parts.
func partsText(parts []thread.Part) string { return (&thread.Message{Parts: parts}).Text() }

// outcomeOf is how a call ended.
func outcomeOf(failed bool) thread.Outcome {
	if failed {
		return thread.Failure
	}
	return thread.Success
}

// firstText is the first member that is a text and not empty.
func firstText(v gjson.Result, paths ...string) string {
	for _, path := range paths {
		if s := v.Get(path).Str; s != "" {
			return s
		}
	}
	return ""
}

// firstName is the first member that is a text or a number, for the name of a conversation.
func firstName(v gjson.Result, keys ...string) string {
	for _, key := range keys {
		if f := v.Get(key); f.Type == gjson.String || f.Type == gjson.Number {
			return strings.TrimSpace(f.String())
		}
	}
	return ""
}

// readParts reads a text, a block or a list of them. One reader serves all formats, because
// their blocks are so alike. Unknown blocks become opaque parts.
func readParts(v gjson.Result) (all []thread.Part) {
	switch {
	case v.Type == gjson.String:
		return textParts(v.Str)
	case v.IsArray():
		for p := range rawjson.Items(v) {
			all = append(all, readParts(p)...)
		}
		return all
	case v.Type == gjson.Null:
		return nil
	case !v.IsObject():
		return textParts(v.Raw)
	}
	switch kind := v.Get("type").Str; {
	case (kind == "text" || kind == "") && v.Get("text").Type == gjson.String:
		return textParts(v.Get("text").Str)
	case kind == "text":
		return []thread.Part{opaquePart(v)}
	case kind == "thinking":
		return reasoningParts(v, signedReasoning(v))
	case kind == "reasoning" || kind == "think":
		return reasoningParts(v, readReasoning(v))
	case v.Get("image_urls").IsArray():
		return imageParts(v.Get("image_urls"))
	case v.Get("resource.text").Exists(), v.Get("source.type").Str == "text", kind == "file" && v.Get("content").Type == gjson.String:
		return textParts(firstText(v, "resource.text", "source.data", "content")) // a resource of the Model Context Protocol, a document, a file of Cline
	case isFile[kind], strings.HasSuffix(kind, "_url"), v.Get("inlineData").Exists(), v.Get("fileData").Exists(), v.Get("mime").Exists():
		if m := fileMedia(v); m.Data != "" || m.URL != "" { // else it is known by a name that nobody here knows
			return []thread.Part{m}
		}
	}
	return []thread.Part{opaquePart(v)}
}

// isFile has the types of blocks that hold a file.
var isFile = scan.WordSet("image audio video file media image-data file-data image-url file-url resource document")

// fileMedia reads a block that holds a file. If it has no type of the file, the type of the
// block shows the class.
func fileMedia(v gjson.Result) thread.Media {
	kind := v.Get("type").Str
	if inner := v.Get("media"); inner.IsObject() { // of Cline
		v = inner
	}
	mime := firstText(v, "mediaType", "mimeType", "mime", "inlineData.mimeType", "fileData.mimeType", "source.media_type", "source.mediaType", "resource.mimeType")
	if class := strings.TrimSuffix(strings.TrimSuffix(kind, "-url"), "_url"); mime == "" && class != "file" && class != "resource" {
		mime = class
		if format := v.Get("format").Str; format != "" {
			mime += "/" + format
		}
	}
	m := mediaPart(mime, firstText(v, "url", "data", "image", "audio", "video", kind+".url", strings.Replace(kind, "_url", "Url", 1)+".url", "inlineData.data", "fileData.fileUri", "source.data", "source.url", "resource.blob", "uri", "assetId"))
	m.Name = firstText(v, "filename", "name", "displayName")
	return m
}

func imageParts(urls gjson.Result) (all []thread.Part) {
	for url := range rawjson.Items(urls) {
		all = append(all, mediaPart("image", url.Str))
	}
	return all
}

// callBlocks are the blocks of calls: where the tool and its arguments stand.
var callBlocks = map[string]struct{ tool, arguments string }{
	"tool_use": {"name", "input"}, "tool_call": {"name", "input"},
	"toolRequest": {"toolCall.value.name", "toolCall.value.arguments"}, "frontendToolRequest": {"toolCall.value.name", "toolCall.value.arguments"},
}

// answerBlocks adds an answer in blocks, by their types. Where strict is set no others are read than texts, thinking and
// calls.
func answerBlocks(b *builder, blocks iter.Seq2[string, gjson.Result], strict bool) {
	for kind, p := range blocks {
		call, isCall := callBlocks[kind]
		switch {
		case isCall: // without a tool it could not be read
			b.addCall(firstText(p, "id", "tool_call_id"), cmp.Or(p.Get(call.tool).Str, "unknown"), cmp.Or(argumentsJSON(p.Get(call.arguments)), "{}"))
		case kind == "thinking", kind == "reasoning":
			b.addPart(reasoningParts(p, signedReasoning(p))...)
		case kind == "toolResponse":
			b.addResult(gooseResult(b, p))
		case known[b.format][kind], strict && kind != "text":
			b.otherPart(kind)
		default:
			b.addPart(readParts(p)...)
		}
	}
	b.flush()
}

// typed are the blocks of a content, with their types. What a block says may stand in an object of its own, as in
// Crush's database.
func typed(b *builder, content gjson.Result) iter.Seq2[string, gjson.Result] {
	return func(yield func(string, gjson.Result) bool) {
		for p := range geminiParts(content) {
			kind := p.Get("type").Str
			if data := p.Get("data"); data.IsObject() {
				p = data
			}
			b.report.members(string(b.format)+"/"+kind, p)
			if !yield(kind, p) {
				return
			}
		}
	}
}

func readTool(t gjson.Result) prompt.Tool {
	return prompt.Tool{Name: t.Get("name").Str, Description: t.Get("description").Str, Schema: t.Get("parameters").Raw}
}

func readReasoning(v gjson.Result) thread.Reasoning {
	if name := v.Get("thinkingSignature").Str; name == "reasoning_content" || name == "reasoning" { // pi: the field of Chat Completions that it came in
		text := v.Get("thinking").Str
		return thread.Reasoning{Text: text, Source: thread.Source{API: wire.Chat, Raw: `{"` + name + `":` + rawjson.Quote(text) + "}"}}
	}
	return thread.Reasoning{
		Text: firstText(v, "text", "thinking", "think", "reasoning"),
		Signature: firstText(v, "providerMetadata.anthropic.signature", "providerOptions.anthropic.signature",
			"metadata.anthropic.signature", "native.anthropic.signature", "signature", "encrypted", "thinkingSignature"),
	}
}

// reasoningParts are the part of a block of thinking: none if it says that it is empty, and the block as it is where the
// text stands at no place that is known.
func reasoningParts(v gjson.Result, r thread.Reasoning) []thread.Part {
	if r.Text != "" || r.Signature != "" {
		return []thread.Part{r}
	}
	if slices.ContainsFunc([]string{"text", "thinking", "think", "reasoning"}, func(path string) bool { return v.Get(path).Type == gjson.String }) {
		return nil
	}
	return []thread.Part{opaquePart(v)}
}

// signedReasoning reads a block of thinking, which Anthropic signed if it is signed.
func signedReasoning(v gjson.Result) thread.Reasoning {
	r := readReasoning(v)
	if r.Signature != "" {
		r.API = wire.Anthropic
	}
	return r
}

// opaquePart keeps a block that is not understood, with its text. One without a type is known by its first
// member, as those of Gemini's API are.
func opaquePart(block gjson.Result) thread.Part {
	kind := block.Get("type").String()
	if kind == "" {
		for kind = range rawjson.Members(block) {
			break
		}
	}
	text := block.Get("text").String()
	if kind == "text" || kind == "thinking" { // which stands elsewhere in it
		text = block.Raw
	}
	return thread.Opaque{Kind: kind, Text: text, Source: thread.Source{Raw: block.Raw}}
}

// argumentsJSON returns the arguments of a call as JSON; some formats have JSON inside a string.
func argumentsJSON(v gjson.Result) string {
	switch {
	case !v.Exists() || v.Type == gjson.Null:
		return "{}"
	case v.Type == gjson.String:
		return v.Str
	}
	return strings.TrimSpace(v.Raw)
}

// mediaPart makes the part of a file from its type, or the class of its type, and
// where it is: a URL, a data URL or base64.
func mediaPart(mime, where string) thread.Media {
	m := thread.Media{MIME: mime}
	if inURL, data, ok := media.ParseDataURL(where); ok {
		m.Data = data
		if !strings.Contains(mime, "/") {
			m.MIME = inURL
		}
	} else if strings.Contains(where, "://") || strings.HasPrefix(where, "data:") {
		m.URL = where
	} else {
		m.Data = where
	}
	m.Type = media.ClassOf(m.MIME)
	if !strings.Contains(m.MIME, "/") {
		m.MIME = ""
	}
	return m
}

// structuredResult returns a JSON value as the canonical data of a result, and as text.
func structuredResult(v gjson.Result) (data string, content []thread.Part) {
	if v.Type == gjson.String || v.Type == gjson.Null { // as one that is missing
		return "", textParts(v.Str)
	}
	data, _ = canonjson.Canonical(v.Raw)
	return data, textParts(v.Raw)
}
