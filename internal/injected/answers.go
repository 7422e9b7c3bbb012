package injected

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// asker is a tool of an agent in whose result the user speaks: in answers to its questions, or in changes
// to what it proposed.
type asker struct {
	agent, tool string
	argument    string // the declared schema has it: a server's tool of the same name may not
	read        func(call gjson.Result, result string) []thread.Said
	example     example
}

// example is a call with its result, and what the user says there.
type example struct{ arguments, result, said string }

const (
	asksTwo = `{"questions":[{"id":"a","header":"Unit","question":"Which unit?"},{"id":"b","header":"Port","question":"Which port?"}]}`
	asksOne = `{"question":"Which port?"}`
)

var askers = []asker{
	{"claude-code", "AskUserQuestion", "questions", quotedAnswers, example{asksTwo, `User has answered your questions: "Which unit?"="Grams", "Which port?"="5544". You can now continue with the user's answers in mind.`, "Grams|5544"}},
	{"claude-code", "ExitPlanMode", "plan", editedPlan, example{`{"plan":"# Yield\n1. Rename\n2. Push"}`, "User has approved your plan.\n\n## Approved Plan (edited by user):\n# Yield\n1. Rename\n2. Never push", "2. Never push"}},
	{"opencode", "question", "questions", quotedAnswers, example{asksTwo, `User has answered your questions: "Which unit?"="Unanswered", "Which port?"="5544, 80". You can now continue with the user's answers in mind.`, "5544, 80"}},
	{"codex", "request_user_input", "questions", keyedAnswers, example{asksTwo, `{"answers":{"a":{"answers":["Grams","to two digits"]}}}`, "Grams; to two digits"}},
	{"kimi-code", "AskUserQuestion", "questions", keyedAnswers, example{asksTwo, `{"answers":{"Which unit?":"Grams","Which port?":"5544"}}`, "Grams|5544"}},
	{"gemini-cli", "ask_user", "questions", keyedAnswers, example{asksTwo, `{"answers":{"1":"5544"}}`, "5544"}},
	{"gemini-cli", "exit_plan_mode", "", between("Plan rejected. User feedback: \"", "\"\n\nThe plan is stored at: "), example{`{}`, "Plan rejected. User feedback: \"Never push\"\n\nThe plan is stored at: /p.md\nRevise the plan based on the feedback.", "Never push"}},
	{"qwen-code", "ask_user_question", "questions", headedAnswers, example{asksTwo, "User has provided the following answers:\n\n**Unit**: Grams\n**Port**: 5544", "Grams|5544"}},
	{"crush", "question", "questions", numberedAnswers, example{asksTwo, "Q1: Which unit?\nUser selected: [\"grams\"]\nUser provided: to two\ndigits\n\nQ2: Which port?\nUser answered: no\n\nNotes:\n- [a]: never 80", "grams|to two\ndigits|no|never 80"}},
	// extensions that come with pi as examples
	{"pi", "question", "question", soleAnswer, example{asksOne, "User selected: 2. 5544", "5544"}},
	{"pi", "questionnaire", "questions", labeledAnswers, example{`{"questions":[{"id":"a","label":"Unit","prompt":"Which unit?"},{"id":"b","prompt":"Which port?"}]}`, "Unit: user selected: 1. Grams\nQ2: user wrote: 5544", "Grams|5544"}},
	// Cline, Roo
	{"cline", "ask_followup_question", "question", between("<answer>", "</answer>", "<user_message>", "</user_message>"), example{asksOne, "<answer>\n5544\n</answer>\n\nFiles attached: a", "5544"}},
	{"cline", "ask_question", "question", between("", ""), example{asksOne, "5544\nand never 80", "5544\nand never 80"}}, // of version 4: the answer is all of the result
	{"copilot-cli", "ask_user", "question", soleAnswer, example{asksOne, "User responded: 5544", "5544"}},
}

const (
	maxQuestions = 16
	maxAnswered  = 64 << 10 // bytes of a result, and of the arguments of its call
)

// subagents are the tools of agents in whose result another agent reports.
var subagents = map[string]map[string]bool{
	"claude-code": scan.WordSet("Task Agent"), "kimi-code": scan.WordSet("Task Agent"), "opencode": scan.WordSet("task"),
	"codex": scan.WordSet("wait_agent"), "cline": scan.WordSet("use_subagents"), "qwen-code": scan.WordSet("task agent"),
}

