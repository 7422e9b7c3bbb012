package truth

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/palimpsest-ai/palimpsest/state"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

var pullRequestURL = regexp.MustCompile(`https?://[^\s"'<>()]+/(?:pull|merge_requests|pulls)/\d+`)

// work judges where the work is said to stand.
func (j *judge) work(w state.Work) {
	j.directory(w.Directory)
	j.onBranch(w.Branch)
	j.pullRequest(w.PullRequest)
	lastCommit := j.commit(w.Commits)
	j.newest(w.Newest, lastCommit)
	for _, e := range w.Edited {
		st := j.claim(e.Path+": "+e.Operation, e.Sources)
		what, when, turn := j.changedAfter(e.Path, lastCommit)
		ok := when >= 0 && (what == e.Operation || e.Operation == "deleted" && what == "moved to" || e.Operation == "edited" && what == "created" || e.Operation == "created" && (what == "moved from" || j.wasCreated(e.Path, lastCommit))) && (e.Turn == 0 || e.Turn == turn)
		if !ok && j.mayHave(e.Path, e.Turn) {
			j.cannotTell(kindEdited)
			continue
		}
		reason := "it was not changed since the last commit"
		if when >= 0 {
			reason = fmt.Sprintf("its last change is: %s, in turn %d", what, turn)
		}
		j.say(kindEdited, ok, st, reason, when)
	}
	for _, c := range w.Checks {
		j.check(c)
	}
	for _, s := range w.Refused {
		st := j.claim(s.Text, s.Sources)
		ok := false
		for _, stop := range j.stops {
			ok = ok || s.Turn == 0 || j.log[stop.at].Turn == s.Turn || j.log[stop.at].Turn+1 == s.Turn
		}
		j.say(kindRefused, ok, st, "the user stopped nothing in that turn")
	}
	for _, s := range w.Running {
		j.running(s)
	}
	if s := w.Next; s.Text != "" {
		j.byAssistant(kindNext, s.Text, s.Turn, s.Sources)
	}
	for _, o := range w.Operations {
		j.operation(o)
	}
}

// directory judges the folder that commands run in.
func (j *judge) directory(s state.Seen) {
	if s.Text == "" {
		return
	}
	st := j.claim(s.Text, s.Sources)
	last := seen{at: -1}
	for _, d := range j.dirs {
		if d.at >= last.at {
			last = d
		}
	}
	switch {
	case last.at < 0 && j.cwd == "" || last.vague && tail(s.Text, last.text):
		j.cannotTell(kindDirectory)
	case last.at < 0:
		j.say(kindDirectory, s.Text == j.cwd, st, "the log says "+j.cwd)
	default:
		j.say(kindDirectory, s.Text == last.text, st, "commands ran last in "+last.text, last.at)
	}
}

// onBranch judges the branch of git.
func (j *judge) onBranch(s state.Seen) {
	if s.Text == "" {
		return
	}
	st := j.claim(s.Text, s.Sources)
	if n := len(j.branch); n == 0 {
		j.isFalse(kindBranch, st, "the log shows no branch")
	} else {
		last := j.branch[n-1]
		j.say(kindBranch, s.Text == last.text, st, "the branch that was seen last is "+last.text, last.at)
	}
}

// pullRequest judges the last pull request.
func (j *judge) pullRequest(s state.Seen) {
	if s.Text == "" {
		return
	}
	st := j.claim(s.Text, s.Sources)
	last, at, found := "", -1, false
	for i := range j.log {
		for _, t := range j.sourceTexts(i) {
			found = found || strings.Contains(t.raw, s.Text)
		}
		if c := j.ended[i]; c != nil && c.end == succeeded && strings.Contains(c.line, "gh pr create") {
			if m := pullRequestURL.FindString(c.out); m != "" {
				last, at = m, i
			}
		}
	}
	switch {
	case !found:
		j.isFalse(kindPullRequest, st, "it stands nowhere in the log")
	case last != "":
		j.say(kindPullRequest, s.Text == last, st, "the last that was made is "+last, at)
	default:
		j.isTrue(kindPullRequest)
	}
}

