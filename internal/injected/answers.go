package injected

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// askers are the tools of agents through which the user answers. Each reads what the user answered to
// the questions of the call.
var askers = []struct {
	agent, tool string
	read        func(questions []gjson.Result, result string) []thread.Said
}{
	// User has answered your questions: "Which?"="This one", …
	{"claude-code", "AskUserQuestion", quotedAnswers},
	{"kimi-code", "AskUserQuestion", quotedAnswers},
	{"opencode", "question", quotedAnswers},
	// {"answers":{"id":{"answers":["This one"]}}}
	{"codex", "request_user_input", answersByID},
}

const (
	maxQuestions = 16
	maxAnswered  = 64 << 10 // bytes of a result, and of the arguments of its call
)

// Settle says which words in the result of a call are the user's, and whether the call was not allowed.
// agent is the program that ran it, by the name of its format of sessions; "" is unknown: any tool can
// have any name there, so all words are the tool's. schema is that of the declared tool, empty where the
// record is the agent's own file. The result's Denied stands if it is set.
func Settle(agent, schema string, call *thread.ToolCall, r *thread.ToolResult) {
	form, text := denialIn(r.Text())
	r.Denied = r.Denied || form != nil && form.agent == agent && form.tools[r.Tool]
	if r.Denied {
		if form == nil {
			return
		}
		if said := saidBehind(text, form.said); said != "" {
			r.Said = []thread.Said{{Text: strings.Clone(said)}}
		}
		return
	}
	if r.Outcome == thread.Failure || len(call.Arguments) > maxAnswered {
		return
	}
	for _, a := range askers {
		if a.agent == agent && a.tool == call.Name && (schema == "" || gjson.Get(schema, "properties.questions").Exists()) {
			if text := r.Text(); len(text) <= maxAnswered {
				questions := gjson.Get(call.Arguments, "questions").Array()
				r.Said = a.read(questions[:min(len(questions), maxQuestions)], text)
			}
			return
		}
	}
}

// userAgents begin the header User-Agent of agents.
var userAgents = []struct{ begins, agent string }{
	{"claude-cli/", "claude-code"}, {"codex", "codex"}, {"opencode/", "opencode"},
	{"GeminiCLI/", "gemini-cli"}, {"KimiCLI/", "kimi-code"}, {"kimi-code", "kimi-code"},
	{"Cline/", "cline"}, {"RooCode/", "cline"},
}

// Agent names the agent that sends a header User-Agent, as its format of sessions is named; "" is unknown.
func Agent(userAgent string) string {
	for _, a := range userAgents {
		if strings.HasPrefix(userAgent, a.begins) {
			return a.agent
		}
	}
	return ""
}

// quotedAnswers reads "question"="answer" behind the words of the program. An answer ends where the next
// question of the call begins, or the program speaks again: it may hold quotation marks.
func quotedAnswers(questions []gjson.Result, result string) (answers []thread.Said) {
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
			answers = append(answers, thread.Said{Asked: strings.Clone(questions[i].Get("question").Str), Text: strings.Clone(rest[p.from:stop])})
		}
	}
	return answers
}

func answersByID(questions []gjson.Result, result string) (answers []thread.Said) {
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
			answers = append(answers, thread.Said{Asked: strings.Clone(q.Get("question").Str), Text: strings.Clone(text)})
		}
	}
	return answers
}
