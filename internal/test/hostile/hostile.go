// Package hostile makes input that nobody sends by accident: too large, too deep,
// repeated, broken off, wrongly packed. Its tests send it through every way into the
// program, and see that the process lives, stays within its memory and its time, and
// answers the next ordinary request.
package hostile

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// Case is one input.
type Case struct {
	Name string
	// Encoding is the Content-Encoding of Data; empty is plain.
	Encoding string
	Data     []byte
}

// Text is a string that some reader may take too long for.
type Text struct{ Name, Text string }

// pieces are what such strings repeat.
var pieces = []string{
	"a", "9", " ", "\n", "\r\n", "\t", "\x00", "[", "{\"a\":", "[]", "\"", "\\", "ab:", "a=b&", "é", "e\u0301", "\u200b", "\u202e", "\ufeff", "\U0001f469\u200d",
	"\n<system-reminder>", "<ide_selection>x</ide_selection>\n", "</system-reminder>\n", "\n<system-reminder>a</system-reminder>", "# AGENTS.md instructions\n",
	"```\n", "`", "*", "- [ ] do it\n", "1. do it\n", "> said\n", "TODO: do it\n", "Why? ", "error: no such file\n", "--- FAIL: TestA (0.00s)\n", "panic: x\n\ngoroutine 1 [running]:\n",
	"a.go:1:1: undefined: x\n", "@@ -1 +1 @@\n-a\n+b\n", "diff --git a/a b/a\n", "/a", "../", "https://example.com/?a=b ", "deadbeef", "ABC-123 ", "\x1b[31m", "$((", "{{.}}", "<a>", "<!--", "&lt;",
	"[palimpsest: ", "[The conversation before this point was compacted.", "commit 0123456789abcdef0123456789abcdef01234567\n", "I will do it. ", "You must never do it. ", "data: {}\n\n", "key=value ", "01 ", "a,b\n", "| a | b |\n",
}

// shapes are texts that are no one piece repeated, each of about n bytes.
var shapes = []struct {
	name string
	made func(n int) string
}{
	{"text of names", func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, "name_%x.go:%d Value%dOf ", i*2654435761, i, i)
		}
		return b.String()
	}},
	{"text of brackets that do not fit", func(n int) string {
		var b strings.Builder
		for i := 1; b.Len() < n; i++ {
			b.WriteString(strings.Repeat("<a", i%100) + strings.Repeat(">", i%90) + "\n")
		}
		return b.String()
	}},
	{"text of brackets that close", func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("]", n/2) }},
	{"text of objects that close", func(n int) string { return strings.Repeat(`{"a":`, n/6) + "1" + strings.Repeat("}", n/6) }},
	{"text of a reminder in the middle", func(n int) string {
		return strings.Repeat("[", n/4) + "\n<system-reminder>" + strings.Repeat("[", n/4)
	}},
}

// TextAt is the k-th text, of about n bytes: a piece many times over, or one of the shapes.
func TextAt(k, n int) Text {
	if k < len(pieces) {
		return Text{fmt.Sprintf("text of %.24q", pieces[k]), strings.Repeat(pieces[k], n/len(pieces[k])+1)}
	}
	shape := shapes[k-len(pieces)]
	return Text{shape.name, shape.made(n)}
}

// Texts are all texts, of about n bytes each. They are in the same order for each n.
func Texts(n int) []Text {
	list := make([]Text, len(pieces)+len(shapes))
	for k := range list {
		list[k] = TextAt(k, n)
	}
	return list
}

