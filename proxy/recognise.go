package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// sessionHeaders are the headers in which clients name a session: Claude Code,
// Codex, opencode, pi. None of them is a conversation by itself: titles, side
// requests and restarted histories share it.
var sessionHeaders = []string{
	"X-Claude-Code-Session-Id", "Session-Id", "Session_id", "Thread-Id", "X-Codex-Window-Id",
	"X-Session-Id", "Conversation_id", "X-Conversation-Id",
}

// sessionFields are the members of a body that do.
var sessionFields = []string{"metadata.user_id", "metadata.session_id", "prompt_cache_key", "conversation", "session_id"}

// ownName is what a name in ThreadHeader must look like to be the id of the log
// itself; any other name is hashed.
var ownName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)

// top are the members of a body, found in one pass: there is one for each
// question, and most bodies are long.
func top(body string) map[string]gjson.Result {
	members := map[string]gjson.Result{}
	gjson.Parse(body).ForEach(func(k, v gjson.Result) bool {
		members[k.Str] = v
		return true
	})
	return members
}

// member is a member of the body, or of an object in it.
func (x *exchange) member(path string) gjson.Result {
	first, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		return x.known.top[first]
	}
	return x.known.top[first].Get(rest)
}

// base is the id of the conversation before any fork of it: the caller's own
// name, or a hash of all that a client says of itself together with model,
// system, tools and the first message. The same request gives the same id after
// a restart and on every machine.
func (x *exchange) base(p *prompt.Prompt, ids []thread.ID) string {
	if x.asked != nil && x.asked.rebuilt != nil && x.asked.rebuilt.Log != "" {
		return x.asked.rebuilt.Log
	}
	if name := x.request.Header.Get(ThreadHeader); ownName.MatchString(name) {
		return name
	} else if name != "" {
		return "px-" + digest("name", name)
	}
	parts := []string{x.endpoint.dialect.API(), x.t.model(x.modelNameOf(p)).Name, string(ids[0])}
	return "px-" + digest(append(append(parts, x.saysOfItself()...), x.known.around)...)
}

// saysOfItself is what the client calls its session, in pairs of name and value.
func (x *exchange) saysOfItself() []string {
	var parts []string
	for _, name := range sessionHeaders {
		if value := x.request.Header.Get(name); value != "" {
			parts = append(parts, name, value)
		}
	}
	for _, path := range sessionFields {
		if v := x.member(path); v.Type == gjson.String {
			parts = append(parts, path, v.Str)
		}
	}
	return parts
}

// digits are what changes in a system prompt from request to request: dates,
// times, counters, builds.
var digits = regexp.MustCompile(`[0-9]+`)

func steady(system string) string {
	if strings.HasPrefix(system, "x-anthropic-billing-header:") {
		return ""
	}
	return digits.ReplaceAllString(system, "0")
}

// surroundings is a digest of system and tools.
func surroundings(p *prompt.Prompt) string {
	var parts []string
	for _, s := range p.System {
		parts = append(parts, "system", steady(s.Text))
	}
	for _, tool := range p.Tools {
		parts = append(parts, "tool", tool.Name)
	}
	return digest(parts...)
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		io.WriteString(h, part)
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// aside reports why a request is none of an agent's steps: a title, a summary
// that the client makes for itself, a question without a history. It is empty
// for a step.
func aside(h http.Header, p *prompt.Prompt, members map[string]gjson.Result) string {
	switch {
	case len(p.Messages) == 0:
		return "no-messages"
	case strings.Contains(h.Get("X-Codex-Turn-Metadata"), `"request_kind":"compaction"`), asksForSummary(p, members):
		return ownCompaction
	case len(p.Tools) > 0:
		return ""
	}
	if turnsOf(p) < 2 {
		return sideRequest
	}
	return ""
}

// sideRequest is the reason of a request beside the conversation.
const sideRequest = "side-request"

// ownCompaction is the reason of a request in which a client has its own history
// summarised.
const ownCompaction = "own-compaction"

// What a request for a summary says: of what, and that no tool is to be used.
var (
	summaryWords = regexp.MustCompile(`(?i)\bsummar(y|i[sz]e|i[sz]ing|i[sz]ation)\b|\bhandoff\b|\bcheckpoint\b`)
	historyWords = regexp.MustCompile(`(?i)\b(conversation|session|history|context)\b`)
	noToolWords  = regexp.MustCompile(`(?i)\b(do not|don't|never|must not|without|no)\b[^.!?\n]{0,30}\btools?\b|\btext only\b`)
)

// asksForSummary recognises a client that has its history summarised in the
// conversation itself, its tools declared as ever, as Claude Code does: no header
// says so. At the end of a history stands a text of the user's that asks for a
// summary of it, and no tool is to be called, by the request's own tool choice or
// by the text's words, though tools are declared. A user can say the same, and
// nothing is lost then: the answer is made in a fork, and the conversation goes on
// with both in its log.
func asksForSummary(p *prompt.Prompt, members map[string]gjson.Result) bool {
	last := &p.Messages[len(p.Messages)-1]
	if last.Role != thread.User || turnsOf(p) < 2 {
		return false
	}
	text := last.Text()
	if !summaryWords.MatchString(text) || !historyWords.MatchString(text) {
		return false
	}
	return noToolWords.MatchString(text) || forbidsTools(members)
}

// forbidsTools reports whether the request lets no tool be called.
func forbidsTools(members map[string]gjson.Result) bool {
	choice := members["tool_choice"]
	return choice.Str == "none" || choice.Get("type").Str == "none" || members["toolConfig"].Get("functionCallingConfig.mode").Str == "NONE"
}

// turnsOf counts the turns of the model's in a request.
func turnsOf(p *prompt.Prompt) int {
	n := 0
	for i := range p.Messages {
		if p.Messages[i].Role == thread.Assistant {
			n++
		}
	}
	return n
}

// chains remembers which log a history was last found in, by the id of one of
// its messages: for clients whose system prompt or tools change on the way.
type chains struct {
	mu     sync.Mutex
	logs   map[thread.ID]string
	oldest []thread.ID
}

// maxChains bounds what is remembered.
const maxChains = 10_000

func (c *chains) remember(id thread.ID, log string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.logs == nil {
		c.logs = map[thread.ID]string{}
	}
	if _, there := c.logs[id]; !there {
		if len(c.oldest) >= maxChains {
			delete(c.logs, c.oldest[0])
			c.oldest = c.oldest[1:]
		}
		c.oldest = append(c.oldest, id)
	}
	c.logs[id] = log
}

// find returns the log of the longest history that the ids go on with.
func (c *chains) find(scope string, ids []thread.ID) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range slices.Backward(ids) {
		if log := c.logs[thread.ID(scope)+id]; log != "" {
			return log
		}
	}
	return ""
}
