package policyfile

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// YAML writes the settings as a policy file with every field at its value and a
// comment on what it is. Read gives the same settings back.
func (s *Settings) YAML() []byte {
	var b bytes.Buffer
	wrap(&b, "", fmt.Sprintf("%s: %s", s.Base, Line(s.Base)))
	b.WriteString("base: " + s.Base + "\n")
	group := ""
	enter := func(path string) (indent, key string) {
		head, key, nested := strings.Cut(path, ".")
		if !nested {
			b.WriteString("\n")
			group = ""
			return "", path
		}
		if head != group {
			b.WriteString("\n" + head + ":\n")
			group = head
		}
		return "  ", key
	}
	for i := range table {
		f := &table[i]
		if !f.of(s.Base) {
			continue
		}
		indent, key := enter(f.path)
		at := f.at(s)
		wrap(&b, indent, f.comment(kindOf(at)))
		b.WriteString(indent + key + ": " + written(f.get(at)) + "\n")
	}
	fields := toolFields(s.Base)
	if len(fields) == 0 {
		return b.Bytes()
	}
	indent, key := enter(overrides)
	var known []string
	for _, f := range fields {
		known = append(known, f.path+" ("+f.about+")")
	}
	wrap(&b, indent, "By the name of a tool; what is not said of it is as built in: "+strings.Join(known, ", ")+". A9, A19")
	if len(s.Tools) == 0 {
		b.WriteString(indent + key + ": {}\n")
		return b.Bytes()
	}
	b.WriteString(indent + key + ":\n")
	for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
		p := s.Tools[name]
		var lines []string
		for _, f := range fields {
			at := f.at(&p)
			if reflect.ValueOf(at).Elem().IsZero() {
				continue
			}
			value := f.get(at)
			if list, ok := value.([]string); ok && len(list) == 0 {
				continue
			}
			lines = append(lines, indent+"    "+f.path+": "+written(value)+"\n")
		}
		b.WriteString(indent + "  " + rawjson.Quote(name) + ":")
		if len(lines) == 0 {
			b.WriteString(" {}")
		}
		b.WriteString("\n" + strings.Join(lines, ""))
	}
	return b.Bytes()
}

// comment says what a field is, in which unit, what it may be, and where that
// comes from.
func (f *field) comment(k kind) string {
	var facts []string
	if f.unit != "" {
		facts = append(facts, f.unit)
	}
	if limits := f.limits(k); limits != "" {
		facts = append(facts, limits)
	} else if f.enum != nil {
		facts = append(facts, strings.Join(f.enum, ", "))
	}
	for _, w := range f.words {
		facts = append(facts, w.text)
	}
	text := strings.ToUpper(f.about[:1]) + f.about[1:]
	if len(facts) > 0 {
		text += " (" + strings.Join(facts, "; ") + ")"
	}
	return text + ". " + f.source
}

// columns is how wide comments get.
const columns = 100

// wrap writes a comment.
func wrap(b *bytes.Buffer, indent, text string) {
	line := indent + "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > columns {
			b.WriteString(line + "\n")
			line = indent + "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}
