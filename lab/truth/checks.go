package truth

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// check judges how a check is said to have gone: by its last run. Of a run that may not have
// taken place, or that ran while changes were put aside, nothing need be said: then one before
// it may be meant.
func (j *judge) check(c state.Check) {
	st := j.claim(fmt.Sprintf("%s => %s", c.Command, c.Outcome), c.Sources)
	var last *call
	ok, reason := false, "the log has no such command"
	for i := len(j.calls) - 1; i >= 0 && !ok; i-- {
		x := j.calls[i]
		if x.line == "" || x.result < 0 || !x.runsCommand(c.Command) || c.Dir != "" && !j.ranIn(x, c.Command, c.Dir) {
			continue
		}
		aside := j.aside(x, c.Command)
		open := aside || !x.reached(c.Command)
		if last != nil && open && (c.Turn == 0 || c.Turn != x.turn) {
			continue
		}
		var why string
		if ok, why = j.ranSo(c, x); ok && aside {
			ok, why = false, "it ran while changes were put aside, and they are back"
		}
		if last == nil || ok {
			last, reason = x, why
		}
		if !open {
			break
		}
	}
	switch {
	case last == nil:
		j.isFalse(kindCheck, st, reason)
		return
	case !ok && reason == "":
		j.cannotTell(kindCheck) // what comes behind it may have failed
		return
	case ok && c.Outcome == thread.Success && last.masks(c.Command) && !passing.MatchString(last.out) && !last.silent() && !last.prints0():
		j.unproved(kindCheck, st, "its exit code is that of another command, and its output does not tell", last.result)
	case ok && c.Outcome == thread.Failure && last.others(c.Command) && !blaming.MatchString(c.Line):
		j.unproved(kindCheck, st, "another command of the line may have failed, and none of its lines is told", last.result)
	default:
		j.say(kindCheck, ok, st, reason, last.result)
	}
	for _, p := range c.Since {
		j.since(p, last, st)
	}
}

// ranSo reports whether a call ran a check as it is told, or else why not; without a reason
// nothing tells.
func (j *judge) ranSo(c state.Check, x *call) (bool, string) {
	says := failing.MatchString(x.out)
	switch {
	case c.Turn > 0 && c.Turn != x.turn:
		return false, fmt.Sprintf("it ran last in turn %d", x.turn)
	case c.Outcome == thread.Success && x.end == failed:
		if x.goesOn(c.Command) {
			return false, ""
		}
		return false, "its last run failed: " + clip(strings.TrimSpace(x.out), 120)
	case c.Outcome == thread.Success && x.masks(c.Command) && says && !passing.MatchString(x.out):
		return false, "its output says: " + clip(strings.TrimSpace(failing.FindString(x.out)), 120)
	case c.Outcome == thread.Failure && x.end != failed && !says && !x.printsStatus():
		return false, "nothing in its output says that it failed"
	case c.Line != "" && !x.shows(c.Line):
		return false, "its output does not say: " + c.Line
	}
	return true, "nothing"
}

// since judges that a file changed after a run, or that git changed some.
func (j *judge) since(p string, last *call, st claim) {
	st = st.and(" | since then: " + p)
	if _, command, ok := strings.Cut(p, "what `"); ok {
		command, _, _ = strings.Cut(command, "`")
		at := -1
		for _, x := range j.calls {
			ran := x.at >= last.at
			for word := range strings.FieldsSeq(command) {
				ran = ran && strings.Contains(x.line, strings.TrimSuffix(word, "…"))
			}
			if ran && (x.end == succeeded || !strings.HasSuffix(p, "` changed") || x.goesOn(command)) {
				at = x.at
			}
		}
		j.say(kindSince, at >= 0, st, "no such command succeeded after the last run", last.result)
		return
	}
	_, when, turn := j.changedAfter(p, last.result)
	if when < 0 && j.mayHave(p, 0) {
		j.cannotTell(kindSince)
		return
	}
	j.say(kindSince, when >= 0, st, fmt.Sprintf("it was not changed after the last run, in turn %d", turn), last.result)
}

// blaming are lines in which a check says what is wrong.
var blaming = regexp.MustCompile(failing.String() + `|(?i)\b[1-9]\d* (?:issues?|problems?|errors?|failing|fail|failures?|files? would)\b|FAIL|Code style issues|would be reformatted|not ok`)

// statusLine is a line in which a command line prints an exit status.
var statusLine = regexp.MustCompile(`(?m)^[^\n$]{0,40}?[:= ]?(\d{1,3})[^\n\d]{0,10}$`)

// printsStatus reports whether a command line ends with printing a status that is not 0.
func (c *call) printsStatus() bool {
	m := statusLine.FindAllStringSubmatch(strings.TrimSpace(c.out), -1)
	return strings.Contains(c.line, "$?") && len(m) > 0 && m[len(m)-1][1] != "0"
}

// prints0 reports whether it ends with printing that it is 0.
func (c *call) prints0() bool {
	m := statusLine.FindAllStringSubmatch(strings.TrimSpace(c.out), -1)
	return strings.Contains(c.line, "$?") && len(m) > 0 && m[len(m)-1][1] == "0"
}

// idle are commands that do nothing of their own.
var idle = map[string]bool{"cd": true, "echo": true, "export": true, "set": true, "true": true, ":": true, "sleep": true, "unset": true, "printf": true, "popd": true}

