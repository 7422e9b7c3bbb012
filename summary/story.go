package summary

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// told is one thing that happened in a turn.
type told struct {
	label string // whose words it is, or what it says
	text  string
	words bool // words of the user, in quotation marks
	at    int  // where in the span it comes from
}

// turn is what happened in one turn, in order; number 0 is for what no turn is
// known of.
type turn struct {
	number int
	told   []told
}

// The labels of a turn's lines. Those that name a speaker cannot be forged: inside
// an item a line that begins like one gets a backslash (see neutralise).
const (
	labelUser      = "user"
	labelAssistant = "assistant"
	labelFailed    = "failed"
	labelChanged   = "changed"
)

// story puts what was asked, said, tried and changed in the order in which it
// happened: by turn, and in a turn by the messages it comes from.
func (s Summary) story() []turn {
	if len(s.Requests)+len(s.Conclusions)+len(s.FailedAttempts)+len(s.Changes) == 0 {
		return nil
	}
	position := make(map[thread.ID]int, len(s.Span.MessageIDs))
	for i, id := range s.Span.MessageIDs {
		position[id] = i
	}
	var turns []turn
	at := map[int]int{}
	add := func(label string, items []Item) {
		for _, it := range items {
			n, ok := at[it.Turn]
			if !ok {
				n = len(turns)
				at[it.Turn] = n
				turns = append(turns, turn{number: it.Turn})
			}
			x := told{label: label, text: it.Text, words: label == labelUser}
			if len(it.Sources) > 0 {
				x.at = position[it.Sources[0]]
			}
			turns[n].told = append(turns[n].told, x)
		}
	}
	add(labelUser, s.Requests)
	add(labelAssistant, s.Conclusions)
	add(labelFailed, s.FailedAttempts)
	add(labelChanged, s.Changes)
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.number, b.number) })
	for i := range turns {
		slices.SortStableFunc(turns[i].told, func(a, b told) int {
			if a.words != b.words { // the request opens its turn
				return cmp.Compare(number(b.words), number(a.words))
			}
			return cmp.Compare(a.at, b.at)
		})
	}
	return turns
}

func number(is bool) int {
	if is {
		return 1
	}
	return 0
}

// turnOf writes a turn: its number, and below it a line for each thing.
func (w *writer) turnOf(t *turn) {
	if t.number > 0 {
		w.raw("turn " + strconv.Itoa(t.number))
	} else {
		w.raw("earlier")
	}
	for i := range t.told {
		x := &t.told[i]
		w.raw("\n  " + x.label + ": ")
		var b strings.Builder
		if x.words {
			b.WriteByte('"')
			neutralise(&b, x.text)
			b.WriteByte('"')
		} else {
			neutralise(&b, x.text)
		}
		w.raw(strings.ReplaceAll(b.String(), "\n", "\n  "))
	}
}

// Lines writes items as they stand in a list of their own, each behind "- "; with
// quoted in quotation marks, for words of the user.
func Lines(items []Item, quoted bool) []string {
	out := make([]string, len(items))
	for i, it := range items {
		var b strings.Builder
		b.WriteString("- ")
		w := writer{&b}
		w.item(it, quoted)
		out[i] = b.String()
	}
	return out
}
