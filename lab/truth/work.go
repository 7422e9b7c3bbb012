package truth

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
)

var pullRequestURL = regexp.MustCompile(`https?://[^\s"'<>()]+/(?:pull|merge_requests|pulls)/\d+`)

// work judges where the work is said to stand.
func (j *judge) work(w state.Work) {
	j.directory(w.Directory)
	j.onBranch(w.Branch)
	j.pullRequest(w.PullRequest)
	j.commit(w.Commits)
	for _, e := range w.Edited {
		j.edited(e)
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

// edited judges a file that is said to have been edited since the last commit of its
// repository, or before one that may have taken it.
func (j *judge) edited(e state.Edit) {
	st := j.claim(e.Path+": "+e.Operation, e.Sources)
	lastCommit, doubtful := j.lastCommit(e.Path)
	if e.PerhapsCommitted {
		lastCommit = -1
	}
	what, when, turn := j.changedAfter(e.Path, lastCommit)
	ok := when >= 0 && (what == e.Operation || e.Operation == "deleted" && what == "moved to" || e.Operation == "edited" && what == "created" || e.Operation == "created" && (what == "moved from" || j.wasCreated(e.Path, lastCommit))) && (e.Turn == 0 || e.Turn == turn)
	if !ok && (doubtful || j.mayHave(e.Path, e.Turn)) {
		j.cannotTell(kindEdited)
		return
	}
	reason := "it was not changed since the last commit"
	if when >= 0 {
		reason = fmt.Sprintf("its last change is: %s, in turn %d", what, turn)
	}
	if ok && e.PerhapsCommitted && !j.mayBeCommitted(when) {
		ok, reason = false, "no commit was tried after its last change"
	}
	j.say(kindEdited, ok, st, reason, when)
}

// mayBeCommitted reports whether some command line after a message may have committed.
func (j *judge) mayBeCommitted(after int) bool {
	for _, c := range j.calls {
		if c.at >= after && strings.Contains(c.line, "commit") {
			return true
		}
	}
	return false
}

// lastCommit is the last commit in the repository of a file, or -1; doubtful says that a later
// one may be of another repository.
func (j *judge) lastCommit(file string) (at int, doubtful bool) {
	for i := len(j.commits) - 1; i >= 0; i-- {
		m := j.commits[i]
		near := related(m.dir, path.Dir(file)) || !path.IsAbs(file) || inside(m.dir, j.cwd) && inside(file, j.cwd)
		switch {
		case len(m.only) > 0:
			takes, unsure := m.takes(file)
			if doubtful = doubtful || unsure; takes && near {
				return m.at, doubtful
			}
		case m.elsewhere || j.cwd != "" && m.dir != "" && !related(m.dir, j.cwd) && inside(file, j.cwd):
		case near:
			return m.at, doubtful
		default:
			doubtful = true
		}
	}
	return -1, doubtful
}

// inside reports whether a path is a folder that is known or lies in it.
func inside(p, folder string) bool { return folder != "" && strings.HasPrefix(p+"/", folder+"/") }

// related reports whether one folder is or holds the other, as far as both are known.
func related(a, b string) bool { return a == "" || b == "" || inside(a, b) || inside(b, a) }

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

// commit judges commits.
func (j *judge) commit(all []state.Commit) {
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
		pushed, reason := -1, "no push that succeeded follows it"
		for _, p := range j.pushes {
			switch {
			case p.at < made.at:
			case related(p.text, made.dir):
				pushed = p.at
			default:
				reason = "the push that follows it was made in " + p.text
			}
		}
		j.say(kindPushed, pushed >= 0, st, reason)
	}
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
	if o.Outcome == "" && c.canceled {
		ok = o.Reason == "a call beside it failed"
	}
	if ok && o.Turn > 0 && c.turn != o.Turn {
		ok, reason = false, fmt.Sprintf("the call is of turn %d", c.turn)
	}
	if ok && o.Reason != "" && !c.shows(o.Reason) {
		one := false
		if rec := readRecords(c.out); rec != nil {
			one, _ = rec.holds(o.Reason)
		}
		// Our own words, for what Claude Code says in many.
		one = one || c.refused && o.Reason == "the user did not allow it" || c.canceled && o.Reason == "a call beside it failed"
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
