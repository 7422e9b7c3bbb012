// Package canonjson writes JSON in one canonical form: sorted keys, no insignificant white
// space, numbers as written, no needless escapes. Equal documents have equal bytes, and so
// equal hashes.
package canonjson

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// Canonical returns the canonical form of a JSON document. If doc is not one valid document
// (or nests deeper than encoding/json allows), it returns doc itself and false, so that
// callers still have something to hash.
func Canonical(doc string) (string, bool) { return Without(doc) }

// Without is Canonical without the object members of the given names, at any depth.
func Without(doc string, names ...string) (string, bool) {
	if rawjson.Valid(doc) {
		if out, ok := write(make([]byte, 0, len(doc)), gjson.Parse(doc), names, 0); ok {
			return string(out), true
		}
	}
	return decoded(doc, names)
}

// decoded is Without by way of encoding/json, for what write leaves.
func decoded(doc string, names []string) (string, bool) {
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return doc, false
	}
	if _, err := d.Token(); err != io.EOF {
		return doc, false
	}
	prune(v, names)
	return marshal(v), true
}

// maxDepth is how deep write goes: what is inside is looked at once for each level.
const maxDepth = 50

// write appends the canonical form of a valid value. It is false for what is rare: deeper than maxDepth, a key twice, or
// escapes that encoding/json would not write.
func write(out []byte, v gjson.Result, names []string, depth int) (_ []byte, ok bool) {
	switch {
	case v.Type == gjson.String:
		return append(out, v.Raw...), isPlain(v.Raw[1 : len(v.Raw)-1])
	case v.Type != gjson.JSON:
		return append(out, v.Raw...), true
	case depth == maxDepth:
		return out, false
	case v.IsArray():
		out, ok = append(out, '['), true
		for e := range rawjson.Items(v) {
			if out, ok = write(out, e, names, depth+1); !ok {
				return out, false
			}
			out = append(out, ',')
		}
		return append(bytes.TrimSuffix(out, []byte{','}), ']'), true
	}
	all := rawjson.FieldsOf(v, make(rawjson.Fields, 0, 8))
	slices.SortFunc(all, func(a, b rawjson.Field) int { return strings.Compare(a.Name, b.Name) })
	out = append(out, '{')
	for i, f := range all {
		if i > 0 && all[i-1].Name == f.Name || strings.ContainsAny(f.Name, "\"\\") || !isPlain(f.Name) {
			return out, false
		}
		if slices.Contains(names, f.Name) {
			continue
		}
		out = append(append(append(out, '"'), f.Name...), '"', ':')
		if out, ok = write(out, f.Value, names, depth+1); !ok {
			return out, false
		}
		out = append(out, ',')
	}
	return append(bytes.TrimSuffix(out, []byte{','}), '}'), true
}

// isPlain reports whether encoding/json would write the inside of a string as it stands.
func isPlain(s string) bool {
	ascii := true
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ':
			return false
		case c == '\\':
			if i++; strings.IndexByte(`"\bfnrt`, s[i]) < 0 {
				return false
			}
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return ascii || utf8.ValidString(s) && !strings.ContainsAny(s, "\u2028\u2029")
}

// Spaced writes a Go value as JSON with a space after commas and colons, for reading inside
// a prompt. A value that JSON cannot hold becomes null.
func Spaced(v any) string {
	var b strings.Builder
	doc := marshal(v)
	inString := false
	for i := 0; i < len(doc); i++ {
		c := doc[i]
		b.WriteByte(c)
		switch {
		case inString && c == '\\':
			i++
			b.WriteByte(doc[i])
		case c == '"':
			inString = !inString
		case !inString && (c == ',' || c == ':'):
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func marshal(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "null"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func prune(v any, names []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, n := range names {
			delete(v, n)
		}
		for _, e := range v {
			prune(e, names)
		}
	case []any:
		for _, e := range v {
			prune(e, names)
		}
	}
}
