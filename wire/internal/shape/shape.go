// Package shape checks JSON against shapes, which are data: types, required members,
// allowed values. The validators of package wire are built from it. Rules across messages
// are code of their own, which reports to the same Checker.
//
// It shares nothing with the codecs, so that one can find the other's mistakes.
package shape

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/media"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Type is a set of JSON types.
type Type uint8

// The types of JSON.
const (
	Null Type = 1 << iota
	Bool
	Number
	String
	Array
	Object
)

// Shape describes a value. The zero value accepts anything.
type Shape struct {
	// Is are the types that the value may have; 0 for all.
	Is Type
	// Filled means that a string or an array must not be empty.
	Filled bool
	// OneOf are the values that a string may have; nil for any.
	OneOf []string
	// Members are the members of an object to check, in this order.
	Members []Member
	// Image is the path to data or address of an image, where the value is one; a MIME type of another
	// kind in mimeType says that it is none.
	Image string
	// Items is the shape of an array's elements.
	Items *Shape
	// Rules are checked where all of the above is right.
	Rules []Rule
	// Rule and Say are reported in place of the general rules "required", "type",
	// "empty" and "value".
	Rule, Say string
}

// Member is a member of an object.
type Member struct {
	Name     string
	Shape    *Shape
	Required bool
}

// Rule is a condition on a value. At is the member that a problem points to; empty for the
// value itself.
type Rule struct {
	At, Rule, Say string
	Holds         func(gjson.Result) bool
}

// Required is a member that must be there.
func Required(name string, s *Shape) Member { return Member{name, s, true} }

// Optional is a member that may be missing.
func Optional(name string, s *Shape) Member { return Member{name, s, false} }

// Members is an object with these members, and perhaps others.
func Members(list ...Member) *Shape { return &Shape{Is: Object, Members: list} }

// OneOf is a string with one of these values.
func OneOf(values ...string) *Shape { return &Shape{Is: String, OneOf: values} }

// Must is a Rule.
func Must(at, rule, say string, holds func(gjson.Result) bool) Rule {
	return Rule{At: at, Rule: rule, Say: say, Holds: holds}
}

// Explain returns the shape with its own rule and message for every problem.
func (s Shape) Explain(rule, say string) *Shape {
	s.Rule, s.Say = rule, say
	return &s
}

// Checker collects problems.
type Checker struct {
	// Absent means that a null member counts as missing.
	Absent bool
	// Get finds a member of an object; nil looks for its exact name.
	Get func(object gjson.Result, name string) gjson.Result

	found []found
	size  wire.Size // of what was checked
}

type found struct {
	at int
	wire.Problem
}

// Refuse reports a broken rule. Problems are sorted by at, a byte position.
func (c *Checker) Refuse(at int, path, rule, format string, args ...any) {
	c.found = append(c.found, found{at, wire.Problem{Path: path, Rule: rule, Message: fmt.Sprintf(format, args...)}})
}

// Advise reports something that is accepted but likely a mistake.
func (c *Checker) Advise(at int, path, rule, format string, args ...any) {
	c.Refuse(at, path, rule, format, args...)
	c.found[len(c.found)-1].Advice = true
}

// Problems returns the problems in the order of the document.
func (c *Checker) Problems() []wire.Problem {
	slices.SortStableFunc(c.found, func(a, b found) int { return cmp.Compare(a.at, b.at) })
	var list []wire.Problem
	for _, f := range c.found {
		list = append(list, f.Problem)
	}
	return list
}

// CheckSize reports the limits of an API and a model that a body of so many bytes breaks, with the images
// that were checked.
func (c *Checker) CheckSize(api, model string, bytes int) {
	c.size.Bytes = bytes
	for _, p := range wire.LimitsOf(api, model).Broken(c.size) {
		c.Refuse(0, p.Path, p.Rule, "%s", p.Message)
	}
}

// image counts an image, whose data or address is at a path below v.
func (c *Checker) image(v gjson.Result, path string) {
	if mime := c.Member(v, "mimeType").Str; mime != "" && media.ClassOf(mime) != thread.Image {
		return
	}
	for name := range strings.SplitSeq(path, ".") {
		v = c.Member(v, name)
	}
	data := v.Str
	if _, inline, ok := media.ParseDataURL(data); ok {
		data = inline
	}
	w, h, _ := media.Size(data)
	c.size.Pictures, c.size.Side = c.size.Pictures+1, max(c.size.Side, w, h)
}

// Check reports what is wrong with a value. It returns true if nothing is.
func (c *Checker) Check(at int, path string, v gjson.Result, s *Shape) bool {
	before := len(c.found)
	if s.Image != "" {
		c.image(v, s.Image)
	}
	switch is := TypeOf(v); {
	case s.Is != 0 && s.Is&is == 0:
		if is == 0 {
			c.broken(at, path, s, "required", "this field is missing")
		} else {
			c.broken(at, path, s, "type", "want %s, have %s", s.Is, is)
		}
	case is == String && s.Filled && v.Str == "":
		c.broken(at, path, s, "empty", "the string is empty")
	case is == String && s.OneOf != nil && !slices.Contains(s.OneOf, v.Str):
		c.broken(at, path, s, "value", "%q is none of %s", v.Str, strings.Join(s.OneOf, ", "))
	case is == Array:
		Each(v, path, func(path string, item gjson.Result) {
			if s.Items != nil {
				c.Check(at, path, item, s.Items)
			}
		})
		if s.Filled && v.Get("#").Int() == 0 {
			c.broken(at, path, s, "empty", "an empty array is refused: leave it out")
		}
	case is == Object:
		c.members(at, path, v, s)
	}
	if len(c.found) == before {
		for _, r := range s.Rules {
			if !r.Holds(v) {
				c.Refuse(at, Join(path, r.At), r.Rule, "%s", r.Say)
			}
		}
	}
	return len(c.found) == before
}

