package truth

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// failing are lines by which builds, tests and linters say that something is
// wrong, whatever exit code a pipe lets through.
var (
	failing = regexp.MustCompile(`(?m)^\s*(?:--- FAIL|FAIL\b|FAILED\b|.*\bERROR task failed|.*[1-9]\d* (?:tests? )?failed\b|npm ERR!|error(?:\[E\d+\])?: |.*: error(?: TS\d+)?: |panic: |make: \*\*\*|Traceback \(most recent call last\)|.*exit status [1-9]|.*\.go:\d+:\d+: |fatal: )`)
	passing = regexp.MustCompile(`(?mi)^\s*(?:ok\s+\S+|PASS\b|.*\b0 issues|.*\b\d+ passed|.*\ball (?:tests|checks) pass|.*\b0 errors\b|.*\b0 fail|.*Fixed \d+ files|.*No fixes applied|Done\b|.*Finished\b|.*\bsuccess)`)
)

// callsOf finds the calls that an item names.
func (j *judge) callsOf(tool, input string, turn int, sources []int) []*call {
	var out []*call
	add := func(c *call) {
		if c != nil && (tool == "" || c.Name == tool) && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	for _, at := range sources {
		add(j.ended[at])
	}
	for _, at := range sources {
		for _, c := range j.at[at] {
			if !slices.ContainsFunc(out, func(o *call) bool { return o.at == at }) {
				add(c)
			}
		}
	}
	if len(out) == 0 && len(sources) == 0 {
		for _, c := range j.calls {
			if (turn == 0 || c.turn == turn) && (tool == "" || c.Name == tool) && c.takes(input) {
				add(c)
			}
		}
	}
	return out
}

// takes reports whether the words of an input, shortened and put on one line,
// stand in the arguments of a call.
func (c *call) takes(input string) bool {
	if strings.TrimSpace(input) == "" {
		return true
	}
	if holds(normal(c.said), input) || holds(normal(c.Arguments), input) || c.line != "" && holds(normal(c.line), input) {
		return true
	}
	// name=value pairs, lists and objects: the same words, pieces of them in
	// their order.
	words := func(s string) string { return " " + strings.Join(tokens(s), " ") + " " }
	var all []string
	all = append(all, words(c.Arguments))
	for _, l := range leaves(c.args) {
		all = append(all, words(l))
	}
	for name, v := range c.args {
		all = append(all, words(name+" "+strings.Join(leaves(v), " ")))
	}
	text := strings.Join(all, "|")
	for _, p := range pieces(input) {
		ts := tokens(p)
		for len(ts) > 0 {
			n := len(ts)
			for n > 0 && !strings.Contains(text, " "+strings.Join(ts[:n], " ")+" ") {
				n--
			}
			if n == 0 {
				// The last word of a shortened piece may be cut.
				if len(ts) <= 2 && strings.Contains(text, " "+ts[0]) {
					ts = ts[1:]
					continue
				}
				return false
			}
			ts = ts[n:]
		}
	}
	return true
}

// main is what two runs of the same call have in common.
func (c *call) main() string {
	if c.line != "" {
		return normal(c.line)
	}
	args := maps.Clone(c.args)
	for _, k := range []string{"description", "timeout", "run_in_background", "activeForm"} {
		delete(args, k)
	}
	data, err := json.Marshal(args)
	if err != nil || c.args == nil {
		return c.Arguments
	}
	return string(data)
}

// outcome judges what is said of how a call ended: ok, or why not.
func (c *call) outcome(said thread.Outcome) (ok bool, reason string) {
	switch said {
	case "":
		return c.result < 0, "the call has a result"
	case thread.Failure:
		if c.result < 0 {
			return false, "the call has no result"
		}
		if c.end == failed || failing.MatchString(c.out) || passing.FindString(c.out) == "" && regexp.MustCompile(`(?i)\b(error|fail|not found|no such|denied|refus|cannot|unable)`).MatchString(c.out) {
			return true, ""
		}
		return false, "nothing in its result says that it failed"
	case thread.Success:
		if c.result < 0 {
			return false, "the call has no result"
		}
		switch {
		case c.refused:
			return false, "the user stopped it: " + clip(strings.TrimSpace(c.out), 120)
		case c.end == failed:
			return false, "its result says that it failed: " + clip(strings.TrimSpace(c.out), 120)
		}
		return true, ""
	}
	return true, ""
}

func (j *judge) outcomes(all []summary.ToolOutcome) {
	for _, o := range all {
		statement := strings.TrimSpace(o.Tool + " " + o.Input)
		if o.Outcome != "" && o.Outcome != thread.Success {
			statement += " => " + string(o.Outcome)
		}
		st := j.claim(statement, o.Sources)
		if statement == "" {
			j.cannotTell(kindCallInput)
			continue
		}
		calls := j.callsOf(o.Tool, o.Input, o.Turn, st.at)
		var c *call
		for _, x := range calls {
			if x.takes(o.Input) && (o.Turn == 0 || x.turn == o.Turn) {
				c = x
			}
		}
		if c == nil {
			reason := "the log has no such call"
			if len(calls) > 0 {
				c = calls[len(calls)-1]
				reason = fmt.Sprintf("the call that it names is %s %s, of turn %d", c.Name, clip(normal(c.said), 160), c.turn)
				j.isFalse(kindCallInput, st, reason, c.at)
				continue
			}
			j.isFalse(kindCallInput, st, reason)
			continue
		}
		j.isTrue(kindCallInput)
		if o.Outcome == thread.Partial {
			j.cannotTell(kindCallOutcome)
		} else {
			ok, reason := c.outcome(o.Outcome)
			j.say(kindCallOutcome, ok, st, reason, c.result)
			if ok && o.Outcome == thread.Success && c.masked() {
				j.say(kindMasked, !failing.MatchString(c.out) || passing.MatchString(c.out) && !strings.Contains(c.out, "FAIL"), st, "its exit code is that of another command, and its output says: "+clip(strings.TrimSpace(failing.FindString(c.out)), 120), c.result)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(o.KeyFields)) {
			v := o.KeyFields[name]
			if name == "runs" {
				j.runs(c, v, st, o.Input)
				continue
			}
			ok, reason := j.field(c, name, v)
			j.say(kindCallField, ok, st.and(fmt.Sprintf(" | %s=%v", name, v)), reason, c.result)
		}
		if o.Error != "" {
			j.say(kindCallError, c.shows(o.Error), st.and(" | error: "+o.Error), "its result does not say so", c.result)
		}
	}
}

// masked reports whether the exit code is not that of a build or test of the line.
func (c *call) masked() bool { return c.masks("") }

// masks reports the same of one command; the empty one stands for all checks.
func (c *call) masks(command string) bool {
	for i, cmd := range c.commands {
		plain := normal(cmd.plain())
		if !checks.MatchString(plain) || command != "" && !sameCommand(plain, command) {
			continue
		}
		if cmd.piped || i+1 < len(c.commands) && (c.commands[i+1].orElse || !strings.Contains(c.line, "&&")) {
			return true
		}
	}
	return false
}

var unquoted = strings.NewReplacer(`"`, "", "'", "", `\`, "", " ", "")

// sameCommand compares a command without quotes with one as it was written.
func sameCommand(plain, written string) bool {
	written, cut := strings.CutSuffix(unquoted.Replace(normal(written)), "…")
	plain = unquoted.Replace(plain)
	return plain == written || cut && strings.HasPrefix(plain, written)
}

// behind is what may stand behind a command.
var behind = regexp.MustCompile(`^\s*(?:$|[;|&)<>]|\d>)`)

// runsCommand reports whether a command as it was written is one of the line.
func (c *call) runsCommand(command string) bool {
	if strings.HasSuffix(command, "…") {
		return holds(normal(c.line), command)
	}
	for l := range strings.SplitSeq(strings.ReplaceAll(c.line, "\\\n", " "), "\n") {
		for _, p := range places(normal(l), command) {
			if behind.MatchString(normal(l)[p.to:]) {
				return true
			}
		}
	}
	return len(strings.Split(command, "\n")) > 1 && holds(normal(c.line), command)
}

// goesOn reports whether another command stands behind one in the line.
func (c *call) goesOn(command string) bool {
	for i, cmd := range c.commands[:max(0, len(c.commands)-1)] {
		if sameCommand(normal(cmd.plain()), command) && !c.commands[i+1].orElse {
			return true
		}
	}
	return false
}

// quietTools say nothing where they find nothing.
var quietTools = regexp.MustCompile(`^(?:go (?:build|vet|test -c)|(?:npx |pnpm |yarn |bunx |pnpm exec )?(?:tsc|tsgo|vue-tsc|eslint)|staticcheck|flake8|shellcheck|gofmt -l)\b`)

// silent reports whether a tool that says nothing where it finds nothing said
// nothing, its errors shown.
func (c *call) silent() bool {
	out := strings.TrimSpace(backAt.ReplaceAllString(c.out, ""))
	if out != "" && out != "(no output)" && out != "(Bash completed with no output)" {
		return false
	}
	for _, cmd := range c.commands {
		if quietTools.MatchString(cmd.plain()) && (!cmd.piped || strings.Contains(c.line, "2>&1 |") || strings.Contains(c.line, "|&")) {
			return true
		}
	}
	return false
}

var checks = regexp.MustCompile(`(?i)^(?:go (?:test|build|vet)|.*\b(?:pytest|jest|vitest|tox|lint|golangci-lint|tsc|eslint|mypy|ruff)\b|(?:npm|pnpm|yarn|bun|mise|make|cargo|just)\b.*\b(?:test|check|build|lint|clippy)|make$)`)

// shows reports whether all lines of a quotation stand in a result, in order.
func (c *call) shows(words string) bool {
	if quoted, ok := strings.CutPrefix(words, `the result says: "`); ok {
		words = strings.TrimSuffix(quoted, `"`)
	}
	out := normal(c.out)
	if _, _, ok := inOrder(out, quotedLines(words)); ok {
		return true
	}
	_, _, ok := inOrder(out, quotedLines(strings.ReplaceAll(words, " ; ", "\n")))
	return ok
}

