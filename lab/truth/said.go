package truth

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// userWords are what the user said in a message: a plain message of his, or what
// a tool hands on in his name.
func (j *judge) userWords(m *thread.Message) []text {
	switch {
	case m.StartsTurn():
		return j.texts(m)
	case m.Role == thread.Tool:
		if s := m.Said(); s != "" {
			return []text{newText(s)}
		}
	}
	return nil
}

// commandTags stand around the parts of a command that a user typed, and are nobody's
// words.
var commandTags = strings.NewReplacer("<command-name>", "", "</command-name>", "", "<command-args>", "", "</command-args>", "")

// texts are what a message says, tool results and calls left out.
func (j *judge) texts(m *thread.Message) []text {
	if t, ok := j.clean[m.ID]; ok && m.ID != "" {
		return t
	}
	var out []text
	if s := m.Text(); s != "" {
		out = append(out, newText(commandTags.Replace(s)))
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case thread.Media:
			if p.Text != "" {
				out = append(out, newText(p.Text))
			}
		case thread.Opaque:
			if p.Text != "" {
				out = append(out, newText(p.Text))
			}
		}
	}
	j.clean[m.ID] = out
	return out
}

// said judges what a summary puts into somebody's mouth.
func (j *judge) said(s summary.Summary) {
	if s.CurrentTask != "" {
		j.byUser(kindTask, j.all, s.CurrentTask, 0, nil)
	}
	for _, it := range s.Requests {
		j.byUser(kindRequest, j.log, it.Text, it.Turn, it.Sources)
	}
	for _, it := range s.Constraints {
		j.byUser(kindConstraint, j.log, it.Text, it.Turn, it.Sources)
	}
	for _, it := range s.Conclusions {
		j.byAssistant(kindConclusion, it.Text, it.Turn, it.Sources)
	}
	for _, d := range s.Decisions {
		j.byAssistant(kindDecision, d.Decision, d.Turn, d.Sources)
		if d.Rationale != "" {
			j.byAssistant(kindDecision, d.Rationale, d.Turn, d.Sources)
		}
	}
	for _, o := range s.OpenItems {
		j.byAssistant(kindOpenItem, o.Description, o.Turn, o.Sources)
		if o.Context != "" {
			j.byAssistant(kindOpenItem, o.Context, o.Turn, o.Sources)
		}
	}
}

func (j *judge) byUser(k Kind, log []thread.Message, words string, turn int, sources []thread.ID) {
	st := j.claim(words, sources)
	lines := quotedLines(words)
	var elsewhere []int
	bestGaps, bestGap := -1, ""
	for i := range log {
		m := &log[i]
		for _, t := range j.userWords(m) {
			if turn > 0 && m.Turn != turn {
				if len(elsewhere) < 3 && holds(t.norm, words) {
					elsewhere = append(elsewhere, i)
				}
				continue
			}
			if holds(t.norm, words) {
				j.isTrue(k)
				j.leftOut(t.raw, words, st, i)
				return
			}
			if n, gap, ok := inOrder(t.norm, lines); ok && (bestGaps < 0 || n < bestGaps) {
				bestGaps, bestGap = n, gap
			}
		}
	}
	if bestGaps >= 0 {
		j.isTrue(k)
		j.say(kindWordsGap, bestGaps == 0, st, "words of the user between these lines were left out, and nothing marks it:\n"+bestGap)
		return
	}
	reason := "no message of the user holds these words"
	if turn > 0 {
		reason = fmt.Sprintf("no message of the user in turn %d holds these words", turn)
	}
	if len(elsewhere) > 0 {
		reason += "; they stand in another turn"
	}
	j.isFalse(k, st, reason, elsewhere...)
}