func (c command) weighs() bool {
	return !idle[c.name()] && !(c.name() == "mkdir" && c.option("-p")) && len(c.words) > 0
}

// stops reports whether a line ends with its first failure.
func (c *call) stops() bool {
	for _, cmd := range c.commands {
		if n := cmd.name(); n == "exit" || n == "set" && len(cmd.words) > 1 && strings.HasPrefix(cmd.words[1].text, "-") && strings.Contains(cmd.words[1].text, "e") {
			return true
		}
	}
	return false
}

// reached reports whether a command of a line surely ran.
func (c *call) reached(command string) bool {
	for i, cmd := range c.commands {
		if !sameCommand(normal(cmd.plain()), command) {
			continue
		}
		chained := false
		for k := i; k > 0; k-- {
			b, here := c.commands[k-1], c.commands[k]
			switch {
			case b.piped:
			case here.orElse:
				return false
			case here.operator == "&&", c.stops():
				chained = chained || b.weighs()
			default:
				k = 1 // a list of its own
			}
		}
		if !chained || c.end == succeeded && c.code == 0 {
			return true
		}
		rest := c.commands[i:]
		for k := range rest {
			if k > 0 && !rest[k-1].piped && rest[k].operator != "&&" {
				return false // the status is that of another list
			}
		}
		return c.end == succeeded
	}
	return true
}

// others reports whether the failure of a line may be that of another command.
func (c *call) others(command string) bool {
	if c.end != failed {
		return false
	}
	at := -1
	for i, cmd := range c.commands {
		if sameCommand(normal(cmd.plain()), command) {
			at = i
		}
	}
	for i, cmd := range c.commands {
		if at < 0 || i == at || !cmd.weighs() || i > 0 && c.commands[i-1].piped || cmd.piped {
			continue
		}
		between := c.commands[min(i, at)+1 : max(i, at)+1]
		linked := true
		for _, b := range between {
			linked = linked && (b.operator == "&&" || b.operator == "|")
		}
		if linked || c.stops() || i > at {
			return true
		}
	}
	return false
}

// aside reports whether a command ran between "git stash" and a pop.
func (j *judge) aside(x *call, command string) bool {
	open, ran := false, false
	for _, y := range j.calls {
		for _, cmd := range y.commands {
			if y == x && sameCommand(normal(cmd.plain()), command) {
				ran = true
				if !open {
					return false
				}
			}
			if y.end == failed || cmd.name() != "git" || len(cmd.words) < 2 {
				continue
			}
			sub, rest := gitCommand(cmd)
			if sub != "stash" {
				continue
			}
			switch {
			case len(rest) == 0 || rest[0].text == "push" || rest[0].text == "save":
				open = true
			case rest[0].text == "pop" || rest[0].text == "apply":
				if ran && open {
					return true
				}
				open = false
			}
		}
	}
	return false
}

// ranIn reports whether a call ran a command in a folder, as far as can be told: where its
// folder is not known, it or a call before it went there.
func (j *judge) ranIn(c *call, command, dir string) bool {
	for i, cmd := range c.commands {
		if i < len(c.places) && sameCommand(normal(cmd.plain()), command) && c.places[i] != "" && path.IsAbs(dir) {
			return c.places[i] == dir
		}
	}
	if dir == j.cwd {
		return true
	}
	for _, x := range j.calls {
		if x.at > c.at {
			break
		}
		if w := x.str("workdir", "cwd", "directory", "working_directory"); w != "" && tail(dir, w) || x.at < c.at && strings.TrimSpace(x.out) == dir {
			return true
		}
		for _, cmd := range x.commands {
			if a := cmd.args(); cmd.name() == "cd" && len(a) > 0 && (tail(dir, path.Clean(a[0].text)) || strings.HasPrefix(a[0].text, ".")) {
				return true
			}
		}
	}
	return false
}

// setPlaces notes in which folder each command of a line ran, "" where that is not known.
func (r *replay) setPlaces(c *call) {
	dir := r.shell
	if c.Name != "Bash" || dir == "" { // the shell of Claude Code keeps its folder
		dir = r.cwd
	}
	if w := c.str("workdir", "cwd", "directory", "working_directory"); w != "" {
		dir = at(dir, w)
	}
	var back []string
	for _, cmd := range c.commands {
		c.places = append(c.places, dir)
		a := cmd.args()
		switch cmd.name() {
		case "pushd":
			back = append(back, dir)
			fallthrough
		case "cd":
			if len(a) != 1 || a[0].dynamic || a[0].text == "-" {
				dir = ""
				break
			}
			dir = at(dir, a[0].text)
		case "popd":
			if dir = ""; len(back) > 0 {
				dir, back = back[len(back)-1], back[:len(back)-1]
			}
		}
	}
	if m := backAt.FindStringSubmatch(c.out); m != nil {
		dir = path.Clean(m[1])
	}
	if c.Name == "Bash" {
		if r.shell = dir; c.end == failed || len(r.at[c.at]) > 1 || strings.Contains(c.line, "&\n") || strings.Contains(c.line, "(") {
			r.shell = "" // how far it came is not known
		}
	}
}

// at is a folder as seen from another, "" if that is not known.
func at(from, to string) string {
	switch {
	case path.IsAbs(to):
		return path.Clean(to)
	case from == "" || strings.HasPrefix(to, "~"):
		return ""
	}
	return path.Join(from, to)
}