// runs judges how often a call was made: with the same arguments, or with the same
// ones of those that are told.
func (j *judge) runs(c *call, v any, st claim, input string) {
	said, err := strconv.Atoi(fmt.Sprint(v))
	if f, ok := v.(float64); ok {
		said, err = int(f), nil
	}
	var told []string
	for name, v := range c.args {
		if text := normal(strings.Join(leaves(v), " ")); len(text) > 1 && holds(normal(input), text) || holds(text, strings.TrimSpace(input)) {
			told = append(told, name)
		}
	}
	counts := map[int]bool{}
	all, last := 0, c
	for _, same := range []func(*call) bool{
		func(x *call) bool { return x.main() == c.main() },
		func(x *call) bool {
			for _, name := range told {
				if strings.Join(leaves(x.args[name]), " ") != strings.Join(leaves(c.args[name]), " ") {
					return false
				}
			}
			return len(told) > 0
		},
	} {
		made, answered, calm, alike := 0, 0, 0, 0
		for _, x := range j.calls {
			if x.Name != c.Name || !same(x) {
				continue
			}
			made++
			last = x
			if x.result >= 0 {
				answered++
			}
			if !x.refused && x.result >= 0 {
				calm++
			}
			if x.end == c.end {
				alike++
			}
		}
		counts[made], counts[answered], counts[calm], counts[alike] = true, true, true, true
		all = max(all, made)
	}
	j.say(kindCallRuns, err == nil && counts[said], st.and(fmt.Sprintf(" | runs=%v", v)), fmt.Sprintf("it was called %d times", all), last.at)
}

