package anthropic

import (
	"maps"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// content checks the blocks of one message, each by itself.
func (c *checker) content(t *turn, last bool) {
	final := last && t.role == "assistant"
	if t.text.Type == gjson.String {
		if blank(t.text.Str) && !final {
			c.report(t.at, t.path+".content", "empty-content", "a message must not be empty")
		}
		return
	}
	if len(t.blocks) == 0 && !final {
		c.report(t.at, t.path+".content", "empty-content", "a message must not be empty")
	}
	for k := range t.blocks {
		b := &t.blocks[k]
		path := t.block(k)
		if !b.v.IsObject() || b.kind == "" {
			c.report(b.v.Index, path, "block", "a block is an object with a type")
			continue
		}
		if roles := speakers[b.kind]; roles != "" && t.role != roles && (t.role == "user" || t.role == "assistant") {
			c.report(b.v.Index, path, "block-role", "%s blocks stand in %s messages only", b.kind, roles)
		}
		c.blockRules(b, path)
	}
}

// speakers are the roles of the blocks that only one role may send.
var speakers = map[string]string{
	"tool_use": "assistant", "thinking": "assistant", "redacted_thinking": "assistant",
	"server_tool_use": "assistant", "mcp_tool_use": "assistant", "mcp_tool_result": "assistant", "compaction": "assistant",
	"tool_result": "user", "image": "user", "document": "user", "container_upload": "user", "search_result": "user",
}

func (c *checker) blockRules(b *item, path string) {
	at := b.v.Index
	switch b.kind {
	case "text":
		if b.text.Type != gjson.String {
			c.report(at, path+".text", "block", "a text block needs text")
		} else if blank(b.text.Str) {
			c.report(at, path+".text", "empty-text", "text blocks must hold more than white space: leave the block out")
		}
	case "image", "document":
		c.mediaRules(b, path)
	case "thinking":
		if b.thinking.Type != gjson.String || b.signature.Type != gjson.String || b.signature.Str == "" {
			c.report(at, path, "thinking-signature", "a thinking block needs its thinking (it may be empty) and its signature")
		}
	case "redacted_thinking":
		if b.data.Type != gjson.String || b.data.Str == "" {
			c.report(at, path+".data", "redacted-data", "a redacted thinking block needs its data")
		}
	case "tool_use":
		if !named(b.id, 1<<16) {
			c.report(at, path+".id", "tool-id", "the id of a call has the characters a-z, A-Z, 0-9, _ and - only")
		}
		if !named(b.name, 200) {
			c.report(at, path+".name", "tool-name", "the name of a tool has the characters a-z, A-Z, 0-9, _ and - only")
		}
		if !b.input.IsObject() {
			c.report(at, path+".input", "tool-input", "the input of a call is an object")
		}
	case "server_tool_use", "mcp_tool_use":
		if !named(b.id, 1<<16) || b.name.Str == "" {
			c.report(at, path, "block", "%s needs an id and a name", b.kind)
		}
	case "tool_result":
		c.resultRules(b, path)
		return
	}
	c.cacheMark(*b, path)
}

func (c *checker) resultRules(b *item, path string) {
	if !named(b.callID, 1<<16) {
		c.report(b.v.Index, path+".tool_use_id", "tool-id", "a result names its call by an id of the characters a-z, A-Z, 0-9, _ and -")
	}
	failed := b.isError.Type == gjson.True
	if failed && (b.content.Type == gjson.Null || b.content.Type == gjson.String && b.content.Str == "" || b.content.IsArray() && b.content.Get("#").Int() == 0) {
		c.report(b.v.Index, path+".content", "error-content", "a result with is_error must say something")
	}
	switch {
	case b.content.IsArray():
		eachOf(b.content, func(k int, v gjson.Result) {
			inner := readItem(v)
			at := path + ".content[" + strconv.Itoa(k) + "]"
			switch {
			case inner.kind == "":
				c.report(v.Index, at, "block", "a block is an object with a type")
			case failed && inner.kind != "text":
				c.report(v.Index, at, "error-content", "a result with is_error holds text only")
			case inner.kind == "tool_use" || inner.kind == "tool_result" || inner.kind == "thinking":
				c.report(v.Index, at, "block-role", "a result cannot hold a %s block", inner.kind)
			default:
				c.blockRules(&inner, at)
			}
		})
	case b.content.Exists() && b.content.Type != gjson.String && b.content.Type != gjson.Null:
		c.report(b.v.Index, path+".content", "block", "the content of a result is text or an array of blocks")
	}
	c.cacheMark(*b, path)
}

// mediaRules checks images and documents.
// https://docs.anthropic.com/en/docs/build-with-claude/vision
func (c *checker) mediaRules(b *item, path string) {
	at := b.v.Index
	path += ".source"
	mime, data := b.source.Get("media_type"), b.source.Get("data")
	need := func(ok bool, rule, format string, args ...any) {
		if !ok {
			c.report(at, path, rule, format, args...)
		}
	}
	switch kind := b.source.Get("type").Str; {
	case kind == "base64":
		if b.kind == "image" {
			need(slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp"}, mime.Str), "media-type", "images are JPEG, PNG, GIF or WebP, not %q", mime.Str)
		} else {
			need(mime.Str == "application/pdf", "media-type", "documents in base64 are PDF, not %q: send text as a text source", mime.Str)
		}
		need(data.Str != "", "media-source", "the data is missing")
	case kind == "url":
		need(b.source.Get("url").Str != "", "media-source", "the url is missing")
	case kind == "file":
		need(b.source.Get("file_id").Str != "", "media-source", "the file_id is missing")
	case kind == "text" && b.kind == "document":
		need(mime.Str == "text/plain", "media-type", "a text source has the media type text/plain, not %q", mime.Str)
		need(data.Type == gjson.String, "media-source", "the data is missing")
	case kind == "content" && b.kind == "document":
		need(b.source.Get("content").Exists(), "media-source", "the content is missing")
	default:
		need(false, "media-source", "%q is no source of %s blocks", kind, b.kind)
	}
}
