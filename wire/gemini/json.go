package gemini

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// parse reads a JSON document; false when it is none or nests too deep.
func parse(doc string) (gjson.Result, bool) {
	if !rawjson.Valid(doc) {
		return gjson.Result{}, false
	}
	return gjson.Parse(strings.TrimSpace(doc)), true
}

// isObject reports whether the text is one JSON object.
func isObject(doc string) bool {
	doc = strings.TrimSpace(doc)
	return strings.HasPrefix(doc, "{") && rawjson.Valid(doc)
}

// camel returns a field name in the spelling of the REST reference. Google's
// JSON parser takes the names of the protocol definition (snake case) as well.
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

// field returns the member of an object by its camel-case name, in either
// spelling. Where a name stands twice the last one counts, as for most parsers.
func field(object gjson.Result, name string) (found gjson.Result) {
	if !object.IsObject() {
		return
	}
	object.ForEach(func(key, value gjson.Result) bool {
		if key.Str == name || camel(key.Str) == name {
			found = value
		}
		return true
	})
	return found
}

// str returns the text of a JSON string, and "" for anything else.
func str(v gjson.Result) string {
	if v.Type != gjson.String {
		return ""
	}
	return v.Str
}
