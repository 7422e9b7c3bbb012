package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// lost begins the answer of a model that cannot go on.
const lost = "I am lost: "

// worker is the model behind the agent. It remembers nothing: what it answers
// depends on the request alone. A fact that it does not find there it looks up,
// where it is offered the tools for that; else it gives up and says so.
func worker(r llmtest.Request) llmtest.Answer {
	s := sight{prompt: r.Prompt, text: everything(r.Prompt)}
	a := s.next()
	// Ids of calls never repeat in a conversation, which has grown.
	for i := range a.Calls {
		a.Calls[i].ID = fmt.Sprintf("call_%s_%d", code(r.Body, r.API), i)
	}
	if len(a.Calls) > 0 {
		a.Reasoning = "The next thing to do is " + a.Calls[0].Name + "."
	}
	return a
}

// sight is what the model sees.
type sight struct {
	prompt *prompt.Prompt
	text   string
}

// everything is all text of a request but the definitions of tools.
func everything(p *prompt.Prompt) string {
	var b strings.Builder
	for _, s := range p.System {
		b.WriteString(s.Text + "\n")
	}
	for i := range p.Messages {
		for _, part := range p.Messages[i].Parts {
			switch part := part.(type) {
			case thread.Text:
				b.WriteString(part.Text + "\n")
			case thread.ToolResult:
				b.WriteString(part.Text() + "\n")
			}
		}
	}
	return b.String()
}

var stepNumber = regexp.MustCompile(`\b(?:Step|up to number) (\d+) (?:of|is)\b`)

// done is the last step that was announced or reported.
func (s *sight) done() int {
	last := 0
	for _, m := range stepNumber.FindAllStringSubmatch(s.text, -1) {
		n, _ := strconv.Atoi(m[1])
		last = max(last, n)
	}
	return last
}

// next is the model's answer.
func (s *sight) next() llmtest.Answer {
	done := s.done()
	messages := s.prompt.Messages
	if len(messages) > 0 && messages[len(messages)-1].Role == thread.Tool && slices.Contains(pauses, done) && len(s.lookups()) == 0 {
		return llmtest.Answer{Text: fmt.Sprintf("Everything up to number %d is done. Shall I go on?", done)}
	}
	list, a, ok := s.find("the list of services", `Services: ([a-z, ]+)\.`, `"Services:" read_manifest run_checks write_lock release`)
	if !ok {
		return a
	}
	names := strings.Split(list, ", ")
	n := len(names)
	call := func(step int, tool string, args map[string]string) llmtest.Answer {
		b, _ := json.Marshal(args) // texts always can
		return llmtest.Answer{Text: fmt.Sprintf("Step %d of %d.", step, 3*n), Calls: []thread.ToolCall{{Name: tool, Arguments: string(b)}}}
	}
	switch step := done + 1; {
	case step < n: // two at once
		a, b := call(step, "read_manifest", map[string]string{"service": names[step-1]}), call(step+1, "read_manifest", map[string]string{"service": names[step]})
		return llmtest.Answer{Text: a.Text + " " + b.Text, Calls: append(a.Calls, b.Calls...)}
	case step <= n:
		return call(step, "read_manifest", map[string]string{"service": names[step-1]})
	case step <= 2*n:
		return call(step, "run_checks", map[string]string{"service": names[step-n-1]})
	case step <= 3*n:
		args := map[string]string{"service": names[step-2*n-1]}
		for _, f := range []struct{ field, what, pattern, query string }{
			{"signed_off", "who signs", `signed off by ([A-Z]\w+ \w+, key MO-\d+)`, `"signed off by"`},
			{"checksum", "", `checksum of NAME: ([0-9a-f]{12})\b`, `"checksum of NAME"`},
			{"port", "", `port of NAME: (\d{5})\b`, `"port of NAME"`},
			{"build", "", `build of NAME: (b[0-9a-f]{12})\b`, `"build of NAME"`},
		} {
			value, a, ok := s.find(f.what+f.field+" of "+args["service"],
				strings.ReplaceAll(f.pattern, "NAME", args["service"]), strings.ReplaceAll(f.query, "NAME", args["service"]))
			if !ok {
				return a
			}
			args[f.field] = value
		}
		return call(step, "write_lock", args)
	}
	return s.report()
}

