package truth

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// wasIn looks for the folder in which commands ran last.
func wasIn(x *index, told state.Seen, _ origin) string {
	last := x.cwd
	if n := len(x.places.dirs); n > 0 {
		last = x.places.dirs[n-1].text
	}
	if last != "" && told.Text != last && !(!path.IsAbs(last) && tail(told.Text, last)) {
		return "commands ran last in " + last
	}
	return ""
}

// onBranchLast looks for the branch that was seen last.
func onBranchLast(x *index, told state.Seen, _ origin) string {
	last := seen{"none", -1}
	if n := len(x.branches); n > 0 {
		last = x.branches[n-1]
	}
	if told.Text != last.text {
		return "the branch that was seen last is " + last.text
	}
	if by := x.forgot(last.at, func(to string, _ bool, _ string) bool { return to != "" && to != told.Text }); by != "" {
		return "the branch may be another since: " + by
	}
	return ""
}

// pullRequested looks for the pull request that was made last, or was named where none was made.
func pullRequested(x *index, told state.Seen, _ origin) string {
	last, found := "", false
	for i := range x.log {
		found = found || slices.ContainsFunc(x.holdsFor(i), func(t text) bool { return strings.Contains(t.raw, told.Text) })
		if d := x.ended[i]; d != nil && d.end == succeeded && strings.Contains(d.line, "gh pr create") {
			last = cmp.Or(pullURL.FindString(d.out), last)
		}
	}
	if !found || last != "" && last != told.Text {
		return "it stands nowhere in the log, or another was made last: " + last
	}
	return ""
}

var (
	stash   = regexp.MustCompile(`^git stash(?: (?:push|save)\b.*| -\S*| --\S*)*$`)
	unstash = regexp.MustCompile(`^git stash (?:pop|apply)`)
)

// forgets are commands after which something that was seen before them is not known any more,
// unless they are taken back or it is seen again: branch is of the branch, tree of uncommitted
// changes of all files, or of those that the command names.
var forgets = []struct {
	like   *regexp.Regexp // of a command, without options of git itself
	branch bool
	tree   bool
	back   *regexp.Regexp // of a later command that takes it back
}{
	{regexp.MustCompile(`^git (?:checkout|switch) (?:-[bBcC] )?([\w./-]+)$`), true, false, nil},
	{regexp.MustCompile(`^git reset .*--hard`), false, true, nil},
	{regexp.MustCompile(`^git (?:checkout|restore) (?:\S+ )?(?:-- )?\.$`), false, true, nil},
	{stash, false, true, unstash},
	{regexp.MustCompile(`^git (?:checkout|restore) (?:.* )?-- `), false, false, nil},
}

// forgot returns a command after a message that makes something unknown, and that was not taken
// back. About says whether what it may have changed to, and the command, are about it.
func (x *index) forgot(after int, about func(to string, tree bool, plain string) bool) (by string) {
	var back *regexp.Regexp
	for _, d := range x.calls {
		if d.result <= after || d.end != succeeded || backAt.MatchString(d.out) {
			continue
		}
		for i := range d.commands {
			plain := plainly(&d.commands[i])
			if alternative(d, i) || !d.commands[i].Proved && len(d.commands) > 1 {
				continue
			}
			if back != nil && back.MatchString(plain) {
				by = ""
			}
			for _, f := range forgets {
				m := f.like.FindStringSubmatch(plain)
				if m == nil || by != "" || f.branch && (len(x.of(m[1])) > 0 || strings.Contains(path.Base(m[1]), ".")) { // it is a file
					continue
				}
				if about(strings.Join(m[1:], ""), f.tree, plain) {
					by, back = plain, f.back
				}
			}
		}
	}
	return by
}

// committed looks for a commit that git printed, and for a push after it.
func committed(x *index, told state.Commit, o origin) string {
	subject := normal(told.Subject)
	reason := "the log shows no such commit"
	for _, m := range x.commits {
		same := sameLine(subject, normal(m.subject))
		if !same || told.Hash != "" && (m.hash == "" || !strings.HasPrefix(m.hash, told.Hash)) || o.turn > 0 && m.turn != o.turn {
			continue
		}
		if reason = x.mustRun(told.Perhaps.Text, told.Perhaps.Turn, m.at); reason != "" {
			continue
		}
		if !told.Pushed || slices.ContainsFunc(x.pushes, func(push seen) bool { return push.at >= m.at && related(push.text, m.dir) }) {
			return ""
		}
		reason = "no push that succeeded follows it"
	}
	return reason
}

// mustRun says that no call ran the words of a command, in a turn (0 is any), after a message.
func (x *index) mustRun(command string, turn, after int) string {
	words := strings.Fields(normal(command))
	if len(words) == 0 || slices.ContainsFunc(x.calls, func(d *call) bool {
		return d.line != "" && (turn == 0 || d.turn == turn) && d.result > after && d.result >= 0 &&
			!slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(normal(d.line), strings.Trim(w, `…"'`)) })
	}) {
		return ""
	}
	return "no such command ran then: " + command
}

