package injected

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Agents that act in text have no tool results: the output of an action, called observation, is sent in the
// user's name. It is data like any result.

// observationTags begin the names of elements around an observation, reduced to letters: of mini-swe-agent,
// Hermes, Qwen, and of people.
var observationTags = []string{
	"returncode", "observation", "toolresult", "toolresponse", "tooloutput",
	"functionresult", "functionresponse", "functionoutput", "executionresult", "executionoutput",
}

// looksLikeObservation reports whether a text has the form of an observation.
func looksLikeObservation(text string) bool {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "OBSERVATION:\n") || strings.HasPrefix(text, "EXECUTION RESULT of [") { // SWE-agent, OpenHands
		return true
	}
	if _, _, ok := cutToolHeading(text); ok {
		return true
	}
	inside, ok := strings.CutPrefix(text, "<")
	if !ok {
		return false
	}
	inside, _, ok = strings.Cut(inside[:min(len(inside), maxTag)], ">")
	return ok && hasAnyPrefix(lowerLetters(inside), observationTags)
}

// lowerLetters returns only the letters of a text, in lower case.
func lowerLetters(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case 'a' <= r && r <= 'z':
			return r
		}
		return -1
	}, s)
}

// toolHeadingEnd ends the line that Cline and its kin put above a result:
// [read_file for 'a.go'] Result:
const toolHeadingEnd = "] Result:"

// cutToolHeading returns the tool in such a line, and what follows it. The line may quote text with the same end,
// so the last one counts, and it ends there: behind "[deploy] Result: failed" a person goes on. The tools all have
// a name of several words, or say what the call was for.
func cutToolHeading(text string) (tool, rest string, ok bool) {
	inside, ok := strings.CutPrefix(text, "[")
	if !ok {
		return "", "", false
	}
	n := 0
	for n < len(inside) && (inside[n] == '_' || 'a' <= inside[n] && inside[n] <= 'z') {
		n++
	}
	end := strings.LastIndex(inside+"\n", toolHeadingEnd+"\n")
	if n == 0 || end < n || end > n && !strings.HasPrefix(inside[n:], " for ") || end == n && !strings.Contains(inside[:n], "_") {
		return "", "", false
	}
	return inside[:n], strings.TrimSpace(inside[end+len(toolHeadingEnd):]), true
}

// nonEmptyTexts returns the texts of a message that are not blank.
func nonEmptyTexts(m *thread.Message) []string {
	var all []string
	for _, p := range m.Parts {
		if t, ok := p.(thread.Text); ok && strings.TrimSpace(t.Text) != "" {
			all = append(all, strings.TrimSpace(t.Text))
		}
	}
	return all
}

// isObservation reports whether a user message is the output of an action in the assistant's message before it.
func isObservation(m, before *thread.Message) bool {
	all := nonEmptyTexts(m)
	if len(all) == 0 {
		return false
	}
	text := all[0]
	if looksLikeObservation(text) {
		return true
	}
	if before == nil || before.Role != thread.Assistant {
		return false
	}
	said := strings.TrimSpace(before.Text())
	return hasObservationLabel(text) && !endsInProse(said) || strings.HasSuffix(text, "\nbash-$") || endsWithAction(said)
}

// hasObservationLabel reports whether a text begins with the label of ReAct: "Observation:" or "Observation 3:".
func hasObservationLabel(text string) bool {
	const word = "observation"
	if len(text) <= len(word) || !strings.EqualFold(text[:len(word)], word) {
		return false
	}
	return strings.HasPrefix(strings.TrimLeft(text[len(word):], " 0123456789"), ":")
}

// endsInProse reports whether an assistant's text only speaks to the person: it has no line with a label of ReAct,
// and does not end like code.
func endsInProse(text string) bool {
	return strings.TrimRight(text, "`>}])") == text && !actingLabel().MatchString(text)
}

// actingLabel is a line in which an agent of ReAct's kind thinks or acts.
var actingLabel = lazyregexp.New(`(?im)^\W{0,4}(thought|action|act|tool|command|code)( input)? ?\d*\W{0,3}:`)

// actionTags are the names, reduced to letters, of elements at the end of an assistant's text that calls a tool.
var actionTags = map[string]bool{
	"function": true, "functioncall": true, "functioncalls": true, "toolcall": true, "toolcalls": true, "tooluse": true, "invoke": true,
	"executebash": true, "executeipython": true, "executebrowse": true, // OpenHands
	"executecommand": true, "readfile": true, "writetofile": true, "replaceinfile": true, "applydiff": true, "insertcontent": true, // Cline, Roo
	"searchfiles": true, "listfiles": true, "listcodedefinitionnames": true, "browseraction": true, "usemcptool": true, "accessmcpresource": true,
}

// endsWithAction reports whether an assistant's text ends with an action: an element that calls a tool, or the
// lines of ReAct.
func endsWithAction(text string) bool {
	if at := strings.LastIndex(text, "</"); at >= 0 && strings.HasSuffix(text, ">") && actionTags[lowerLetters(text[at:])] {
		return true
	}
	at := strings.LastIndex(text, "\nAction:") + 1
	if at == 0 && !strings.HasPrefix(text, "Action:") {
		return false
	}
	action := text[at+len("Action:"):]
	line, rest, _ := strings.Cut(strings.TrimSpace(action), "\n")
	return !strings.Contains(action, "\nFinal Answer:") &&
		(strings.Contains("\n"+rest, "\nAction Input:") || bracketedCall().MatchString(strings.TrimSpace(line)) || strings.HasPrefix(line, "{") || strings.HasPrefix(line, "```"))
}

// bracketedCall is an action as ReAct and WebArena write it: Search[clock], click [12], type [3] [a clock] [1].
var bracketedCall = lazyregexp.New(`^\w+(\[.*\]|( \[[^\[\]]*\])+)$`)

// askingTools are the tools of Cline whose result is an answer of the person.
var askingTools = scan.WordSet("ask_followup_question attempt_completion plan_mode_respond")

// actsOtherwise reports whether an assistant's message acts in text, and by no tool that asks: what
// follows is the output of that action, whatever it looks like.
func actsOtherwise(m *thread.Message) bool {
	if m == nil || m.Role != thread.Assistant {
		return false
	}
	said := strings.TrimSpace(m.Text())
	for tool := range askingTools {
		if strings.Contains(said, "<"+tool+">") {
			return false
		}
	}
	return !endsInProse(said)
}

// feedbackNote is in front of a person's feedback on a finished task.
const feedbackNote = "The user has provided feedback on the results. Consider their input to continue the task, and then attempt completion again."

// userAnswer returns what the person said to a tool that asks, or "" if there is anything else beside it.
func userAnswer(m *thread.Message) string {
	all := nonEmptyTexts(m)
	if len(all) == 0 {
		return ""
	}
	tool, said, ok := cutToolHeading(all[0])
	if !ok || !askingTools[tool] {
		return ""
	}
	if said == "" && len(all) > 1 { // it is a part of its own
		said = all[1]
	}
	said = strings.TrimSpace(strings.TrimPrefix(said, feedbackNote))
	for _, name := range []string{"answer", "feedback", "user_message"} {
		if inner, ok := strings.CutPrefix(said, "<"+name+">"); ok {
			if end := strings.LastIndex(inner, "</"+name+">"); end >= 0 {
				return wordsIn(textPassages(inner[:end]))
			}
		}
	}
	return ""
}
