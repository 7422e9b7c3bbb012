package openai

import (
	"fmt"

	"github.com/tidwall/gjson"
)

// chatAllowed are the part types that each role may have in its content.
func chatAllowed(role, kind string) bool {
	switch kind {
	case "text":
		return true
	case "refusal":
		return role == "assistant"
	case "image_url", "input_audio", "file":
		return role == "user"
	}
	return false
}

// content checks a content field that must not be null.
func (c *chatCheck) content(i int, content gjson.Result, role string) {
	path := chatPath(i) + ".content"
	switch {
	case content.Type == gjson.String:
	case !content.Exists():
		c.refuse(path, "required", "missing; role %s needs content", role)
	case !content.IsArray():
		c.refuse(path, "content", "want a string or an array of parts, have %s", chatTypeName(content))
	default:
		n := 0
		content.ForEach(func(_, part gjson.Result) bool {
			c.part(i, n, part, role)
			n++
			return true
		})
		if n == 0 {
			c.refuse(path, "empty", "an empty array is refused; send a string")
		}
	}
}

func (c *chatCheck) part(i, n int, part gjson.Result, role string) {
	path := fmt.Sprintf("%s.content[%d]", chatPath(i), n)
	if !part.IsObject() {
		c.refuse(path, "type", "want an object, have %s", chatTypeName(part))
		return
	}
	kind := part.Get("type")
	if !c.nonEmpty(path+".type", kind) {
		return
	}
	if !chatAllowed(role, kind.Str) {
		c.refuse(path+".type", "part-type", "role %s has no parts of type %q", role, kind.Str)
		return
	}
	path += "." + kind.Str
	body := part.Get(kind.Str)
	if kind.Str == "text" || kind.Str == "refusal" {
		c.isString(path, body)
		return
	}
	if !body.IsObject() {
		c.refuse(path, "type", "want an object, have %s", chatTypeName(body))
		return
	}
	switch kind.Str {
	case "image_url":
		c.nonEmpty(path+".url", body.Get("url"))
		c.oneOf(path+".detail", body.Get("detail"), "auto", "low", "high", "original")
	case "input_audio":
		c.nonEmpty(path+".data", body.Get("data"))
		if format := body.Get("format"); c.nonEmpty(path+".format", format) {
			c.oneOf(path+".format", format, "wav", "mp3")
		}
	case "file":
		if id := body.Get("file_id"); id.Exists() {
			c.nonEmpty(path+".file_id", id)
		} else if c.nonEmpty(path+".file_data", body.Get("file_data")) {
			c.nonEmpty(path+".filename", body.Get("filename"))
		}
	}
}

// oneOf checks an optional string against the values it may have.
func (c *chatCheck) oneOf(path string, value gjson.Result, allowed ...string) {
	if !value.Exists() {
		return
	}
	for _, a := range allowed {
		if value.Type == gjson.String && value.Str == a {
			return
		}
	}
	c.refuse(path, "value", "%s is none of %v", value.Raw, allowed)
}
