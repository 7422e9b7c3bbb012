package truth

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

const (
	goneLabel  = "no longer in "
	recapLabel = "the agent's earlier summary"
)

// sourceTexts are the texts that a message holds for quotation: what it says, its
// result with and without line numbers, and the arguments of its calls.
func (j *judge) sourceTexts(at int) []text {
	m := &j.log[at]
	key := "quotes " + m.ID
	if t, ok := j.clean[key]; ok {
		return t
	}
	out := append([]text(nil), j.texts(m)...)
	if res, ok := m.Result(); ok {
		body := res.Text()
		out = append(out, newText(body))
		if c := j.ended[at]; c != nil {
			var lines []string
			numbers := false
			for l := range strings.SplitSeq(body, "\n") {
				if n := numbered.FindString(l); n != "" {
					l, numbers = l[len(n):], true
				}
				lines = append(lines, l)
			}
			if numbers {
				out = append(out, newText(strings.Join(lines, "\n")))
			}
		}
		if t := strings.TrimSpace(body); t != "" && (t[0] == '{' || t[0] == '[') {
			var doc any
			if json.Unmarshal([]byte(t), &doc) == nil {
				out = append(out, newText(strings.Join(leaves(doc), "\n")))
			}
		}
		if res.Structured != "" {
			out = append(out, newText(res.Structured))
		}
	}
	// A result is named for the call that it answers too.
	calls := j.at[at]
	if c := j.ended[at]; c != nil {
		calls = append([]*call{c}, calls...)
	}
	for _, c := range calls {
		out = append(out, newText(c.Arguments))
		for _, l := range leaves(c.args) {
			if strings.ContainsAny(l, " \n") {
				out = append(out, newText(l))
			}
		}
		out = append(out, newText(c.said))
		if c.line != "" && c.line != c.said {
			out = append(out, newText(c.line))
		}
	}
	j.clean[key] = out
	return out
}

// quotes judges facts, identifiers and changes: a label, and lines below it.
func (j *judge) quotes(s summary.Summary) {
	for _, it := range s.Facts {
		j.quote(it)
	}
	for _, it := range slices.Concat(s.Identifiers, s.Reports) {
		j.quote(it)
	}
	for _, it := range s.Changes {
		j.change(it)
	}
}

func splitLabel(s string) (label, body string) {
	first, rest, more := strings.Cut(s, "\n")
	if t := strings.TrimSpace(first); more && strings.HasSuffix(t, ":") {
		return strings.TrimSuffix(t, ":"), rest
	}
	return "", s
}

func (j *judge) quote(it summary.Item) {
	st := j.claim(it.Text, it.Sources)
	if len(it.Sources) == 0 {
		for i := range j.log {
			if m := &j.log[i]; (it.Turn == 0 || m.Turn == it.Turn) && (m.Role == thread.Tool || m.Role == thread.Assistant || m.Kind == thread.Recap) {
				st.at = append(st.at, i)
			}
		}
	}
	label, body := splitLabel(it.Text)
	if label != "" {
		j.label(label, st)
	}
	lines := quotedLines(body)
	if len(lines) == 0 {
		return
	}
	if file, ok := strings.CutPrefix(label, goneLabel); ok {
		j.goneLines(file, lines, st)
	}
	j.stand(kindLine, st, lines)
}

// stand judges whether the lines of an item stand in what it names, and whether
// the places where lines were left out are marked.
func (j *judge) stand(k Kind, st claim, lines []quoted) {
	best, bestGap, bestAt := -1, "", -1
	for _, i := range st.at {
		for _, t := range j.sourceTexts(i) {
			if n, gap, ok := inOrder(t.norm, lines); ok && (best < 0 || n < best) {
				best, bestGap, bestAt = n, gap, i
			}
		}
	}
	if best >= 0 {
		for range lines {
			j.isTrue(k)
		}
		if len(lines) > 1 {
			j.say(kindLinesGap, best == 0, st, fmt.Sprintf("lines between these were left out, and nothing marks it (%d such places):\n%s", best, bestGap), bestAt)
		}
		return
	}
	// Runs of lines between marks may be from different messages.
	whole := true
	n, total, firstGap := 0, 0, ""
	for n < len(lines) {
		end := n + 1
		for end < len(lines) && !lines[end].after {
			end++
		}
		run := lines[n:end]
		g, gap := j.run(k, st, run)
		if g < 0 {
			whole = false
		} else if total += g; firstGap == "" {
			firstGap = gap
		}
		n = end
	}
	if len(lines) > 1 && whole {
		j.say(kindLinesGap, total == 0, st, fmt.Sprintf("lines between these were left out, and nothing marks it (%d such places):\n%s", total, firstGap))
	}
}

