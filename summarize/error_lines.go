package summarize

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
)

// evidence is what the text of a result says about how the call ended.
type evidence uint8

const (
	sureFailure   evidence = 1 << iota // a test runner, compiler or interpreter reports failure
	likelyFailure                      // a line reads like an error
)

// errorMarks are how failing programs report, in lower case, with how telling a
// line with them is. Those with a capital S in how are reports that a program
// only writes when it failed, at the start of a line.
var errorMarks = []struct {
	text  string
	score float32
	sure  bool // only at the start of the line
}{
	{"--- fail", 3, true}, {"fail\t", 3, true}, {"fail:", 3, true}, {"panic:", 3, true}, {"fatal:", 3, true}, {"fatal error", 3, true},
	{"traceback (most recent", 3, true}, {"npm err!", 2, true}, {"error ts", 3, false}, {"error[e", 3, true}, {"error:", 3, false},
	{"✗ ", 2, false}, {"✕ ", 2, false}, {"× ", 2, false}, {"failed", 2, false}, {"failure", 2, false}, {"failing", 2, false}, {"exception", 2, false},
	{"undefined:", 3, false}, {"undefined reference", 3, false}, {"cannot find", 2, false}, {"cannot ", 1, false}, {"not found", 2, false},
	{"no such file", 2, false}, {"permission denied", 2, false}, {"command not found", 2, false}, {"assert", 1, false}, {"expected", 1, false},
	{"unexpected", 2, false}, {"timed out", 2, false}, {"timeout", 1, false}, {"refused", 2, false}, {"denied", 2, false}, {"invalid", 2, false},
	{"error", 1, false}, {"fail ", 2, false}, {"got:", 1, false}, {"want:", 1, false}, {"actual", 1, false}, {"not exist", 2, false}, {"unable to", 2, false},
	{"does not", 1, false}, {"rejected", 2, false}, {"conflict", 2, false}, {"segmentation fault", 3, false}, {"killed", 1, false},
}

// errorIndex lists the marks by their first byte.
var errorIndex = func() (t [256][]int) {
	for i, m := range errorMarks {
		t[m.text[0]] = append(t[m.text[0]], i)
	}
	return t
}()

// errorScore says how clearly a line reports a failure, from 0 to 3, and what
// that proves.
func errorScore(line string) (score float32, ev evidence) {
	word := true
	for i := 0; i < len(line); i++ {
		c := lower(line[i])
		if word {
			for _, at := range errorIndex[c] {
				m := &errorMarks[at]
				if m.sure && i > 0 || m.score <= score && !(m.sure && i == 0) || !hasPrefixFold(line[i:], m.text) {
					continue
				}
				score = max(score, m.score)
				if m.sure && i == 0 {
					ev |= sureFailure
				} else if m.score >= 2 {
					ev |= likelyFailure
				}
			}
		}
		word = !wordByte(line[i]) || i == 0 && isDigit(line[i])
	}
	if score > 0 && ev == 0 {
		return score, 0
	}
	if ev&sureFailure == 0 && score >= 2 && failedTests(line) {
		ev |= sureFailure
	}
	return score, ev
}

// failedTests reports whether a line is the tally of a test runner with failures
// in it: "2 failed, 3 passed".
func failedTests(line string) bool {
	head, _, ok := strings.Cut(line, " failed")
	number := head[len(strings.TrimRight(head, "0123456789")):]
	return ok && len(line) <= 120 && strings.Trim(number, "0") != ""
}

// exitMarks stand before an exit code in what a harness writes around output.
var exitMarks = []string{"exit code ", "exit code: ", "exit_code: ", `exit_code":`, "exited with code ", "exit status ", "exit status: ", "returncode: "}

// exitCode finds the exit code in the first or last lines of a result, where a
// harness writes it; -1 when there is none.
func exitCode(s string) int {
	const edge = 200
	for _, part := range [2]string{s[:min(edge, len(s))], s[max(0, len(s)-edge):]} {
		for i := 0; i < len(part); i++ {
			if c := lower(part[i]); c != 'e' && c != 'r' {
				continue
			}
			for _, m := range exitMarks {
				if !hasPrefixFold(part[i:], m) {
					continue
				}
				if code, ok := after(strings.TrimLeft(part[i+len(m):], " "), ""); ok {
					return code
				}
			}
		}
	}
	return -1
}

// artifactMention is a pointer to content put aside, as our renderer writes it.
type artifactMention struct{ id, description string }

const artifactMark = "[Externalized Content - artifact:"