// field judges a key field.
func (j *judge) field(c *call, name string, v any) (bool, string) {
	if c.result < 0 {
		return false, "the call has no result"
	}
	res, _ := j.log[c.result].Result()
	if known, ok := res.KeyFields[name]; ok && fmt.Sprint(known) == fmt.Sprint(v) {
		return true, ""
	}
	if s, ok := v.(string); ok {
		if holds(normal(c.out), s) || holds(normal(res.Structured), s) {
			return true, ""
		}
		if rec := readRecords(c.out); rec != nil {
			if one, _ := rec.holds(s); one {
				return true, ""
			}
		}
		return false, "its result does not say so: " + clip(normal(c.out), 120)
	}
	n := fmt.Sprint(v)
	body := strings.Trim(reminders.ReplaceAllString(c.out, ""), "\n")
	lines, filled := 0, 0
	for l := range strings.SplitSeq(body, "\n") {
		lines++
		if strings.TrimSpace(l) != "" {
			filled++
		}
	}
	switch name {
	case "exit_code":
		return c.harnessSays(n), "no harness wrote that status"
	case "lines", "matches", "files", "results":
		if n == strconv.Itoa(lines) || n == strconv.Itoa(filled) {
			return true, ""
		}
	}
	if slices.Contains(tokens(c.out), n) || strings.Contains(c.out, n) {
		return true, ""
	}
	if list, ok := v.([]any); ok {
		for _, x := range list {
			if !holds(normal(c.out), fmt.Sprint(x)) {
				return false, fmt.Sprintf("its result does not say %v", x)
			}
		}
		return true, ""
	}
	if known, err := json.Marshal(v); err == nil && holds(normal(c.out), string(known)) {
		return true, ""
	}
	return false, fmt.Sprintf("its result does not say so; it has %d lines, %d of them not empty", lines, filled)
}

