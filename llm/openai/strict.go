package openai

import "github.com/tidwall/gjson"

// strictSchema reports whether strict mode takes a schema: every object lists
// all its properties as required and allows no others, and only keywords that
// are supported stand in it
// (https://platform.openai.com/docs/guides/structured-outputs#supported-schemas).
// What it does not know is not strict: the server would refuse the request.
func strictSchema(schema string) bool {
	v := gjson.Parse(schema)
	return v.Get("type").Str == "object" && strictNode(v, 0)
}

// strictDepth is how deep strict mode lets a schema nest, in our terms: each
// level of objects is two.
const strictDepth = 10

func strictNode(v gjson.Result, depth int) bool {
	if !v.IsObject() || depth > strictDepth {
		return false
	}
	ok := true
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "type", "description", "title", "enum", "const", "required", "additionalProperties", "$ref", "$schema",
			"pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems":
		case "properties", "$defs", "definitions":
			value.ForEach(func(_, p gjson.Result) bool {
				ok = strictNode(p, depth+1)
				return ok
			})
		case "items":
			ok = strictNode(value, depth+1)
		case "anyOf":
			ok = value.IsArray() && depth > 0
			value.ForEach(func(_, p gjson.Result) bool {
				ok = ok && strictNode(p, depth+1)
				return ok
			})
		default:
			ok = false
		}
		return ok
	})
	return ok && strictObject(v)
}

// strictObject checks what objects must have.
func strictObject(v gjson.Result) bool {
	kind := v.Get("type")
	isObject := kind.Str == "object"
	kind.ForEach(func(_, k gjson.Result) bool {
		isObject = isObject || k.Str == "object"
		return true
	})
	if !isObject {
		return true
	}
	if v.Get("additionalProperties").Type != gjson.False {
		return false
	}
	required := map[string]bool{}
	v.Get("required").ForEach(func(_, name gjson.Result) bool {
		required[name.Str] = true
		return true
	})
	ok := true
	v.Get("properties").ForEach(func(name, _ gjson.Result) bool {
		ok = required[name.Str]
		delete(required, name.Str)
		return ok
	})
	return ok && len(required) == 0
}
