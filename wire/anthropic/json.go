package anthropic

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// validObject reports whether a document is one JSON object.
func validObject(doc string) bool {
	return strings.HasPrefix(strings.TrimLeft(doc, " \t\r\n"), "{") && rawjson.Valid(doc)
}

// object writes a JSON object member by member; members with empty values are
// left out by the callers.
type object struct{ b []byte }

func (o *object) key(name string) {
	if len(o.b) == 0 {
		o.b = append(o.b, '{')
	} else {
		o.b = append(o.b, ',')
	}
	o.b = append(rawjson.AppendString(o.b, name), ':')
}

func (o *object) str(name, value string) *object {
	o.key(name)
	o.b = rawjson.AppendString(slices.Grow(o.b, len(value)+len(value)/16+3), value)
	return o
}

func (o *object) raw(name, value string) *object {
	o.key(name)
	o.b = append(o.b, value...)
	return o
}

func (o *object) String() string {
	if len(o.b) == 0 {
		return "{}"
	}
	return string(append(o.b, '}'))
}

func array(items []string) string { return "[" + strings.Join(items, ",") + "]" }

// blank reports whether the API takes a text for empty.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

// str returns the value of a string member, and whether it is one.
func str(v gjson.Result) (string, bool) { return v.Str, v.Type == gjson.String }
