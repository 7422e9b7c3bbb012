package truth

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// commandTags stand around the parts of a command that a user typed, and are nobody's
// words.
var commandTags = strings.NewReplacer("<command-name>", "", "</command-name>", "", "<command-args>", "", "</command-args>", "")

// quotable are what a message says, tool results and calls left out.
func (x *index) quotable(at int) []text {
	if t, ok := x.texts[at]; ok {
		return t
	}
	m := &x.log[at]
	var out []text
	if s := m.Text(); s != "" {
		out = append(out, newText(commandTags.Replace(s)))
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case thread.Media:
			out = append(out, newText(p.Text))
		case thread.Opaque:
			out = append(out, newText(p.Text))
		}
	}
	x.texts[at] = out
	return out
}

// userWords are what the user said in a message: a plain message of theirs, or what
// a tool hands on in their name.
func (x *index) userWords(at int) []text {
	switch m := &x.log[at]; {
	case m.StartsTurn():
		return x.quotable(at)
	case m.Role == thread.Tool:
		if s := m.Said(); s != "" {
			return []text{newText(s)}
		}
	}
	return nil
}

// byUser looks for words in what the user said.
func byUser(x *index, c claim) string {
	words, asked := c.parts["words"], c.parts["asked"]
	lines, whole := quotedLines(words), seek(words)
	reason := "no message of the user holds these words"
	for i := range x.log {
		m := &x.log[i]
		for _, t := range x.userWords(i) {
			if c.turn > 0 && m.Turn != c.turn {
				if whole.in(t.norm()) {
					reason = fmt.Sprintf("they are of turn %d", m.Turn)
				}
				continue
			}
			gaps, gap, ok := inOrder(t.norm(), lines)
			switch stands := whole.in(t.norm()); {
			case !ok && !stands:
				continue
			case !stands && gaps > 0:
				reason = "words between these were left out, and nothing marks it:\n" + gap
				continue
			}
			if asked != "" && !x.asks(i, asked) {
				reason = "no question before them reads like this"
				continue
			}
			return wrongCount(t.raw, words)
		}
	}
	return reason
}

// asks reports whether the call that a result answers puts a question.
func (x *index) asks(at int, question string) bool {
	for i := at; i >= 0 && i > at-20; i-- {
		for _, d := range x.at[i] {
			if holds(normal(d.said), question) {
				return true
			}
		}
		if x.log[i].Role == thread.Assistant && seek(question).inAny(x.quotable(i)) {
			return true
		}
	}
	return false
}

var countedOut = regexp.MustCompile(`\[… ?([\d,.]+) characters left out ?…\]`)

// wrongCount says where a mark tells another number of characters than were left out there.
func wrongCount(raw, words string) string {
	marks := countedOut.FindAllStringSubmatchIndex(words, -1)
	start := 0
	for n, m := range marks {
		end := len(words)
		if n+1 < len(marks) {
			end = marks[n+1][0]
		}
		before, after := strings.TrimSpace(words[start:m[0]]), strings.TrimSpace(words[m[1]:end])
		start = m[1]
		told := number(strings.NewReplacer(",", "", ".", "").Replace(words[m[2]:m[3]]))
		_, gap, found := strings.Cut(raw, before)
		right := !found || after == "" || !strings.Contains(gap, after) // it is not known
		for i := strings.Index(gap, after); i >= 0 && !right; {         // it may stand there more than once
			for _, left := range []string{gap[:i], strings.TrimSpace(gap[:i])} {
				right = right || near(len(left), told) || near(len([]rune(left)), told)
			}
			next := strings.Index(gap[i+1:], after)
			if next < 0 {
				break
			}
			i += 1 + next
		}
		if !right {
			return fmt.Sprintf("%d characters were not left out there", told)
		}
	}
	return ""
}

func near(a, b int) bool { return a-b <= 4 && b-a <= 4 }

// byAssistant looks for words, and those after "because", in what the assistant said.
func byAssistant(x *index, c claim) string {
	if because := c.parts["because"]; because != "" {
		if x.assistantSaid(because, c.turn) != "" {
			return x.assistantSaid(c.parts["words"]+" | "+because, c.turn) // the mark may be theirs
		}
	}
	return x.assistantSaid(c.parts["words"], c.turn)
}

func (x *index) assistantSaid(words string, turn int) string {
	label, body := splitLabel(words)
	if label == "proposed plan" {
		words = body
	}
	lines := quotedLines(words)
	if len(lines) == 0 {
		return ""
	}
	reason := "no message of the assistant holds these words, in this order"
	for i := range x.log {
		m := &x.log[i]
		if m.Role != thread.Assistant {
			continue
		}
		texts := slices.Clip(x.quotable(i))
		for _, d := range x.at[i] { // plans that it put before the user
			texts = append(texts, newText(d.str("plan")))
		}
		for _, t := range texts {
			switch n, gap, ok := inOrder(t.norm(), lines); {
			case !ok:
			case turn > 0 && m.Turn != turn:
				reason = fmt.Sprintf("they are of turn %d", m.Turn)
			case n == 0:
				return ""
			default:
				reason = "words between these lines were left out, and nothing marks it:\n" + gap
			}
		}
	}
	return reason
}

// turnIsThere looks for a turn, and for the message of the user that is said to stand elsewhere.
func turnIsThere(x *index, c claim) string {
	if c.turn == 0 {
		return ""
	}
	for i := range x.log {
		if x.log[i].Turn == c.turn && (c.parts["outside"] == "" || x.log[i].StartsTurn()) {
			return ""
		}
	}
	return "the log has no such turn"
}

// manySentences judges how many more sentences of the user there are said to be.
func manySentences(x *index, c claim) string {
	n, all := number(c.parts["n"]), 0
	for i := range x.log {
		for _, t := range x.userWords(i) {
			all += 1 + strings.Count(t.raw, "\n") + strings.Count(t.raw, ". ") + strings.Count(t.raw, "? ") + strings.Count(t.raw, "! ") + strings.Count(t.raw, "; ") + strings.Count(t.raw, ", ")
		}
	}
	if n > all {
		return fmt.Sprintf("the user said %d sentences", all)
	}
	return ""
}

// held judges how much the span is said to hold.
func held(x *index, c claim) string {
	first, last := number(c.parts["first"]), number(c.parts["last"])
	calls, lines := 0, 0
	for i := range x.log {
		if m := &x.log[i]; m.Turn >= first && m.Turn <= last {
			calls += len(m.Calls())
			if m.Role == thread.Assistant {
				lines += strings.Count(m.Text(), "\n") + strings.Count(m.Text(), ". ") + 1
			}
		}
	}
	switch {
	case number(c.parts["calls"]) > calls:
		return fmt.Sprintf("there are %d calls", calls)
	case number(c.parts["n"]) > lines:
		return fmt.Sprintf("the assistant said %d lines and sentences", lines)
	}
	return ""
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