// harnessSays reports whether an exit status stands where a harness writes it: in one of the first
// lines, or in the last.
func (c *call) harnessSays(code string) bool {
	lines := strings.Split(strings.TrimSpace(c.out), "\n")
	for i, l := range lines {
		if i > 4 && i < len(lines)-1 {
			continue
		}
		if m := exitCode.FindStringSubmatch(l); m != nil && m[1] == code || strings.HasPrefix(l, "[") && strings.Contains(l, "ommand ") && strings.Contains(l, " with exit code "+code) || strings.Contains(l, "<returncode>"+code) {
			return true
		}
	}
	return false
}

var later = regexp.MustCompile(`^it succeeded later(?:, in turn (\d+))?$`)

// attempts judges what failed. Its form is "call => line | then the assistant:
// words | it succeeded later, in turn N".
func (j *judge) attempts(items []summary.Item) {
	for _, it := range items {
		st := j.claim(it.Text, it.Sources)
		var calls []*call
		for _, c := range j.callsOf("", "", it.Turn, st.at) {
			if strings.HasPrefix(it.Text, c.Name) {
				calls = append(calls, c)
			}
		}
		var c *call
		head, rest := "", ""
		for i := 0; c == nil; {
			n := strings.Index(it.Text[i:], " => ")
			if n < 0 {
				break
			}
			head, rest = it.Text[:i+n], it.Text[i+n+4:]
			i += n + 4
			for _, x := range calls {
				if x.takes(strings.TrimSpace(strings.TrimPrefix(head, x.Name))) && (c == nil || c.end != failed && x.end == failed) {
					c = x
				}
			}
		}
		if c == nil {
			j.isFalse(kindAttempt, st, "the messages that it names hold no such call")
			continue
		}
		ok, reason := c.outcome(thread.Failure)
		if ok && it.Turn > 0 && it.Turn != c.turn {
			ok, reason = false, fmt.Sprintf("the call is of turn %d", c.turn)
		}
		j.say(kindAttempt, ok, st, reason, c.at, c.result)
		for i, part := range strings.Split(rest, " | ") {
			switch {
			case i == 0:
				j.say(kindAttemptQuote, c.shows(part) || c.refused && part == "the user did not allow it", st, "its result does not say so", c.result)
			case strings.HasPrefix(part, "then the assistant: "):
				j.after(c, strings.TrimPrefix(part, "then the assistant: "), st)
			case strings.HasPrefix(part, "edited next: "):
				j.say(kindAttemptEdit, j.editedAfter(c, strings.TrimPrefix(part, "edited next: ")), st, "no later call that succeeded edits the file so", c.at)
			case later.MatchString(part):
				j.later(c, later.FindStringSubmatch(part)[1], st)
			}
		}
	}
}

