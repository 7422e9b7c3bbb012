package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// steering has a model use the tools for its context once each, in the middle of its task.
type steering struct {
	offered []string // the tools, as the agent calls them
	asked   int      // steps of the script that were made
	said    [3]string
	// The tokens of the request that compact_now was called in, and of the next one, which has its answer;
	// whether the note stood in any later prompt, and how many steps came after.
	before, after, steps int
	stands               bool
}

// noted is the model's note, which no part of the task says.
const noted = "Ruled out: the queue of orders is not at fault (Q77413)."

// steers is the script: each tool is called when so many parts are read.
var steers = []struct {
	part            int
	tool, arguments string
}{
	{3, "context_status", `{}`},
	{5, "context_note", `{"action":"write","text":"` + noted + `"}`},
	{7, "compact_now", `{"keep_in_mind":"the codes of the parts"}`},
}

// next is the model's next call of such a tool; ok is false where it is not time for one. tokens are
// those of the request.
func (s *steering) next(p *prompt.Prompt, reached, tokens int) (a proxytest.Answer, ok bool) {
	if s == nil {
		return a, false
	}
	s.look(p, tokens)
	if s.asked == len(steers) || reached < steers[s.asked].part {
		return a, false
	}
	name := s.name(p, steers[s.asked].tool)
	if name == "" {
		return a, false
	}
	arguments := steers[s.asked].arguments
	if strings.HasPrefix(name, "mcp__") { // a server knows no session of its own, and compacts nothing
		arguments = map[string]string{"context_status": `{"session":"1"}`, "compact_now": `{}`}[steers[s.asked].tool]
		if arguments == "" {
			arguments = steers[s.asked].arguments
		}
	}
	s.before = tokens
	s.asked++
	return proxytest.Answer{Text: "I look at my context.", Calls: []thread.ToolCall{{Name: name, Arguments: arguments}}}, true
}

// name is how the agent calls one of the tools.
func (s *steering) name(p *prompt.Prompt, tool string) string {
	for _, t := range p.Tools {
		if strings.HasSuffix(t.Name, tool) {
			if !slices.Contains(s.offered, t.Name) {
				s.offered = append(s.offered, t.Name)
			}
			return t.Name
		}
	}
	return ""
}

// look keeps what came of the calls.
func (s *steering) look(p *prompt.Prompt, tokens int) {
	called := map[string]int{} // the script's step, by the id of the call
	for i := range p.Messages {
		for _, c := range p.Messages[i].Calls() {
			for n := range s.asked {
				if strings.HasSuffix(c.Name, steers[n].tool) {
					called[c.ID] = n
				}
			}
		}
		for _, part := range p.Messages[i].Parts {
			if r, ok := part.(thread.ToolResult); ok {
				if n, ours := called[r.CallID]; ours {
					s.said[n] = r.Text()
				}
			}
		}
	}
	if s.asked < len(steers) {
		return
	}
	if s.steps++; s.steps == 1 {
		s.after = tokens
	}
	text, _ := seen(p)
	s.stands = s.stands || s.steps > 1 && strings.Contains(text, noted)
}

// row is the cells of the table.
func (s *steering) row() string {
	first := func(text string) string {
		text, _, _ = strings.Cut(text, ". ")
		return strings.NewReplacer("\n", "; ", "|", "/").Replace(text)
	}
	stands := "no"
	if s.stands {
		stands = "yes"
	}
	return fmt.Sprintf("%s | %s | %s | %d | %d | %d | %s", first(s.said[0]), first(s.said[1]), first(s.said[2]), s.before, s.after, max(s.steps-1, 0), stands)
}