// run judges lines that are said to stand together. It returns the gaps between
// them, or -1 when they do not all stand there.
func (j *judge) run(k Kind, st claim, run []quoted) (gaps int, gap string) {
	best := -1
	for _, i := range st.at {
		for _, t := range j.sourceTexts(i) {
			if n, g, ok := inOrder(t.norm, run); ok && (best < 0 || n < best) {
				best, gap = n, g
			}
		}
	}
	if best >= 0 {
		for range run {
			j.isTrue(k)
		}
		return best, gap
	}
	// Lines of records, without punctuation.
	complete, flat := true, false
	for _, l := range run {
		verbatim, one, anywhere := -1, false, false
		for _, i := range st.at {
			texts := j.sourceTexts(i)
			for n := range texts {
				t := &texts[n]
				if holds(t.norm, l.text) {
					verbatim = i
					break
				}
			}
			if verbatim >= 0 {
				break
			}
			for n := range texts {
				t := &texts[n]
				if !t.read {
					t.rec, t.read = readRecords(t.raw), true
				}
				if t.rec == nil {
					continue
				}
				o, a := t.rec.holds(l.text)
				one, anywhere = one || o, anywhere || a
			}
		}
		switch {
		case verbatim >= 0:
			j.isTrue(k)
		case one:
			j.isTrue(k)
			flat = true
		case anywhere:
			complete = false
			j.isFalse(k, st, "fields of different records stand side by side: "+clip(l.text, 160))
		default:
			complete = false
			reason := "no message that it names holds the line: "
			if i := j.elsewhere(l.text); i >= 0 {
				reason = "another message than those that it names holds the line: "
				j.isFalse(k, st, reason+clip(l.text, 160), i)
				continue
			}
			j.isFalse(k, st, reason+clip(l.text, 160))
		}
	}
	if !complete {
		return -1, ""
	}
	if flat {
		return 0, ""
	}
	return 1, "its lines do not stand in this order in one message"
}

func (j *judge) elsewhere(line string) int {
	for i := range j.log {
		for _, t := range j.sourceTexts(i) {
			if holds(t.norm, line) {
				return i
			}
		}
	}
	return -1
}

// label judges what lines are said to be from.
func (j *judge) label(label string, st claim) {
	if strings.HasPrefix(label, recapLabel) {
		ok := false
		for _, i := range st.at {
			ok = ok || j.log[i].Kind == thread.Recap
		}
		j.say(kindLabel, ok, st, "none of the messages that it names is a summary of the agent", st.at...)
		return
	}
	name := strings.TrimPrefix(strings.TrimPrefix(label, goneLabel), "failed ")
	called := false
	for _, i := range st.at {
		calls := j.at[i]
		if c := j.ended[i]; c != nil {
			calls = append([]*call{c}, calls...)
		}
		for _, c := range calls {
			rest := strings.TrimSpace(name)
			if n := len(c.Name); len(rest) >= n && strings.EqualFold(rest[:n], c.Name) {
				rest = strings.TrimSpace(rest[n:])
			}
			if tail(c.path(), rest) || c.takes(rest) || mentions(c.said, rest) {
				j.isTrue(kindLabel)
				return
			}
			if strings.Contains(c.said, strings.TrimPrefix(rest, "…")) {
				j.isTrue(kindLabel)
				return
			}
		}
		called = called || len(calls) > 0
		if holds(newText(j.log[i].Text()).norm, rest0(name)) {
			j.isTrue(kindLabel)
			return
		}
		if c := j.ended[i]; c != nil && strings.Contains(c.out, rest0(name)) {
			j.isTrue(kindLabel)
			return
		}
	}
	if !called {
		j.cannotTell(kindLabel)
		return
	}
	j.isFalse(kindLabel, st, "no call that it names has to do with "+label, st.at...)
}

func rest0(s string) string { return strings.TrimSpace(strings.TrimPrefix(s, "…")) }

