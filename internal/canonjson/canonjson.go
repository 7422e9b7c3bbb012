// Package canonjson writes JSON in one canonical form: sorted keys, no insignificant white
// space, numbers as written, no needless escapes. Equal documents have equal bytes, and so
// equal hashes.
package canonjson

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// Canonical returns the canonical form of a JSON document. If doc is not one valid document
// (or nests deeper than encoding/json allows), it returns doc itself and false, so that
// callers still have something to hash.
func Canonical(doc string) (string, bool) { return Without(doc) }

// Without is Canonical without the object members of the given names, at any depth.
func Without(doc string, names ...string) (string, bool) {
	if doc == "" {
		return doc, false
	}
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
