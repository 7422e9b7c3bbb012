package anthropic

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// maxBody is the largest request that the API reads, in bytes.
// https://docs.anthropic.com/en/api/overview (request size limits)
const maxBody = 32 << 20

// Validate checks a body against the rules of the Messages API. It walks the
// body by itself and shares nothing with Decode and Encode but the check that
// it is JSON, so that a mistake there is seen here. Unknown fields and block
// types are no problem: the API
// grows.
//
// A body for count_tokens has no max_tokens, which Validate reports, as it
// cannot know where the body goes.
func (Codec) Validate(body []byte) []wire.Problem {
	c := &checker{callPaths: map[string]string{}}
	if len(body) > maxBody {
		c.report(0, "body", "size", "%d bytes are more than the 32 MB that the API reads: send less, or upload files", len(body))
	}
	doc := string(body)
	if err := rawjson.Check(doc); err != nil {
		c.report(0, "body", "json", "%v", err)
		return c.sorted()
	}
	top := gjson.Parse(doc)
	if !top.IsObject() {
		c.report(0, "body", "json", "the body is not a JSON object")
		return c.sorted()
	}
	c.request(top)
	return c.sorted()
}

// checker collects the problems of one body.
type checker struct {
	found []problem
	req   request

	marks     []cacheMark       // in the order of the prompt, not of the body
	callPaths map[string]string // tool_use ids, and where they were first used
	toolUsed  bool              // the messages hold tool blocks
	sealed    []string          // paths of signed compaction blocks
}

type problem struct {
	at int // byte offset, for the order
	wire.Problem
}

func (c *checker) add(at int, advice bool, path, rule, format string, args ...any) {
	c.found = append(c.found, problem{at, wire.Problem{Path: path, Rule: rule, Message: fmt.Sprintf(format, args...), Advice: advice}})
}

func (c *checker) report(at int, path, rule, format string, args ...any) {
	c.add(at, false, path, rule, format, args...)
}

func (c *checker) advise(at int, path, rule, format string, args ...any) {
	c.add(at, true, path, rule, format, args...)
}

func (c *checker) sorted() []wire.Problem {
	slices.SortStableFunc(c.found, func(x, y problem) int { return cmp.Compare(x.at, y.at) })
	var list []wire.Problem
	for _, p := range c.found {
		list = append(list, p.Problem)
	}
	return list
}

// request holds the members of the body that rules look at.
type request struct {
	model, maxTokens, system, tools, messages, thinking, toolChoice gjson.Result
	context, compaction, stop, output, version, thread, cache       gjson.Result
	temperature, topP, topK                                         gjson.Result
}

func (c *checker) request(top gjson.Result) {
	r := &c.req
	known := map[string]*gjson.Result{
		"model": &r.model, "max_tokens": &r.maxTokens, "system": &r.system, "tools": &r.tools,
		"messages": &r.messages, "thinking": &r.thinking, "tool_choice": &r.toolChoice,
		"context_management": &r.context, "compaction": &r.compaction, "stop_sequences": &r.stop,
		"output_config": &r.output, "anthropic_version": &r.version, "thread": &r.thread,
		"cache_control": &r.cache, "temperature": &r.temperature, "top_p": &r.topP, "top_k": &r.topK,
	}
	top.ForEach(func(key, value gjson.Result) bool {
		to := known[key.Str]
		if to == nil {
			return true
		}
		if to.Exists() {
			c.report(value.Index, key.Str, "duplicate-member", "the body has %s twice", key.Str)
		}
		*to = value
		return true
	})
	c.required()
	c.toolList()
	c.systemBlocks()
	c.messageList()
	c.toolChoice()
	c.sampling()
	c.contextManagement()
	c.compactionRequest()
	c.cacheRules()
}

// enabled reports whether the model thinks with a fixed budget. With adaptive
// thinking the rules on where thinking stands do not apply.
func (r *request) enabled() bool { return r.thinking.Get("type").Str == "enabled" }