// goneLines judges lines that a file is said to have lost.
func (j *judge) goneLines(name string, lines []quoted, st claim) {
	var files []*file
	for _, i := range st.at {
		c := j.ended[i]
		if c == nil && len(j.at[i]) > 0 {
			c = j.at[i][0]
		}
		if c == nil {
			continue
		}
		if p := c.path(); p != "" && (tail(p, name) || tail(name, p)) {
			files = append(files, j.file(p))
		}
	}
	if len(files) == 0 {
		files = j.lookup(name)
	}
	if len(files) == 0 {
		for range lines {
			j.unproved(kindGone, st, "nothing is known of the file "+name)
		}
		return
	}
	for _, l := range lines {
		there, out, doubtful := -1, -1, false
		for _, f := range files {
			t, o, d := f.line(l.text)
			there, out, doubtful = max(there, t), max(out, o), doubtful || d
			if f.deleted {
				out, doubtful = max(out, f.operations[len(f.operations)-1].at), false
			}
		}
		line := clip(l.text, 160)
		switch {
		case there >= 0:
			j.isFalse(kindGone, st, "the file still has the line: "+line, there)
		case out >= 0 && !doubtful:
			j.isTrue(kindGone)
		case out < 0 && doubtful:
			j.unproved(kindGone, st, "it was there, and the file changed later in a way that cannot be followed: "+line)
		case out >= 0:
			j.unproved(kindGone, st, "it was taken out, and the file changed later in a way that cannot be followed: "+line)
		default:
			j.unproved(kindGone, st, "nothing shows that it was taken out: "+line)
		}
	}
}

// told is the form in which changes are told: what was done to which file, a move,
// how many lines, and what they define or were.
var told = regexp.MustCompile(`(?s)^(created|edited|deleted) (\S+?)(?:, (moved (?:from|to) .+?|restored by git))?(?: \((?:\+(\d+))? ?(?:[−-](\d+))? lines?\))?(?:: (.*?))?(?: \| without: (.*))?$`)

// change judges lines that say what an edit changed.
func (j *judge) change(it summary.Item) {
	st := j.claim(it.Text, it.Sources)
	if m := told.FindStringSubmatch(it.Text); m != nil {
		j.told(it, st, m)
		return
	}
	label, body := splitLabel(it.Text)
	var calls []*call
	for _, i := range st.at {
		calls = append(calls, j.at[i]...)
		if c := j.ended[i]; c != nil {
			calls = append(calls, c)
		}
	}
	var texts []text
	ok, reason := false, "it names no call that changed a file"
	for _, c := range calls {
		kind := j.fileTool(c)
		if kind == "read" || kind == "" && (c.line == "" || findTool.MatchString(c.Name)) {
			continue
		}
		switch {
		case c.end != succeeded && !c.patched:
			reason = "the call failed: " + clip(strings.TrimSpace(c.out), 120)
			continue
		case it.Turn > 0 && c.turn != it.Turn:
			reason = fmt.Sprintf("the call is of turn %d", c.turn)
			continue
		}
		ok = true
		for _, t := range leaves(c.args) {
			texts = append(texts, newText(t))
		}
		texts = append(texts, newText(c.said))
	}
	if !ok {
		j.isFalse(kindChange, st, reason, st.at...)
		return
	}
	if label != "" {
		j.label(label, st)
	}
	for _, l := range quotedLines(body) {
		found := false
		for _, form := range []string{l.text, strings.TrimSpace(strings.TrimLeft(l.text, "+-~→>"))} {
			for _, t := range texts {
				found = found || holds(t.norm, form)
			}
		}
		for _, part := range strings.Split(l.text, " → ") {
			all := false
			for _, t := range texts {
				all = all || holds(t.norm, strings.Trim(part, "`\"+- "))
			}
			if !strings.Contains(l.text, " → ") {
				break
			}
			if found = all; !all {
				break
			}
		}
		j.say(kindChange, found, st, "the arguments of the call do not hold: "+clip(l.text, 160), st.at...)
	}
}

// restoring puts files back to what was committed.
var restoring = regexp.MustCompile(`git\b.*\b(?:checkout|restore)\b`)

