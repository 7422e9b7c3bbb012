package truth

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// failing are lines by which builds, tests and linters say that something is
// wrong, whatever exit code a pipe lets through.
var (
	failing = regexp.MustCompile(`(?m)^\s*(?:--- FAIL|FAIL\b|FAILED\b|.*\bERROR task failed|.*[1-9]\d* (?:tests? )?failed\b|npm ERR!|error(?:\[E\d+\])?: |.*: error(?: TS\d+)?: |panic: |make: \*\*\*|Traceback \(most recent call last\)|.*exit status [1-9]|.*\.go:\d+:\d+: |fatal: )`)
	passing = regexp.MustCompile(`(?mi)^\s*(?:ok\s+\S+|PASS\b|.*\b0 issues|.*\b\d+ passed|.*\ball (?:tests|checks) pass|.*\b0 errors\b|.*\b0 fail|.*Fixed \d+ files|.*No fixes applied|Done\b|.*Finished\b|.*\bsuccess)`)
	wrong   = regexp.MustCompile(`(?i)\b(error|fail|not found|no such|denied|refus|cannot|unable)`)
)

// calledWith are the calls that a text begins with the name of, and whose arguments the rest of
// it tells.
func (x *index) calledWith(said string, o origin) (out []*call) {
	for _, d := range x.calls {
		input, ok := strings.CutPrefix(said, d.Name)
		if ok && o.includes(d.turn, d.at, d.result) && (input == "" || input[0] == ' ') && d.takes(input) {
			out = append(out, d)
		}
	}
	return out
}

// takes reports whether the words of an input, shortened and put on one line,
// stand in the arguments of a call.
func (d *call) takes(input string) bool {
	if strings.TrimSpace(input) == "" || seek(input).inAny(d.asked) {
		return true
	}
	// name=value pairs, lists and objects: the same words, pieces of them in
	// their order.
	if d.words == "" {
		all := []string{flat(normal(d.Arguments))}
		for _, l := range leaves(d.args) {
			all = append(all, flat(normal(l)))
		}
		for name, v := range d.args {
			all = append(all, flat(normal(name+" "+strings.Join(leaves(v), " "))))
		}
		d.words = strings.Join(all, "|")
	}
	return !slices.ContainsFunc(pieces(input), func(p string) bool { return !inRuns(d.words, tokens(p), 1) })
}

// main is what two runs of the same call have in common.
func (d *call) main() string { return cmp.Or(normal(d.line), d.Arguments) }

// not says why a call did not end as it is told.
func (d *call) not(told thread.Outcome) string {
	switch {
	case told == "" && d.result >= 0:
		return "the call has a result"
	case told != "" && d.result < 0:
		return "the call has no result"
	case told == thread.Failure && d.end != failed && !failing.MatchString(d.out) && (passing.MatchString(d.out) || !wrong.MatchString(d.out)):
		return "nothing in its result says that it failed"
	case told == thread.Success && d.end == failed:
		return "its result says that it failed: " + clip(strings.TrimSpace(d.out), 120)
	case told == thread.Success && d.masked("") && failing.MatchString(d.out) && (!passing.MatchString(d.out) || strings.Contains(d.out, "FAIL")):
		return "its exit code is that of another command, and its output says: " + clip(strings.TrimSpace(failing.FindString(d.out)), 120)
	}
	return ""
}

// called looks for a call, its outcome, and what is told of its result.
func called(x *index, told summary.ToolOutcome, o origin) string {
	head := strings.TrimRight(told.Tool+" "+told.Input, " ")
	if head == "" {
		return "" // the log has the result alone
	}
	reason := "the log has no such call"
	for _, d := range x.calledWith(head, o) {
		if reason = d.not(told.Outcome); told.Outcome == thread.Partial {
			reason = ""
		}
		for name, v := range told.KeyFields {
			reason = cmp.Or(reason, x.field(d, head, name, strings.Join(leaves(v), " ")))
		}
		if told.Error != "" && !d.shows(told.Error) {
			reason = cmp.Or(reason, "its result does not say so: "+clip(told.Error, 120))
		}
		if reason == "" {
			return ""
		}
	}
	return reason
}

// field says why a field is not what a call's result shows.
func (x *index) field(d *call, head, name, v string) string {
	if name == "runs" {
		return x.timesCalled(d, head, number(v))
	}
	if d.result < 0 {
		return "the call has no result"
	}
	if name == "exit_code" {
		if !slices.ContainsFunc(statusSaid.FindAllStringSubmatch(d.out, -1), func(m []string) bool { return m[1]+m[2]+m[3] == v }) {
			return "no harness wrote that status"
		}
		return ""
	}
	lines, filled := 0, 0
	for l := range strings.SplitSeq(strings.Trim(reminders.ReplaceAllString(d.out, ""), "\n"), "\n") {
		if lines++; strings.TrimSpace(l) != "" {
			filled++
		}
	}
	if n, err := strconv.Atoi(v); err == nil && slices.Contains([]string{"lines", "matches", "files", "results"}, name) && (n == lines || n == filled) {
		return ""
	}
	if d.shows(v) {
		return ""
	}
	return fmt.Sprintf("its result does not say %s=%s; it has %d lines, %d of them not empty", name, clip(v, 80), lines, filled)
}

// statusSaid is an exit status where a harness writes it.
var statusSaid = regexp.MustCompile(exitCode.String() + `|(?m)^\[.*ommand .* with exit code (\d+)|<returncode>(\d+)`)

// shows reports whether words stand in a text, line by line or as fields of one of its records.
func (t text) shows(words string) bool {
	for _, w := range []string{words, strings.ReplaceAll(words, " ; ", "\n")} {
		if _, _, ok := inOrder(t.norm(), quotedLines(w)); ok {
			return true
		}
	}
	if rec := t.records(); rec != nil {
		one, _ := rec.holds(words)
		return one
	}
	return false
}

