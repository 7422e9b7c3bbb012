package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// The types of blocks.
const (
	blockUser    = "user.prompt"
	blockSaid    = "assistant.completion"
	blockCall    = "react.tool.call"
	blockResult  = "react.tool.result"
	blockTurn    = "turn.header"
	blockSummary = "conv.range.summary"
	blockNote    = "note" // whatever else stands in a log: its author says whose it is
)

// block is a piece of a timeline.
type block struct {
	kind, author string
	position     int // the position of its message in the thread; -1 for a summary
	tokens       int
}

// blocksOf maps the messages from position from on to blocks: a header and the prompt for
// a turn's first message, for an answer its text and each of its calls, and one for every
// result. A message's tokens are those of its first block that counts, so that a walk over
// blocks counts each message once.
func blocksOf(messages []thread.Message, from int, tokens []int) []block {
	var out []block
	for i := from; i < len(messages); i++ {
		m := &messages[i]
		first := len(out)
		add := func(kind, author string) { out = append(out, block{kind: kind, author: author, position: i}) }
		switch by := m.Author(); by {
		case thread.ByCompaction:
			add(blockSummary, "system")
		case thread.ByPerson:
			add(blockTurn, "system")
			first++
			add(blockUser, "user")
		case thread.ByModel:
			if slices.ContainsFunc(m.Parts, func(p thread.Part) bool { _, call := p.(thread.ToolCall); return !call }) {
				add(blockSaid, "assistant")
			}
			for range m.Calls() {
				add(blockCall, "assistant")
			}
			if first == len(out) {
				add(blockSaid, "assistant")
			}
		default:
			switch m.Role {
			case thread.System:
				add(blockNote, "system")
			case thread.Tool:
				add(blockResult, "tool")
			default: // text that a program put in the user's name
				add(blockNote, string(by))
			}
		}
		out[first].tokens = tokens[i]
	}
	return out
}

// isCutPoint is the seed's rule for candidates, word for word.
func (b block) isCutPoint() bool {
	switch b.kind {
	case blockResult, blockSummary:
		return false
	case blockUser, blockSaid, blockCall, blockTurn:
		return true
	}
	return b.author != "" && b.author != "system" && b.author != "tool"
}

// isMessage says which blocks count as recent tokens: candidates and tool results.
func (b block) isMessage() bool { return b.kind == blockResult || b.isCutPoint() }

// startsTurn is the seed's rule for turn starts.
func (b block) startsTurn() bool {
	return b.kind == blockTurn || b.kind == blockUser || b.author == "user"
}

// cutIndex chooses where the retained window begins: walk back over message blocks until
// keep tokens are reached, take the first candidate at or after, and go back to a message
// boundary or just after a summary, so that what lies between two messages stays with the
// later one. When all blocks together hold fewer tokens, everything is kept: the first
// candidate is chosen.
//
// The seed does not say what happens when no candidate follows, as when the last block is
// one huge result. The last candidate before it is taken then, so its call stays with it.
func cutIndex(blocks []block, keep int) (index int, ok bool) {
	var candidates []int
	for i, b := range blocks {
		if b.isCutPoint() {
			candidates = append(candidates, i)
		}
	}
	if len(candidates) == 0 {
		return 0, false
	}
	index = candidates[0]
	sum := 0
	for i := len(blocks) - 1; i >= 0; i-- {
		if !blocks[i].isMessage() {
			continue
		}
		if sum += blocks[i].tokens; sum < keep {
			continue
		}
		index = candidates[len(candidates)-1]
		for _, c := range candidates {
			if c >= i {
				index = c
				break
			}
		}
		break
	}
	for index > 0 && !blocks[index-1].isMessage() && blocks[index-1].kind != blockSummary {
		index--
	}
	return index, true
}

// turnStart returns the last turn start at or before a block, or -1.
func turnStart(blocks []block, i int) int {
	for ; i >= 0; i-- {
		if blocks[i].startsTurn() {
			return i
		}
	}
	return -1
}

// turnID and blockPath name turns and blocks.
func turnID(turn int) string { return "turn_" + strconv.Itoa(turn) }

func blockPath(m *thread.Message) string {
	if r, ok := m.Result(); ok {
		return "tc:" + turnID(m.Turn) + "." + r.CallID + ".result"
	}
	return "ar:" + turnID(m.Turn) + "." + blockSaid
}

// blockText is what the agent sees of a summary block.
func blockText(r *plan.Range) string {
	text := "[" + r.Type + " " + r.Path + "]\n" + r.Text
	if r.Text == "" {
		text = "[" + r.Type + " " + r.Path + "]"
	}
	return joinContext(text, r.TurnContext)
}

// joinContext appends the summary of a split turn to a text.
func joinContext(text, turnContext string) string {
	if turnContext == "" {
		return text
	}
	return strings.TrimLeft(text+"\n\n"+splitHeading+"\n"+turnContext, "\n")
}

// timelineTranscript writes messages as blocks, numbered, lines after the first indented.
// Long results are shortened in the middle.
func timelineTranscript(messages []thread.Message) []string {
	var out []string
	add := func(kind, text string) {
		if text = strings.TrimSpace(text); text != "" {
			out = append(out, strconv.Itoa(len(out)+1)+". ["+kind+"] "+strings.ReplaceAll(text, "\n", "\n   "))
		}
	}
	calling := -1
	for _, b := range blocksOf(messages, 0, make([]int, len(messages))) {
		m := &messages[b.position]
		switch b.kind {
		case blockTurn:
			add(b.kind, turnID(m.Turn))
		case blockResult:
			r, _ := m.Result()
			add(b.kind, r.Tool+" ("+string(r.Outcome)+"): "+clip.Middle(r.Text(), timelineResult))
		case blockCall:
			if b.position == calling {
				break // all calls of a message are written with the first
			}
			calling = b.position
			for _, c := range m.Calls() {
				add(b.kind, c.Name+" "+clip.Middle(c.Arguments, timelineResult))
			}
		default:
			add(b.kind, m.Text())
		}
	}
	return out
}
