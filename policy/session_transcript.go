package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// How much of a message the summarizer of seed B reads, in UTF-16 code units.
// hugeResult bounds the text of a result before anything else is done with it: no more
// can ever show.
const (
	hugeResult   = 10_000
	resultHead   = 500
	messageHead  = 2_000
	truncatedEnd = "\n[...truncated...]"
	betweenTurns = "\n\n---\n\n"
)

// cutLimits say how much of a result and of a message a summarizer reads; 0 is all of it.
type cutLimits struct{ result, message int }

// sessionCuts are those of seed B.
var sessionCuts = cutLimits{resultHead, messageHead}

// transcript writes messages for the seed's summarizer: numbered from 0, roles in
// capitals, parts on lines of their own, calls and results in brackets. Where results are
// cut, three points follow each, cut or not, as in the seed. Reasoning and media leave
// nothing.
func transcript(entries []entry, cut cutLimits) string {
	var b strings.Builder
	for n := range entries {
		m := &entries[n].Message
		if n > 0 {
			b.WriteString(betweenTurns)
		}
		text := messageText(m, cut.result)
		if cut.message > 0 {
			head, whole := headUnits(text, cut.message)
			if text = head; !whole {
				text += truncatedEnd
			}
		}
		fmt.Fprintf(&b, "[%d] %s:\n%s", n, strings.ToUpper(string(m.Role)), text)
	}
	return b.String()
}

func messageText(m *thread.Message, resultCut int) string {
	var lines []string
	for _, part := range m.Parts {
		switch part := part.(type) {
		case thread.Text:
			lines = append(lines, part.Text)
		case thread.Opaque:
			if part.Text != "" {
				lines = append(lines, part.Text)
			}
		case thread.ToolCall:
			lines = append(lines, fmt.Sprintf("[Tool: %s(%s)]", part.Name, stringify(part.Arguments)))
		case thread.ToolResult:
			lines = append(lines, "[Result: "+resultJSON(part, resultCut)+"]")
		}
	}
	return strings.Join(lines, "\n")
}

// resultJSON is a result as JSON.stringify writes it, or its beginning.
func resultJSON(r thread.ToolResult, limit int) string {
	if limit == 0 {
		if r.Structured != "" {
			return stringify(r.Structured)
		}
		return rawjson.Quote(r.Text())
	}
	value := stringify(r.Structured)
	if r.Structured == "" {
		text, _ := headUnits(r.Text(), hugeResult)
		value = rawjson.Quote(text)
	}
	head, _ := headUnits(value, limit)
	return head + "..."
}

// Estimates remembers the estimates of the messages of a log, so that a step costs what it
// adds. The zero value is ready to use; it is safe for concurrent use and must not be
// copied.
type Estimates struct {
	mu     sync.Mutex
	thread *thread.Thread
	sizes  []int
}

// messageEstimates returns the estimates of all messages of a log. They must not be
// modified.
func (e *Estimates) messageEstimates(t *thread.Thread) []int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.thread != nil && e.thread.Extends(t) {
		return e.sizes[:t.Len():t.Len()]
	}
	if !t.Extends(e.thread) {
		e.sizes = nil
	}
	for i := len(e.sizes); i < t.Len(); i++ {
		e.sizes = append(e.sizes, estimateMessage(t.At(i)))
	}
	e.thread = t
	return e.sizes[:t.Len():t.Len()]
}

// estimateTokens is the seed's estimate of the list that the agent sees: the system prompt
// as one message, then the others.
func (s *Situation) estimateTokens(entries []entry) int {
	total := 0
	if system := s.Base.System; len(system) > 0 {
		total = roleTokens + quarter(systemUnits(system))
	}
	var known []int
	if s.Estimates != nil {
		known = s.Estimates.messageEstimates(s.Thread)
	}
	for i := range entries {
		e := &entries[i]
		if known != nil && e.isUnchanged {
			total += known[e.position]
			continue
		}
		total += estimateMessage(&e.Message)
	}
	return total
}

// roleTokens is what the seed adds for the role of a message.
const roleTokens = 2

// estimateMessage is the seed's estimate of one message: 2 for its role, and a quarter of
// the characters, rounded up, of each text, of the name and the arguments of each call,
// and of each result as JSON. Characters are UTF-16 code units, as JavaScript counts them.
// Reasoning and media count nothing.
func estimateMessage(m *thread.Message) int {
	total := roleTokens
	for _, part := range m.Parts {
		switch part := part.(type) {
		case thread.Text:
			total += quarter(utf16Units(part.Text))
		case thread.Opaque:
			total += quarter(utf16Units(part.Text))
		case thread.ToolCall:
			total += quarter(utf16Units(part.Name)) + quarter(utf16Units(stringify(part.Arguments)))
		case thread.ToolResult:
			total += quarter(utf16Units(resultJSON(part, 0)))
		}
	}
	return total
}

func systemUnits(system []prompt.System) int {
	n := len(system) - 1 // the newlines between the blocks
	for _, block := range system {
		n += utf16Units(block.Text)
	}
	return n
}

func quarter(characters int) int { return (characters + 3) / 4 }

// utf16Units counts UTF-16 code units. Seed B is written in JavaScript: its lengths are
// those of UTF-16, and values stand in its texts as JSON.stringify writes them.
func utf16Units(s string) int {
	n := 0
	for _, r := range s {
		n += utf16Width(r)
	}
	return n
}

// utf16Width is 2 for the characters that UTF-16 writes as a pair.
func utf16Width(r rune) int {
	if r > 0xffff {
		return 2
	}
	return 1
}

// headUnits returns the first n code units of s and whether that is all of it. A pair at
// the end is left out rather than torn.
func headUnits(s string, n int) (head string, whole bool) {
	if len(s) <= n {
		return s, true
	}
	for i, r := range s {
		if n -= utf16Width(r); n < 0 {
			return s[:i], false
		}
	}
	return s, true
}

var jsonString = lazyregexp.New(`"(?:[^"\\]|\\.)*"`)

// stringify writes a JSON document as JSON.stringify writes its value: without white
// space, and strings without needless escapes. Members keep their order and numbers their
// digits. What is no JSON, such as the arguments of a custom tool, is a string.
func stringify(doc string) string {
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(doc)) != nil {
		return rawjson.Quote(doc)
	}
	text := compact.String()
	if !strings.Contains(text, `\u`) && !strings.Contains(text, `\/`) {
		return text
	}
	return jsonString().ReplaceAllStringFunc(text, func(s string) string {
		var plain string
		if json.Unmarshal([]byte(s), &plain) != nil { // a string of a valid document always is one
			return s
		}
		return rawjson.Quote(plain)
	})
}
