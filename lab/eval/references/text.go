package references

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// MessageLines is what a message shows a model, as lines of plain text: escapes are
// decoded, and the values of one JSON object stand with their keys on one line, so that
// a line holds what belongs together. The calls come last, from byte calls on.
func MessageLines(m *thread.Message) (text string, calls int) {
	var words, args strings.Builder
	for _, p := range m.Parts {
		switch p := p.(type) {
		case thread.ToolCall:
			args.WriteString(p.Name + " ")
			flatten(&args, p.Arguments)
		case thread.ToolResult:
			for _, c := range p.Content {
				say(&words, c)
			}
			if len(p.Content) == 0 {
				flatten(&words, p.Structured)
			}
		default:
			say(&words, p)
		}
	}
	calls = words.Len()
	words.WriteString(args.String())
	return words.String(), calls
}

func say(b *strings.Builder, p thread.Part) {
	switch p := p.(type) {
	case thread.Text:
		flatten(b, p.Text)
	case thread.Reasoning:
		flatten(b, p.Text)
	case thread.Media:
		b.WriteString(p.Name + " " + p.URL + " " + p.Text + "\n")
	case thread.Opaque:
		if p.Text == "" {
			flatten(b, p.Raw)
		} else {
			flatten(b, p.Text)
		}
	}
}

// values are the values in the arguments of a call, one per line, without keys; names are
// those whose key says that they are names.
func values(arguments string) (text string, names []string) {
	if !rawjson.Valid(arguments) {
		return arguments, nil
	}
	var b strings.Builder
	var each func(key string, v gjson.Result, depth int)
	each = func(key string, v gjson.Result, depth int) {
		if depth < maxDepth && (v.IsObject() || v.IsArray()) {
			v.ForEach(func(k, x gjson.Result) bool {
				k.Str = cmp.Or(k.Str, key)
				each(k.Str, x, depth+1)
				return true
			})
			return
		}
		s := v.String()
		if v.Type == gjson.String && namesKey(key) && len(s) >= 3 && len(s) <= 60 && s[0] >= 'A' && s[0] <= 'Z' && strings.IndexByte(s, '\n') < 0 {
			names = append(names, s)
		}
		b.WriteString(s + "\n")
	}
	each("", gjson.Parse(arguments), 0)
	return b.String(), names
}

func namesKey(key string) bool {
	key = strings.ToLower(key)
	for _, word := range []string{"name", "city", "address", "author", "customer"} {
		if strings.Contains(key, word) && !strings.Contains(key, "file") {
			return true
		}
	}
	return false
}

// flatten writes a text, a JSON document as one line per object.
func flatten(b *strings.Builder, text string) {
	t := strings.TrimSpace(text)
	if len(t) > 1 && (t[0] == '{' || t[0] == '[') && rawjson.Valid(t) {
		writeValue(b, gjson.Parse(t), 0)
	} else {
		b.WriteString(text)
	}
	b.WriteByte('\n')
}

// maxDepth bounds the walk of a JSON document; deeper values stay as they are written.
const maxDepth = 200

// writeValue writes the scalars of an object or array on one line, and the objects and
// arrays in it on lines of their own.
func writeValue(b *strings.Builder, v gjson.Result, depth int) {
	if depth > maxDepth {
		b.WriteString(v.Raw)
		return
	}
	if !v.IsObject() && !v.IsArray() {
		b.WriteString(v.String())
		return
	}
	type member struct {
		key   string
		value gjson.Result
	}
	var later []member
	object := v.IsObject()
	v.ForEach(func(k, x gjson.Result) bool {
		if x.IsObject() || x.IsArray() || x.Type == gjson.String && strings.IndexByte(x.Str, '\n') >= 0 {
			later = append(later, member{k.String(), x})
			return true
		}
		if object {
			b.WriteString(k.String() + ": ")
		}
		b.WriteString(x.String() + "; ")
		return true
	})
	for _, m := range later {
		b.WriteByte('\n')
		if object {
			b.WriteString(m.key + ": ")
		}
		if m.value.Type == gjson.String {
			b.WriteByte('\n')
		}
		writeValue(b, m.value, depth+1)
	}
}
