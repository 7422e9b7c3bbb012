package native

import (
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// object is a JSON object, each value as it was written. It is not changed.
type object []member

type member struct{ name, raw string }

func readObject(body string) (object, error) {
	if err := rawjson.Check(body); err != nil {
		return nil, err
	}
	root := gjson.Parse(body)
	if !root.IsObject() {
		return nil, fmt.Errorf("want an object")
	}
	var o object
	root.ForEach(func(k, v gjson.Result) bool {
		o = append(o, member{k.Str, v.Raw})
		return true
	})
	return o, nil
}

// get is the value of a member, as gjson reads it. Of a name that stands there twice the last
// one counts.
func (o object) get(name string) gjson.Result {
	for _, m := range slices.Backward(o) {
		if m.name == name {
			return gjson.Parse(m.raw)
		}
	}
	return gjson.Result{}
}

func (o object) without(names ...string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool { return slices.Contains(names, m.name) })
}

// with is the object with a member in its place, or at the end.
func (o object) with(name, raw string) object {
	var out object
	for _, m := range o {
		if m.name != name {
			out = append(out, m)
		} else if raw != "" {
			out = append(out, member{name, raw})
			raw = ""
		}
	}
	if raw != "" {
		out = append(out, member{name, raw})
	}
	return out
}

func (o object) String() string {
	var b rawjson.Object
	for _, m := range o {
		b.Raw(m.name, m.raw)
	}
	return b.String()
}
