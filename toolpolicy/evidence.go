package toolpolicy

import (
	"strconv"
	"strings"
)

// exitMarks are the words with which agents tell how a command ended, in lower
// case; a number follows.
var exitMarks = []string{
	"exit code ", "exit code: ", "exit_code: ", "exit_code\":", "exited with code ", "exit status ", "exit status: ",
	"returncode: ", "process exited with code ", "command exited with code ",
}

// exitCode finds the exit code that a harness wrote beside the output: in the
// first or last lines, where it is not the output of the command itself.
func exitCode(text string) (int, bool) {
	const edge = 240
	if code, ok := exitIn(head(text, edge)); ok {
		return code, true
	}
	if len(text) > edge {
		return exitIn(text[len(text)-edge:])
	}
	return 0, false
}

func exitIn(s string) (int, bool) {
	s = strings.ToLower(s)
	for _, mark := range exitMarks {
		_, rest, ok := strings.Cut(s, mark)
		if !ok {
			continue
		}
		rest = strings.TrimLeft(rest, " ")
		n := 0
		for n < len(rest) && n < 4 && (rest[n] >= '0' && rest[n] <= '9' || n == 0 && rest[n] == '-') {
			n++
		}
		if code, err := strconv.Atoi(rest[:n]); err == nil {
			return code, true
		}
	}
	return 0, false
}

// errorWords begin or mark a line that reports a failure, in lower case.
var errorWords = []string{
	"error:", "error[", "fatal:", "panic:", "exception", "traceback", "--- fail", "fail:", "failed", "failure", "not found",
	"no such file", "permission denied", "cannot ", "undefined:", "assert", "timed out", "denied", "refused", "error",
}

// firstErrorLine returns the line that most clearly reports a failure: the
// first with the strongest word, else the first that is not empty.
func firstErrorLine(text string) string {
	best, bestAt := "", len(errorWords)
	first := ""
	for n, rest := 0, text; rest != "" && n < 400; n++ {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if first == "" {
			first = line
		}
		lower := strings.ToLower(head(line, 300))
		for at, word := range errorWords[:bestAt] {
			if strings.Contains(lower, word) {
				best, bestAt = line, at
				break
			}
		}
	}
	if best != "" {
		return best
	}
	return first
}