func (c *checker) required() {
	r := &c.req
	// The clouds name the model in the URL, and the version in the body.
	cloud := strings.HasPrefix(r.version.Str, "bedrock-") || strings.HasPrefix(r.version.Str, "vertex-")
	if !(r.model.Type == gjson.String && r.model.Str != "") && !(cloud && !r.model.Exists()) {
		c.report(r.model.Index, "model", "required", "name the model")
	}
	if n := r.maxTokens; !whole(n) || n.Num < 0 {
		c.report(n.Index, "max_tokens", "required", "give the largest answer in tokens as a whole number (only count_tokens goes without)")
	}
	if !r.messages.IsArray() {
		c.report(r.messages.Index, "messages", "required", "give an array of messages")
	}
}

func whole(v gjson.Result) bool { return v.Type == gjson.Number && v.Num == float64(int64(v.Num)) }

func (c *checker) systemBlocks() {
	s := c.req.system
	switch {
	case !s.Exists() || s.Type == gjson.String:
	case s.IsArray():
		eachOf(s, func(i int, v gjson.Result) {
			path := "system[" + strconv.Itoa(i) + "]"
			b := readItem(v)
			if b.kind != "text" || b.text.Type != gjson.String {
				c.report(v.Index, path, "block", "system takes text blocks only")
			} else if blank(b.text.Str) {
				c.report(v.Index, path, "empty-text", "text blocks must hold more than white space: leave the block out")
			}
			c.cacheMark(b, path)
		})
	default:
		c.report(s.Index, "system", "block", "system is text or an array of text blocks")
	}
}

func (c *checker) sampling() {
	r := &c.req
	if t := r.temperature; t.Type == gjson.Number && (t.Num < 0 || t.Num > 1) {
		c.report(t.Index, "temperature", "sampling", "temperature must lie between 0 and 1")
	}
	if !r.enabled() {
		return
	}
	if t := r.temperature; t.Type == gjson.Number && t.Num != 1 {
		c.report(t.Index, "temperature", "thinking-sampling", "with thinking enabled temperature may only be 1: leave it out")
	}
	if r.topK.Type == gjson.Number {
		c.report(r.topK.Index, "top_k", "thinking-sampling", "top_k cannot be set with thinking enabled")
	}
	if p := r.topP; p.Type == gjson.Number && p.Num < 0.95 {
		c.report(p.Index, "top_p", "thinking-sampling", "with thinking enabled top_p must be at least 0.95")
	}
	budget := r.thinking.Get("budget_tokens")
	switch {
	case !whole(budget) || budget.Num < 1024:
		c.report(r.thinking.Index, "thinking.budget_tokens", "thinking-budget", "the thinking budget must be at least 1024 tokens")
	case whole(r.maxTokens) && budget.Num >= r.maxTokens.Num:
		// Interleaved thinking, which a header turns on, may go beyond it.
		c.advise(r.thinking.Index, "thinking.budget_tokens", "thinking-budget", "the thinking budget should be smaller than max_tokens")
	}
}

