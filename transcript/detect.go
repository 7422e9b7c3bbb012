package transcript

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// detectLines is how many lines are searched for the format.
const detectLines = 200

// detect finds the format from the first line that shows it, and puts the lines back.
func detect(in *input) (Format, error) {
	first, number, err := in.next()
	if err != nil {
		return "", err
	}
	in.unread(first, number)
	if what := notRead(gjson.ParseBytes(first)); what != "" {
		return "", fmt.Errorf("%w: this looks like %s, which is not read; read are %s", ErrUnknownFormat, what, joinFormats(Formats()))
	}
	format := sniff(gjson.ParseBytes(first))
	for n := 1; format == "" && n < detectLines; n++ {
		line, number, err := in.readChecked()
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
		in.unread(line, number)
		format = sniff(gjson.ParseBytes(line))
	}
	if format == "" {
		return "", fmt.Errorf("%w: the file starts with %s; name the format if it is one of %s", ErrUnknownFormat, describeValue(gjson.ParseBytes(in.pending[0].line)), joinFormats(Formats()))
	}
	return format, nil
}

// unread are files of agents and others that are not read: their blocks are like those of other formats, and
// most of them would be lost. Each line says what it is, what a document or a first line has, and an example.
//
//go:embed unread.jsonl
var unread string

// notRead is what a line or a document looks like that is not read, or "". Exports are
// lists of such documents.
func notRead(v gjson.Result) string {
	if first := v.Get("0"); v.IsArray() && first.IsObject() {
		v = first
	}
	for line := range strings.Lines(unread) {
		var all []string
		for path := range rawjson.Items(gjson.Get(line, "has")) {
			all = append(all, path.Str)
		}
		if hasAll(v, all) {
			return gjson.Get(line, "what").Str
		}
	}
	return ""
}

// sniff returns the format that a line or a document shows, or "".
func sniff(v gjson.Result) Format {
	kind := v.Get("type").Str
	for _, f := range table {
		if f.matches != nil && f.matches(v) || slices.ContainsFunc(f.signs, func(s sign) bool { return (s.kinds == nil || slices.Contains(s.kinds, kind)) && hasAll(v, s.has) }) {
			return f.Format
		}
	}
	switch {
	case v.IsArray():
		return listFormat(v)
	case v.Get("traj").IsArray():
		return listFormat(v.Get("traj"))
	case v.Get("body").Exists():
		api := wire.APIOf(v.Get("path").Str + v.Get("url").Str)
		for _, f := range table {
			if f.decode != nil && f.API() == api {
				return f.Format
			}
		}
		if f := bodyFormat(unwrap(v.Get("body"))); f != "" {
			return f
		}
	}
	return bodyFormat(v)
}

// hasAll reports whether all of the paths are there; "path=value" wants a value, and "!path" that it is not there.
func hasAll(v gjson.Result, paths []string) bool {
	return !slices.ContainsFunc(paths, func(path string) bool {
		path, value, valued := strings.Cut(path, "=")
		path, absent := strings.CutPrefix(path, "!")
		found := v.Get(path)
		return found.Exists() == absent || valued && found.String() != value
	})
}

// unwrap reads a body that is kept as a JSON text inside a string.
func unwrap(v gjson.Result) gjson.Result {
	if v.Type == gjson.String && rawjson.Valid(v.Str) {
		return gjson.Parse(v.Str)
	}
	return v
}

// bodyFormat recognises a request body, another object that holds a list of messages,
// or a message that stands alone on its line.
func bodyFormat(v gjson.Result) Format {
	messages := v.Get("messages")
	switch {
	case v.Get("contents").IsArray():
		return geminiFormat
	case v.Get("input").Exists() && (v.Get("model").Exists() || v.Get("instructions").Exists()):
		return responsesFormat
	case messages.IsArray():
		format := listFormat(messages)
		if format == chatFormat || format == "" {
			if v.Get("system").Exists() || v.Get("anthropic_version").Exists() || v.Get("tools.0.input_schema").Exists() ||
				v.Get("max_tokens").Exists() && strings.HasPrefix(v.Get("model").Str, "claude") {
				return anthropicFormat
			}
		}
		return format
	case v.Get("role").Type == gjson.String && (v.Get("content").Exists() || v.Get("tool_calls").Exists() ||
		v.Get("parts").Exists() || v.Get("function_call").Exists()):
		return cmp.Or(messageFormat(v), chatFormat)
	}
	return ""
}

// listFormat recognises an array of messages by the first one that is not the same in all
// formats.
func listFormat(v gjson.Result) (format Format) {
	for m := range rawjson.Items(v) {
		if told := messageFormat(m); told != "" {
			return told
		}
		if m.Get("role").Exists() && m.Get("content").Exists() {
			format = chatFormat
		}
		if !m.IsObject() {
			break
		}
	}
	return format
}

// shapes are the formats of messages that show it besides their blocks, the first that fits.
var shapes = []struct {
	Format
	has []string
}{
	{aiSDKFormat, []string{"parts.0.type"}}, {geminiFormat, []string{"parts.0", "!parts.0.type"}}, {aiSDKFormat, []string{"toolInvocations"}},
	{chatFormat, []string{"role", "tool_calls.0.function.name"}}, {chatFormat, []string{"role", "tool_calls.0.custom.name"}},
	{inspectFormat, []string{"role", "tool_calls.0.function"}}, {tau2Format, []string{"role", "tool_calls.0.name", "tool_calls.0.arguments"}},
	{chatFormat, []string{"role", "function_call.name"}}, {chatFormat, []string{"role=function"}},
	{inspectFormat, []string{"role=tool", "function", "!content.0"}}, {inspectFormat, []string{"role", "source=generate", "!content.0"}},
	{responsesFormat, []string{"role", "type=message", "!content.0"}},
}

// messageFormat recognises the format of a message that shows it.
func messageFormat(m gjson.Result) Format {
	for _, shape := range shapes {
		if hasAll(m, shape.has) {
			return shape.Format
		}
	}
	if !m.Get("role").Exists() {
		if isResponseItem(m.Get("type").Str) {
			return responsesFormat
		}
		return ""
	}
	for part := range rawjson.Items(m.Get("content")) {
		kind := part.Get("type").Str
		switch {
		case kind == "reasoning" && part.Get("reasoning").Exists():
			return inspectFormat
		case kind == "image" && part.Get("source").IsObject():
			return anthropicFormat
		case kind == "image" && part.Get("image").Exists():
			return aiSDKFormat
		case kind == "file" && part.Get("file").IsObject():
			return chatFormat
		}
		for _, f := range table {
			if slices.Contains(f.parts, kind) {
				return f.Format
			}
		}
	}
	return ""
}

// isResponseItem reports whether kind is an item type of the Responses API.
func isResponseItem(kind string) bool {
	switch kind {
	case "message", "reasoning", "item_reference", "compaction":
		return true
	}
	return strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_call_output")
}

// describeValue describes a JSON value in messages about unknown content.
func describeValue(v gjson.Result) string {
	switch {
	case v.IsArray() && v.Get("#").Int() == 0:
		return "an empty array"
	case v.IsArray():
		return fmt.Sprintf("an array of %d elements", v.Get("#").Int())
	case v.IsObject():
		var keys []string
		for name := range rawjson.Members(v) {
			if keys = append(keys, clip.Line(name, 30)); len(keys) == 8 {
				break
			}
		}
		if len(keys) == 0 {
			return "an empty object"
		}
		return "an object with " + strings.Join(keys, ", ")
	}
	return fmt.Sprintf("the value %s", clip.Line(v.Raw, 40))
}