// values are what may stand in the place of any value, as JSON or nearly so.
func values(n int) []Text {
	return []Text{
		{"null", "null"}, {"a boolean", "true"}, {"an empty object", "{}"}, {"an empty list", "[]"}, {"an empty string", `""`},
		{"a negative number", "-1"}, {"a large number", "9223372036854775807"}, {"a number that is too large", "1e999999999"}, {"a fraction", "0.00000000000000001"},
		{"a number of many digits", strings.Repeat("7", n)},
		{"lists in lists", strings.Repeat("[", n/2) + strings.Repeat("]", n/2)}, {"lists that do not close", strings.Repeat("[", n)},
		{"objects that do not close", strings.Repeat(`{"a":`, n/5)}, {"lists just too deep", strings.Repeat("[", 1100) + strings.Repeat("]", 1100)},
		{"lists deep enough", strings.Repeat("[", 190) + strings.Repeat("]", 190)},
		{"a list of numbers", "[" + strings.Repeat("0,", n/2) + "0]"}, {"a list of objects", "[" + strings.Repeat("{},", n/3) + "{}]"}, {"a list of lists", "[" + strings.Repeat("[],", n/3) + "[]]"},
		{"one name many times", "{" + strings.Repeat(`"a":1,`, n/6) + `"a":1}`}, {"many names", manyNames(n)},
		{"bytes that are no UTF-8", `"` + strings.Repeat("\xff\xc0\x80\xed\xa0\x80", n/6) + `"`}, {"halves of surrogates", `"` + strings.Repeat(`\ud800`, n/6) + `"`},
		{"escaped zeros", `"` + strings.Repeat(`\u0000`, n/6) + `"`}, {"control characters as they are", "\"" + strings.Repeat("\x01\n", n/2) + "\""},
		{"a string without an end", `"` + strings.Repeat("a", n)}, {"base64", `"data:image/png;base64,` + strings.Repeat("iVBORw0KGgo", n/11) + `"`},
	}
}

func manyNames(n int) string {
	var b strings.Builder
	b.WriteString(`{"a":1`)
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `,"name%d":%d`, i, i)
	}
	return b.String() + "}"
}

// Whole are inputs that are nothing anybody asked for, about n bytes each.
func Whole(n int) []Case {
	list := []Case{
		{Name: "nothing"}, {Name: "a zero byte", Data: []byte{0}}, {Name: "words", Data: []byte("plain words")}, {Name: "a mark of byte order", Data: []byte("\ufeff{}")},
		{Name: "UTF-16", Data: bytes.Repeat([]byte("{\x00\"\x00"), n/4)}, {Name: "zero bytes", Data: make([]byte, n)}, {Name: "spaces", Data: bytes.Repeat([]byte(" "), n)},
		{Name: "line ends", Data: bytes.Repeat([]byte("\n"), n)}, {Name: "lines of {}", Data: bytes.Repeat([]byte("{}\n"), n/3)}, {Name: "lines of brackets", Data: bytes.Repeat([]byte("[\n"), n/2)},
		{Name: "a line without an end", Data: bytes.Repeat([]byte("words and "), n/10)}, {Name: "bytes of all kinds", Data: bytes.Repeat([]byte("\x7fELF\x02\x01\x01\x00\xff\xfe"), n/10)},
	}
	for _, v := range values(n) {
		list = append(list, Case{Name: v.Name, Data: []byte(v.Text)})
	}
	return list
}

// place is where a value stands in a sample.
type place struct {
	path   string // without the numbers of list elements
	at, to int
	value  gjson.Result
}

// places finds the values of a sample of JSON documents, one a line or one in all.
func places(sample []byte) (list []place) {
	var inside func(path string, v gjson.Result, offset int)
	inside = func(path string, v gjson.Result, offset int) {
		at := offset + v.Index
		list = append(list, place{path, at, at + len(v.Raw), v})
		if !v.IsArray() && !v.IsObject() {
			return // to ForEach it would be its own only part
		}
		v.ForEach(func(name, value gjson.Result) bool {
			switch {
			case v.IsArray():
				inside(path+"[]", value, offset)
			case len(name.Str) > 24: // the id of something
				inside(path+".*", value, offset)
			default:
				inside(path+"."+name.Str, value, offset)
			}
			return true
		})
	}
	if rawjson.Valid(sample) {
		inside("", gjson.ParseBytes(sample), 0)
		return list
	}
	offset := 0
	for line := range bytes.Lines(sample) {
		if rawjson.Valid(bytes.TrimSpace(line)) {
			v := gjson.ParseBytes(line)
			inside(v.Get("type").Str, v, offset)
		}
		offset += len(line)
	}
	return list
}

