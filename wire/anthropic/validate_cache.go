package anthropic

import "github.com/tidwall/gjson"

// cacheMark is a cache_control member where the prompt has it.
type cacheMark struct {
	at   int
	path string
	ttl  string
}

// cacheMark notes the mark of a block. It must be called in the order of the
// prompt: tools, system, messages.
func (c *checker) cacheMark(b item, path string) {
	if !b.cache.IsObject() {
		return
	}
	path += ".cache_control"
	kind, ttl := b.cache.Get("type"), b.cache.Get("ttl")
	if kind.Str != "ephemeral" || ttl.Exists() && ttl.Type != gjson.Null && ttl.Str != "5m" && ttl.Str != "1h" {
		c.report(b.cache.Index, path, "cache-ttl", `a cache mark is {"type":"ephemeral"} with a ttl of "5m" or "1h"`)
	}
	switch {
	case b.kind == "thinking" || b.kind == "redacted_thinking":
		c.report(b.cache.Index, path, "cache-thinking", "thinking cannot carry a cache mark: set it on the block after it")
	case b.kind == "text" && b.text.Str == "":
		c.report(b.cache.Index, path, "cache-empty", "an empty text cannot carry a cache mark")
	}
	c.marks = append(c.marks, cacheMark{b.cache.Index, path, ttl.Str})
}

// cacheRules checks the marks of the whole request.
// https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
func (c *checker) cacheRules() {
	marks := c.marks
	if r := c.req.cache; r.IsObject() {
		// A mark on the request itself stands for one on its last block.
		marks = append(marks, cacheMark{r.Index, "cache_control", r.Get("ttl").Str})
	}
	short := ""
	for i, m := range marks {
		if i >= 4 {
			c.report(m.at, m.path, "cache-limit", "this is cache mark number %d: a request may carry 4", i+1)
		}
		switch {
		case m.ttl == "1h" && short != "":
			c.report(m.at, m.path, "cache-order", "a mark of 1h comes after one of 5m at %s: longer ones must come first", short)
		case m.ttl != "1h":
			short = m.path
		}
	}
}