// Settle says who speaks in the result of a call: which words in it are the user's, whether another agent
// reports, and whether the call was not allowed. agent is the program that ran it, by the name of its format of
// sessions; "" is unknown: any tool can have any name there, so all words are the tool's. schema is that of the
// declared tool, empty where the record is the agent's own file. The result's Denied stands if it is set.
func Settle(agent, schema string, call *thread.ToolCall, r *thread.ToolResult) {
	text := r.Text()
	form := denialIn(text)
	r.Denied = r.Denied || form != nil && form.agent == agent && form.tools[r.Tool]
	if r.Denied {
		if form != nil && form.answers != nil {
			r.Said = form.answers(gjson.Parse(call.Arguments), text)
		} else if form != nil {
			r.Said = saidBehind(text, form.said)
		}
		return
	}
	if subagents[agent][call.Name] {
		r.Author = thread.ByAgent
	}
	if r.Outcome == thread.Failure || len(call.Arguments) > maxAnswered || len(text) > maxAnswered {
		return
	}
	at := slices.IndexFunc(askers, func(a asker) bool {
		return a.agent == agent && a.tool == call.Name && (schema == "" || a.argument == "" || gjson.Get(schema, "properties."+a.argument).Exists())
	})
	if at >= 0 {
		r.Said = askers[at].read(gjson.Parse(call.Arguments), text)
	}
}

