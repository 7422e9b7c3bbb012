package summarize

import "strings"

const (
	// reasonWorth is the score of a line of a comment that says why the code is as it
	// is, definedWorth that of a line that defines something. A line of code that only
	// holds identifiers has 0: it tells a reader less.
	reasonWorth  = 20
	definedWorth = 10
	// leastReason is how long a comment is at the least that can give a reason, in bytes.
	leastReason = 40
)

// worthOfCode returns what a line of a file that was read tells by its form.
func worthOfCode(text string) func(n int, line string) float32 {
	reasons := reasonComments(text)
	return func(n int, line string) float32 {
		switch {
		case reasons[n]:
			return reasonWorth
		case Defines(line):
			return definedWorth
		}
		return 0
	}
}

// reasonComments returns the numbers of the lines of a file that belong to a comment
// which says why the code is as it is, or what must not be done with it. No other line
// of the file tells that.
func reasonComments(text string) map[int]bool {
	found := map[int]bool{}
	first, next, size, reason := 0, 0, 0, false // the comment that is being read
	end := func() {
		if reason && size >= leastReason {
			for n := first; n < next; n++ {
				found[n] = true
			}
		}
		size, reason = 0, false
	}
	for n, p := range lineSpans(text) {
		said := commentText(text[afterLineNumber(text, p):p.to])
		if said == "" {
			end()
			continue
		}
		if size == 0 {
			first = n
		}
		next, size = n+1, size+len(said)
		cues, _ := cuesOf(said)
		reason = reason || cues&(reasonCue|ruleCue) != 0
	}
	end()
	return found
}

// commentMarks begin the lines of comments.
var commentMarks = [...]string{"//", "# ", "* ", "-- ", ";; ", "/*", "<!--"}

// commentText is what a line of a comment says; empty for other lines.
func commentText(line string) string {
	for _, mark := range commentMarks {
		if rest, ok := strings.CutPrefix(line, mark); ok {
			return strings.TrimLeft(rest, "/* \t")
		}
	}
	return ""
}
