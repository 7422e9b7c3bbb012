package references

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// fileLines follows the lines of files through a session: when each was known to be in a
// file, and when it was known to be gone, after an edit that removed it or a rewrite
// without it. It holds the lines that went at some time.
type fileLines struct {
	sights map[string][]lineSight // by line
	known  map[string][]string    // by file, its lines so far
}

// lineSight is a message that shows that a line is in a file, or is not there.
type lineSight struct {
	pos   int
	file  string
	there bool
}

// shortestLine is the least length of a line that is followed, in bytes; shorter ones
// stand in a file several times.
const shortestLine = 16

// linesOf follows the lines of files through the results of a session.
func linesOf(all []answer) *fileLines {
	l := &fileLines{sights: map[string][]lineSight{}, known: map[string][]string{}}
	for _, a := range all {
		if a.file == "" || a.result.Outcome == thread.Failure {
			continue
		}
		switch toolclass.ClassOf(a.call.Name) {
		case toolclass.Read:
			l.noteThere(a, a.result.Text())
		case toolclass.Write:
			l.noteGone(a, l.known[a.file], a.args.Get("content").String())
			l.noteThere(a, a.args.Get("content").String())
		case toolclass.Edit:
			edits := []gjson.Result{a.args}
			if list := a.args.Get("edits"); list.IsArray() {
				edits = list.Array()
			}
			for _, e := range edits {
				before, after := firstOf(e, "old_string", "oldText", "old_str"), firstOf(e, "new_string", "newText", "new_str")
				l.noteGone(a, linesIn(before), after)
				l.noteThere(a, after)
			}
		}
	}
	for line, sights := range l.sights {
		if !slices.ContainsFunc(sights, func(s lineSight) bool { return !s.there }) {
			delete(l.sights, line) // it never left
		}
	}
	l.known = nil
	return l
}

func firstOf(v gjson.Result, keys ...string) string {
	for _, key := range keys {
		if x := v.Get(key); x.Exists() {
			return x.String()
		}
	}
	return ""
}

// linesIn are the lines of a text that are long enough to follow, without white space
// and line numbers around them.
func linesIn(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(withoutLineNumber(strings.TrimRight(line, "\r\n"))); len(line) >= shortestLine {
			all = append(all, line)
		}
	}
	return all
}

// noteThere notes that the lines of a text are in a file.
func (l *fileLines) noteThere(a answer, text string) {
	for _, line := range linesIn(text) {
		l.sights[line] = append(l.sights[line], lineSight{a.pos, a.file, true})
		l.known[a.file] = append(l.known[a.file], line)
	}
}

// noteGone notes that lines are gone from a file, but for those in a new text.
func (l *fileLines) noteGone(a answer, lines []string, text string) {
	stays := map[string]bool{}
	for _, line := range linesIn(text) {
		stays[line] = true
	}
	for _, line := range lines {
		if !stays[line] {
			l.sights[line] = append(l.sights[line], lineSight{a.pos, a.file, false})
		}
	}
}

// contains reports whether a line is known to be in some file at a moment, and whether it
// ever was.
func (l *fileLines) contains(line string, at int) (there, told bool) {
	last := map[string]bool{}
	for _, s := range l.sights[line] {
		if s.pos < at {
			last[s.file] = s.there
			told = told || s.there
		}
	}
	for _, is := range last {
		there = there || is
	}
	return there, told
}

// Outdated counts the lines that files lost at some time and that the prompt quotes in
// text of its own: those that are in a file now as current, the others as old.
func (m *Moment) Outdated(s *Shown) Freshness {
	var f Freshness
	counted := map[string]bool{}
	for i := range s.Other {
		text := s.Other[i].Text()
		if r, ok := s.Other[i].Result(); ok {
			text = r.Text()
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if counted[line] {
				continue
			}
			there, told := m.lines.contains(line, m.At)
			counted[line] = true
			if there {
				f.Current++
			} else if told {
				f.Old++
			}
		}
	}
	return f
}
