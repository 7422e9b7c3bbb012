package native

import (
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// object is an immutable JSON object, each value as it was written.
type object struct{ rawjson.Fields }

func readObject(body string) (object, error) {
	if err := rawjson.Check(body); err != nil {
		return object{}, err
	}
	root := gjson.Parse(body)
	if !root.IsObject() {
		return object{}, fmt.Errorf("want an object")
	}
	return object{rawjson.FieldsOf(root, nil)}, nil
}

func (o object) without(names ...string) object {
	return object{slices.DeleteFunc(slices.Clone(o.Fields), func(f rawjson.Field) bool { return slices.Contains(names, f.Name) })}
}

// with sets a member, in its place or at the end.
func (o object) with(name, raw string) object {
	value := rawjson.Field{Name: name, Value: gjson.Parse(raw)}
	if i := slices.IndexFunc(o.Fields, func(f rawjson.Field) bool { return f.Name == name }); i >= 0 {
		rest := object{o.Fields[i+1:]}.without(name)
		return object{slices.Concat(o.Fields[:i], rawjson.Fields{value}, rest.Fields)}
	}
	return object{append(slices.Clip(o.Fields), value)}
}

func (o object) String() string {
	var b rawjson.Object
	for _, f := range o.Fields {
		b.Raw(f.Name, f.Value.Raw)
	}
	return b.String()
}
