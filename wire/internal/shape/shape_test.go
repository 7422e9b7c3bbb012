package shape_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/wire/internal/shape"
)

var (
	text  = &shape.Shape{Is: shape.String, Filled: true}
	order = shape.Members(
		shape.Required("name", text),
		shape.Optional("size", shape.OneOf("s", "l")),
		shape.Optional("tags", &shape.Shape{Is: shape.Array, Filled: true, Items: text.Explain("tag", "a tag is a word")}),
		shape.Optional("seal", &shape.Shape{Is: shape.String | shape.Null}),
	)
	even = &shape.Shape{Is: shape.Array, Rules: []shape.Rule{
		shape.Must("", "even", "want pairs", func(v gjson.Result) bool { return v.Get("#").Int()%2 == 0 }),
	}}
)

func problems(c *shape.Checker) string {
	var list []string
	for _, p := range c.Problems() {
		s := p.Path + " " + p.Rule
		if p.Message == "" {
			s += " without a word"
		}
		if p.Advice {
			s += "?"
		}
		list = append(list, s)
	}
	return strings.Join(list, ", ")
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		shape     *shape.Shape
		doc, want string
	}{
		{order, `{"name":"a"}`, ""},
		{order, `{"name":"a","size":"l","tags":["x"],"seal":null,"more":1}`, ""},
		{order, `7`, " type"},
		{order, `{}`, "name required"},
		{order, `{"name":null}`, "name type"},
		{order, `{"name":""}`, "name empty"},
		{order, `{"name":"a","size":"m"}`, "size value"},
		{order, `{"name":"a","size":7}`, "size type"},
		{order, `{"name":"a","tags":[]}`, "tags empty"},
		{order, `{"name":"a","tags":["x",7,""]}`, "tags[1] tag, tags[2] tag"},
		{order, `{"seal":true,"tags":"x"}`, "name required, tags type, seal type"},
		{even, `[1,2]`, ""},
		{even, `[1]`, " even"},
		{even, `{}`, " type"}, // and no rule on top of it
		{&shape.Shape{}, `[null]`, ""},
	} {
		var c shape.Checker
		ok := c.Check(0, "", gjson.Parse(test.doc), test.shape)
		if got := problems(&c); got != test.want || ok != (test.want == "") {
			t.Errorf("%s: %q, %t, want %q", test.doc, got, ok, test.want)
		}
	}
}

// Where null counts as absent, a member that is null may be left out, and need not
// be there only where none must.
func TestAbsent(t *testing.T) {
	c := shape.Checker{Absent: true}
	c.Check(0, "a[0]", gjson.Parse(`{"name":null,"size":null,"tags":null}`), order)
	if got := problems(&c); got != "a[0].name required" {
		t.Error(got)
	}
}

// Problems come in the order of the document, and at one place as they were found.
func TestOrder(t *testing.T) {
	var c shape.Checker
	c.Refuse(9, "c", "r", "x")
	c.Advise(3, "a", "r", "x %d", 1)
	c.Refuse(3, "b", "r", "x")
	if got := problems(&c); got != "a r?, b r, c r" {
		t.Error(got)
	}
}

func TestNames(t *testing.T) {
	for s, want := range map[string]bool{"a-Z_09": true, "": false, "a b": false, "é": false, "a.b": false, "abcdefghij": true, "abcdefghijk": false} {
		if got := shape.IsName(s, 10); got != want {
			t.Errorf("%q: %t", s, got)
		}
	}
	if got := (shape.String | shape.Array | shape.Null).String(); got != "null or a string or an array" {
		t.Error(got)
	}
	for doc, want := range map[string]shape.Type{`null`: shape.Null, `true`: shape.Bool, `1`: shape.Number, `"a"`: shape.String, `[]`: shape.Array, `{}`: shape.Object, ``: 0} {
		if got := shape.TypeOf(gjson.Parse(doc)); got != want {
			t.Errorf("%s: %s", doc, got)
		}
	}
	n := 0
	shape.Each(gjson.Parse(`"a"`), "", func(string, gjson.Result) { n++ })
	if n != 0 {
		t.Error("a string has items")
	}
}