func (c *Checker) members(at int, path string, v gjson.Result, s *Shape) {
	for _, m := range s.Members {
		got := c.Member(v, m.Name)
		switch path := Join(path, m.Name); {
		case got.Exists():
			c.Check(at, path, got, m.Shape)
		case m.Required:
			c.broken(at, path, m.Shape, "required", "this field is missing")
		}
	}
}

// Member returns a member of an object, subject to Absent and Get.
func (c *Checker) Member(v gjson.Result, name string) gjson.Result {
	var got gjson.Result
	if c.Get != nil {
		got = c.Get(v, name)
	} else if v.IsObject() {
		got = v.Get(name)
	}
	if c.Absent && got.Type == gjson.Null {
		return gjson.Result{}
	}
	return got
}

func (c *Checker) broken(at int, path string, s *Shape, rule, format string, args ...any) {
	if s.Rule != "" {
		c.Refuse(at, path, s.Rule, "%s", s.Say)
		return
	}
	c.Refuse(at, path, rule, format, args...)
}

// Join is the path of a member.
func Join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

// Each calls each for every element of an array, with its path. Anything else has no
// elements.
func Each(list gjson.Result, path string, each func(path string, item gjson.Result)) {
	if !list.IsArray() {
		return
	}
	i := 0
	list.ForEach(func(_, item gjson.Result) bool {
		each(path+"["+strconv.Itoa(i)+"]", item)
		i++
		return true
	})
}

// TypeOf returns the type of a value; 0 for a missing one.
func TypeOf(v gjson.Result) Type {
	switch {
	case !v.Exists():
		return 0
	case v.Type == gjson.Null:
		return Null
	case v.Type == gjson.Number:
		return Number
	case v.Type == gjson.String:
		return String
	case v.IsArray():
		return Array
	case v.IsObject():
		return Object
	}
	return Bool
}

var typeNames = []string{"null", "a boolean", "a number", "a string", "an array", "an object"}

// String names the types for people.
func (t Type) String() string {
	var names []string
	for i, name := range typeNames {
		if t&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// IsWhole reports whether a value is a number without a fraction.
func IsWhole(v gjson.Result) bool { return v.Type == gjson.Number && v.Num == float64(int64(v.Num)) }

// IsName reports whether s has 1 to most of the characters a-z, A-Z, 0-9, _ and -.
func IsName(s string, most int) bool {
	return s != "" && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	})
}

// Body is the body of a request, and the problems found in it.
type Body struct {
	Checker
	// Members are those of the body; where a name stands twice, the last one.
	Members map[string]gjson.Result
	// Keys are the names of the members as the body spells them.
	Keys map[string]string
}

// Open reads the members of a body. It reports a body that is no JSON object, and returns
// false. spell, if not nil, turns keys into names. twice, if not nil, is called for each
// member whose name was there before.
func (b *Body) Open(body []byte, spell func(key string) string, twice func(name string, v gjson.Result)) bool {
	doc := string(body)
	root := gjson.Parse(doc)
	if err := rawjson.Check(doc); err != nil {
		b.Refuse(0, "body", "json", "%v", err)
		return false
	}
	if !root.IsObject() {
		b.Refuse(0, "body", "json", "the body is not a JSON object")
		return false
	}
	b.Members, b.Keys = map[string]gjson.Result{}, map[string]string{}
	for key, v := range rawjson.Members(root) {
		name := key
		if spell != nil {
			name = spell(key)
		}
		if b.Members[name].Exists() && twice != nil {
			twice(name, v)
		}
		b.Members[name], b.Keys[name] = v, key
	}
	return true
}

// Value returns the value at a path of member names, such as thinking.budget_tokens.
func (b *Body) Value(path string) gjson.Result {
	name, below, deep := strings.Cut(path, ".")
	v := b.Members[name]
	if deep {
		v = v.Get(below)
	}
	return v
}

// Given reports whether the body has a member that is not null.
func (b *Body) Given(name string) bool { return b.Members[name].Type != gjson.Null }

// Kind returns the type that the object at a path names; "" for anything else.
func (b *Body) Kind(path string) string { return b.Value(path).Get("type").Str }

// RefuseIf reports a broken rule on the value at a path.
func (b *Body) RefuseIf(broken bool, path, rule, say string) {
	if broken {
		b.Refuse(b.place(path), path, rule, "%s", say)
	}
}

// AdviseIf reports what is accepted and likely a mistake, in the value at a path.
func (b *Body) AdviseIf(odd bool, path, rule, say string) {
	if odd {
		b.Advise(b.place(path), path, rule, "%s", say)
	}
}

// place is where the member that holds a path begins.
func (b *Body) place(path string) int {
	name, _, _ := strings.Cut(path, ".")
	return b.Members[name].Index
}
