package hosted

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Split returns messages in which an answer that holds several finished units (calls of the provider
// with their results), or what holds for all that follows, is one message for each of them, with what
// stands before it, and one for what follows the last. They share a frame. So a plan can address a part of a long answer. What stands
// behind a call of the client, or in a unit that is still open, stays together. Without such an
// answer it is the same slice.
func Split(messages []thread.Message) []thread.Message {
	return replaceEach(messages, func(m *thread.Message) (out []thread.Message) {
		ends := pieceEnds(m)
		if len(ends) < 2 {
			return nil
		}
		f := m.Frame
		frame := thread.NewFrame(f.API(), f.Raw(), f.Position(), f.Elements(), len(ends))
		from := 0
		for n, end := range ends {
			piece := *m
			piece.Parts, piece.Frame, piece.Index = m.Parts[from:end:end], frame, n
			out = append(out, piece)
			from = end
		}
		return out
	})
}

// pieceEnds are the ends of the pieces of an answer, in its parts; one for an answer that stays whole.
func pieceEnds(m *thread.Message) (ends []int) {
	if m.Role != thread.Assistant || m.Frame == nil || m.Frame.Messages() != 1 {
		return nil
	}
	units, finished := 0, false
	bound := false // to the reasoning before: OpenAI refuses items without it
	open := map[string]bool{}
parts:
	for n, p := range m.Parts {
		_, reasons := p.(thread.Reasoning)
		if finished && (reasons || !bound) {
			ends, finished, bound = append(ends, n), false, false
		}
		switch p := p.(type) {
		case thread.Reasoning:
			bound = m.Frame.API() == wire.Responses
		case thread.ToolCall:
			break parts
		case thread.Opaque:
			s := saying(&p)
			switch {
			case p.Instruction: // it stays, and what is beside it may go
				units++
			case p.Kind == "compaction": // it goes, whatever stands beside it
				units, finished = units+1, len(open) == 0
				continue
			case p.Call != "" && !p.Answers:
				open[p.Call] = true
				continue
			case !p.Answers && (s == nil || s.output == ""): // no call of the provider
				continue
			}
			if delete(open, p.Call); len(open) == 0 {
				units++
				finished = true
			}
		}
	}
	if units < 2 {
		return nil
	}
	return append(ends, len(m.Parts))
}

// Join undoes Split: it returns messages as conversations were stored before answers were split.
func Join(messages []thread.Message) []thread.Message {
	out := make([]thread.Message, 0, len(messages))
	for len(messages) > 0 {
		m, n := Whole(messages)
		out, messages = append(out, m), messages[n:]
	}
	return out
}

// Whole returns the answer that a list begins with, and how many messages it is split into; any other
// message as it is.
func Whole(list []thread.Message) (m thread.Message, n int) {
	m, n = list[0], 1
	if f := m.Frame; isPiece(&m) {
		m.Frame = thread.NewFrame(f.API(), f.Raw(), f.Position(), f.Elements(), 1)
		m.Parts = m.Parts[:len(m.Parts):len(m.Parts)]
		for ; n < len(list) && list[n].Frame == f; n++ {
			m.Parts = append(m.Parts, list[n].Parts...)
		}
	}
	return m, n
}

// FirstSplit is the position of the first message that is a piece of an answer; -1 if there is none.
func FirstSplit(messages []thread.Message) int {
	return slices.IndexFunc(messages, func(m thread.Message) bool { return isPiece(&m) })
}

func isPiece(m *thread.Message) bool {
	return m.Role == thread.Assistant && m.Frame != nil && m.Frame.Messages() > 1
}
