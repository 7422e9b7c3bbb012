package policyfile

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
)

// YAML writes the settings as a policy file: every field with its value and a comment that
// explains it. Read gives the same settings back.
func (s *Settings) YAML() []byte {
	var b bytes.Buffer
	writeComment(&b, "", s.Base+": "+s.Description())
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
	for _, f := range s.fields() {
		indent, key := enter(f.path)
		if f.kind == toolOverrides {
			s.writeTools(&b, indent, key, f)
			continue
		}
		writeComment(&b, indent, f.comment())
		b.WriteString(indent + key + ": " + formatYAML(f.get()) + "\n")
	}
	return b.Bytes()
}

// writeTools writes the settings of single tools.
func (s *Settings) writeTools(b *bytes.Buffer, indent, key string, f field) {
	var known []string
	for _, f := range fieldsOf(s.Base, new(toolpolicy.Policy)) {
		known = append(known, f.path+" ("+f.about+")")
	}
	f.about += ": " + strings.Join(known, ", ")
	writeComment(b, indent, f.comment())
	if len(s.Tools) == 0 {
		b.WriteString(indent + key + ": {}\n")
		return
	}
	b.WriteString(indent + key + ":\n")
	for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
		p := s.Tools[name]
		var lines string
		for _, f := range fieldsOf(s.Base, &p) {
			if !f.setting.IsZero() && (f.kind != textList || f.setting.Len() > 0) {
				lines += indent + "    " + f.path + ": " + formatYAML(f.get()) + "\n"
			}
		}
		if lines == "" {
			b.WriteString(indent + "  " + rawjson.Quote(name) + ": {}\n")
			continue
		}
		b.WriteString(indent + "  " + rawjson.Quote(name) + ":\n" + lines)
	}
}

// comment says what a field is, in which unit, and what it may be.
func (f *field) comment() string {
	var facts []string
	if f.unit != "" {
		facts = append(facts, f.unit)
	}
	if limits := f.rangeText(); limits != "" {
		facts = append(facts, limits)
	} else if f.enum != nil && !f.isModelChain {
		facts = append(facts, strings.Join(f.enum, ", "))
	}
	for _, w := range f.words {
		facts = append(facts, w.text)
	}
	text := strings.ToUpper(f.about[:1]) + f.about[1:]
	if len(facts) > 0 {
		text += " (" + strings.Join(facts, "; ") + ")"
	}
	return text + "."
}

// columns is the width of comments.
const columns = 100

// writeComment writes a text in lines that fit.
func writeComment(b *bytes.Buffer, indent, text string) {
	for _, line := range clip.Wrap(text, columns-len(indent+"# "), "") {
		b.WriteString(indent + "# " + line + "\n")
	}
}

func formatYAML(value any) string {
	switch v := value.(type) {
	case string:
		if plainText().MatchString(v) && !slices.Contains(keywords, strings.ToLower(v)) {
			return v
		}
		return rawjson.Quote(v) // what JSON writes, YAML reads
	case []string:
		out := make([]string, len(v))
		for i, s := range v {
			out[i] = formatYAML(s)
		}
		return "[" + strings.Join(out, ", ") + "]"
	case float64:
		return formatNumber(v)
	}
	return fmt.Sprint(value)
}

// plainText matches names and durations, which need no quotes anywhere; keywords are what
// some version of YAML would read as something else.
var (
	plainText = lazyregexp.New(`^([A-Za-z][\w./-]*(:[\w./:-]*[\w./-])?|([0-9]+(\.[0-9]+)?(ns|us|ms|[smh]))+)$`)
	keywords  = []string{"true", "false", "yes", "no", "on", "y", "n", "null", "nan", "inf"}
)
