package anthropic

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/wire/internal/shape"
)

// checkedBlock is a block or a tool, with its type.
type checkedBlock struct {
	gjson.Result
	kind string
}

func readItem(v gjson.Result) checkedBlock {
	if !v.IsObject() {
		return checkedBlock{Result: v}
	}
	return checkedBlock{v, v.Get("type").Str}
}

// checkedMessage is what the rules across messages need to know of one.
type checkedMessage struct {
	at     int
	path   string
	role   string
	blocks []checkedBlock // none for string content
	text   gjson.Result
}

func (t *checkedMessage) count(kind string) (n int) {
	for i := range t.blocks {
		if t.blocks[i].kind == kind {
			n++
		}
	}
	return n
}

func (t *checkedMessage) block(i int) string { return t.path + ".content[" + strconv.Itoa(i) + "]" }

func (c *checker) messageList() {
	list := c.Value("messages")
	if !list.IsArray() {
		return
	}
	var turns []checkedMessage
	shape.Each(list, "messages", func(path string, v gjson.Result) { turns = append(turns, c.message(path, v)) })
	if len(turns) == 0 && c.isContinuation() {
		return // the model continues a turn that it paused
	}
	if len(turns) == 0 {
		c.Refuse(list.Index, "messages", "required", "a request needs at least one message")
		return
	}
	for i := range turns {
		c.content(&turns[i], i == len(turns)-1)
	}
	c.start(turns)
	c.pairing(turns)
	c.serverTools(turns)
	c.compactionBlocks(turns)
	c.loopThinking(turns)
	c.ending(&turns[len(turns)-1])
}

func (c *checker) message(path string, v gjson.Result) checkedMessage {
	t := checkedMessage{at: v.Index, path: path}
	t.role = v.Get("role").Str
	if t.role != "user" && t.role != "assistant" && t.role != "system" {
		c.Refuse(v.Index, t.path+".role", "role", "the role must be user or assistant, or system in mid conversation")
	}
	content := v.Get("content")
	if !c.Check(v.Index, t.path+".content", content, (&shape.Shape{Is: shape.String | shape.Array}).Explain("block", "content is text or an array of blocks")) {
		content = gjson.Result{Type: gjson.String, Str: "?"} // reported once is enough
	}
	if content.Type == gjson.String {
		t.text = content
	}
	shape.Each(content, "", func(_ string, b gjson.Result) { t.blocks = append(t.blocks, readItem(b)) })
	return t
}

// start checks who speaks first. A compaction block replaces earlier messages, so the
// model's message that holds it may come first.
func (c *checker) start(turns []checkedMessage) {
	first := &turns[0]
	if first.role == "user" || c.isContinuation() || first.role == "assistant" && first.count("compaction") > 0 {
		return
	}
	c.Refuse(first.at, first.path+".role", "first-user", "the first message must be the user's")
}

// ending checks the last message.
func (c *checker) ending(last *checkedMessage) {
	if last.role != "assistant" {
		return
	}
	text := last.text
	if n := len(last.blocks); n > 0 {
		b := &last.blocks[n-1]
		if strings.HasSuffix(b.kind, "_tool_use") || strings.HasSuffix(b.kind, "_tool_result") {
			return // a paused turn is sent back to be continued
		}
		text = b.Get("text")
	}
	if s := text.Str; s != strings.TrimRight(s, " \t\r\n") {
		c.Refuse(last.at, last.path+".content", "trailing-whitespace", "the final assistant text must not end in white space")
	}
	c.Advise(last.at, last.path, "prefill", "the request ends with the model's own turn: newer models refuse to continue it")
}

// pairing checks that each call has one result in the very next message, before any other
// block there, and that each result has a call.
// https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use
func (c *checker) pairing(turns []checkedMessage) {
	open := map[string]string{} // calls of the message before, and their paths
	for i := range turns {
		t := &turns[i]
		answered := map[string]bool{}
		other := false
		for k := range t.blocks {
			b := &t.blocks[k]
			if b.kind != "tool_result" {
				other = true
				continue
			}
			c.toolUsed = true
			id := b.Get("tool_use_id").Str
			switch {
			case t.role != "user":
			case answered[id]:
				c.Refuse(b.Index, t.block(k), "tool-duplicate-result", "call %q has two results: keep one", id)
			case open[id] != "":
				if other {
					c.Refuse(b.Index, t.block(k), "tool-order", "results must come before everything else in their message")
				}
			case i == 0 && c.isContinuation():
				// The provider keeps the part of the conversation with the call.
			default:
				c.Refuse(b.Index, t.block(k), "tool-orphan", "result for %q, which the message before does not call", id)
			}
			answered[id] = true
		}
		for _, id := range slices.Sorted(maps.Keys(open)) {
			if !answered[id] || t.role != "user" {
				c.Refuse(t.at, open[id], "tool-pairing", "call %q has no result in the message after it: add one, or leave the call out", id)
			}
		}
		open = c.calls(t)
	}
	for _, id := range slices.Sorted(maps.Keys(open)) {
		c.Refuse(turns[len(turns)-1].at, open[id], "tool-pairing", "the request ends with call %q unanswered", id)
	}
}

// calls returns the calls of an assistant message by id.
func (c *checker) calls(t *checkedMessage) map[string]string {
	open := map[string]string{}
	if t.role != "assistant" {
		return open
	}
	for k := range t.blocks {
		b := &t.blocks[k]
		if b.kind != "tool_use" {
			continue
		}
		c.toolUsed = true
		id := b.Get("id").Str
		if first := c.callPaths[id]; first != "" {
			c.Refuse(b.Index, t.block(k)+".id", "tool-id-unique", "call id %q is used at %s already", id, first)
		} else {
			c.callPaths[id] = t.block(k)
		}
		if open[id] == "" {
			open[id] = t.block(k)
		}
	}
	return open
}