// unescaped takes out the backslashes of a text in double quotes of a shell.
var unescaped = strings.NewReplacer("\\`", "`", `\$`, "$", `\"`, `"`, `\\`, `\`)

func (j *judge) byAssistant(k Kind, words string, turn int, sources []thread.ID) {
	st := j.claim(words, sources)
	through := "" // the argument of a call that holds the words
	switch label, body := splitLabel(words); label {
	case "proposed plan":
		words = body
	case "in the commit message", "in the pull request", "in the issue", "in a comment":
		words, through = body, "body"
	}
	lines := quotedLines(words)
	if len(lines) == 0 {
		j.isTrue(k)
		return
	}
	gaps, gap, from := -1, "", -1
	each := make([]bool, len(lines))
	var elsewhere []int
	for i := range j.log {
		m := &j.log[i]
		if m.Role != thread.Assistant {
			continue
		}
		texts := j.texts(m)
		for _, c := range j.at[i] { // plans that it put before the user
			if p := c.str("plan"); p != "" {
				texts = append(slices.Clip(texts), newText(p))
			}
			if through != "" && c.end == succeeded {
				texts = append(slices.Clip(texts), newText(c.line), newText(unescaped.Replace(c.line)), newText(c.str(through)))
			}
		}
		for _, t := range texts {
			n, g, ok := inOrder(t.norm, lines)
			if turn > 0 && m.Turn != turn {
				if ok && len(elsewhere) < 3 {
					elsewhere = append(elsewhere, i)
				}
				continue
			}
			if ok && (gaps < 0 || n < gaps) {
				gaps, gap, from = n, g, i
			}
			for l := range lines {
				each[l] = each[l] || holds(t.norm, lines[l].text)
			}
		}
	}
	if gaps >= 0 {
		j.isTrue(k)
		if len(lines) > 1 {
			j.say(kindWordsGap, gaps == 0, st, fmt.Sprintf("words between these lines were left out, and nothing marks it (%d such places):\n%s", gaps, gap), from)
		}
		return
	}
	reason := "no message of the assistant holds these words"
	if turn > 0 {
		reason = fmt.Sprintf("no message of the assistant in turn %d holds these words", turn)
	}
	missing := ""
	for l, ok := range each {
		if !ok {
			missing = lines[l].text
			break
		}
	}
	switch {
	case missing == "":
		reason = "its lines do not stand in this order in one message"
	case len(lines) > 1:
		reason += ": " + clip(missing, 120)
	}
	if len(elsewhere) > 0 {
		reason += "; they stand in another turn"
	}
	j.isFalse(k, st, reason, elsewhere...)
}

// plan judges the agent's list of things to do.
func (j *judge) plan(steps []summary.Step) {
	for _, s := range steps {
		statement := "[" + s.Status + "] " + s.Text
		st := j.claim(statement, s.Sources)
		if j.ticked(s) {
			j.isTrue(kindPlan)
			continue
		}
		key := normal(s.Text)
		var same []todo
		for _, t := range j.todo {
			if sameLine(key, normal(t.text)) {
				same = append(same, t)
			}
		}
		if len(same) > 0 {
			ok := false
			for _, t := range same {
				ok = ok || t.status == s.Status
			}
			last := same[len(same)-1]
			j.say(kindPlan, ok, st, fmt.Sprintf("its status is %q", last.status), last.at)
			continue
		}
		earlier := -1
		for _, c := range j.calls {
			if (listTool.MatchString(c.Name) || strings.HasPrefix(c.Name, "Task")) && strings.Contains(normal(c.said), strings.TrimSuffix(key, "…")) {
				earlier = c.at
			}
		}
		words := false
		for i := range j.log {
			if j.log[i].Role == thread.Assistant {
				for _, t := range j.texts(&j.log[i]) {
					words = words || holds(t.norm, s.Text)
				}
			}
		}
		switch {
		case j.listed && earlier >= 0:
			at := j.emptied
			if len(j.todo) > 0 {
				at = j.todo[len(j.todo)-1].at
			}
			j.isFalse(kindPlan, st, "the agent's last list does not hold it any more", earlier, at)
		case words || earlier >= 0:
			j.isTrue(kindPlan)
		default:
			j.isFalse(kindPlan, st, "no list and no words of the assistant hold it")
		}
	}
}

// ticked reports whether a Markdown file holds the step with a box of that status, or its
// text as a heading over steps of that status.
func (j *judge) ticked(s summary.Step) bool {
	text := strings.TrimSuffix(s.Text, "…")
	if text == "" {
		return false
	}
	for _, f := range j.replay.files {
		if !strings.HasSuffix(f.path, ".md") || f.deleted || !f.whole || len(f.parts) != 1 {
			continue
		}
		under, done, open := false, 0, 0
		fenced := false
		for _, line := range f.parts[0].lines {
			trimmed := strings.TrimSpace(line)
			if strings.HasPrefix(trimmed, "```") {
				fenced = !fenced
			}
			if fenced {
				continue
			}
			if strings.HasPrefix(line, "#") {
				under = strings.HasPrefix(strings.TrimLeft(line, "# "), text)
			}
			_, rest, boxed := strings.Cut(trimmed, "[")
			if !boxed || len(rest) < 3 || rest[1] != ']' {
				continue
			}
			ticked := rest[0] == 'x' || rest[0] == 'X'
			if strings.HasPrefix(strings.TrimSpace(rest[2:]), text) && ticked == (s.Status == "completed") {
				return true
			}
			if under && ticked {
				done++
			} else if under {
				open++
			}
		}
		switch s.Status {
		case "completed":
			if done > 0 && open == 0 {
				return true
			}
		case "in_progress":
			if done > 0 && open > 0 {
				return true
			}
		case "pending":
			if done == 0 && open > 0 {
				return true
			}
		}
	}
	return false
}

// leftOut judges the numbers in the marks of elision.
func (j *judge) leftOut(raw, words string, st claim, from int) {
	marks := countedOut.FindAllStringSubmatchIndex(words, -1)
	start := 0
	for n, m := range marks {
		end := len(words)
		if n+1 < len(marks) {
			end = marks[n+1][0]
		}
		before, after := strings.TrimSpace(words[start:m[0]]), strings.TrimSpace(words[m[1]:end])
		start = m[1]
		said, err := strconv.Atoi(strings.NewReplacer(",", "", ".", "").Replace(words[m[2]:m[3]]))
		at := strings.Index(raw, before)
		if err != nil || at < 0 || after == "" {
			j.cannotTell(kindLeftOut)
			continue
		}
		gap := raw[at+len(before):]
		// What comes after may stand more than once.
		ok, close := false, -1
		for i := strings.Index(gap, after); i >= 0 && i < len(gap); {
			left := gap[:i]
			for _, count := range []int{len(left), len([]rune(left)), len(strings.TrimSpace(left)), len([]rune(strings.TrimSpace(left)))} {
				ok = ok || count-said <= 4 && said-count <= 4
			}
			close = len([]rune(left))
			next := strings.Index(gap[i+1:], after)
			if next < 0 {
				break
			}
			i += 1 + next
		}
		if close < 0 {
			j.cannotTell(kindLeftOut)
			continue
		}
		j.say(kindLeftOut, ok, st, fmt.Sprintf("%d characters were left out", close), from)
	}
}

var countedOut = regexp.MustCompile(`\[… ?([\d,.]+) characters left out ?…\]`)
