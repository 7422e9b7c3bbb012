package injected

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// Answer is what the user answered through a tool that asks questions.
type Answer struct{ Question, Text string }

// askers are the tools of agents that ask the user, by their exact names: a server's tool has another
// one. Each reads what the user answered to the questions of the call.
var askers = map[string]func(questions []gjson.Result, result string) []Answer{
	// Claude Code, Kimi Code: User has answered your questions: "Which?"="This one", …
	"AskUserQuestion": quotedAnswers,
	// Codex: {"answers":{"id":{"answers":["This one"]}}}
	"request_user_input": answersByID,
	// opencode: User has answered your questions: "Which?"="This one". …
	"question": quotedAnswers,
}

const (
	maxQuestions = 16
	maxAnswered  = 64 << 10 // bytes of a result, and of the arguments of its call
)

// ReadAnswers returns what the user answered in the result of a call, question by question. What
// stands outside of the places of answers is the tool's.
func ReadAnswers(call thread.ToolCall, r *thread.ToolResult) []Answer {
	read := askers[call.Name]
	if read == nil || r.CallID != call.ID || r.Outcome == thread.Failure || len(call.Arguments) > maxAnswered {
		return nil
	}
	text := r.Text()
	if len(text) > maxAnswered {
		return nil
	}
	questions := gjson.Get(call.Arguments, "questions").Array()
	return read(questions[:min(len(questions), maxQuestions)], text)
}

// quotedAnswers reads "question"="answer" behind the words of the program. An answer ends where the next
// question of the call begins, or the program speaks again: it may hold quotation marks.
func quotedAnswers(questions []gjson.Result, result string) (answers []Answer) {
	const begins = "User has answered your question"
	rest, ok := strings.CutPrefix(strings.TrimSpace(result), begins)
	if !ok {
		return nil
	}
	type place struct{ at, from int }
	places := make([]place, len(questions))
	end := strings.LastIndex(rest, `". You can now`)
	if end < 0 {
		end = strings.LastIndex(rest, `"`)
	}
	for i, at := 0, 0; i < len(questions); i++ {
		mark := `"` + questions[i].Get("question").Str + `"="`
		n := strings.Index(rest[at:], mark)
		if n < 0 {
			return answers // not all were asked
		}
		places[i] = place{at + n, at + n + len(mark)}
		at = places[i].from
	}
	for i, p := range places {
		stop := end
		if i+1 < len(places) {
			stop = strings.LastIndex(rest[:places[i+1].at], `"`)
		}
		if p.from < stop {
			answers = append(answers, Answer{questions[i].Get("question").Str, rest[p.from:stop]})
		}
	}
	return answers
}

func answersByID(questions []gjson.Result, result string) (answers []Answer) {
	given := gjson.Get(result, "answers")
	if !given.IsObject() {
		return nil
	}
	by := given.Map()
	for _, q := range questions {
		var texts []string
		for _, a := range by[q.Get("id").Str].Get("answers").Array() {
			texts = append(texts, a.Str)
		}
		if text := strings.TrimSpace(strings.Join(texts, "; ")); text != "" {
			answers = append(answers, Answer{q.Get("question").Str, text})
		}
	}
	return answers
}