// userAgents begin the header User-Agent of agents.
var userAgents = []struct{ begins, agent string }{
	{"claude-cli/", "claude-code"}, {"codex", "codex"}, {"opencode/", "opencode"},
	{"GeminiCLI/", "gemini-cli"}, {"KimiCLI/", "kimi-code"}, {"kimi-code", "kimi-code"},
	{"Charm-Crush/", "crush"}, {"Cline/", "cline"}, {"RooCode/", "cline"}, {"QwenCode/", "qwen-code"},
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

// said is what stands in a text at a place, without white space around it; nil if that is nothing.
func said(asked, text string, from, to int) []thread.Said {
	if from < 0 || from > to {
		return nil
	}
	words := strings.TrimLeft(text[from:to], " \t\r\n")
	from = to - len(words)
	if words = strings.TrimRight(words, " \t\r\n"); words == "" {
		return nil
	}
	return []thread.Said{{Asked: strings.Clone(asked), Text: strings.Clone(words), From: from, To: from + len(words)}}
}

func questions(call gjson.Result) []gjson.Result {
	all := call.Get("questions").Array()
	return all[:min(len(all), maxQuestions)]
}

// answersBehind reads the answers in a text from a place on. Each stands behind the mark of its question, and
// reaches up to the next one or to the end: it may hold anything else.
func answersBehind(call gjson.Result, text string, at int, mark func(q gjson.Result) string) (all []thread.Said) {
	open := func(end int) { // the last answer ends there
		if n := len(all); n > 0 {
			last := &all[n-1]
			all = append(all[:n-1], said(last.Asked, text, last.From, end)...)
		}
	}
	for _, q := range questions(call) {
		found := mark(q)
		n := strings.Index(text[at:], found)
		if n < 0 || len(found) == 0 {
			continue // it was not answered
		}
		open(at + n)
		at += n + len(found)
		all = append(all, thread.Said{Asked: q.Get("question").Str, From: at})
	}
	open(len(text))
	return all
}

// The words of programs around answers in quotation marks, and around one to all questions.
var (
	quotedBegin = []string{"User has answered your question", "Your questions have been answered: ", "The user answered: "}
	quotedEnd   = []string{". You can now continue", ". Read the answers carefully"}
	freeAnswer  = "The user responded: "
)

// quotedAnswers reads "question"="answer". Behind an answer a preview of the option may stand, and notes of the user.
func quotedAnswers(call gjson.Result, result string) (all []thread.Said) {
	if strings.HasPrefix(result, freeAnswer) {
		var asked []string
		for _, q := range questions(call) {
			asked = append(asked, q.Get("question").Str)
		}
		return said(strings.Join(asked, " "), result, len(freeAnswer), len(result))
	}
	if !hasAnyPrefix(result, quotedBegin) {
		return nil
	}
	end := len(result)
	for _, program := range quotedEnd {
		if at := strings.LastIndex(result, program); at >= 0 {
			end = min(end, at)
		}
	}
	for _, a := range answersBehind(call, result[:end], 0, func(q gjson.Result) string { return `"` + q.Get("question").Str + `"="` }) {
		text := strings.TrimRight(result[a.From:a.To], ", ")
		answer, rest, noted := cutFirst(text, `" notes: `, `" user notes: `)
		if chosen, _, shown := strings.Cut(text, "\" selected preview:\n"); shown { // the preview is the model's, and what follows it
			answer, noted = chosen, false
		}
		if answer == text {
			answer = text[:max(strings.LastIndex(text, `"`), 0)]
		}
		if answer != "Unanswered" {
			all = append(all, said(a.Asked, result, a.From, a.From+len(answer))...)
		}
		if noted {
			all = append(all, said(a.Asked, result, a.From+len(text)-len(rest), a.From+len(text))...)
		}
	}
	return all
}

// cutFirst is strings.Cut at the first of some marks that a text has.
func cutFirst(text string, marks ...string) (before, behind string, ok bool) {
	for _, mark := range marks {
		if before, behind, ok = strings.Cut(text, mark); ok {
			break
		}
	}
	return before, behind, ok
}

// headedAnswers reads a line for each question, behind its heading.
func headedAnswers(call gjson.Result, result string) []thread.Said {
	const begins = "User has provided the following answers:\n"
	if !strings.HasPrefix(result, begins) {
		return nil
	}
	return answersBehind(call, result, len(begins), func(q gjson.Result) string { return "\n**" + q.Get("header").Str + "**: " })
}

// keyedAnswers reads an object with the answers by the id, the text or the number of their questions.
func keyedAnswers(call gjson.Result, result string) (all []thread.Said) {
	asked := questions(call)
	for key, given := range rawjson.Members(gjson.Get(result, "answers")) {
		n := slices.IndexFunc(asked, func(q gjson.Result) bool { return q.Get("id").Str == key || q.Get("question").Str == key })
		if number, err := strconv.Atoi(key); n < 0 && err == nil && number < len(asked) {
			n = max(number, -1)
		}
		if n < 0 || key == "" {
			continue // nobody asked
		}
		list := given
		if list.IsObject() {
			list = list.Get("answers")
		}
		var texts []string
		for _, a := range list.Array() {
			texts = append(texts, a.Str)
		}
		if text := strings.TrimSpace(strings.Join(texts, "; ")); text != "" {
			all = append(all, thread.Said{Asked: strings.Clone(asked[n].Get("question").Str), Text: strings.Clone(text), From: given.Index, To: given.Index + len(given.Raw)})
		}
	}
	return all
}

// between reads one answer between words of the program, which are given in pairs; other words of it,
// or files that the user attached, may follow.
func between(marks ...string) func(gjson.Result, string) []thread.Said {
	return func(call gjson.Result, result string) []thread.Said {
		for pair := range slices.Chunk(marks, 2) {
			if strings.HasPrefix(result, pair[0]) {
				return said(call.Get("question").Str, result, len(pair[0]), strings.LastIndex(result, pair[1]))
			}
		}
		return nil
	}
}

// numberedAnswers reads the answers behind numbered questions.
func numberedAnswers(call gjson.Result, result string) (all []thread.Said) {
	n := 0
	return statedIn(result, answersBehind(call, result, 0, func(q gjson.Result) string {
		n++
		return "Q" + strconv.Itoa(n) + ": " + q.Get("question").Str + "\n"
	}))
}

// labeledAnswers reads a line for each question, behind its label or number.
func labeledAnswers(call gjson.Result, result string) []thread.Said {
	n := 0
	return statedIn(result, answersBehind(call, result, 0, func(q gjson.Result) string {
		n++
		return cmp.Or(q.Get("label").Str, "Q"+strconv.Itoa(n)) + ": "
	}))
}

// listedAnswers reads the answer, and notes of the user, in lines below each question.
func listedAnswers(call gjson.Result, result string) []thread.Said {
	return statedIn(result, answersBehind(call, result, 0, func(q gjson.Result) string { return "- \"" + q.Get("question").Str + "\"\n" }))
}

// soleAnswer reads the answer to the one question.
func soleAnswer(call gjson.Result, result string) []thread.Said {
	return statedIn(result, []thread.Said{{Asked: call.Get("question").Str, To: len(result)}})
}

// stated matches how programs say what the user did; what the user chose or wrote stands behind it.
var stated = lazyregexp.New(`(?m)\AAnswer: |^(?:  User notes: |[Uu]ser (?:answered|provided|responded|wrote): |[Uu]ser selected: (?:\d+\. |\[")?|Notes:\n- (?:\[[^]\n]*\]: )?|- (?:\[[^]\n]*\]: )?)`)

// statedIn are the words of the user in places that say what the user did.
func statedIn(result string, places []thread.Said) (all []thread.Said) {
	for _, place := range places {
		text := result[place.From:place.To]
		found := stated().FindAllStringIndex(text, -1)
		for n, at := range found {
			end := len(text)
			if n+1 < len(found) {
				end = found[n+1][0]
			}
			words := strings.TrimSuffix(strings.TrimRight(text[at[1]:end], " \n"), `"]`)
			one := said(place.Asked, result, place.From+at[1], place.From+at[1]+len(words))
			for i := range one {
				one[i].Text = strings.ReplaceAll(one[i].Text, `","`, "; ") // several choices
			}
			all = append(all, one...)
		}
	}
	return all
}

// editedPlan reads the lines of an approved plan that were not in the proposed one.
func editedPlan(call gjson.Result, result string) (all []thread.Said) {
	const heading = "\n## Approved Plan (edited by user):\n"
	proposed, begins := strings.TrimSpace(call.Get("plan").Str), strings.Index(result, heading)
	if proposed == "" || begins < 0 {
		return nil
	}
	asked, _, _ := strings.Cut(proposed, "\n")
	old, at := map[string]bool{}, begins+len(heading)
	for line := range strings.Lines(proposed) {
		old[strings.TrimSpace(line)] = true
	}
	for line := range strings.Lines(result[at:]) {
		if !old[strings.TrimSpace(line)] {
			all = append(all, said(asked, result, at, at+len(line))...)
		}
		at += len(line)
	}
	return all
}
