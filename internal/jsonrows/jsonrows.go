// Package jsonrows writes JSON documents as short lines, for readers that pay by the token:
// one line per object, without punctuation.
package jsonrows

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

const (
	// maxDepth bounds how deep a document is read; what is deeper stays JSON.
	maxDepth = 12
	// inline is the length, in bytes, up to which an object or list of plain values goes on
	// the line of the object that holds it.
	inline = 90
)

// Lines writes a document. With tables, an object in a list that has the same keys as the
// one in the line before it shows only its values, in the same order. The result is nil if the text is
// no JSON object or list, and what was written until then where the work ended.
func Lines(live *effort.Budget, text string, tables bool) []string {
	text = strings.TrimSpace(text)
	if len(text) < 2 || text[0] != '{' && text[0] != '[' || !live.Live(len(text)) || !rawjson.Valid(text) {
		return nil
	}
	w := writer{live: live, tables: tables}
	w.value("", gjson.Parse(text), maxDepth)
	return w.lines
}

// byteEffort is about what writing a byte takes, in units of effort.
const byteEffort = 32

type writer struct {
	live   *effort.Budget
	lines  []string
	tables bool
}

// value writes a value under a label.
func (w *writer) value(label string, v gjson.Result, depth int) {
	switch {
	case depth == 0 || !v.IsObject() && !v.IsArray():
		w.line(label, plainText(v))
	case v.IsArray():
		w.list(label, v, depth)
	default:
		w.object(label, v, nil, depth)
	}
}

func (w *writer) list(label string, v gjson.Result, depth int) {
	if short, ok := flatList(v, 2*len(v.Raw)); ok {
		w.line(label, short)
		return
	}
	var before []string
	v.ForEach(func(_, item gjson.Result) bool {
		if !w.live.Live(byteEffort * (1 + len(item.Raw))) {
			return false
		}
		if item.IsObject() && depth > 1 {
			before = w.object(label, item, before, depth-1)
			return true
		}
		before = nil
		w.value(label, item, depth-1)
		return true
	})
}

// object writes the plain members on one line and the others below it. It returns the keys
// on that line, nil if lines follow it; before are those of the object before it in a list.
func (w *writer) object(label string, v gjson.Result, before []string, depth int) (keys []string) {
	type member struct {
		key   string
		value gjson.Result
	}
	var below []member
	var values []string
	v.ForEach(func(k, m gjson.Result) bool {
		if !w.live.Live(byteEffort * (1 + len(m.Raw))) {
			return false
		}
		text, ok := inlineText(m, k.Str)
		if !ok {
			below = append(below, member{k.Str, m})
			return true
		}
		if !strings.HasSuffix(label, k.Str) || text != k.Str {
			keys, values = append(keys, k.Str), append(values, text)
		}
		return true
	})
	if !(w.tables && len(keys) > 1 && slices.Equal(keys, before)) {
		for i, k := range keys {
			values[i] = strings.TrimSpace(k + " " + values[i])
		}
	}
	if len(values) > 0 {
		w.line(label, strings.Join(values, ", "))
	}
	end := len(w.lines)
	for _, m := range below {
		w.value(strings.TrimSpace(label+" "+m.key), m.value, depth-1)
	}
	if len(w.lines) > end {
		return nil // a row of values would pass for one of these
	}
	return keys
}

func (w *writer) line(label, text string) {
	switch {
	case text == "":
		return
	case label != "":
		text = label + ": " + text
	}
	w.lines = append(w.lines, text)
}

// inlineText writes a value for the line of its object. It is false if there is no room.
func inlineText(v gjson.Result, key string) (string, bool) {
	switch {
	case v.IsArray():
		text, ok := flatList(v, inline)
		return "[" + text + "]", ok
	case v.IsObject():
		if len(v.Raw) > 3*inline {
			return "", false
		}
		var parts []string
		ok := true
		v.ForEach(func(k, m gjson.Result) bool {
			ok = !m.IsObject() && !m.IsArray()
			if text := plainText(m); text != key {
				parts = append(parts, k.Str+" "+text)
			}
			return ok
		})
		text := strings.Join(parts, ", ")
		return "(" + text + ")", ok && len(text) <= inline
	}
	return plainText(v), true
}

// flatList writes a list of plain values. It is false if there are others, or no room for all.
func flatList(v gjson.Result, room int) (string, bool) {
	var b strings.Builder
	first, ok := true, true
	v.ForEach(func(_, item gjson.Result) bool {
		text := plainText(item)
		if !first {
			text = ", " + text
		}
		first = false
		if ok = !item.IsObject() && !item.IsArray() && b.Len()+len(text) <= room; ok {
			b.WriteString(text)
		}
		return ok
	})
	return b.String(), ok
}

func plainText(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	return v.Raw
}
