package rehydrate

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// Mentions reports whether text holds the id as a token of its own and not as a
// part of a longer one: where the id begins or ends with a letter, a digit or an
// underscore, its neighbour is none of them. It is the seed's \b, for letters of
// all scripts.
func Mentions(text, id string) bool {
	if id == "" {
		return false
	}
	first, _ := utf8.DecodeRuneInString(id)
	last, _ := utf8.DecodeLastRuneInString(id)
	for from := 0; ; {
		i := strings.Index(text[from:], id)
		if i < 0 {
			return false
		}
		start := from + i
		end := start + len(id)
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[end:])
		if !(inWord(first) && inWord(before)) && !(inWord(last) && inWord(after)) {
			return true
		}
		from = start + 1
	}
}

// inWord reports whether a rune is part of a word. Broken UTF-8 is not.
func inWord(r rune) bool {
	return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r))
}

// eachString calls visit for every string value of a JSON document, at any
// depth, names of fields left out. What is not JSON, as custom tools take it, is
// one string.
func eachString(document string, visit func(string)) {
	if !rawjson.Valid(document) {
		visit(document)
		return
	}
	var walk func(gjson.Result)
	walk = func(v gjson.Result) {
		switch {
		case v.Type == gjson.String:
			visit(v.Str)
		case v.IsObject() || v.IsArray():
			v.ForEach(func(_, e gjson.Result) bool {
				walk(e)
				return true
			})
		}
	}
	walk(gjson.Parse(document))
}