// contextManagement checks the edits that the provider should make.
// https://docs.anthropic.com/en/docs/build-with-claude/context-editing
func (c *checker) contextManagement() {
	edits := c.req.context.Get("edits")
	if !edits.IsArray() {
		return
	}
	eachOf(edits, func(i int, v gjson.Result) {
		path := "context_management.edits[" + strconv.Itoa(i) + "]"
		at := c.req.context.Index
		trigger := v.Get("trigger")
		unit, value := trigger.Get("type").Str, trigger.Get("value")
		amount := func(units ...string) {
			if trigger.IsObject() && (!slices.Contains(units, unit) || !whole(value) || value.Num < 1) {
				c.report(at, path+".trigger", "context-trigger", "the trigger takes a type of %s and a value of at least 1", strings.Join(units, " or "))
			}
		}
		switch v.Get("type").Str {
		case "clear_thinking_20251015":
			if i > 0 {
				c.report(at, path, "context-order", "clear_thinking_20251015 must be the first edit")
			}
			if kind := c.req.thinking.Get("type").Str; kind != "enabled" && kind != "adaptive" {
				c.report(at, path, "context-thinking", "clear_thinking_20251015 needs thinking to be enabled or adaptive")
			}
			if keep := v.Get("keep"); keep.Get("type").Str == "thinking_turns" && !(whole(keep.Get("value")) && keep.Get("value").Num > 0) {
				c.report(at, path+".keep", "context-keep", "keep at least one thinking turn")
			}
		case "clear_tool_uses_20250919":
			amount("input_tokens", "tool_uses")
		case "compact_20260112":
			amount("input_tokens")
			if unit == "input_tokens" && whole(value) && value.Num >= 1 && value.Num < 50000 {
				c.report(at, path+".trigger", "context-trigger", "compaction triggers at 50000 input tokens or more")
			}
		}
	})
}

// compactionRequest checks a request for a summary, and what cannot stand
// beside the block that an earlier one gave.
// https://docs.anthropic.com/en/docs/build-with-claude/compaction
func (c *checker) compactionRequest() {
	r := &c.req
	if len(c.sealed) > 0 && r.context.IsObject() {
		c.report(r.context.Index, "context_management", "compaction-combination", "context_management cannot be combined with a signed compaction block")
	}
	if r.compaction.Get("type").Str != "summarize" {
		return
	}
	refuse := func(v gjson.Result, path string) {
		c.report(v.Index, path, "compaction-combination", "%s cannot be combined with a request for a summary", path)
	}
	if r.context.IsObject() {
		refuse(r.context, "context_management")
	}
	if r.stop.IsArray() {
		refuse(r.stop, "stop_sequences")
	}
	if r.output.Get("format").IsObject() {
		refuse(r.output, "output_config.format")
	}
	if kind := r.toolChoice.Get("type").Str; kind == "any" || kind == "tool" {
		refuse(r.toolChoice, "tool_choice")
	}
	if r.maxTokens.Type == gjson.Number && r.maxTokens.Num == 0 {
		refuse(r.maxTokens, "max_tokens")
	}
	if text := r.compaction.Get("instructions").Str; len([]rune(text)) > 16384 {
		c.report(r.compaction.Index, "compaction.instructions", "compaction-instructions", "the instructions may have 16384 characters")
	}
}

// item is a block, a tool or a message as the rules see it.
type item struct {
	v                                                         gjson.Result
	kind, role                                                string
	text, thinking, signature, data, id, name, input, callID  gjson.Result
	content, isError, source, schema, cache, deferred, server gjson.Result
	members                                                   int
}

func readItem(v gjson.Result) item {
	b := item{v: v}
	if !v.IsObject() {
		return b
	}
	v.ForEach(func(key, value gjson.Result) bool {
		b.members++
		switch key.Str {
		case "type":
			b.kind = value.Str
		case "role":
			b.role = value.Str
		case "text":
			b.text = value
		case "thinking":
			b.thinking = value
		case "signature":
			b.signature = value
		case "data":
			b.data = value
		case "id":
			b.id = value
		case "name":
			b.name = value
		case "input":
			b.input = value
		case "tool_use_id":
			b.callID = value
		case "content":
			b.content = value
		case "is_error":
			b.isError = value
		case "source":
			b.source = value
		case "input_schema":
			b.schema = value
		case "cache_control":
			b.cache = value
		case "defer_loading":
			b.deferred = value
		case "mcp_server_name":
			b.server = value
		}
		return true
	})
	return b
}

func eachOf(list gjson.Result, f func(i int, v gjson.Result)) {
	i := 0
	list.ForEach(func(_, v gjson.Result) bool {
		f(i, v)
		i++
		return true
	})
}