// newest judges the newest commit of "git log"; lastCommit is where the assistant made the last.
func (j *judge) newest(s state.Seen, lastCommit int) {
	if s.Text == "" {
		return
	}
	st := j.claim(s.Text, s.Sources)
	last := -1
	for i := range j.log {
		if c := j.ended[i]; c != nil && c.end == succeeded && strings.Contains(c.line, "git log") && strings.HasPrefix(strings.TrimSpace(c.out), s.Text) {
			last = i
		}
	}
	j.say(kindCommit, last > lastCommit, st, "no log began with it after the last commit", last)
}

func (j *judge) wasCreated(p string, after int) bool {
	for _, x := range j.lookup(p) {
		for _, o := range x.operations {
			if o.at > after && (o.what == "created" && !o.known || o.what == "moved from") {
				return true
			}
		}
	}
	return false
}

// commit judges commits and returns the message of the last one that was made.
func (j *judge) commit(all []state.Commit) int {
	for _, c := range all {
		st := j.claim(strings.TrimSpace(c.Hash+" "+c.Subject), c.Sources)
		var made *commit
		for i := range j.commits {
			m := &j.commits[i]
			subject := sameLine(normal(c.Subject), normal(m.subject)) || m.hash == "" && holds(normal(m.subject), c.Subject)
			if subject && (c.Hash == m.hash || c.Hash == "" || m.hash != "" && strings.HasPrefix(m.hash, c.Hash)) && (c.Turn == 0 || j.log[m.at].Turn == c.Turn) {
				made = m
			}
		}
		j.say(kindCommit, made != nil, st, "the log shows no such commit")
		if made == nil || !c.Pushed {
			continue
		}
		pushed := -1
		for _, p := range j.pushes {
			if p >= made.at {
				pushed = p
			}
		}
		j.say(kindPushed, pushed >= 0, st, "no push that succeeded follows it")
	}
	for i := len(j.commits) - 1; i >= 0; i-- {
		if !j.commits[i].elsewhere {
			return j.commits[i].at
		}
	}
	return -1
}

// check judges how a check is said to have gone. Its command may say where it ran.
func (j *judge) check(c state.Check) {
	st := j.claim(fmt.Sprintf("%s => %s", c.Command, c.Outcome), c.Sources)
	command, dir := c.Command, ""
	if i := strings.LastIndex(command, " (in "); i >= 0 && strings.HasSuffix(command, ")") {
		command, dir = command[:i], command[i+len(" (in "):len(command)-1]
	}
	var last *call
	for _, x := range j.calls {
		if x.line != "" && x.result >= 0 && x.runsCommand(command) && (dir == "" || j.ranIn(x, dir)) {
			last = x
		}
	}
	if last == nil {
		j.isFalse(kindCheck, st, "the log has no such command")
		return
	}
	ok, reason := true, ""
	says := failing.MatchString(last.out)
	masked := last.masks(command)
	switch {
	case c.Turn > 0 && c.Turn != last.turn:
		ok, reason = false, fmt.Sprintf("it ran last in turn %d", last.turn)
	case c.Outcome == thread.Success && last.end == failed:
		if last.goesOn(command) {
			j.cannotTell(kindCheck) // what comes behind it may have failed
			return
		}
		ok, reason = false, "its last run failed: "+clip(strings.TrimSpace(last.out), 120)
	case c.Outcome == thread.Success && masked && says && !passing.MatchString(last.out):
		ok, reason = false, "its output says: "+clip(strings.TrimSpace(failing.FindString(last.out)), 120)
	case c.Outcome == thread.Failure && last.end != failed && !says:
		ok, reason = false, "nothing in its output says that it failed"
	case c.Line != "" && !last.shows(c.Line):
		ok, reason = false, "its output does not say: "+c.Line
	}
	switch {
	case ok && c.Outcome == thread.Success && masked && !passing.MatchString(last.out) && !last.silent():
		j.unproved(kindCheck, st, "its exit code is that of another command, and its output does not tell", last.result)
	default:
		j.say(kindCheck, ok, st, reason, last.result)
	}
	for _, p := range c.Since {
		_, when, turn := j.changedAfter(p, last.result)
		if when < 0 && j.mayHave(p, 0) {
			j.cannotTell(kindSince)
			continue
		}
		j.say(kindSince, when >= 0, st.and(" | since then: "+p), fmt.Sprintf("it was not changed after the last run, in turn %d", turn), last.result)
	}
}

