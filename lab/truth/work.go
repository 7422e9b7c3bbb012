package truth

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// placed looks for the folder, the branch and the pull request that were seen last.
func placed(x *index, c claim) string {
	p := x.places()
	if told := c.parts["directory"]; told != "" {
		last := p.cwd
		if n := len(p.dirs); n > 0 {
			last = p.dirs[n-1].text
		}
		if last != "" && told != last && !(!path.IsAbs(last) && tail(told, last)) {
			return "commands ran last in " + last
		}
	}
	if told := c.parts["branch"]; told != "" {
		if len(p.branches) == 0 {
			return "the log shows no branch"
		}
		last := p.branches[len(p.branches)-1]
		if told != last.text {
			return "the branch that was seen last is " + last.text
		}
		if by := x.forgot(last.at, func(to string, _ bool, _ string) bool { return to != "" && to != told }); by != "" {
			return "the branch may be another since: " + by
		}
	}
	if told := c.parts["pull"]; told != "" {
		last, found := "", false
		for i := range x.log {
			found = found || slices.ContainsFunc(x.holdsFor(i), func(t text) bool { return strings.Contains(t.raw, told) })
			if d := x.ended[i]; d != nil && d.end == succeeded && strings.Contains(d.line, "gh pr create") {
				last = orFirst(pullURL.FindString(d.out), last)
			}
		}
		if !found || last != "" && last != told {
			return "it stands nowhere in the log, or another was made last: " + last
		}
	}
	return ""
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

// folderIsNamed looks for a folder in the calls and their results.
func folderIsNamed(x *index, c claim) string {
	folder := c.parts["folder"]
	if inside(folder, x.places().cwd) || slices.ContainsFunc(x.calls, func(d *call) bool { return strings.Contains(d.said+d.out, folder) }) {
		return ""
	}
	return "the log names no such folder"
}

// manyMore judges how many more entries there are said to be: there are no more than calls.
func manyMore(x *index, c claim) string {
	for part := range strings.SplitSeq(c.parts["list"]+c.parts["n"], ", ") {
		n, _, _ := strings.Cut(part, " ")
		if number(n) == 0 || number(n) > len(x.calls) {
			return fmt.Sprintf("the log has %d calls", len(x.calls))
		}
	}
	return ""
}

// committed looks for a commit that git printed, and for a push after it.
func committed(x *index, c claim) string {
	p := x.places()
	hash, subject := c.parts["hash"], normal(c.parts["subject"])
	reason := "the log shows no such commit"
	for _, m := range p.commits {
		same := sameLine(subject, normal(m.subject)) || m.hash == "" && holds(normal(m.subject), subject)
		if !same || hash != "" && (m.hash == "" || !strings.HasPrefix(m.hash, hash)) || c.turn > 0 && m.turn != c.turn {
			continue
		}
		if by := c.parts["by"]; by != "" {
			if x.ranWith(by, number(c.parts["since"]), m.at) == nil {
				return "no such command ran after it: " + by
			}
		}
		if c.parts["pushed"] == "" {
			return ""
		}
		reason = "no push that succeeded follows it"
		for _, push := range p.pushes {
			if push.at >= m.at && related(push.text, m.dir) {
				return ""
			}
		}
	}
	return reason
}

// newest looks for a log of git that begins with a commit.
func newest(x *index, c claim) string {
	p := x.places()
	last := -1
	for _, m := range p.commits {
		if !m.elsewhere {
			last = m.at
		}
	}
	for _, d := range x.calls {
		if d.result > last && d.end == succeeded && strings.Contains(d.line, "git log") && strings.HasPrefix(normal(d.out), normal(c.parts["subject"])) && (len(d.commands) == 0 || related(d.gitDir(len(d.commands)-1), p.cwd)) {
			return ""
		}
	}
	return "no log began with it after the last commit"
}

// ranWith is the last call that ran the words of a command, in a turn or in any, after a message.
func (x *index) ranWith(command string, turn, after int) (last *call) {
	for _, d := range x.calls {
		if d.line == "" || turn > 0 && d.turn != turn || d.result <= after || d.result < 0 {
			continue
		}
		has := true
		for word := range strings.FieldsSeq(normal(command)) {
			has = has && strings.Contains(normal(d.line), strings.Trim(word, `…"'`))
		}
		if has {
			last = d
		}
	}
	return last
}

func ranThen(x *index, c claim) string {
	if x.ranWith(c.parts["by"], c.turn, -1) == nil {
		return "no such command ran then"
	}
	return ""
}

// fileNames reads names that are grouped by folder: "dir/{a, b (new)}, c".
func fileNames(s string) (out []string) {
	dir, depth, from := "", 0, 0
	add := func(end int) {
		if name := strings.TrimSpace(s[from:end]); name != "" {
			out = append(out, dir+name)
		}
	}
	for i, r := range s {
		switch {
		case r == '{' && depth == 0 && i > 0 && s[i-1] == '/':
			dir, depth, from = strings.TrimSpace(s[from:i]), 1, i+1
		case r == '}' && depth == 1:
			add(i)
			dir, depth, from = "", 0, i+1
		case r == ',' && strings.HasPrefix(s[i:], ", "):
			add(i)
			from = i + 2
		}
	}
	add(len(s))
	return out
}

// below is a path as seen from the folder that paths of a section are below.
func (c claim) below(name string) string {
	if c.home == "" || path.IsAbs(name) || strings.HasPrefix(name, "~") {
		return name
	}
	return path.Join(c.home, name)
}

// editedSince looks for the last change of files, after the last commit of their repository.
func editedSince(x *index, c claim) string {
	inTurn := c.turn == 0
	for _, name := range fileNames(c.parts["files"]) {
		what := "edited"
		for mark, is := range map[string]string{" (new)": "created", " (deleted)": "deleted"} {
			if rest, ok := strings.CutSuffix(name, mark); ok {
				name, what = rest, is
			}
		}
		file := c.below(name)
		after := x.lastCommit(file)
		if c.parts["perhaps"] != "" {
			after = -1
		}
		if reason := x.did(file, what, 0, after, nil); reason != "" {
			return name + ": " + reason + ", since the last commit"
		}
		last := touch{at: -1}
		for _, t := range x.of(file) {
			if t.sure() && t.what != "read" {
				last = t
			}
		}
		if last.typed && last.turn > c.turn && c.turn > 0 {
			return fmt.Sprintf("%s: it was changed last in turn %d", name, last.turn)
		}
		inTurn = inTurn || last.turn == c.turn || x.mayHave(file, c.turn, -1)
		if c.parts["perhaps"] != "" && !slices.ContainsFunc(x.calls, func(d *call) bool { return d.at >= last.at && strings.Contains(d.line, "commit") }) {
			return name + ": no commit was tried after its last change"
		}
		if by := x.forgot(last.at, func(_ string, tree bool, plain string) bool {
			return tree || strings.Contains(plain, " -- ") && mentions(plain, file)
		}); last.at >= 0 && by != "" && !x.namedAfter(file, last.at) {
			return name + ": it is not known to be changed since: " + by
		}
	}
	if !inTurn {
		return fmt.Sprintf("none of these was changed in turn %d", c.turn)
	}
	return ""
}

// namedAfter reports whether git told of a file after a message.
func (x *index) namedAfter(file string, at int) bool {
	return slices.ContainsFunc(x.calls, func(d *call) bool {
		return d.result > at && strings.Contains(d.line, "git") && mentions(d.out, file)
	})
}

// lastCommit is the last commit that surely took a file, or -1.
func (x *index) lastCommit(file string) int {
	p := x.places()
	for i := len(p.commits) - 1; i >= 0; i-- {
		m := p.commits[i]
		takes := len(m.only) == 0 || slices.ContainsFunc(m.only, func(w shell.Word) bool {
			return !w.Open && (w.Text == "." || inside(file, path.Join(m.dir, w.Text)) || strings.HasSuffix(file, "/"+w.Text) || strings.Contains(file, "/"+w.Text+"/"))
		})
		near := !path.IsAbs(file) || related(m.dir, path.Dir(file)) || inside(m.dir, p.cwd) && inside(file, p.cwd)
		if takes && near && !m.elsewhere {
			return m.at
		}
	}
	return -1
}

// refused looks for the call that the user did not allow, or stopped.
func refused(x *index, c claim) string {
	for _, i := range x.stops {
		if turn := x.log[i].Turn; c.turn > 0 && turn != c.turn && turn+1 != c.turn {
			continue
		}
		for _, cut := range cuts(c.parts["call"], " | ") {
			if d := x.ended[i]; d != nil && strings.HasPrefix(cut[0], d.Name) && d.takes(strings.TrimPrefix(cut[0], d.Name)) || d == nil {
				if words := matched(theySaid, cut[1]); words == "" || slices.ContainsFunc(x.userWords(i), func(t text) bool { return holds(t.norm(), words) }) || d == nil {
					return ""
				}
			}
		}
	}
	return "the user stopped nothing of the kind in that turn"
}

var theySaid = regexp.MustCompile(`(?s)^the user said: "(.*)"$`)

// runs looks for a process or an agent that was put into the background, and did not end.
func runs(x *index, c claim) string {
	words := normal(c.parts["what"])
	for _, s := range slices.Backward(x.places().started) {
		said := normal(s.what)
		named := slices.ContainsFunc(pieces(idAt.ReplaceAllString(words, "")), func(p string) bool { return len(p) > 5 && holds(said, p) })
		for l := range strings.SplitSeq(s.what, "\n") {
			named = named || len(normal(l)) > 5 && strings.Contains(words, normal(l))
		}
		if named || strings.Contains(words, s.id) {
			if s.ended {
				return "it ended"
			}
			return ""
		}
	}
	for _, d := range x.calls {
		if b, _ := d.args["run_in_background"].(bool); (b || strings.Contains(d.line+"\n", "&\n") || strings.Contains(d.line, "& ")) && d.takes(strings.TrimPrefix(idAt.ReplaceAllString(words, ""), d.Name)) {
			return ""
		}
	}
	return "nothing of the kind was started in the background"
}

var idAt = regexp.MustCompile(` \(id [^)]*\)$`)

// operated looks for a call that changed something in a system, and how it ended.
func operated(x *index, c claim) string {
	reason := "the log has no such call"
	told := map[string]thread.Outcome{"done": thread.Success, "refused": thread.Failure, "failed": thread.Failure, "done in part": thread.Partial}[c.parts["outcome"]]
	for _, cut := range cuts(c.parts["call"], " | ") {
		for _, d := range x.calledWith(cut[0], c.turn, c.from(cut[0])) {
			why, answer := d.not(told), newText(d.out)
			switch {
			case c.parts["outcome"] == "canceled":
				if why = ""; d.end != unclear || cut[1] != "a call beside it failed" {
					why = "it was not canceled"
				}
			case why == "" && cut[1] != "" && !d.shows(cut[1]) && !answer.shows(cut[1]) && !(d.refused && cut[1] == "the user did not allow it"):
				why = "its result does not say: " + cut[1]
			}
			if why == "" {
				return ""
			}
			reason = why
		}
	}
	return reason
}
