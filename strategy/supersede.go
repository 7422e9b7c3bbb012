package strategy

import (
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Superseded finds the results that a later step has made out of date, and says why: a
// file that was read again or changed afterwards, a command or a search that was run again
// with the same arguments. A later call that failed makes only an earlier failure of the
// same call out of date, and one that nothing has answered yet makes nothing out of date.
// It returns one entry per message, empty for results that still hold.
func Superseded(t *thread.Thread, pairs *thread.Pairing) []string {
	messages := t.Messages()
	why := make([]string, len(messages))
	said := reasons{}
	lastCall := map[string]int{} // exact call → turn of its latest run that did not fail
	lastFailure := map[string]int{}
	lastRead := map[string]int{}
	lastEdit := map[string]int{}
	for i := len(messages) - 1; i >= 0; i-- {
		calls := messages[i].Calls()
		var answered map[string][]int // by call: the positions of its results
		if len(calls) > 0 {
			answered = answersTo(messages, pairs, i)
		}
		for n := len(calls) - 1; n >= 0; n-- {
			c := calls[n]
			class := toolclass.ClassOf(c.Name)
			path := toolclass.Path(c)
			exact := c.Name + "\x00" + c.Arguments
			answers, failed := answered[c.ID], true
			if len(answers) == 0 {
				continue // nobody knows what it did
			}
			for _, r := range answers {
				result, _ := messages[r].Result()
				failed = failed && result.Outcome == thread.Failure
			}
			reason := ""
			again, repeated := lastCall[exact]
			if !repeated && failed {
				again, repeated = lastFailure[exact]
			}
			if repeated {
				reason = said.in("the same call was made again", again)
			}
			if class == toolclass.Read && path != "" {
				if turn, again := lastRead[path]; again && reason == "" && wholeFile(c) {
					reason = said.in("the file was read again", turn)
				}
				if turn, changed := lastEdit[path]; changed {
					reason = said.in("the file was changed", turn)
				}
			}
			for _, r := range answers {
				why[r] = reason
			}
			turn := messages[i].Turn
			if failed {
				lastFailure[exact] = turn
				continue
			}
			lastCall[exact] = turn
			switch {
			case path == "":
			case class == toolclass.Read && wholeFile(c):
				lastRead[path] = turn
			case class == toolclass.Edit || class == toolclass.Write:
				lastEdit[path] = turn
			}
		}
	}
	return why
}

// reasons are texts that very many results may share.
type reasons map[reason]string

type reason struct {
	what string
	turn int
}

// in says what was done in a turn.
func (r reasons) in(what string, turn int) string {
	text, known := r[reason{what, turn}]
	if !known {
		text = fmt.Sprintf("%s in turn %d", what, turn)
		r[reason{what, turn}] = text
	}
	return text
}

// answersTo are the positions of the results of the message at i, by the id of the call that
// they answer.
func answersTo(messages []thread.Message, pairs *thread.Pairing, i int) map[string][]int {
	answers := map[string][]int{}
	for _, r := range pairs.Results(i) {
		result, _ := messages[r].Result()
		answers[result.CallID] = append(answers[result.CallID], r)
	}
	return answers
}

// wholeFile reports whether a read asked for no part of the file.
func wholeFile(c thread.ToolCall) bool {
	for _, name := range []string{"offset", "limit", "start_line", "end_line", "view_range"} {
		if gjson.Get(c.Arguments, name).Exists() {
			return false
		}
	}
	return true
}
