package strategy

import (
	"cmp"
	"strconv"

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
	// What makes the results before a call out of date: by the exact call, its latest run that did
	// not fail, or did; by file, its latest reading and change.
	lastCall, lastFailure, lastRead, lastEdit := map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}
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
			reason := lastCall[exact]
			if failed {
				reason = cmp.Or(reason, lastFailure[exact])
			}
			if class == toolclass.Read && path != "" {
				if reason == "" && wholeFile(c) {
					reason = lastRead[path]
				}
				reason = cmp.Or(lastEdit[path], reason)
			}
			for _, r := range answers {
				why[r] = reason
			}
			inTurn := " in turn " + strconv.Itoa(messages[i].Turn)
			again := "the same call was made again" + inTurn
			if failed {
				lastFailure[exact] = again
				continue
			}
			lastCall[exact] = again
			switch {
			case path == "":
			case class == toolclass.Read && wholeFile(c):
				lastRead[path] = "the file was read again" + inTurn
			case class == toolclass.Edit || class == toolclass.Write:
				lastEdit[path] = "the file was changed" + inTurn
			}
		}
	}
	return why
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
