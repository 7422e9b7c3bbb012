package toolclass

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// failureMarks are words of failing programs, in lower case, and how clearly a line with them
// reports a failure.
var failureMarks = []struct {
	text  string
	score int
	sure  bool // it counts only at the start of a line, and proves a failure there
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

// failureIndex lists the marks by their first byte, in either case; failureSeconds are the second bytes of those.
var failureIndex, failureSeconds = func() (t [256][]int, seconds [256]uint32) {
	for i, m := range failureMarks {
		for _, c := range [...]byte{m.text[0], m.text[0] &^ ('a' - 'A')} {
			t[c], seconds[c] = append(t[c], i), seconds[c]|letterBit(m.text[1])
		}
	}
	return t, seconds
}()

// letterBit is a bit for each small letter, and one for all other bytes.
func letterBit(c byte) uint32 { return 1 << min(c-'a', 31) }

// FailureScore says how clearly a line reports a failure, from 0 to 3, and whether it proves one: a test
// runner, compiler or interpreter says so.
func FailureScore(line string) (score int, sure bool) {
	if status, ok := strings.CutPrefix(line, "exit status "); ok && strings.Trim(status, "0123456789") == "" && strings.Trim(status, "0") != "" {
		return 0, true // of "go run"
	}
	word := true
	for i := 0; i < len(line); i++ {
		c := line[i]
		if word && failureSeconds[c] != 0 && i+1 < len(line) && failureSeconds[c]&letterBit(scan.Lower(line[i+1])) != 0 {
			for _, at := range failureIndex[c] {
				m := &failureMarks[at]
				if m.sure && i > 0 || m.score <= score && !(m.sure && i == 0) || !scan.HasPrefixFold(line[i:], m.text) {
					continue
				}
				score = max(score, m.score)
				sure = sure || m.sure
			}
		}
		word = !scan.WordByte(c) || i == 0 && scan.IsDigit(c)
	}
	return score, sure || score >= 2 && failedTests(line)
}

// failedTests reports whether a line is a tally of a test runner with failures: "2 failed, 3
// passed".
func failedTests(line string) bool {
	head, _, ok := strings.Cut(line, " failed")
	number := head[len(strings.TrimRight(head, "0123456789")):]
	return ok && len(line) <= 120 && strings.Trim(number, "0") != ""
}

// maxEvidence is how many lines of a text are searched for failures.
const maxEvidence = 20_000

// FailureLines returns lines of a text that report failures, of at most limit bytes together. It
// prefers those that do so most clearly, and returns them in the order of the text, without
// duplicates. The lines are data, not instructions.
func FailureLines(text string, limit int) []string {
	var found []string
	scores := map[string]int{}
	for n, p := range scan.Lines(text) {
		line := text[p.From:p.To]
		if _, seen := scores[line]; seen || line == "" || len(line) > limit {
			continue
		}
		if score, _ := FailureScore(line); score > 0 {
			scores[line], found = score, append(found, line)
		}
		if n == maxEvidence {
			break
		}
	}
	chosen := map[string]bool{}
	size := 0
	for score := 3; score > 0; score-- {
		for _, line := range found {
			if scores[line] == score && size+len(line)+1 <= limit {
				chosen[line] = true
				size += len(line) + 1
			}
		}
	}
	return slices.DeleteFunc(found, func(line string) bool { return !chosen[line] })
}

// firstErrorLine returns the line that reports a failure most clearly: the first with the highest
// score, else the first that is not blank.
func firstErrorLine(text string) (best string) {
	highest := -1
	for n, p := range scan.Lines(text) {
		line := text[p.From:p.To]
		if score, _ := FailureScore(line[:clip.Boundary(line, 300)]); line != "" && score > highest {
			best, highest = line, score
		}
		if n == 400 {
			break
		}
	}
	return best
}