// report is the end of the task.
func (s *sight) report() llmtest.Answer {
	release, a, ok := s.find("the tag", `release (R-\w{4})\b`, `"Make release"`)
	if !ok {
		return a
	}
	list, a, ok := s.find("the customers", `tickets of our customers: ([A-Za-z, ]+)\.`, `"tickets of our customers"`)
	if !ok {
		return a
	}
	report := "Release " + release + " is made."
	for _, c := range strings.Split(list, ", ") {
		ticket, a, ok := s.find("the ticket of "+c, `ticket of `+c+` is (TCK-[0-9A-F]{12})\b`, `"ticket of `+c+` is"`)
		if !ok {
			return a
		}
		report += "\n" + c + ": " + ticket
	}
	return llmtest.Answer{Text: report}
}

// find looks for a fact in what the model sees. Where it is not there, the answer
// looks it up or gives up.
func (s *sight) find(what, pattern, query string) (fact string, a llmtest.Answer, ok bool) {
	if m := regexp.MustCompile(pattern).FindStringSubmatch(s.text); m != nil {
		return m[1], a, true
	}
	lookUp := func(tool string, args map[string]string) (string, llmtest.Answer, bool) {
		b, _ := json.Marshal(args) // texts always can
		return "", llmtest.Answer{Text: "I look up " + what + ".", Calls: []thread.ToolCall{{Name: tool, Arguments: string(b)}}}, false
	}
	tried := s.lookups()
	if s.offered(recall.RecallTool) {
		args := map[string]string{"query": query}
		if !slices.ContainsFunc(tried, func(c thread.ToolCall) bool { return c.Name == recall.RecallTool && same(c.Arguments, args) }) {
			return lookUp(recall.RecallTool, args)
		}
	}
	if s.offered(recall.ReadArtifactTool) {
		for _, id := range s.hits(len(tried)) {
			args := map[string]string{"artifact_id": id}
			if !slices.ContainsFunc(tried, func(c thread.ToolCall) bool { return c.Name == recall.ReadArtifactTool && same(c.Arguments, args) }) {
				return lookUp(recall.ReadArtifactTool, args)
			}
		}
	}
	return "", llmtest.Answer{Text: lost + "I see " + what + " nowhere, after " + strconv.Itoa(len(tried)) + " lookups."}, false
}

var hit = regexp.MustCompile(`(?m)^\d+\. message ([^,\s]+),.*?(?:, read_artifact\("([^"]+)"\))?(?:, from line .*)?$`)

// pointer stands in place of a result that was put aside.
var pointer = regexp.MustCompile(`\[Externalized Content - artifact:([^\]\s]+)\]`)

// hits are the ids of what the last so many lookups gave and was put aside, and
// of what they found, to be read whole.
func (s *sight) hits(lookups int) []string {
	var ids []string
	for i := len(s.prompt.Messages) - 1; i >= 0 && lookups > 0; i-- {
		m := &s.prompt.Messages[i]
		lookups -= len(m.Calls())
		if r, ok := m.Result(); ok {
			for _, found := range pointer.FindAllStringSubmatch(r.Text(), -1) {
				ids = append(ids, found[1])
			}
			for _, found := range hit.FindAllStringSubmatch(r.Text(), -1) {
				ids = append(ids, cmp.Or(found[2], found[1]))
			}
		}
	}
	return ids
}

func (s *sight) offered(name string) bool {
	return slices.ContainsFunc(s.prompt.Tools, func(t prompt.Tool) bool { return t.Name == name })
}

// lookups are the calls since the last step or the last word of the user, if they
// only looked something up.
func (s *sight) lookups() []thread.ToolCall {
	var list []thread.ToolCall
	for i := len(s.prompt.Messages) - 1; i >= 0; i-- {
		m := &s.prompt.Messages[i]
		if m.Role == thread.Tool {
			continue
		}
		calls := m.Calls()
		if len(calls) == 0 || slices.ContainsFunc(calls, func(c thread.ToolCall) bool {
			return c.Name != recall.RecallTool && c.Name != recall.ReadArtifactTool
		}) {
			break
		}
		list = append(list, calls...)
	}
	return list
}

// same reports whether the arguments of a call are these.
func same(arguments string, args map[string]string) bool {
	var got map[string]string
	return json.Unmarshal([]byte(arguments), &got) == nil && fmt.Sprint(got) == fmt.Sprint(args)
}
