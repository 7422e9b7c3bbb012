package thread

import (
	"errors"
	"fmt"
	"slices"
)

// Span is a list of messages. It has all their ids and not only its ends, so that its meaning
// never changes. The turns are for display.
type Span struct {
	MessageIDs []ID `json:"message_ids"`
	FirstTurn  int  `json:"first_turn"`
	LastTurn   int  `json:"last_turn"`
}

// NewSpan returns the span of messages of t. The error is that of Check.
func NewSpan(t *Thread, ids ...ID) (Span, error) {
	s := Span{MessageIDs: slices.Clone(ids)}
	if err := s.Check(t); err != nil {
		return Span{}, err
	}
	s.FirstTurn, s.LastTurn = s.turns(t)
	return s, nil
}

// Range returns the span of the messages from position i up to, not including, j. It panics
// unless 0 <= i < j <= t.Len().
func (t *Thread) Range(i, j int) Span {
	if i < 0 || i >= j || j > len(t.messages) {
		panic(fmt.Sprintf("thread: range %d:%d of %d", i, j, len(t.messages)))
	}
	ids := make([]ID, 0, j-i)
	for _, m := range t.messages[i:j] {
		ids = append(ids, m.ID)
	}
	return Span{MessageIDs: ids, FirstTurn: t.messages[i].Turn, LastTurn: t.messages[j-1].Turn}
}

// Check returns an error unless the span is one of t: not empty, in thread order, with known
// ids that do not repeat. The error about an id that is not in t wraps ErrUnknownID.
func (s Span) Check(t *Thread) error {
	if len(s.MessageIDs) == 0 {
		return errors.New("it has no messages")
	}
	last := -1
	for _, id := range s.MessageIDs {
		i, ok := t.Index(id)
		if !ok {
			return fmt.Errorf("%s: %w", id, ErrUnknownID)
		}
		if i <= last {
			return fmt.Errorf("%s at position %d comes after position %d", id, i, last)
		}
		last = i
	}
	return nil
}

// Len returns the number of messages in the span.
func (s Span) Len() int { return len(s.MessageIDs) }

// First returns the id of the first message. It panics if the span is empty.
func (s Span) First() ID { return s.MessageIDs[0] }

// Last returns the id of the last message. It panics if the span is empty.
func (s Span) Last() ID { return s.MessageIDs[len(s.MessageIDs)-1] }

// Contains reports whether the span lists the message.
func (s Span) Contains(id ID) bool { return slices.Contains(s.MessageIDs, id) }

// Without returns the span without the messages for which gone is true; it may be empty. The
// turns stay the same: they say what the span was made for.
func (s Span) Without(gone func(ID) bool) Span {
	s.MessageIDs = slices.DeleteFunc(slices.Clone(s.MessageIDs), gone)
	return s
}

func (s Span) turns(t *Thread) (first, last int) {
	i, _ := t.Index(s.First())
	j, _ := t.Index(s.Last())
	return t.messages[i].Turn, t.messages[j].Turn
}
