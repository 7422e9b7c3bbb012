package anthropic

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/shape"
)

// The shapes of parts of the body.
var (
	// https://docs.anthropic.com/en/api/messages (tools)
	customTool = shape.Members(shape.Required("input_schema", &shape.Shape{
		Is: shape.Object, Rule: "tool-schema", Say: "a tool needs the JSON schema of its arguments",
		Rules: []shape.Rule{shape.Must("", "tool-schema", "the arguments of a tool are an object: the schema must have type object", func(v gjson.Result) bool {
			return v.Get("type").Str == "object"
		})},
	}))
	toolName = nameShape(128, "tool-name", "the name of a tool has 1 to 128 of the characters a-z, A-Z, 0-9, _ and -")

	// The edits that a request may ask the provider to make.
	// https://docs.anthropic.com/en/docs/build-with-claude/context-editing
	edits = map[string]*shape.Shape{
		"clear_thinking_20251015": {Rules: []shape.Rule{shape.Must("keep", "context-keep", "keep at least one thinking turn", func(v gjson.Result) bool {
			keep := v.Get("keep")
			return keep.Get("type").Str != "thinking_turns" || shape.IsWhole(keep.Get("value")) && keep.Get("value").Num > 0
		})}},
		"clear_tool_uses_20250919": {Rules: []shape.Rule{shape.Must("trigger", "context-trigger", "the trigger takes a type of input_tokens or tool_uses and a value of at least 1", hasTrigger(1, "input_tokens", "tool_uses"))}},
		"compact_20260112":         {Rules: []shape.Rule{shape.Must("trigger", "context-trigger", "compaction triggers at 50000 input tokens or more", hasTrigger(50000, "input_tokens"))}},
	}

	// The thread member, of requests whose history the provider holds.
	// https://docs.anthropic.com/en/api/messages (thread)
	messageThread = &shape.Shape{Is: shape.Object, Rule: "thread", Say: "thread is {\"type\":\"create\"} or {\"type\":\"continue\",\"previous_message_id\":\"msg_...\"}", Rules: []shape.Rule{
		shape.Must("", "thread", "thread has the type create, or continue with the previous_message_id of the answer that it continues", func(v gjson.Result) bool {
			id := v.Get("previous_message_id")
			return v.Get("type").Str == "create" || v.Get("type").Str == "continue" && id.Type == gjson.String && id.Str != ""
		}),
	}}
)

// nameShape is a name of at most so many characters.
func nameShape(most int, rule, say string) *shape.Shape {
	return &shape.Shape{Is: shape.String, Rule: rule, Say: say, Rules: []shape.Rule{
		shape.Must("", rule, say, func(v gjson.Result) bool { return shape.IsName(v.Str, most) }),
	}}
}

// hasTrigger holds for edits without a trigger, or with one in these units that is not too
// small.
func hasTrigger(least float64, units ...string) func(gjson.Result) bool {
	return func(v gjson.Result) bool {
		t := v.Get("trigger")
		return !t.IsObject() || slices.Contains(units, t.Get("type").Str) && shape.IsWhole(t.Get("value")) && t.Get("value").Num >= least
	}
}

// Validate checks a body against the rules of the Messages API. It reads the body by
// itself and shares nothing with Decode and Encode but package rawjson, so that it can
// find their mistakes. Unknown fields and block types are no problem: the API grows.
//
// A body for count_tokens has no max_tokens, which Validate reports: it does not know
// where the body goes.
func (Codec) Validate(body []byte) []wire.Problem {
	c := &checker{callPaths: map[string]string{}}
	if c.Open(body, nil, func(name string, v gjson.Result) {
		if slices.Contains(checkedMembers, name) {
			c.Refuse(v.Index, name, "duplicate-member", "the body has %s twice", name)
		}
	}) {
		c.request()
	}
	c.CheckSize(wire.Anthropic, c.Value("model").Str, len(body))
	return c.Problems()
}

// checker collects the problems of one body.
type checker struct {
	shape.Body

	marks     []cacheMark       // in the order of the prompt, not of the body
	callPaths map[string]string // tool_use ids, and where they were first used
	toolUsed  bool              // the messages hold tool blocks
	sealed    []string          // paths of signed compaction blocks
}

// checkedMembers are the members that rules look at.
var checkedMembers = []string{
	"model", "max_tokens", "system", "tools", "messages", "thinking", "tool_choice", "context_management", "compaction", "stop_sequences",
	"output_config", "anthropic_version", "thread", "cache_control", "temperature", "top_p", "top_k",
}