// mentionedArtifacts finds the pointers in a text.
func mentionedArtifacts(s string) []artifactMention {
	var out []artifactMention
	for len(out) < 32 {
		_, rest, ok := strings.Cut(s, artifactMark)
		if !ok {
			break
		}
		s = rest
		id, _, ok := strings.Cut(rest[:min(len(rest), 200)], "]")
		if ok && !strings.ContainsAny(id, " \n\t\"") {
			about := strings.TrimPrefix(strings.TrimLeft(rest[len(id)+1:], "\n "), "Summary: ")
			line, _, _ := strings.Cut(about, "\n")
			out = append(out, artifactMention{id, clip.Brief(line, maxLine)})
		}
	}
	return out
}

// What is told of a failure, in bytes: among the calls, and in the story.
const (
	maxErrorText = 420
	maxReason    = 300
)

// errorText joins the lines that matter of a failure, the most telling first
// chosen, in their order.
func errorText(r *resultFacts) (string, []mention) {
	chosen := map[string]bool{}
	size, n := 0, 0
	for score := float32(3); score >= 1; score-- {
		for i := range r.errors {
			if p := &r.errors[i]; p.score == score && size+len(p.text) <= maxErrorText && n < 6 {
				chosen[p.text] = true
				size, n = size+len(p.text), n+1
			}
		}
	}
	var lines []string
	var idents []mention
	for i := range r.errors {
		if p := &r.errors[i]; chosen[p.text] {
			delete(chosen, p.text)
			lines, idents = append(lines, p.text), append(idents, p.idents...)
		}
	}
	if len(lines) == 0 {
		for _, l := range []string{r.first, r.last} {
			if l != "" && !slices.Contains(lines, l) {
				lines = append(lines, clip.Brief(l, maxLine))
			}
		}
	} else if r.last != "" && !slices.Contains(lines, r.last) && len(r.last) < 100 {
		lines = append(lines, r.last)
	}
	return strings.Join(lines, "\n"), idents
}

// reason is what a failed result says about why: its most telling lines, in order.
func reason(r *resultFacts) (string, []mention) {
	found := diagnostics(r)
	best := float32(0)
	for _, p := range found {
		best = max(best, telltale(p))
	}
	var lines []string
	var idents []mention
	size := 0
	for _, p := range found {
		if telltale(p) < best || exitCode(p.text) >= 0 || slices.Contains(lines, p.text) {
			continue
		}
		text := clip.Brief(p.text, 160)
		if size += len(text); len(lines) > 0 && size > maxReason {
			break
		}
		lines, idents = append(lines, text), append(idents, p.idents...)
	}
	if len(lines) > 0 {
		return strings.Join(lines, " ; "), idents
	}
	for n := range r.keys {
		if p := &r.keys[n]; placed(p.text) {
			return clip.Brief(p.text, 160), p.idents
		}
	}
	for _, line := range []string{r.first, r.last} {
		if line != "" && exitCode(line) < 0 && line != "(no output)" {
			return clip.Brief(line, 140), nil
		}
	}
	return "", nil
}

// diagnostics are the lines of a failed output that report an error, and those that a
// compiler or a linter writes about a column of a file, mostly without any such word, in
// order.
func diagnostics(r *resultFacts) []*piece {
	all := make([]*piece, 0, len(r.errors))
	for n := range r.errors {
		all = append(all, &r.errors[n])
	}
	if r.source == inSearch || r.source == inRead {
		return all
	}
	for n := range r.keys {
		if p := &r.keys[n]; p.window == 0 && inColumn(p.text) {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b *piece) int { return a.line - b.line })
	return all
}

// telltale is how much a line of a failed output says about why: more where it names
// a place in a file.
func telltale(p *piece) float32 {
	score := min(p.score, 2)
	if p.score == 0 && inColumn(p.text) {
		score = 1
	}
	if placed(p.text) {
		score += 2
	}
	return score
}

// inColumn reports whether a line begins with a column in a file: "a/b.go:12:3: ".
func inColumn(s string) bool {
	if !placed(s) {
		return false
	}
	rest := strings.TrimLeft(s[strings.IndexAny(s, ":(")+1:], "0123456789")
	if rest == "" || rest[0] != ':' && rest[0] != ',' {
		return false
	}
	column := strings.TrimLeft(rest[1:], "0123456789")
	return len(column) < len(rest)-1 && column != "" && (column[0] == ':' || column[0] == ')')
}

// placed reports whether a line begins with a place in a file: "a/b.go:12:3: ".
func placed(s string) bool {
	at := strings.IndexByte(s, ':')
	if open := strings.IndexByte(s, '('); open > 0 && (at < 0 || open < at) {
		at = open // src/a.ts(12,3): error
	}
	return at > 2 && at+1 < len(s) && isDigit(s[at+1]) && strings.IndexByte(s[:at], '.') > 0 && !strings.ContainsAny(s[:at], " \t")
}
