package rehydrate

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/artifact"
)

const someID = "art_0123456789abcdef"

// TestMentions: an id counts as a token of its own alone. A10
func TestMentions(t *testing.T) {
	for text, want := range map[string]bool{
		someID:                            true,
		"see " + someID + ".":             true,
		`read_artifact("` + someID + `")`: true,
		"artifact:" + someID + "]":        true,
		"(" + someID + ")":                true,
		"a-" + someID + "-b":              true,
		"日本 " + someID + " 語":             true,
		"x" + someID:                      false,
		"_" + someID:                      false,
		someID + "0":                      false,
		someID + "_old":                   false,
		"smart_0123456789abcdef":          false,
		"é" + someID:                      false,
		someID + "語":                      false,
		someID + "\u0301":                 false,
		strings.ToUpper(someID):           false,
		someID[:len(someID)-1]:            false,
		"x" + someID + " " + someID:       true,
		someID + "\xff":                   true,
		"":                                false,
	} {
		if got := mentions(text, someID); got != want {
			t.Errorf("mentions(%q) = %v", text, got)
		}
	}
	if mentions("anything", "") {
		t.Error("the empty id is mentioned")
	}
	if !mentions("x(#1)y", "(#1)") {
		t.Error("an id that does not end in letters needs no gap")
	}
}

// FuzzMentions compares with the definition: the words of the text, one of
// which is the id.
func FuzzMentions(f *testing.F) {
	f.Add("see art_0123456789abcdef now", someID)
	f.Add("art_art_1", "art_1")
	f.Add("a\xffa", "a")
	f.Add("aa a", "a")
	f.Fuzz(func(t *testing.T, text, id string) {
		got := mentions(text, id)
		if got && !strings.Contains(text, id) {
			t.Fatalf("%q does not hold %q", text, id)
		}
		if id == "" || strings.ContainsFunc(id, func(r rune) bool { return !inWord(r) }) || strings.ContainsFunc(id, unicode.IsMark) {
			return
		}
		want := false
		for _, word := range strings.FieldsFunc(strings.ToValidUTF8(text, " "), func(r rune) bool { return !inWord(r) }) {
			want = want || word == id
		}
		if got != want {
			t.Fatalf("mentions(%q, %q) = %v", text, id, got)
		}
	})
}

// TestEachString: values at any depth, no names of fields, and text that is not
// JSON as a whole. A10
func TestEachString(t *testing.T) {
	deep := strings.Repeat("[", 2000) + `"deep"` + strings.Repeat("]", 2000) // no reader goes there
	for document, want := range map[string][]string{
		`{"a":"1","b":{"c":["2",{"d":"3","e":4}],"f":null},"g":"5"}`: {"1", "2", "3", "5"},
		`{"a":{},"b":[],"c":"1"}`:                                    {"1"},
		`["a","b"]`:                                                  {"a", "b"},
		`"a"`:                                                        {"a"},
		`{"art\u005f1":"art\u005f1"}`:                                {"art_1"},
		`{"a":"1","a":"2"}`:                                          {"1", "2"},
		`not json art_1`:                                             {"not json art_1"},
		`{"a":"1"`:                                                   {`{"a":"1"`},
		`{"a":"1"} trailing`:                                         {`{"a":"1"} trailing`},
		`]`:                                                          {"]"},
		``:                                                           {""},
		`17`:                                                         nil,
		deep:                                                         {deep},
	} {
		var got []string
		eachString(document, func(s string) { got = append(got, s) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.40s (-want +got):\n%s", document, diff)
		}
	}
}

func FuzzEachString(f *testing.F) {
	f.Add(`{"a":["b",{"c":"d"}]}`)
	f.Add(`{"a"`)
	f.Add(`[}`)
	f.Fuzz(func(t *testing.T, document string) {
		eachString(document, func(s string) {
			if len(s) > 3*len(document) { // a broken byte becomes U+FFFD
				t.Errorf("%q out of %q", s, document)
			}
		})
	})
}

func TestIDsAreWords(t *testing.T) {
	if id := artifact.IDOf("thread", "content"); strings.ContainsFunc(id, func(r rune) bool { return !inWord(r) }) {
		t.Errorf("%s is not one word; mentions would find it inside others", id)
	}
}