// Changed are the cases that a sample of JSON documents gives when one of its values
// is another: the longest text in turn each text and value of about n bytes, every
// other value a few of them, and each list and object with its parts many times over.
// Of all these it is every share-th, from the first-th on.
func Changed(sample []byte, n, first, share int) iter.Seq[Case] {
	return func(yield func(Case) bool) { change(sample, n, first, share, yield) }
}

func change(sample []byte, n, first, share int, yield func(Case) bool) {
	all := places(sample)
	byPath := map[string][]place{}
	var paths []string
	longest := place{}
	for _, p := range all {
		if byPath[p.path] == nil {
			paths = append(paths, p.path)
		}
		byPath[p.path] = append(byPath[p.path], p)
		if p.value.Type == gjson.String && len(p.value.Str) > len(longest.value.Str) {
			longest = p
		}
	}
	turn, going := 0, true
	put := func(p place, name string, made func() string) {
		if turn++; going && (turn+first)%share == 0 {
			going = yield(Case{Name: p.path + ": " + name, Data: slices.Concat(sample[:p.at], []byte(made()), sample[p.to:])})
		}
	}
	texts := Texts(0) // for their names; each is made where its turn comes
	for k, t := range texts {
		put(longest, t.Name, func() string { return rawjson.Quote(TextAt(k, n).Text) })
	}
	wrong := values(n)
	for _, v := range wrong {
		put(longest, v.Name, func() string { return v.Text })
	}
	for i, path := range paths {
		p := byPath[path][len(byPath[path])/2]
		for k := range 3 {
			v := wrong[(3*i+k+first)%len(wrong)]
			put(p, v.Name, func() string { return v.Text })
		}
		switch {
		case p.value.Type == gjson.String:
			k := (i + first) % len(texts)
			put(p, texts[k].Name, func() string { return rawjson.Quote(TextAt(k, n/8).Text) })
		default:
			if r, ok := repeat(p); ok {
				put(p, r.name, func() string { return r.value(n) })
			}
		}
	}
}

// Repeat is a sample one of whose lists or objects has its parts many times.
type Repeat struct {
	Name string
	// Make makes it, with about n bytes of them.
	Make func(n int) []byte
}

// Repeats are all those of a sample.
func Repeats(sample []byte) (list []Repeat) {
	seen := map[string]bool{}
	for _, p := range places(sample) {
		if r, ok := repeat(p); ok && !seen[p.path] {
			seen[p.path] = true
			list = append(list, Repeat{p.path + ": " + r.name, func(n int) []byte {
				return slices.Concat(sample[:p.at], []byte(r.value(n)), sample[p.to:])
			}})
		}
	}
	return list
}

// repeated is a value that has its parts many times, about n bytes of them.
type repeated struct {
	name  string
	value func(n int) string
}

func repeat(p place) (repeated, bool) {
	switch {
	case p.value.IsArray():
		for _, element := range p.value.Array()[:min(1, len(p.value.Array()))] {
			return repeated{"its first element many times", func(n int) string {
				return "[" + strings.Repeat(element.Raw+",", n/(len(element.Raw)+1)) + element.Raw + "]"
			}}, true
		}
	case p.value.IsObject() && len(p.value.Raw) > 2:
		members := strings.TrimSpace(p.value.Raw)
		members = members[1 : len(members)-1]
		return repeated{"its members many times", func(n int) string {
			return "{" + strings.Repeat(members+",", n/(len(members)+1)) + members + "}"
		}}, true
	}
	return repeated{}, false
}

// Broken are a sample cut off, and a sample many times over, about n bytes long.
func Broken(sample []byte, n int) (list []Case) {
	for _, share := range []int{1, 5, 9} {
		list = append(list, Case{Name: fmt.Sprintf("the first %d/10", share), Data: sample[:len(sample)*share/10]})
	}
	return append(list,
		Case{Name: "without its last byte", Data: sample[:len(sample)-1]},
		Case{Name: "many times over", Data: bytes.Repeat(append(bytes.TrimSpace(sample), '\n'), n/len(sample)+1)},
		Case{Name: "behind zero bytes", Data: slices.Concat(make([]byte, 100), sample)},
		Case{Name: "before words", Data: slices.Concat(sample, []byte(" and more"))},
		Case{Name: "a bracket too many", Data: slices.Concat(sample, []byte("}"))},
	)
}
