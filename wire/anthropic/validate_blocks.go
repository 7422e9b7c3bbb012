package anthropic

import (
	"slices"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/wire/internal/shape"
)

// The shapes of blocks, by their type.
var (
	callID     = nameShape(1<<16, "tool-id", "the id of a call has the characters a-z, A-Z, 0-9, _ and - only")
	serverCall = &shape.Shape{Rules: []shape.Rule{
		shape.Must("", "block", "a call of a tool that the provider runs needs an id and a name", func(v gjson.Result) bool {
			return shape.IsName(v.Get("id").Str, 1<<16) && v.Get("name").Str != ""
		}),
	}}
	blockShapes = map[string]*shape.Shape{
		"text": shape.Members(shape.Required("text", &shape.Shape{
			Is: shape.String, Rule: "block", Say: "a text block needs text",
			Rules: []shape.Rule{shape.Must("", "empty-text", "text blocks must hold more than white space: leave the block out", func(v gjson.Result) bool { return !isBlank(v.Str) })},
		})),
		"thinking": {Rules: []shape.Rule{
			shape.Must("", "thinking-signature", "a thinking block needs its thinking (it may be empty) and its signature", func(v gjson.Result) bool {
				return v.Get("thinking").Type == gjson.String && v.Get("signature").Str != ""
			}),
		}},
		"redacted_thinking": shape.Members(shape.Required("data", &shape.Shape{Is: shape.String, Filled: true, Rule: "redacted-data", Say: "a redacted thinking block needs its data"})),
		"tool_use": shape.Members(
			shape.Required("id", callID),
			shape.Required("name", nameShape(200, "tool-name", "the name of a tool has the characters a-z, A-Z, 0-9, _ and - only")),
			shape.Required("input", shape.Members().Explain("tool-input", "the input of a call is an object")),
		),
		"server_tool_use": serverCall,
		"mcp_tool_use":    serverCall,
		"tool_result":     shape.Members(shape.Required("tool_use_id", nameShape(1<<16, "tool-id", "a result names its call by an id of the characters a-z, A-Z, 0-9, _ and -"))),
		"image":           {Image: "source.data", Members: []shape.Member{shape.Required("source", sourceOf("image", imageSources))}, Is: shape.Object},
		"document":        shape.Members(shape.Required("source", sourceOf("document", documentSources))),
	}

	// The sources of images and documents, by their type.
	// https://docs.anthropic.com/en/docs/build-with-claude/vision
	imageSources = map[string][]shape.Rule{
		"base64": {mediaType("images are JPEG, PNG, GIF or WebP", "image/jpeg", "image/png", "image/gif", "image/webp"), sourceHas("data")},
		"url":    {sourceHas("url")},
		"file":   {sourceHas("file_id")},
	}
	documentSources = map[string][]shape.Rule{
		"base64": {mediaType("documents in base64 are PDF: send text as a text source", "application/pdf"), sourceHas("data")},
		"url":    {sourceHas("url")},
		"file":   {sourceHas("file_id")},
		"text": {mediaType("a text source has the media type text/plain", "text/plain"), shape.Must("", "media-source", "the data is missing", func(v gjson.Result) bool {
			return v.Get("data").Type == gjson.String
		})},
		"content": {shape.Must("", "media-source", "the content is missing", func(v gjson.Result) bool { return v.Get("content").Exists() })},
	}
)

func mediaType(say string, types ...string) shape.Rule {
	return shape.Must("", "media-type", say, func(v gjson.Result) bool { return slices.Contains(types, v.Get("media_type").Str) })
}

func sourceHas(name string) shape.Rule {
	return shape.Must("", "media-source", "the "+name+" is missing", func(v gjson.Result) bool { return v.Get(name).Str != "" })
}

// sourceOf is a source of one of the types.
func sourceOf(block string, sources map[string][]shape.Rule) *shape.Shape {
	say := "it is no source of " + block + " blocks"
	s := &shape.Shape{Is: shape.Object, Rule: "media-source", Say: say, Rules: []shape.Rule{
		shape.Must("", "media-source", say, func(v gjson.Result) bool { return sources[v.Get("type").Str] != nil }),
	}}
	for kind, rules := range sources {
		for _, r := range rules {
			holds := r.Holds
			r.Holds = func(v gjson.Result) bool { return v.Get("type").Str != kind || holds(v) }
			s.Rules = append(s.Rules, r)
		}
	}
	return s
}

// speakers are the blocks that only one role may send.
var speakers = map[string]string{
	"tool_use": "assistant", "thinking": "assistant", "redacted_thinking": "assistant",
	"server_tool_use": "assistant", "mcp_tool_use": "assistant", "mcp_tool_result": "assistant", "compaction": "assistant",
	"tool_result": "user", "image": "user", "document": "user", "container_upload": "user", "search_result": "user",
}

// content checks the blocks of one message, each by itself.
func (c *checker) content(t *checkedMessage, last bool) {
	empty := t.text.Type == gjson.String && isBlank(t.text.Str) || t.text.Type != gjson.String && len(t.blocks) == 0
	if final := last && t.role == "assistant"; empty && !final {
		c.Refuse(t.at, t.path+".content", "empty-content", "a message must not be empty")
	}
	for k, b := range t.blocks {
		path := t.block(k)
		if b.kind == "" {
			c.Refuse(b.Index, path, "block", "a block is an object with a type")
			continue
		}
		if role := speakers[b.kind]; role != "" && t.role != role && (t.role == "user" || t.role == "assistant") {
			c.Refuse(b.Index, path, "block-role", "%s blocks are allowed in %s messages only", b.kind, role)
		}
		c.blockRules(b, path)
	}
}

func (c *checker) blockRules(b checkedBlock, path string) {
	if s := blockShapes[b.kind]; s != nil {
		c.Check(b.Index, path, b.Result, s)
	}
	if b.kind == "tool_result" {
		c.resultRules(b, path)
	}
	c.cacheMark(b, path)
}

func (c *checker) resultRules(b checkedBlock, path string) {
	path += ".content"
	content, failed := b.Get("content"), b.Get("is_error").Type == gjson.True
	if failed && (content.Type == gjson.Null || content.Type == gjson.String && content.Str == "" || content.IsArray() && content.Get("#").Int() == 0) {
		c.Refuse(b.Index, path, "error-content", "a result with is_error must say something")
	}
	if content.Exists() {
		c.Check(b.Index, path, content, (&shape.Shape{Is: shape.String | shape.Array | shape.Null}).Explain("block", "the content of a result is text or an array of blocks"))
	}
	shape.Each(content, path, func(path string, v gjson.Result) {
		switch inner := readItem(v); {
		case inner.kind == "":
			c.Refuse(v.Index, path, "block", "a block is an object with a type")
		case failed && inner.kind != "text":
			c.Refuse(v.Index, path, "error-content", "a result with is_error holds text only")
		case inner.kind == "tool_use" || inner.kind == "tool_result" || inner.kind == "thinking":
			c.Refuse(v.Index, path, "block-role", "a result cannot hold a %s block", inner.kind)
		default:
			c.blockRules(inner, path)
		}
	})
}
