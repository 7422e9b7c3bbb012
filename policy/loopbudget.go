package policy

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// The figures of seed E's budget, in tokens (E3).
const (
	loopLimit     = 200_000
	loopLongLimit = 1_000_000
	loopOutput    = 16_384
	// loopOverhead is added for each message.
	loopOverhead = 4
)

// TokenBudget is seed E's account of a request, in tokens (E3).
type TokenBudget struct {
	ContextLimit    int
	SystemTokens    int // a quarter of the system prompt's bytes
	MessageTokens   int // of each message a quarter of its bytes, and 4
	MaxOutputTokens int
	// Available is what is left beside all of them; it may be negative.
	Available int
	// Utilization is MessageTokens over what the limit leaves beside system and
	// output; infinite where that is nothing.
	Utilization float64
}

// Budget is the account of the thread under the plan in force. The error says
// that this plan does not hold.
func (l Loop) Budget(s *Situation) (TokenBudget, error) {
	entries, err := s.visible()
	if err != nil {
		return TokenBudget{}, fmt.Errorf("policy loop: %w", err)
	}
	return l.budget(s, entries), nil
}

func (l Loop) budget(s *Situation, entries []entry) TokenBudget {
	b := TokenBudget{ContextLimit: l.limit(s), MaxOutputTokens: l.maxOutput(s)}
	system := 0
	for n, block := range s.Base.System {
		system += len(block.Text) + min(n, 1) // blocks are joined by newlines
	}
	b.SystemTokens = system / 4
	for i := range entries {
		b.MessageTokens += contentBytes(entries[i].Parts)/4 + loopOverhead
	}
	room := b.ContextLimit - b.SystemTokens - b.MaxOutputTokens
	b.Available = room - b.MessageTokens
	switch {
	case b.MessageTokens == 0:
	case room > 0:
		b.Utilization = float64(b.MessageTokens) / float64(room)
	default:
		b.Utilization = math.Inf(1)
	}
	return b
}

// limit is the context window. A budget for the request bounds it: with the
// answer it may take no more.
func (l Loop) limit(s *Situation) int {
	limit := or0(l.ContextLimit, s.Window)
	if limit == 0 {
		limit = loopLimit
		if l.LongContext && longContext(s.Base.Model) {
			limit = loopLongLimit
		}
	}
	if s.Budget > 0 {
		limit = min(limit, s.Budget+l.maxOutput(s))
	}
	return limit
}

func longContext(model string) bool {
	if strings.Contains(strings.ToLower(model), "sonnet") {
		return true
	}
	m, err := token.Models().Find(model)
	return err == nil && m.Window >= loopLongLimit
}

func (l Loop) maxOutput(s *Situation) int { return or0(or0(l.MaxOutput, s.Output), loopOutput) }

// contentBytes is the length in bytes of what a message says: texts, reasoning,
// calls with their names, results. Media take nothing.
func contentBytes(parts []thread.Part) int {
	n := 0
	for _, part := range parts {
		switch part := part.(type) {
		case thread.Text:
			n += len(part.Text)
		case thread.Reasoning:
			n += len(part.Text)
		case thread.Opaque:
			n += len(part.Text)
		case thread.ToolCall:
			n += len(part.Name) + len(part.Arguments)
		case thread.ToolResult:
			n += contentBytes(part.Content)
		}
	}
	return n
}

// ErrMaxTokens says that a model's answer was cut off and that compacting would
// not help: the loop ends, for a reason of its own (E2).
var ErrMaxTokens = errors.New("the answer reached the limit on the output")

// AfterLength is for a loop whose model stopped for length (E2); s has the
// answer in its thread already, without the calls that were cut off (see
// DiscardTruncatedCalls). Nil says that a compaction is due, and the loop goes
// on after it; an error that wraps ErrMaxTokens says that the loop ends.
func (l Loop) AfterLength(s *Situation) error {
	b, err := l.Budget(s)
	if err != nil {
		return err
	}
	if due, _ := l.Due(s); !due {
		return fmt.Errorf("policy loop: the messages take %.0f %% of what is left for them, so compacting would not help: %w", b.Utilization*100, ErrMaxTokens)
	}
	return nil
}

// DiscardTruncatedCalls returns an answer that was cut off for length without
// the tool calls that are not whole (E2): those whose arguments are no complete
// JSON, and, as the last part of the answer, one that has no arguments yet or
// takes free text, where nobody can tell. The message is returned as it is when
// all calls are whole; it may be left without parts.
func DiscardTruncatedCalls(m thread.Message) thread.Message {
	truncated := func(n int) bool {
		call, ok := m.Parts[n].(thread.ToolCall)
		last := n == len(m.Parts)-1
		switch {
		case !ok:
			return false
		case call.Type == "custom" || call.Arguments == "":
			return last
		}
		return !rawjson.Valid(call.Arguments)
	}
	var parts []thread.Part
	for n, part := range m.Parts {
		if !truncated(n) {
			parts = append(parts, part)
		}
	}
	if len(parts) == len(m.Parts) {
		return m
	}
	m.Parts, m.Frame, m.Index = parts, nil, 0
	return m
}
