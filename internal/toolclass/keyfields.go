package toolclass

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// maxField bounds the values of key fields, in characters: a placeholder must stay far smaller than
// what it replaces.
const maxField = 160

// argumentFields are the fields for arguments, each with the names of agents for it. The first one
// that a call has counts.
var argumentFields = []struct {
	field string
	names []string
}{
	{"path", slices.Concat(PathArguments, []string{"dir_path", "directory"})},
	{"command", []string{"command", "cmd"}},
	{"pattern", []string{"pattern", "regex", "query", "search_term", "glob"}},
	{"url", []string{"url", "uri"}},
	{"offset", []string{"offset"}},
	{"limit", []string{"limit"}},
	{"start_line", []string{"start_line"}},
	{"end_line", []string{"end_line"}},
	{"lines", []string{"view_range"}},
	{"agent", []string{"subagent_type"}},
	{"description", []string{"description"}},
}

// KeyFields returns the fields that are worth keeping when a result is cleared: what was asked for
// (path, range, command, pattern, url) and the outcome (exit code, first error line, number of
// lines; for an unknown tool, see Answer), the fields to preserve (looked up in content and
// arguments), and the result's own. Later ones win. Values are short, and empty fields are left out.
func KeyFields(call thread.ToolCall, result thread.ToolResult, preserve []string) thread.Fields {
	fields := thread.Fields{}
	class := ClassOf(cmp.Or(call.Name, result.Tool))
	given := object[shortValue](call.Arguments)
	for _, argument := range argumentFields {
		if argument.field == "description" && class != Agent {
			continue
		}
		for _, name := range argument.names {
			if v, ok := short(given[name].any); ok {
				fields[argument.field] = v
				break
			}
		}
	}
	text := result.Text()
	if h, _ := shell.ReadHarness(text); h.HasCode && (class == Shell || class == Other) {
		fields["exit_code"] = h.Code
	}
	if result.Outcome == thread.Failure || result.Outcome == thread.Partial || fields["exit_code"] != nil && fields["exit_code"] != 0 {
		if line := firstErrorLine(text); line != "" {
			fields["error"] = clip.Line(line, maxField-1)
		}
	}
	if line := Answer(call, result); line != "" {
		fields["result"] = line
	}
	if n := lines(text); n > 1 {
		switch class {
		case Search, List, Read, Shell, Fetch:
			fields["lines"] = n
		}
	}
	// A line is no match: some are empty, or say that the rest was cut.
	if m := matchesFound.FindStringSubmatch(text); m != nil && class == Search {
		if n, err := strconv.Atoi(m[1]); err == nil {
			fields["matches"] = n
		}
	}
	declared := preserved(preserve, call, result)
	if len(declared)+len(result.KeyFields) > 0 {
		delete(fields, "result") // a guess beside what somebody knows
	}
	maps.Copy(fields, declared)
	maps.Copy(fields, result.KeyFields)
	return fields
}

// matchesFound is how many matches a search says that it found.
var matchesFound = regexp.MustCompile(`^\s*Found (\d+) match(?:es)?\b`)

// Answer returns the lines in the result of an unknown tool that contain a value of the arguments, or
// all of a short result. It is empty for a known tool and a failure. Without it an agent that
// collects values with such calls would repeat them after each compaction, and never end.
func Answer(call thread.ToolCall, result thread.ToolResult) string {
	if ClassOf(cmp.Or(call.Name, result.Tool)) != Other || result.Outcome == thread.Failure {
		return ""
	}
	text := strings.TrimSpace(result.Text())
	if len(text) <= maxField {
		return clip.Line(text, maxField-1)
	}
	var asked []string
	for _, value := range object[shortValue](call.Arguments) {
		if s, ok := value.any.(string); ok && len(s) >= minAsked && len(s) <= maxField {
			asked = append(asked, s)
		}
	}
	var found []string
	size := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !slices.ContainsFunc(asked, func(s string) bool { return strings.Contains(line, s) }) {
			continue
		}
		if size += len(line); size > maxField && len(found) > 0 {
			break
		}
		found = append(found, clip.Line(line, maxField-1))
	}
	return strings.Join(found, " | ")
}

// minAsked is the least length, in bytes, of a value that Answer looks for.
const minAsked = 3

// preserved finds the named fields in the structured content, else in content that is JSON, else in
// the arguments.
func preserved(names []string, call thread.ToolCall, result thread.ToolResult) thread.Fields {
	if len(names) == 0 {
		return nil
	}
	found := thread.Fields{}
	for _, doc := range []string{call.Arguments, result.Text(), result.Structured} {
		var v any
		if doc == "" || json.Unmarshal([]byte(doc), &v) != nil {
			continue
		}
		for _, name := range names {
			if value, ok := lookup(v, name); ok {
				found[name] = value
			}
		}
	}
	return found
}

// lookup finds the first member with a name, outer objects first.
func lookup(v any, name string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		if value, ok := v[name]; ok {
			if s, ok := short(value); ok {
				return s, true
			}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if value, ok := lookup(v[key], name); ok {
				return value, true
			}
		}
	case []any:
		for _, e := range v {
			if value, ok := lookup(e, name); ok {
				return value, true
			}
		}
	}
	return nil, false
}

// short returns a value for a placeholder: scalars, clipped, and short lists.
func short(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		if strings.TrimSpace(v) == "" {
			return nil, false
		}
		return clip.Line(v, maxField-1), true
	case float64, bool:
		return v, true
	case []any:
		doc, err := json.Marshal(v)
		if err != nil || len(v) == 0 || len(doc) > maxField {
			return nil, false
		}
		return v, true
	}
	return nil, false
}

// object are the members of an object, nil of another document.
func object[T any](doc string) (members map[string]T) {
	if !strings.HasPrefix(strings.TrimLeft(doc, " \t\r\n"), "{") || json.Unmarshal([]byte(doc), &members) != nil {
		return nil
	}
	return members
}

// shortValue is a JSON value that short may take; objects and long lists are not read.
type shortValue struct{ any }

// UnmarshalJSON implements json.Unmarshaler.
func (v *shortValue) UnmarshalJSON(doc []byte) error {
	if doc[0] == '{' || doc[0] == '[' && len(doc) > 8*maxField {
		return nil
	}
	return json.Unmarshal(doc, &v.any)
}

func lines(s string) int {
	s = strings.TrimRight(s, "\n")
	if s == "" {
		return 0
	}
	return strings.Count(s, "\n") + 1
}

// PathArguments are the names of arguments that are a file, the usual ones first.
var PathArguments = []string{"file_path", "path", "filePath", "filepath", "absolute_path", "filename", "file", "file_name", "target_file", "notebook_path"}

// Path returns the file among the arguments of a call, or "".
func Path(call thread.ToolCall) string {
	for _, name := range PathArguments {
		if v := gjson.Get(call.Arguments, name); v.Type == gjson.String && v.Str != "" {
			return v.Str
		}
	}
	return ""
}

// Source identifies what a call reads or writes: the path or URL among its arguments, else the tool
// with all its arguments.
func Source(call thread.ToolCall) string {
	args := object[any](call.Arguments)
	for _, argument := range argumentFields {
		if argument.field != "path" && argument.field != "url" {
			continue
		}
		for _, name := range argument.names {
			if text, ok := args[name].(string); ok && text != "" {
				return argument.field + " " + text
			}
		}
	}
	canonical, err := json.Marshal(args) // members in order
	if err != nil || args == nil {
		return Normal(call.Name) + " " + call.Arguments
	}
	return Normal(call.Name) + " " + string(canonical)
}
