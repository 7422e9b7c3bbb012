package truth

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// idle are commands that do nothing of their own.
var idle = map[string]bool{"cd": true, "echo": true, "export": true, "set": true, "true": true, ":": true, "sleep": true, "unset": true, "printf": true, "popd": true}

var unquoted = strings.NewReplacer(`"`, "", "'", "", `\`, "", " ", "")

// sameCommand compares a command without quotes with one as it was written.
func sameCommand(plain, written string) bool {
	written, cut := strings.CutSuffix(unquoted.Replace(normal(written)), "…")
	plain = unquoted.Replace(normal(plain))
	return plain == written || cut && strings.HasPrefix(plain, written)
}

var (
	isCheck = regexp.MustCompile(`(?i)^(?:go (?:test|build|vet)|.*\b(?:pytest|jest|vitest|tox|lint|golangci-lint|tsc|eslint|mypy|ruff)\b|(?:npm|pnpm|yarn|bun|mise|make|cargo|just)\b.*\b(?:test|check|build|lint|clippy)|make$)`)
)

// masked reports whether the exit code is not that of a check of the line; the empty command
// stands for all checks.
func (d *call) masked(command string) bool {
	for i := range d.commands {
		cmd := &d.commands[i]
		if plain := plainly(cmd); isCheck.MatchString(plain) && (command == "" || sameCommand(plain, command)) {
			if cmd.Piped || i+1 < len(d.commands) && (alternative(d, i+1) || !strings.Contains(d.line, "&&")) {
				return true
			}
		}
	}
	return false
}

// runsCommand reports whether a command as it was written is one of the line, and where.
func (d *call) runsCommand(command string) (at int, ok bool) {
	at = -1
	for i := range d.commands {
		if sameCommand(plainly(&d.commands[i]), command) {
			at = i
		}
	}
	if at >= 0 || strings.HasSuffix(command, "…") {
		return at, at >= 0 || holds(normal(d.line), command)
	}
	return at, strings.Contains(command, "\n") && holds(normal(d.line), command)
}

// goesOn reports whether other commands stand in the line that may have failed instead.
func (d *call) goesOn(at int) bool {
	for i := range d.commands {
		if i != at && !idle[d.commands[i].Name()] && (at < 0 || !d.commands[i].Piped || i > at) {
			return true
		}
	}
	return false
}

// ranSo says why a call did not run a check as it is told. doubtful says that nothing tells how it
// ended, or that it ran.
func (d *call) ranSo(at int, k state.Check) (reason string, doubtful bool) {
	says := failing.MatchString(d.out)
	doubtful = at < 0 || d.end == failed && d.goesOn(at) || d.end == unclear
	switch {
	case k.Outcome == thread.Success && d.end == failed && !d.goesOn(at):
		return "that run failed: " + clip(strings.TrimSpace(d.out), 120), false
	case k.Outcome == thread.Success && at >= 0 && d.commands[at].Piped && says && !passing.MatchString(d.out):
		return "its output says: " + clip(strings.TrimSpace(failing.FindString(d.out)), 120), false
	case k.Outcome == thread.Failure && d.end != failed && !says:
		return "nothing in its output says that it failed", doubtful
	case k.Line != "" && !d.shows(k.Line):
		return "its output does not say: " + k.Line, true
	}
	return "", doubtful
}

// checked looks for the last run of a check, how it ended, and what was changed after it.
func checked(x *index, k state.Check, o origin) string {
	reason := "the log has no such command"
	for _, d := range slices.Backward(x.calls) {
		at, ok := d.runsCommand(k.Command)
		if !ok || d.line == "" || d.result < 0 || k.Dir != "" && !x.ranIn(d, at, k.Dir) {
			continue
		}
		if d.aside {
			reason = "it ran while changes were put aside, and they are back"
			continue
		}
		why, doubtful := d.ranSo(at, k)
		if why == "" && o.turn > 0 && d.turn != o.turn {
			why = fmt.Sprintf("it ran last in turn %d", d.turn)
		}
		if why == "" {
			return x.changedAfter(d, k.Since)
		}
		if reason = why; !doubtful {
			break
		}
	}
	return reason
}

// changedAfter says which of some files was not changed after a call.
func (x *index) changedAfter(d *call, list []string) string {
	for _, name := range list {
		if by := matched(byCommand, name); by != "" {
			if reason := x.mustRun(by, 0, d.at); reason != "" {
				return reason
			}
		} else if !slices.ContainsFunc(x.of(name), func(t touch) bool { return t.at > d.result && !t.failed && t.what != "read" }) && !x.mayHave(name, 0, d.result-1) {
			return "it was not changed after the last run: " + name
		}
	}
	return ""
}

// calmSince says which file was changed after the last run of a check that stands among others and
// names none, while one that ran then or later does: a summary says that no edit was seen.
func (x *index) calmSince(k state.Check, all []state.Check) string {
	if k.Turn == 0 || len(k.Since) > 0 || !slices.ContainsFunc(all, func(other state.Check) bool { return len(other.Since) > 0 && other.Turn >= k.Turn }) {
		return ""
	}
	for _, d := range slices.Backward(x.calls) {
		if _, ran := d.runsCommand(k.Command); !ran || d.turn != k.Turn || d.result < 0 {
			continue
		}
		for _, t := range x.touches {
			if t.at > d.result && t.sure() && t.what != "read" && inside(t.path, x.cwd) && path.Ext(t.path) != ".md" {
				return "it was edited: " + t.path
			}
		}
		break
	}
	return ""
}

var byCommand = regexp.MustCompile("^what `(.*)` ")

// ranIn reports whether a call ran a command in a folder, as far as can be told: where its
// folder is not known, it or a call before it went there.
func (x *index) ranIn(d *call, at int, dir string) bool {
	if at >= 0 && path.IsAbs(d.dirs[at]) && path.IsAbs(dir) {
		return d.dirs[at] == dir
	}
	return dir == x.cwd || slices.ContainsFunc(x.places.dirs, func(s seen) bool { return s.at <= d.result && (tail(dir, s.text)) })
}