// editedSince looks for the last change of a file, after the last commit of its repository.
func editedSince(x *index, e state.Edit, o origin) string {
	after, last, sure := x.lastCommit(e.Path), -1, touch{at: -1}
	if e.PerhapsCommitted {
		after = -1
	}
	if reason := x.did(e.Path, e.Operation, origin{}, after); reason != "" {
		return reason + ", since the last commit"
	}
	for _, t := range x.of(e.Path) {
		if t.what == "read" || t.failed {
			continue
		}
		if last = max(last, t.at); t.sure() {
			sure = t
		}
	}
	for _, d := range x.calls {
		if d.result > last && d.mayChange(e.Path) && !restoring.MatchString(d.line) {
			last = d.result
		}
	}
	switch {
	case o.turn == 0:
	case sure.turn > o.turn && sure.path == e.Path:
		return fmt.Sprintf("it was changed last in turn %d", sure.turn)
	case sure.turn != o.turn && !x.mayHave(e.Path, o.turn, -1):
		return fmt.Sprintf("it was not changed in turn %d", o.turn)
	}
	if e.PerhapsCommitted && !slices.ContainsFunc(x.calls, func(d *call) bool { return d.at >= sure.at && strings.Contains(d.line, "commit") }) {
		return "no commit was tried after its last change"
	}
	if by := x.forgot(last, func(_ string, tree bool, plain string) bool {
		return tree || strings.Contains(plain, " -- ") && mentions(plain, e.Path)
	}); by != "" && !x.namedAfter(e.Path, last) {
		return "it is not known to be changed since: " + by
	}
	return ""
}

// namedAfter reports whether git told of a file after a message.
func (x *index) namedAfter(file string, at int) bool {
	return slices.ContainsFunc(x.calls, func(d *call) bool {
		return d.result > at && strings.Contains(d.line, "git") && mentions(d.out, file)
	})
}

// refused looks for the call that the user did not allow, or stopped.
func refused(x *index, told state.Seen, o origin) string {
	_, words, _ := strings.Cut(strings.TrimSuffix(told.Text, `"`), ` | the user said: "`)
	head, _, _ := strings.Cut(told.Text, " | ")
	for _, i := range x.stops {
		if turn := x.log[i].Turn; o.turn > 0 && turn != o.turn {
			continue
		}
		d := x.ended[i]
		if d == nil {
			return ""
		}
		input, ok := strings.CutPrefix(head, d.Name)
		if ok && d.takes(input) && (words == "" || seek(words).inAny(userWords(x, i))) {
			return ""
		}
	}
	return "the user stopped nothing of the kind in that turn"
}

// runs looks for a process or an agent that was put into the background, and did not end.
func runs(x *index, told state.Seen, _ origin) string {
	words := idAt.ReplaceAllString(normal(told.Text), "")
	for _, d := range slices.Backward(x.calls) {
		m := background.FindStringSubmatch(d.out[:min(len(d.out), 600)])
		asked, _ := d.args["run_in_background"].(bool)
		switch input, ok := strings.CutPrefix(words, d.Name); {
		case !ok || !d.takes(input) || m == nil && !asked && !strings.Contains(d.line+"\n", "&\n") && !strings.Contains(d.line, "& "):
		case m != nil && x.overAfter(strings.Join(m[1:], ""), d.result):
			return "it ended"
		default:
			return ""
		}
	}
	return "nothing of the kind was started in the background"
}

// overAfter reports whether what runs by an id ended after a message: a notice or its output says so,
// or a call stopped it.
func (x *index) overAfter(id string, after int) bool {
	return slices.ContainsFunc(x.log[after+1:], func(m thread.Message) bool {
		return m.Role == thread.User && strings.Contains(m.Text(), id) && over.MatchString(m.Text())
	}) || slices.ContainsFunc(x.calls, func(d *call) bool {
		return d.result > after && strings.Contains(d.said, id) && (over.MatchString(d.out) || exitCode.MatchString(d.out[:min(len(d.out), 400)]) || stopTool.MatchString(d.Name) && !d.flagged)
	})
}

var (
	background = regexp.MustCompile(`(?i)running in (?:the )?background with (?:task )?ID: ?([\w-]+)|^Async agent launched successfully\.?\s+agentId: ?([\w-]+)|Process running with session ID (\d+)`)
	over       = regexp.MustCompile(`<status>(?:completed|failed|killed|stopped)</status>|\(?status: (?:completed|failed|killed)`)
	stopTool   = regexp.MustCompile(`(?i)kill|stop`)
)

var idAt = regexp.MustCompile(` \(id [^)]*\)$`)

// lastCommit is the last commit that surely took a file, or -1.
func (x *index) lastCommit(file string) int {
	for _, m := range slices.Backward(x.commits) {
		takes := len(m.only) == 0 || slices.ContainsFunc(m.only, func(w shell.Word) bool {
			return !w.Open && (w.Text == "." || inside(file, path.Join(m.dir, w.Text)) || strings.HasSuffix(file, "/"+w.Text))
		})
		near := !path.IsAbs(file) || related(m.dir, path.Dir(file))
		if takes && near && !m.elsewhere {
			return m.at
		}
	}
	return -1
}
