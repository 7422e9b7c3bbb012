package truth

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/plan/summary"
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
	x.texts[at] = out
	return out
}

// voice is what somebody says in a message.
type voice func(x *index, at int) []text

// userWords are what the user said in a message: a plain message of theirs, or what
// a tool hands on in their name.
func userWords(x *index, at int) []text {
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

// modelWords are what the assistant said in a message, plans included that it put before the user.
func modelWords(x *index, at int) []text {
	if x.log[at].Role != thread.Assistant {
		return nil
	}
	texts := slices.Clip(x.quotable(at))
	for _, d := range x.at[at] {
		texts = append(texts, newText(d.str("plan")))
	}
	return texts
}

// said looks for words in what a voice says after a message, in a turn (0 is any). What holds them
// must pass more, unless it is nil: that says what else is wrong. It returns why nothing is found.
func (x *index) said(words string, by voice, turn, after int, more func(at int, t text) string) string {
	lines, whole := quotedLines(words), seek(words)
	reason := "they did not say these words, in this order"
	for at := after + 1; at < len(x.log); at++ {
		if turn > 0 && x.log[at].Turn != turn {
			continue
		}
		for _, t := range by(x, at) {
			gaps, gap, ok := inOrder(t.norm(), lines)
			if whole.in(t.norm()) {
				gaps, ok = 0, true
			}
			switch {
			case !ok:
				continue
			case gaps > 0:
				reason = "words between these were left out, and nothing marks it:\n" + gap
				continue
			case more == nil:
				return ""
			}
			if reason = more(at, t); reason == "" {
				return ""
			}
		}
	}
	return reason
}

// modelSaid looks for texts in what the assistant said.
func (x *index) modelSaid(o origin, texts ...string) (reason string) {
	for _, words := range texts {
		if label, body := splitLabel(words); label == "proposed plan" {
			words = body
		}
		if reason == "" && len(quotedLines(words)) > 0 {
			reason = x.said(words, modelWords, o.turn, -1, nil)
		}
	}
	return reason
}

// userSaid looks for words in what the user said, and for the question that they answer.
func userSaid(x *index, it summary.Item, o origin) string {
	return x.said(it.Text, userWords, o.turn, -1, func(at int, t text) string {
		if it.Asked != "" && !x.asks(at, it.Asked) {
			return "no question before them reads like this"
		}
		return wrongCount(t.raw, it.Text)
	})
}

// asks reports whether the call that a result answers puts a question, or words of the assistant do.
func (x *index) asks(at int, question string) bool {
	for i := at; i >= 0 && i > at-20; i-- {
		if slices.ContainsFunc(x.at[i], func(d *call) bool { return holds(normal(d.said), question) }) ||
			x.log[i].Role == thread.Assistant && seek(question).inAny(x.quotable(i)) {
			return true
		}
	}
	return false
}

var countedOut = regexp.MustCompile(`\[… ?([\d,.]+) characters left out ?…\]`)

// wrongCount says where the mark tells another number of characters than were left out there.
func wrongCount(raw, words string) string {
	if m := countedOut.FindStringSubmatchIndex(words); m != nil {
		before, after := strings.TrimSpace(words[:m[0]]), strings.TrimSpace(words[m[1]:])
		told := number(strings.NewReplacer(",", "", ".", "").Replace(words[m[2]:m[3]]))
		_, gap, found := strings.Cut(raw, before)
		right := !found || after == "" || !strings.Contains(gap, after) // it is not known
		for i, part := 0, ""; found && !right; i += len(part) + 1 {     // it may stand there more than once
			if part, _, found = strings.Cut(gap[i:], after); found {
				left := gap[:i+len(part)]
				trimmed := strings.TrimSpace(left)
				right = slices.ContainsFunc([]int{len(left), len(trimmed), utf8.RuneCountInString(left), utf8.RuneCountInString(trimmed)}, func(n int) bool { return near(n, told) })
			}
		}
		if !right {
			return fmt.Sprintf("%d characters were not left out there", told)
		}
	}
	return ""
}

// near allows for white space around a mark.
func near(a, b int) bool { return a-b <= 4 && b-a <= 4 }

// manySentences judges how many more sentences of the user there are said to be.
func manySentences(x *index, n int, _ origin) string {
	all := 0
	for i := range x.log {
		for _, t := range userWords(x, i) {
			all += sentences(t.raw)
		}
	}
	if n > all {
		return fmt.Sprintf("the user said %d sentences", all)
	}
	return ""
}

// sentences is at most how many sentences, clauses and lines a text has.
func sentences(s string) int { return 1 + len(sentenceEnd.FindAllString(s, -1)) }

var sentenceEnd = regexp.MustCompile(`\n|[.?!;,] `)

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
