package e2e

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
)

// knowledge are the sentences that an honest summarizer takes over as they
// stand, the most important first.
var knowledge = []*regexp.Regexp{
	regexp.MustCompile(`Services: [a-z, ]+\.`),
	stepNumber,
	regexp.MustCompile(`release R-\w{4}\b`),
	regexp.MustCompile(`signed off by [A-Z]\w+ \w+, key MO-\d+`),
	regexp.MustCompile(`tickets of our customers: [A-Za-z, ]+\.`),
	regexp.MustCompile(`ticket of \w+ is TCK-[0-9A-F]{12}`),
	regexp.MustCompile(`build of \w+: b[0-9a-f]{12}`),
	regexp.MustCompile(`(?:checksum of \w+: [0-9a-f]{12}|port of \w+: \d{5})`),
}

// summarizer is the model behind the policies: it says what matters of the text
// it was given, in the form it was asked for, and nothing else. What is too much
// for its answer it leaves out, the oldest first.
func summarizer(r llmtest.Request) llmtest.Answer {
	text := r.Prompt.Messages[len(r.Prompt.Messages)-1].Text()
	said := worthReading(text)
	room := 2400 // characters, about 800 tokens with their codes
	var known []string
	for _, k := range knowledge {
		found := k.FindAllString(said, -1)
		slices.Reverse(found) // the newest first
		if k == stepNumber {
			found = found[:min(1, len(found))]
		}
		for _, f := range found {
			if !slices.Contains(known, f) && len(f) < room {
				known = append(known, f)
				room -= len(f) + 3
			}
		}
	}
	switch {
	case strings.Contains(r.Body, `"summary_delta"`):
		return llmtest.Answer{Text: delta(text, known)}
	case strings.Contains(r.Body, `"context_compaction"`):
		return llmtest.Answer{Text: workstreamAnswer(known)}
	case strings.Contains(text, "## Session Summary (Compaction Round"):
		return llmtest.Answer{Text: sessionAnswer(text, known)}
	}
	return llmtest.Answer{Text: strings.Join(known, "\n")}
}

// worthReading leaves out the lines that hold nothing of the knowledge, since
// expressions are slow.
func worthReading(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for _, word := range []string{"Services:", "Step ", "up to number", "release R-", "signed off", "tickets of", "ticket of ", "build of ", "checksum of ", "port of "} {
			if strings.Contains(line, word) {
				b.WriteString(line)
				break
			}
		}
	}
	return b.String()
}

// delta gives each fact with the number of a message that says it.
func delta(text string, known []string) string {
	type item struct {
		Text    string `json:"text"`
		Sources []int  `json:"sources"`
	}
	heading := regexp.MustCompile(`(?m)^=====[0-9a-f]+ (\d+) `)
	headings, facts := heading.FindAllStringSubmatchIndex(text, -1), []item{}
	for _, k := range known {
		at, number := strings.LastIndex(text, k), 0
		for _, h := range headings {
			if h[0] < at {
				number, _ = strconv.Atoi(text[h[2]:h[3]])
			}
		}
		if number > 0 { // else it is of the previous summary, which stays
			facts = append(facts, item{k, []int{number}})
		}
	}
	empty := []item{}
	b, _ := json.Marshal(map[string]any{ // texts and numbers always can
		"facts": facts, "decisions": empty, "plan": empty, "open_items": empty, "failed_attempts": empty, "tool_outcomes": empty,
	})
	return string(b)
}

func workstreamAnswer(known []string) string {
	none := map[string]any{"set": []string{}, "remove": []string{}}
	b, _ := json.Marshal(map[string]any{ // texts always can
		"summary": map[string]any{"key_facts": known, "conversation_flow": []string{"The assistant works through the steps."}, "open_threads": []string{}},
		"state_delta": map[string]any{
			"key_decisions": none, "active_constraints": none, "tasks": none, "open_questions": none, "risks": none, "artifacts": none, "agent_contributions": none,
		},
	})
	return string(b)
}

func sessionAnswer(text string, known []string) string {
	_, round, _ := strings.Cut(text, "## Session Summary (Compaction Round ")
	round, _, _ = strings.Cut(round, ")")
	return "## Session Summary (Compaction Round " + round + ")\n\n### Original Task\nMake the release.\n\n### Completed Work\n| File/Component | Action | Description |\n|---|---|---|\n\n" +
		"### Key Technical Decisions\n- " + strings.Join(known, "\n- ") + "\n\n### Current State\n- Working on: the steps\n\n### Pending Work\n- [ ] the other steps"
}