// serverTools checks that calls of the provider's own tools have their results beside
// them. A call may stay open where a turn was paused, and where code that runs at the
// provider waits for a tool of the client: then the next message has the results of the client
// only, and the next assistant message goes on.
func (c *checker) serverTools(turns []checkedMessage) {
	type call struct {
		at   int
		path string
	}
	open, seen := map[string]call{}, map[string]bool{}
	waits := false // the code of an open call waits for results of the client
	for i := range turns {
		t := &turns[i]
		if t.role != "assistant" {
			if k := slices.IndexFunc(t.blocks, func(b checkedBlock) bool { return b.kind != "tool_result" }); waits && t.role == "user" && (k >= 0 || t.text.Str != "") {
				c.Refuse(t.at, t.path+".content", "caller-results", "while code at the provider waits for the client, the message has the results of its calls and nothing else")
			}
			waits = false
			continue
		}
		for k := range t.blocks {
			b := &t.blocks[k]
			source := b.Get("caller.tool_id").Str
			if source != "" && !seen[source] && !c.isContinuation() {
				c.Refuse(b.Index, t.block(k)+".caller", "caller", "the code that made this call, %q, is not in the request", source)
			}
			switch {
			case strings.HasSuffix(b.kind, "_tool_use"): // also of a type that is new
				open[b.Get("id").Str], seen[b.Get("id").Str] = call{b.Index, t.block(k)}, true
			case b.kind == "tool_use" && source != "":
				_, runs := open[source]
				waits = waits || runs
			case strings.HasSuffix(b.kind, "_tool_result"):
				if _, ok := open[b.Get("tool_use_id").Str]; !ok {
					c.Refuse(b.Index, t.block(k), "server-tool-pairing", "%s without the call %q before it", b.kind, b.Get("tool_use_id").Str)
				}
				delete(open, b.Get("tool_use_id").Str)
			}
		}
		if i == len(turns)-1 || t.count("tool_use") > 0 || turns[i+1].role == "assistant" {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(open)) {
			c.Refuse(open[id].at, open[id].path, "server-tool-pairing", "call %q of a server tool has no result in its message", id)
		}
		clear(open)
	}
}

// compactionBlocks checks the blocks of the provider's own compaction. One with a signature
// replaces the start of the conversation; one without may be anywhere.
func (c *checker) compactionBlocks(turns []checkedMessage) {
	for i := range turns {
		t := &turns[i]
		for k := range t.blocks {
			b := &t.blocks[k]
			if b.kind != "compaction" {
				continue
			}
			path := t.block(k)
			if t.role == "assistant" && !(b.Get("content").Type == gjson.String && b.Get("content").Str != "") && !(b.Get("content").Type == gjson.Null && !b.Get("signature").Exists()) {
				c.Refuse(b.Index, path+".content", "compaction-content", "a summary is text, or null where it failed, and never empty")
			}
			if b.Get("signature").Type != gjson.String {
				continue
			}
			if i > 0 || k > 0 {
				c.Refuse(b.Index, path, "compaction-misplaced", "a signed compaction block must be the first block of the first message")
			}
			if c.sealed = append(c.sealed, path); len(c.sealed) > 1 {
				c.Refuse(b.Index, path, "compaction-single", "a request holds one signed compaction block, the newest")
			}
			if n := len(b.Map()); n > 4 || n == 4 && !b.Get("tool_changes").Exists() {
				c.Refuse(b.Index, path, "compaction-fields", "a signed compaction block has type, content, signature and tool_changes, unchanged, and nothing else")
			}
		}
	}
}

// loopThinking checks the open tool loop: the assistant messages since the last user text,
// if the request ends with results. With thinking enabled they are one turn, which must
// begin with thinking. A model without interleaved thinking thinks only at the start of
// the turn, so later messages may have none. If no message of the loop has thinking, the
// provider turns thinking off for the turn, and accepts that.
// https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking
func (c *checker) loopThinking(turns []checkedMessage) {
	if !c.usesThinking() || turns[len(turns)-1].count("tool_result") == 0 {
		return
	}
	first, thought := -1, false
	for i := len(turns) - 1; i >= 0; i-- {
		t := &turns[i]
		if t.role == "user" && t.count("tool_result") == 0 {
			break
		}
		if t.role != "assistant" {
			continue
		}
		first = i
		at := firstThinking(t)
		if at < 0 {
			continue
		}
		thought = true
		if k := slices.IndexFunc(t.blocks[:at], func(b checkedBlock) bool { return b.kind == "tool_use" }); k >= 0 {
			c.Refuse(t.at, t.block(k), "thinking-first", "thinking comes after the call that it led to: keep the order of the blocks")
		}
	}
	if !thought || first < 0 {
		return
	}
	t := &turns[first]
	k := 0
	for k < len(t.blocks) && t.blocks[k].kind == "compaction" {
		k++
	}
	if at := firstThinking(t); at != k {
		c.Refuse(t.at, t.path+".content[0]", "thinking-first", "with thinking enabled the open tool loop must begin with its thinking: keep all thinking of the loop, or leave out all of it")
	}
}

func firstThinking(t *checkedMessage) int {
	return slices.IndexFunc(t.blocks, func(b checkedBlock) bool { return b.kind == "thinking" || b.kind == "redacted_thinking" })
}