// told judges a change in the form of the same name.
func (j *judge) told(it summary.Item, st claim, m []string) {
	what, file, move, rest := m[1], m[2], m[3], m[6]
	if m[7] != "" { // what it took out
		rest = strings.TrimPrefix(rest+" ; "+m[7], " ; ")
	}
	named := func(o operation) bool {
		return (it.Turn == 0 || o.turn == it.Turn) && (len(st.at) == 0 || o.call != nil && (slices.Contains(st.at, o.call.at) || slices.Contains(st.at, o.call.result)))
	}
	var did []operation
	var last operation
	moved := false
	var failedAt []int
	for _, f := range j.lookup(file) {
		for _, o := range f.operations {
			if o.what == "read" || !named(o) {
				continue
			}
			did, last = append(did, o), o
			moved = moved || move != "" && holds(o.what+" "+normal(o.path), move) || strings.HasPrefix(move, o.what) && tail(o.path, strings.TrimSpace(strings.TrimPrefix(move, o.what)))
		}
		for _, o := range f.failed {
			if named(o) {
				failedAt = append(failedAt, o.at)
			}
		}
	}
	if move == "restored by git" {
		moved = slices.ContainsFunc(j.calls, func(c *call) bool {
			return (it.Turn == 0 || c.turn == it.Turn) && restoring.MatchString(c.line) && mentions(c.line, file)
		})
		j.say(kindChange, moved, st, "no command of git puts it back")
		return
	}
	ok, reason := false, "no call that it names changed the file in that turn"
	for _, o := range did {
		switch what {
		case "created":
			ok = ok || o.what == "created" && !o.known || o.what == "moved from"
			reason = "it was there before"
		case "edited":
			ok = ok || o.what == "edited" || o.what == "created" || o.what == "moved from" || o.what == "moved to"
		case "deleted":
			ok = last.what == "deleted" || last.what == "moved to"
			reason = "it was there again"
		}
	}
	if len(did) == 0 && len(failedAt) > 0 {
		reason = "the call failed"
	}
	if !ok && len(failedAt) == 0 && j.perhaps(file, it.Turn) {
		j.unproved(kindChange, st, "the command that would have changed it need not have run")
		return
	}
	if !ok && len(failedAt) == 0 && j.mayHave(file, it.Turn) {
		j.cannotTell(kindChange)
		return
	}
	j.say(kindChange, ok, st, reason, failedAt...)
	if !ok {
		return
	}
	if move != "" {
		j.say(kindChange, moved, st, "the log has no such move")
	}
	if m[4]+m[5] != "" {
		j.changedLines(st, did, m[4], m[5])
	}
	if rest == "" {
		return
	}
	var texts []text
	for _, o := range did {
		for _, l := range leaves(o.call.args) {
			texts = append(texts, newText(l))
		}
		texts = append(texts, newText(o.call.said))
	}
	stands := func(s string) bool {
		return slices.ContainsFunc(texts, func(t text) bool { return holds(t.norm, s) })
	}
	if from, to, ok := strings.Cut(rest, " → "); ok && stands(from) && stands(to) || stands(rest) {
		j.isTrue(kindChangeWords)
		return
	}
	parts := strings.Split(rest, " ; ")
	for i := 0; i < len(parts); i++ {
		if moreTold.MatchString(parts[i]) {
			continue
		}
		// The words themselves may hold the mark between parts.
		n := i + 1
		for n < len(parts) && !stands(strings.Join(parts[i:n], " ; ")) {
			n++
		}
		words := strings.Join(parts[i:n], " ; ")
		if stands(words) {
			i = n - 1
			j.isTrue(kindChangeWords)
			continue
		}
		j.isFalse(kindChangeWords, st, "the arguments of the calls do not hold: "+clip(parts[i], 160), st.at...)
	}
}

var moreTold = regexp.MustCompile(`^… ?\d+ more$`)

// changedLines judges how many lines were added and taken.
func (j *judge) changedLines(st claim, did []operation, added, removed string) {
	a, _ := strconv.Atoi(added)
	r, _ := strconv.Atoi(removed)
	var sum change
	for _, o := range did {
		for i, n := range o.size {
			sum[i].added += n.added
			sum[i].removed += n.removed
		}
	}
	for _, n := range sum {
		if n.added == a && n.removed == r {
			j.isTrue(kindChangeLines)
			return
		}
	}
	j.isFalse(kindChangeLines, st, fmt.Sprintf("the calls added %d lines and took %d", sum[0].added, sum[0].removed))
}