// ranIn reports whether a call ran a command in a folder, as far as can be told: it
// or one before it went there.
func (j *judge) ranIn(c *call, dir string) bool {
	for _, x := range j.calls {
		if x.at > c.at {
			break
		}
		if w := x.str("workdir", "cwd", "directory", "working_directory"); w != "" && tail(dir, w) {
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

func (j *judge) running(s state.Seen) {
	st := j.claim(s.Text, s.Sources)
	ended, at := false, -1
	text := normal(s.Text)
	for _, x := range j.started {
		named := strings.Contains(s.Text, x.id)
		for _, l := range strings.Split(x.what, "\n") {
			if l = normal(l); len(l) > 3 {
				named = named || strings.Contains(text, l)
			}
		}
		for _, p := range pieces(s.Text) {
			named = named || holds(normal(x.what), p)
		}
		if !named {
			continue
		}
		if x.ended < 0 {
			j.isTrue(kindRunning)
			return
		}
		ended, at = true, x.ended
	}
	reason := "nothing of the kind was started in the background"
	if ended {
		reason = "it ended"
	} else if j.inBackground(s.Text) {
		j.cannotTell(kindRunning)
		return
	}
	j.isFalse(kindRunning, st, reason, at)
}

// inBackground reports whether a command line puts a process there.
func (j *judge) inBackground(s string) bool {
	for _, c := range j.calls {
		b, _ := c.args["run_in_background"].(bool)
		if (b || strings.HasSuffix(strings.TrimSpace(c.line), "&") || strings.Contains(c.line, "& ") || strings.Contains(c.line, "&\n")) && c.takes(s) {
			return true
		}
	}
	return false
}

func (j *judge) operation(o state.Operation) {
	st := j.claim(strings.TrimSpace(o.Tool+" "+o.Input), o.Sources)
	var c *call
	for _, x := range j.callsOf(o.Tool, o.Input, o.Turn, st.at) {
		if x.takes(o.Input) {
			c = x
		}
	}
	if c == nil {
		j.isFalse(kindOperation, st, "the log has no such call")
		return
	}
	ok, reason := c.outcome(o.Outcome)
	if ok && o.Turn > 0 && c.turn != o.Turn {
		ok, reason = false, fmt.Sprintf("the call is of turn %d", c.turn)
	}
	if ok && o.Reason != "" && !c.shows(o.Reason) {
		one := false
		if rec := readRecords(c.out); rec != nil {
			one, _ = rec.holds(o.Reason)
		}
		// Our own words, for what Claude Code says in many.
		one = one || c.refused && o.Reason == "the user did not allow it"
		ok, reason = one, "its result does not say: "+o.Reason
	}
	j.say(kindOperation, ok, st.and(" => "+string(o.Outcome)), reason, c.result)
}

// artifacts judges pointers that the log shows.
func (j *judge) artifacts(all []summary.ArtifactReference) {
	for _, a := range all {
		j.claim(a.ArtifactID, a.Sources)
		found := false
		for i := range j.log {
			for _, t := range j.sourceTexts(i) {
				found = found || strings.Contains(t.raw, a.ArtifactID)
			}
		}
		if found {
			j.isTrue(kindArtifact)
		} else {
			j.cannotTell(kindArtifact)
		}
	}
}
