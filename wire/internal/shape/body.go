package shape

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

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