func (c *checker) request() {
	// The clouds name the model in the URL, and the version in the body.
	version, model, limit := c.Value("anthropic_version").Str, c.Value("model"), c.Value("max_tokens")
	cloud := strings.HasPrefix(version, "bedrock-") || strings.HasPrefix(version, "vertex-")
	c.RefuseIf(model.Str == "" && (model.Exists() || !cloud), "model", "required", "name the model")
	c.RefuseIf(!shape.IsWhole(limit) || limit.Num < 0, "max_tokens", "required", "give the largest answer in tokens as a whole number (only count_tokens goes without)")
	c.RefuseIf(!c.Value("messages").IsArray(), "messages", "required", "give an array of messages")

	c.thread()
	c.toolList()
	c.systemBlocks()
	c.messageList()
	c.toolChoice()
	c.sampling()
	c.contextManagement()
	c.summaryRequest()
	c.cacheRules()
}

// usesThinking reports whether the model thinks with a fixed budget. With adaptive
// thinking the rules on where thinking stands do not apply.
func (c *checker) usesThinking() bool { return c.Kind("thinking") == "enabled" }

// isContinuation reports whether the request continues a thread: then its messages are
// only the end of a conversation.
func (c *checker) isContinuation() bool { return c.Kind("thread") == "continue" }

func (c *checker) thread() {
	t := c.Value("thread")
	if t.Type == gjson.Null || !c.Check(t.Index, "thread", t, messageThread) {
		return
	}
	for _, name := range []string{"system", "tools"} {
		c.RefuseIf(c.isContinuation() && c.Value(name).Exists(), name, "thread-fields", name+" is set by the request that began the thread: leave it out")
	}
}

func (c *checker) systemBlocks() {
	s := c.Value("system")
	if s.Exists() {
		c.Check(s.Index, "system", s, (&shape.Shape{Is: shape.String | shape.Array}).Explain("block", "system is text or an array of text blocks"))
	}
	shape.Each(s, "system", func(path string, v gjson.Result) {
		b := readItem(v)
		if b.kind != "text" || v.Get("text").Type != gjson.String {
			c.Refuse(v.Index, path, "block", "system takes text blocks only")
		} else if isBlank(v.Get("text").Str) {
			c.Refuse(v.Index, path, "empty-text", "text blocks must hold more than white space: leave the block out")
		}
		c.cacheMark(b, path)
	})
}

func (c *checker) sampling() {
	is := func(name string, holds func(n float64) bool) bool {
		v := c.Value(name)
		return v.Type == gjson.Number && holds(v.Num)
	}
	c.RefuseIf(is("temperature", func(n float64) bool { return n < 0 || n > 1 }), "temperature", "sampling", "temperature must lie between 0 and 1")
	if !c.usesThinking() {
		return
	}
	c.RefuseIf(is("temperature", func(n float64) bool { return n != 1 }), "temperature", "thinking-sampling", "with thinking enabled temperature may only be 1: leave it out")
	c.RefuseIf(is("top_k", func(float64) bool { return true }), "top_k", "thinking-sampling", "top_k cannot be set with thinking enabled")
	c.RefuseIf(is("top_p", func(n float64) bool { return n < 0.95 }), "top_p", "thinking-sampling", "with thinking enabled top_p must be at least 0.95")

	budget, limit := c.Value("thinking.budget_tokens"), c.Value("max_tokens")
	enough := shape.IsWhole(budget) && budget.Num >= 1024
	c.RefuseIf(!enough, "thinking.budget_tokens", "thinking-budget", "the thinking budget must be at least 1024 tokens")
	// Interleaved thinking, which a header turns on, may go beyond the limit.
	c.AdviseIf(enough && shape.IsWhole(limit) && budget.Num >= limit.Num, "thinking.budget_tokens", "thinking-budget", "the thinking budget should be smaller than max_tokens")
}

func (c *checker) contextManagement() {
	at := c.Value("context_management").Index
	first := true
	shape.Each(c.Value("context_management.edits"), "context_management.edits", func(path string, v gjson.Result) {
		kind := v.Get("type").Str
		if kind == "clear_thinking_20251015" {
			if !first {
				c.Refuse(at, path, "context-order", "clear_thinking_20251015 must be the first edit")
			}
			if thinks := c.Kind("thinking"); thinks != "enabled" && thinks != "adaptive" {
				c.Refuse(at, path, "context-thinking", "clear_thinking_20251015 needs thinking to be enabled or adaptive")
			}
		}
		if s := edits[kind]; s != nil {
			c.Check(at, path, v, s)
		}
		first = false
	})
}

// summaryRequest checks a request for a summary, and what cannot go with the block that
// an earlier one returned.
// https://docs.anthropic.com/en/docs/build-with-claude/compaction
func (c *checker) summaryRequest() {
	managed := c.Value("context_management").IsObject()
	c.RefuseIf(managed && len(c.sealed) > 0, "context_management", "compaction-combination", "context_management cannot be combined with a signed compaction block")
	if c.Kind("compaction") != "summarize" {
		return
	}
	limit, choice := c.Value("max_tokens"), c.Kind("tool_choice")
	beside := func(given bool, path string) {
		c.RefuseIf(given, path, "compaction-combination", path+" cannot be combined with a request for a summary")
	}
	beside(managed, "context_management")
	beside(c.Value("stop_sequences").IsArray(), "stop_sequences")
	beside(c.Value("output_config.format").IsObject(), "output_config.format")
	beside(choice == "any" || choice == "tool", "tool_choice")
	beside(limit.Type == gjson.Number && limit.Num == 0, "max_tokens")
	long := utf8.RuneCountInString(c.Value("compaction.instructions").Str) > 16384
	c.RefuseIf(long, "compaction.instructions", "compaction-instructions", "the instructions may have 16384 characters")
}