// shows reports whether a result says something, or is quoted with it.
func (d *call) shows(words string) bool {
	if rest, ok := strings.CutPrefix(words, `the result says: "`); ok {
		words = strings.TrimSuffix(rest, `"`)
	}
	return newText(d.out).shows(words)
}

// timesCalled says why a call was not made that often, with the arguments that are told: all of them
// may be meant, those that were answered, those that were not refused, or those that ended like it.
func (x *index) timesCalled(d *call, head string, said int) string {
	var counts [4]int
	for _, o := range x.calledWith(head, origin{}) {
		for i, yes := range []bool{true, o.result >= 0, o.result >= 0 && !o.refused, o.end == d.end} {
			if yes && o.Name == d.Name && (o.line == "" || o.main() == d.main()) {
				counts[i]++
			}
		}
	}
	if !slices.Contains(counts[:], said) {
		return fmt.Sprintf("it was called %d times", counts[0])
	}
	return ""
}

// attempted looks for a call that failed. The form is "call => lines | then the assistant: words |
// edited next: file change | it succeeded later, in turn N".
func attempted(x *index, it summary.Item, o origin) string {
	text := it.Text
	reason := "the messages that it names hold no such call"
	for i := 0; ; {
		n := strings.Index(text[i:], " => ")
		if n < 0 {
			return reason
		}
		head, rest := text[:i+n], text[i+n+4:]
		i += n + 4
		for _, d := range x.calledWith(head, o) {
			if reason = d.not(thread.Failure); reason == "" {
				reason = x.afterFailure(d, rest)
			}
			if reason == "" {
				return ""
			}
		}
	}
}

// afterFailure says what of the text behind a failed call is false: what its result says, and, each
// behind a mark, what came later.
func (x *index) afterFailure(d *call, rest string) string {
	marks := laterMark.FindAllStringSubmatchIndex(rest, -1)
	marks = append(marks, []int{len(rest)})
	if part := rest[:marks[0][0]]; !d.shows(part) && !(d.refused && part == notAllowed) {
		return "its result does not say so: " + clip(part, 120)
	}
	for n, m := range marks[:len(marks)-1] {
		switch words := rest[m[1]:marks[n+1][0]]; rest[m[2]:m[3]] {
		case "then the assistant: ":
			if x.said(words, modelWords, 0, d.at, nil) != "" {
				return "no later message of the assistant holds these words"
			}
		case "edited next: ":
			if !x.editedAfter(d, words) {
				return "no later call that succeeded edits the file so"
			}
		default:
			if reason := x.notLater(d, number(strings.TrimPrefix(words, ", in turn "))); reason != "" {
				return reason
			}
		}
	}
	return ""
}

var laterMark = regexp.MustCompile(` \| (then the assistant: |edited next: |it succeeded later)`)

// editedAfter reports whether a call after a failed one put the words into the file that they
// begin with: "FILE old → new", "FILE with: new", "FILE without: old".
func (x *index) editedAfter(d *call, words string) bool {
	file, change, _ := strings.Cut(words, " ")
	change = strings.TrimPrefix(strings.TrimPrefix(change, "with: "), "without: ")
	for _, e := range x.calls {
		if e.at <= d.at || e.end == failed || !holds(normal(e.said), file) {
			continue
		}
		if notHeld([]text{newText(strings.Join(leaves(e.args), " ")), newText(e.said)}, change, " → ") == "" {
			return true
		}
	}
	return false
}

// core are the commands of a command line that do the work: what only shows,
// filters or changes the folder is left out.
func (d *call) core() (out []string) {
	filter := false
	for i := range d.commands {
		cmd := &d.commands[i]
		if n := cmd.Name(); !filter && n != "" && !idle[n] {
			out = append(out, plainly(cmd))
		}
		filter = cmd.Piped
	}
	return out
}

// again reports whether o does what d did.
func (d *call) again(o *call) bool {
	if o.main() == d.main() {
		return true
	}
	if d.line == "" {
		return o.path() != "" && o.path() == d.path() && o.fileTool() == d.fileTool()
	}
	did, core := o.core(), d.core()
	return len(core) > 0 && !slices.ContainsFunc(core, func(p string) bool { return !slices.Contains(did, p) })
}

// notLater says why a call that failed did not succeed later, in a turn.
func (x *index) notLater(d *call, turn int) string {
	for _, o := range x.calls {
		if o.at > d.at && o.Name == d.Name && o.end == succeeded && (turn == 0 || o.turn == turn) && d.again(o) &&
			(!o.masked("") || !failing.MatchString(o.out) || passing.MatchString(o.out) && !strings.Contains(o.out, "FAIL")) {
			return ""
		}
	}
	return "the same call did not succeed then"
}

// operated looks for a call that changed something in a system, and how it ended.
func operated(x *index, told state.Operation, o origin) string {
	reason := "the log has no such call"
	canceled := told.Outcome == "" && told.Reason != ""
	for _, d := range x.calledWith(strings.TrimRight(told.Tool+" "+told.Input, " "), o) {
		switch {
		case canceled && (d.end != unclear || told.Reason != "a call beside it failed"):
			reason = "it was not canceled"
		case canceled:
			return ""
		case told.Reason != "" && !d.shows(told.Reason) && !(d.refused && told.Reason == notAllowed):
			reason = "its result does not say: " + told.Reason
		default:
			if reason = d.not(told.Outcome); reason == "" {
				return ""
			}
		}
	}
	return reason
}

// notAllowed is told of a call that the user refused without a word.
const notAllowed = "the user did not allow it"
