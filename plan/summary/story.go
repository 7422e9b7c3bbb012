package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// told is one event of a turn; turn 0 is for events whose turn is unknown.
type told struct {
	turn  int
	label string // whose words it is, or what it says
	text  string
	at    int // where in the span it comes from; the request opens its turn
}

// The labels of a turn's lines. Those that name a speaker cannot be forged: inside an item
// a line that begins like one gets a backslash (see neutralise).
const (
	labelUser      = "user"
	labelAssistant = "assistant"
	labelFailed    = "failed"
	labelReport    = "sub-agent"
)

// story orders what was asked, said and tried: by turn, and within a turn by the
// messages it comes from.
func (s Summary) story() [][]told {
	lists := [...]struct {
		label string
		items []Item
	}{{labelUser, s.Requests}, {labelAssistant, s.Conclusions}, {labelFailed, s.FailedAttempts}, {labelReport, s.Reports}}
	position := map[thread.ID]int{} // of what is told: a span may have very many messages
	for _, l := range lists {
		for _, it := range l.items {
			for _, id := range it.Sources[:min(1, len(it.Sources))] {
				position[id] = 0
			}
		}
	}
	for i, id := range s.Span.MessageIDs {
		if _, told := position[id]; told {
			position[id] = i
		}
	}
	var all []told
	for _, l := range lists {
		for _, it := range l.items {
			x := told{turn: it.Turn, label: l.label, text: it.Text}
			if len(it.Sources) > 0 {
				x.at = position[it.Sources[0]]
			}
			if l.label == labelUser {
				x.at -= len(s.Span.MessageIDs)
			}
			all = append(all, x)
		}
	}
	slices.SortStableFunc(all, func(a, b told) int { return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.at, b.at)) })
	var turns [][]told
	for i := range all {
		if i == 0 || all[i].turn != all[i-1].turn {
			turns = append(turns, nil)
		}
		turns[len(turns)-1] = append(turns[len(turns)-1], all[i])
	}
	return turns
}

// below says of which turns, but for the last of the span, the prompt showed messages below the summary, which stands
// in the place of the first message that it covers; "" for none.
func (s *Summary) below() string {
	var runs []string // of turns
	for i, from := 0, 0; i < len(s.Elsewhere); i++ {
		n := s.Elsewhere[i]
		if n <= s.Span.FirstTurn || n >= s.Span.LastTurn {
			continue
		}
		if from > 0 && s.Elsewhere[i-1] == n-1 {
			runs[len(runs)-1] = fmt.Sprintf("%d to %d", from, n)
			continue
		}
		from, runs = n, append(runs, strconv.Itoa(n))
	}
	if len(runs) == 0 {
		return ""
	}
	what := "turn "
	if len(runs) > 1 || strings.Contains(runs[0], " ") {
		what = "turns "
	}
	// These words hold too when a later summary takes the place of the messages.
	return "- [below stands more of " + what + strings.Join(runs, ", ") + "]\n"
}

// happened writes a turn: its number, and below it a line for each event. It says where the prompt shows a
// user message that is not among them.
func (w *writer) happened(turn []told, s *Summary) {
	if n := turn[0].turn; n > 0 {
		w.raw("turn " + strconv.Itoa(n))
		if turn[0].label != labelUser && slices.Contains(s.Elsewhere, n) {
			place := "the user's message stands above"
			if n > s.Span.FirstTurn {
				place = "below stands more of it"
			}
			w.raw(" (" + place + ")")
		}
	} else {
		w.raw("earlier")
	}
	for _, x := range turn {
		w.raw("\n  ").raw(x.label).raw(": ")
		w.deeper = "  "
		w.said(x.text, x.label == labelUser)
		w.deeper = ""
	}
}

// likelyRule is the score from which what the user said to a call that was not allowed is more than how to go on then.
const likelyRule = 75

// Unsaid is what of Stated no request shows whole, and no refusal if it is hardly a rule: only that is
// rendered under its heading.
func (s *Summary) Unsaid() []Item {
	texts := func(list []Item) map[thread.ID][]string {
		all := make(map[thread.ID][]string, len(list))
		for _, it := range list {
			for _, id := range it.Sources {
				if said := all[id]; len(said) == 0 || said[len(said)-1] != it.Text {
					all[id] = append(said, it.Text)
				}
			}
		}
		return all
	}
	asked, refused := texts(s.Requests), texts(s.FailedAttempts)
	return slices.DeleteFunc(slices.Clone(s.Stated), func(it Item) bool {
		in := func(said string) bool { return strings.Contains(said, it.Text) }
		return len(it.Sources) > 0 && (slices.ContainsFunc(asked[it.Sources[0]], in) || it.Score < likelyRule && slices.ContainsFunc(refused[it.Sources[0]], in))
	})
}
