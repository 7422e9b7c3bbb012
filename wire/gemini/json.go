package gemini

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

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