// editedAfter reports whether a call after c put the words into the file that they
// begin with: "FILE old → new", "FILE with: new", "FILE without: old".
func (j *judge) editedAfter(c *call, words string) bool {
	file, change, _ := strings.Cut(words, " ")
	change = strings.TrimPrefix(strings.TrimPrefix(change, "with: "), "without: ")
	for _, e := range j.calls {
		if e.at <= c.at || e.end == failed || !holds(normal(e.Arguments), file) {
			continue
		}
		text := ""
		for _, l := range leaves(e.args) {
			text += " " + normal(l)
		}
		ok := true
		for _, part := range strings.Split(change, " → ") {
			ok = ok && holds(text, strings.TrimSuffix(part, "…"))
		}
		if ok || holds(text, change) {
			return true
		}
	}
	return false
}

// after judges the words of the assistant after a failure.
func (j *judge) after(c *call, words string, st claim) {
	for i := c.at + 1; i < len(j.log); i++ {
		if j.log[i].Role != thread.Assistant {
			continue
		}
		for _, t := range j.texts(&j.log[i]) {
			if holds(t.norm, words) || strings.Contains(t.raw, "```") && holds(normal(fence.ReplaceAllString(t.raw, "")), words) {
				j.isTrue(kindAttemptThen)
				return
			}
		}
	}
	// A sentence may hold the mark between parts.
	if strings.Contains(st.text, " | ") {
		for i := c.at + 1; i < len(j.log); i++ {
			if _, rest, ok := strings.Cut(st.text, "then the assistant: "); ok && j.log[i].Role == thread.Assistant {
				for _, t := range j.texts(&j.log[i]) {
					if holds(t.norm, strings.TrimSuffix(later2.ReplaceAllString(rest, ""), " | ")) {
						j.isTrue(kindAttemptThen)
						return
					}
				}
			}
		}
	}
	j.isFalse(kindAttemptThen, st, "no later message of the assistant holds these words")
}

var later2 = regexp.MustCompile(` \| it succeeded later.*$`)

// core are the commands of a command line that do the work: what only shows,
// filters or changes the folder is left out.
func (c *call) core() []string {
	var out []string
	filter := false
	for _, cmd := range c.commands {
		name := cmd.name()
		if name != "cd" && name != "echo" && name != "export" && name != "set" && name != "sleep" && !filter && len(cmd.words) > 0 {
			out = append(out, cmd.plain())
		}
		filter = cmd.piped
	}
	return out
}

// again reports whether x does what c did.
func (j *judge) again(c, x *call) bool {
	if x.main() == c.main() {
		return true
	}
	if c.line != "" {
		did := x.core()
		core := c.core()
		for _, p := range core {
			if !slices.Contains(did, p) {
				return false
			}
		}
		return len(core) > 0
	}
	return x.path() != "" && x.path() == c.path() && j.fileTool(x) == j.fileTool(c)
}

func (j *judge) later(c *call, turn string, st claim) {
	ok, maybe := false, false
	at := -1
	for _, x := range j.calls {
		if x.at <= c.at || x.Name != c.Name || x.end != succeeded || !j.again(c, x) {
			continue
		}
		at = x.result
		if turn != "" && strconv.Itoa(x.turn) != turn {
			continue
		}
		switch says := passing.MatchString(x.out); {
		case !x.masked() || x.silent() || says && !strings.Contains(x.out, "FAIL"):
			ok = true
		case !failing.MatchString(x.out):
			maybe = true
		}
	}
	if !ok && maybe {
		j.unproved(kindAttemptLater, st, "the exit code of the later run is that of another command, and its output does not tell", at)
		return
	}
	reason := "the same call did not succeed later"
	if at >= 0 {
		reason = "the same call did not succeed in that turn"
	}
	j.say(kindAttemptLater, ok, st, reason, at)
}