func (c *checker) toolList() {
	tools := c.Value("tools")
	if tools.Type != gjson.Null {
		c.Check(tools.Index, "tools", tools, (&shape.Shape{Is: shape.Array}).Explain("tool", "tools is an array"))
	}
	seen := map[string]bool{}
	shape.Each(tools, "tools", func(path string, v gjson.Result) {
		if !c.Check(v.Index, path, v, shape.Members().Explain("tool", "a tool is an object")) {
			return
		}
		t, name := readItem(v), v.Get("name").Str
		if !strings.Contains(t.kind, "_toolset") { // the tools of a set have names of their own
			if c.Check(v.Index, path, v, shape.Members(shape.Required("name", toolName))) && seen[name] {
				c.Refuse(v.Index, path+".name", "tool-unique", "the tool %q is declared twice", name)
			}
			seen[name] = true
		}
		if t.kind == "" || t.kind == "custom" {
			c.Check(v.Index, path, v, customTool)
		}
		if v.Get("cache_control").IsObject() && v.Get("defer_loading").Type == gjson.True {
			c.Refuse(v.Index, path, "cache-deferred", "a tool that is loaded later cannot carry a cache mark")
		}
		c.cacheMark(t, path)
	})
}

func (c *checker) toolChoice() {
	if c.isContinuation() {
		return // the tools are those of the thread
	}
	tools, choice := c.Value("tools"), c.Value("tool_choice")
	declared := tools.IsArray() && tools.Get("#").Int() > 0
	if c.toolUsed && !declared {
		c.Advise(c.Value("messages").Index, "tools", "tools-missing", "the messages hold tool blocks and no tool is declared: Bedrock refuses that")
	}
	if !choice.IsObject() {
		return
	}
	kind, name := choice.Get("type").Str, choice.Get("name").Str
	known := slices.ContainsFunc(tools.Array(), func(t gjson.Result) bool {
		return t.Get("name").Str == name || strings.Contains(t.Get("type").Str, "_toolset")
	})
	c.RefuseIf(!declared && kind != "none", "tool_choice", "tool-choice", "tool_choice needs tools")
	c.RefuseIf(declared && kind == "tool" && !known, "tool_choice.name", "tool-choice", fmt.Sprintf("no tool is called %q", name))
	c.RefuseIf(c.usesThinking() && (kind == "any" || kind == "tool"), "tool_choice", "thinking-tool-choice", "thinking cannot be enabled while a tool is forced")
}

// cacheMark is a cache_control member.
type cacheMark struct {
	at        int
	path, ttl string
}

// cacheMark checks and records the mark of a block. It must be called in the order of the
// prompt: tools, system, messages.
func (c *checker) cacheMark(b checkedBlock, path string) {
	mark := b.Get("cache_control")
	if !mark.IsObject() {
		return
	}
	path += ".cache_control"
	ttl := mark.Get("ttl")
	if mark.Get("type").Str != "ephemeral" || ttl.Type != gjson.Null && ttl.Str != "5m" && ttl.Str != "1h" {
		c.Refuse(b.Index, path, "cache-ttl", `a cache mark is {"type":"ephemeral"} with a ttl of "5m" or "1h"`)
	}
	switch {
	case b.kind == "thinking" || b.kind == "redacted_thinking":
		c.Refuse(b.Index, path, "cache-thinking", "thinking cannot carry a cache mark: set it on the block after it")
	case b.kind == "text" && b.Get("text").Str == "":
		c.Refuse(b.Index, path, "cache-empty", "an empty text cannot carry a cache mark")
	}
	c.marks = append(c.marks, cacheMark{b.Index, path, ttl.Str})
}

// cacheRules checks the marks of the whole request.
// https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
func (c *checker) cacheRules() {
	marks := c.marks
	if r := c.Value("cache_control"); r.IsObject() {
		// A mark on the request itself means one on its last block.
		marks = append(marks, cacheMark{r.Index, "cache_control", r.Get("ttl").Str})
	}
	short := ""
	for i, m := range marks {
		if i >= 4 {
			c.Refuse(m.at, m.path, "cache-limit", "this is cache mark number %d: a request may carry 4", i+1)
		}
		switch {
		case m.ttl == "1h" && short != "":
			c.Refuse(m.at, m.path, "cache-order", "a mark of 1h comes after one of 5m at %s: longer ones must come first", short)
		case m.ttl != "1h":
			short = m.path
		}
	}
}
