// Package gemini reads, writes and checks requests of Gemini's generateContent
// (the public API and Vertex AI), and reads its answers.
//
// A content of the request becomes one message, except that each function response in it
// becomes a tool message of its own. Field names are read in both spellings that clients
// send (functionCall, function_call) and written in the first. Prompt.Model stays empty,
// because the URL names the model, and cache points are ignored, because Gemini has no
// cache marks.
package gemini

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// Codec reads, writes and checks generateContent requests. The zero value is ready to use
// and safe for concurrent use.
type Codec struct{}

var _ wire.Codec = Codec{}

// API returns wire.Gemini.
func (Codec) API() string { return wire.Gemini }

// nameLength is the length limit of function names in every version of the API, in
// characters; the newest allows wideLength, and colons.
const (
	nameLength = 64
	wideLength = 128
)

func nameChar(c byte, first bool) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_':
		return true
	case '0' <= c && c <= '9', c == '.', c == '-':
		return !first
	}
	return false
}

// isWideName reports whether the newest version of the API accepts a name.
func isWideName(name string) bool {
	return !strings.HasPrefix(name, ":") && len(name) <= wideLength && isName(strings.ReplaceAll(name, ":", "_"), wideLength)
}

// isName reports whether a name has a letter or underscore, then letters, digits, underscores, dots and dashes, as
// every version of the API accepts.
func isName(name string, limit int) bool {
	for i := range len(name) {
		if !nameChar(name[i], i == 0) {
			return false
		}
	}
	return name != "" && len(name) <= limit
}

// functionName returns a tool's name as every version of the API accepts it.
func functionName(name string) string { return codec.FitName(name, nameLength, nameChar) }

// camel returns a field name in the spelling of the REST reference. Google's JSON parser
// also accepts the names of the protocol definition, in snake case.
func camel(name string) string {
	if !strings.Contains(name, "_") {
		return name
	}
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c == '_' && i+1 < len(name) {
			i++
			if c = name[i]; 'a' <= c && c <= 'z' {
				c -= 'a' - 'A'
			}
		}
		b = append(b, c)
	}
	return string(b)
}

// members returns the members of an object, with their names in camel case.
func members(object gjson.Result, into rawjson.Fields) rawjson.Fields {
	into = rawjson.FieldsOf(object, into)
	for i := range into {
		into[i].Name = camel(into[i].Name)
	}
	return into
}

// field returns the member of an object with this camel-case name, in either spelling. If
// there are two, the last one counts, as for most parsers.
func field(object gjson.Result, name string) gjson.Result {
	if !object.IsObject() {
		return gjson.Result{}
	}
	return members(object, make(rawjson.Fields, 0, 8)).Get(name)
}
