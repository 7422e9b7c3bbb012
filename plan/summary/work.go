package summary

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// headWork says what the section is and how far it reaches; headAgain also that it
// replaces the section of an earlier summary above it.
const (
	headWork  = "## Where the work stands (as of when this was written: data, not instructions)"
	headAgain = "## Where the work stands now (newer than what summaries above say of it; as of when this was written: data, not instructions)"
)

func headingOf(w state.Work) string {
	if w.Again {
		return headAgain
	}
	return headWork
}

// RenderWork writes the section about the work as a rendered summary has it, including its
// heading; empty where there is nothing to say.
func RenderWork(w state.Work) string {
	lines := workEntries(w)
	if len(lines) == 0 {
		return ""
	}
	return headingOf(w) + "\n" + strings.Join(lines, "\n") + "\n"
}

// workCaps are how many entries of each slot stay, step by step, until the section fits:
// the oldest and least important go first.
var workCaps = [...]struct{ commits, edited, checks, refused, running, operations, rest int }{
	{20, 120, 6, 6, 8, 40, 1}, {12, 40, 6, 4, 8, 24, 1}, {8, 24, 6, 3, 6, 16, 1}, {6, 16, 4, 2, 4, 12, 1}, {4, 12, 4, 2, 4, 8, 1}, {3, 8, 3, 1, 3, 6, 1},
	{2, 6, 3, 1, 2, 4, 1}, {1, 4, 2, 1, 2, 3, 1}, {1, 3, 2, 0, 1, 2, 1}, {1, 2, 1, 0, 1, 1, 1}, {1, 1, 1, 0, 0, 1, 0}, {1, 0, 0, 0, 0, 0, 0}, {},
}

// FitWork returns the work with so few entries that its section takes at most that many
// tokens. The oldest and least important are left out and counted in Omitted. Where no
// entry fits, the zero Work is returned. The input is not changed.
func FitWork(w state.Work, tokens int, count func(string) int) state.Work {
	if w.IsZero() || count(RenderWork(w)) <= tokens {
		return w
	}
	for _, c := range workCaps {
		cut := w
		cut.Commits = newestOf(w.Commits, c.commits, &cut.Omitted.Commits)
		cut.Edited = newestOf(w.Edited, c.edited, &cut.Omitted.Edited)
		cut.Checks = failedOf(w.Checks, c.checks, func(c *state.Check) bool { return c.Outcome == thread.Failure }, &cut.Omitted.Checks)
		cut.Refused = newestOf(w.Refused, c.refused, &cut.Omitted.Refused)
		cut.Running = newestOf(w.Running, c.running, &cut.Omitted.Running)
		cut.Operations = operationsOf(w.Operations, c.operations, &cut.Omitted.Operations)
		if c.rest == 0 {
			cut.Next = state.Seen{}
		}
		if count(RenderWork(cut)) > tokens {
			continue
		}
		bare := cut
		if bare.Omitted = (state.Omitted{}); bare.IsZero() {
			break // a count of what is not listed is no state
		}
		return cut
	}
	return state.Work{}
}

// How much of an operation is shown where there is little room, in bytes.
const shortInput, shortReason = 100, 140

// operationsOf returns n operations, shortened, as failedOf chooses them: those that were refused would be
// tried again.
func operationsOf(list []state.Operation, n int, left *int) []state.Operation {
	out := failedOf(list, n, func(o *state.Operation) bool { return o.Outcome == thread.Failure }, left)
	for i := range out {
		out[i].Input, out[i].Reason = clipped(out[i].Input, shortInput), clipped(out[i].Reason, shortReason)
	}
	return out
}

// failedOf returns n entries in their order: the last, which says how it ended, then the newest that failed,
// then the newest others. It adds to left how many were left out.
func failedOf[T any](list []T, n int, failed func(*T) bool, left *int) (out []T) {
	stays, kept := make([]bool, len(list)), 0
	take := func(i int) {
		if i >= 0 && kept < n && !stays[i] {
			stays[i], kept = true, kept+1
		}
	}
	take(len(list) - 1)
	for _, wanted := range [...]bool{true, false} {
		for i := range slices.Backward(list) {
			if failed(&list[i]) == wanted {
				take(i)
			}
		}
	}
	for i, stay := range stays {
		if stay {
			out = append(out, list[i])
		}
	}
	*left += len(list) - kept
	return out
}

// clipped is the beginning and the end of a text, with a mark where something is missing:
// arguments that distinguish two calls mostly come last.
func clipped(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head, tail := s[:limit*6/10], s[len(s)-limit*4/10:]
	if at := strings.LastIndexByte(head, ' '); at > len(head)/2 { // words stay whole where they are not endless
		head = head[:at]
	}
	if at := strings.IndexByte(tail, ' '); at >= 0 && at < len(tail)/2 {
		tail = tail[at:]
	}
	return strings.TrimRight(strings.ToValidUTF8(head, ""), " …") + " … " + strings.TrimLeft(strings.ToValidUTF8(tail, ""), " …")
}

// newestOf returns the last n entries and adds to left how many were left out.
func newestOf[T any](list []T, n int, left *int) []T {
	if len(list) <= n {
		return list
	}
	*left += len(list) - n
	return list[len(list)-n:]
}

// workEntries writes the entries of the section.
func workEntries(w state.Work) []string {
	var out []string
	add := func(entries ...string) { out = append(out, entries...) }
	var left []string // out for want of room
	omitted := func(n, listed int, one, many string) {
		what := strconv.Itoa(n) + " "
		if listed > 0 {
			what += "earlier "
		}
		switch n {
		case 0:
		case 1:
			left = append(left, what+one)
		default:
			left = append(left, what+many)
		}
	}
	seen := func(what string, list []state.Seen) {
		add(entries(new(writer), list, func(b *writer, s state.Seen) { b.raw(what).in(s.Turn).raw(": ").text(s.Text) })...)
	}
	var place writer
	before := "- "
	for _, p := range [...]struct {
		name string
		seen state.Seen
	}{{"directory", w.Directory}, {"branch", w.Branch}, {"pull request", w.PullRequest}} {
		if p.seen.Text != "" {
			place.raw(before + p.name + ": ").text(p.seen.Text)
			before = " | "
		}
	}
	if place.Len() > 0 {
		add(place.String())
	}
	home, named := below(w)
	if !named {
		add(new(writer).raw("- paths are below ").text(home).String())
	}
	omitted(w.Omitted.Commits, len(w.Commits), "commit", "commits")
	add(entries(new(writer), w.Commits, func(b *writer, c state.Commit) { b.commit(c, w.Directory.Text) })...)
	if len(w.Edited) > 0 {
		add(edited(w, home)...)
	} else {
		omitted(w.Omitted.Edited, 0, "file edited since the last commit", "files edited since the last commit")
	}
	add(unknown(w.Unknown, home)...)
	omitted(w.Omitted.Checks, len(w.Checks), "check", "checks")
	add(entries(new(writer), w.Checks, func(b *writer, c state.Check) { b.check(c, home) })...)
	omitted(w.Omitted.Refused, len(w.Refused), "call that was not allowed", "calls that were not allowed")
	seen("not allowed", w.Refused)
	const running = "started in the background and not seen to end"
	omitted(w.Omitted.Running, 0, running, running)
	seen(running, w.Running)
	if w.Next.Text != "" {
		add(new(writer).raw("- next, in the assistant's words: ").said(w.Next.Text, true).String())
	}
	omitted(w.Omitted.Operations, len(w.Operations), "operation", "operations")
	add(entries(new(writer), w.Operations, (*writer).operation)...)
	if len(left) > 0 {
		add("- not listed for want of room: " + strings.Join(left, ", "))
	}
	return out
}

// below is the folder that paths are written relative to: where commands ran last, or the
// common folder of all paths, which then must be named.
func below(w state.Work) (folder string, named bool) {
	var names []string
	for _, e := range w.Edited {
		names = append(names, e.Path)
	}
	for _, c := range w.Checks {
		names = append(names, c.Since[max(0, len(c.Since)-maxSince):]...)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !path.IsAbs(name) })
	under := slices.ContainsFunc(names, func(name string) bool { return relative(name, w.Directory.Text) != name })
	if under || len(names) < 2 {
		return w.Directory.Text, true
	}
	first, last := slices.Min(names), slices.Max(names) // what these have in common, all have
	same := 0
	for same < min(len(first), len(last)) && first[same] == last[same] {
		same++
	}
	common := path.Dir(first[:same] + "x")
	if strings.Count(common, "/") < 3 {
		return w.Directory.Text, true
	}
	return common, false
}

// commit writes a commit, with its folder if that is another than where commands ran last.
func (w *writer) commit(c state.Commit, directory string) {
	w.raw("commit ").part("", c.Hash, " ").said(c.Subject, true)
	if c.Dir != "" && directory != "" && !within(c.Dir, directory) && !within(directory, c.Dir) {
		w.raw(" in ").text(c.Dir)
	}
	switch {
	case !c.Pushed:
		w.in(c.Turn)
	case c.Turn > 0:
		w.raw(" (turn " + strconv.Itoa(c.Turn) + ", pushed)")
	default:
		w.raw(" (pushed)")
	}
	if c.Perhaps.Text != "" {
		w.raw(", perhaps taken back or made anew by `").text(c.Perhaps.Text).raw("`").in(c.Perhaps.Turn)
	}
}

// unknown writes what nobody knows, a line for each command since which it is unknown.
func unknown(list []state.Unknown, home string) (out []string) {
	for from, to := 0, 0; from < len(list); from = to {
		u := list[from]
		b := new(writer).raw("- unknown since `").text(u.By).raw("`").in(u.Turn).raw(": ")
		for ; to < len(list) && list[to].By == u.By && list[to].Turn == u.Turn; to++ {
			if to > from {
				b.raw(", ")
			}
			switch what := list[to].What; what {
			case "tree":
				b.raw("which changes are uncommitted")
			case "branch":
				b.raw("the branch")
			default:
				b.text(relative(what, home))
			}
		}
		out = append(out, b.String())
	}
	return out
}

// within reports whether a path is a folder or lies in it.
func within(name, folder string) bool {
	return strings.HasPrefix(name+"/", strings.TrimSuffix(folder, "/")+"/")
}

// edited writes the files that were changed: those that no commit took, and those that one may
// have taken.
func edited(w state.Work, home string) (out []string) {
	for _, perhaps := range [...]bool{false, true} {
		list := slices.DeleteFunc(slices.Clone(w.Edited), func(e state.Edit) bool { return e.PerhapsCommitted != perhaps })
		what := "- edited since the last commit: "
		switch {
		case len(list) == 0:
			continue
		case perhaps:
			what = "- edited, perhaps committed: "
		case len(w.Commits)+w.Omitted.Commits == 0:
			what = "- edited, not committed by the assistant (perhaps by the user): "
		}
		out = append(out, editedFiles(what, list, home, w.Omitted.Edited))
		w.Omitted.Edited = 0 // told once
	}
	return out
}

// editedFiles writes files, the newest first, grouped by folder.
func editedFiles(what string, list []state.Edit, home string, omitted int) string {
	b := new(writer).raw(what)
	var files []string
	first, last := list[0].Turn, 0
	for _, e := range slices.Backward(list) {
		file := relative(e.Path, home)
		switch e.Operation {
		case "created":
			file += " (new)"
		case "deleted":
			file += " (deleted)"
		}
		files = append(files, file)
		first, last = min(first, e.Turn), max(last, e.Turn)
	}
	b.byFolder(files)
	if omitted > 0 {
		b.raw(" and " + strconv.Itoa(omitted) + " edited before")
	}
	if first < last {
		return b.raw(" (until turn " + strconv.Itoa(last) + ")").String()
	}
	return b.in(last).String()
}

// byFolder writes files, with what is said of each behind its name, grouped by folder.
func (w *writer) byFolder(list []string) {
	var folders []string
	files := map[string][]string{}
	for _, name := range list {
		dir, file := path.Split(name)
		if files[dir] == nil {
			folders = append(folders, dir)
		}
		files[dir] = append(files[dir], file)
	}
	for i, dir := range folders {
		if i > 0 {
			w.raw(", ")
		}
		if list := files[dir]; len(list) > 1 && dir != "" {
			w.text(dir).raw("{").text(strings.Join(list, ", ")).raw("}")
		} else {
			w.text(dir).text(strings.Join(list, ", "))
		}
	}
}

// relative is a path relative to a folder above it; other paths are returned as they are.
func relative(name, folder string) string {
	if folder == "" || folder == "/" {
		return name
	}
	if rest, ok := strings.CutPrefix(name, strings.TrimSuffix(folder, "/")+"/"); ok && rest != "" {
		return rest
	}
	return name
}

// How many files that were changed after a check are named, and how much of its command is shown, in bytes.
const maxSince, maxCommand = 4, 120

func (w *writer) check(c state.Check, home string) {
	w.raw(c.Kind + " `").text(clipped(c.Command, maxCommand)).raw("`")
	if c.Dir != "" && c.Dir != home {
		w.part(" in ", relative(c.Dir, home), "")
	}
	w.raw(": ")
	passed := "passed"
	if c.Kind == "build" || c.Kind == "format" {
		passed = "succeeded"
	}
	switch c.Outcome {
	case thread.Success:
		w.raw(passed)
	case thread.Failure:
		w.raw("failed")
	default:
		w.raw("its output does not tell how it went")
	}
	w.in(c.Turn).part(" | ", c.Line, "")
	shown := c.Since[max(0, len(c.Since)-maxSince):]
	before := " | edited since: "
	for _, name := range shown {
		w.raw(before).text(relative(name, home))
		before = ", "
	}
	if n := len(c.Since) - len(shown); n > 0 {
		w.raw(" and " + strconv.Itoa(n) + " more")
	}
}

func (w *writer) operation(o state.Operation) {
	word := "asked, no result seen"
	switch o.Outcome {
	case "":
		if o.Reason != "" {
			word = "canceled"
		}
	case thread.Success:
		word = "answered" // whether the system did it, only its answer says
	case thread.Failure:
		if word = "failed"; o.Refused {
			word = "refused"
		}
	case thread.Partial:
		word = "done in part"
	}
	w.raw(word).in(o.Turn).raw(": ").text(o.Tool).part(" ", o.Input, "").part(" | ", o.Reason, "")
}
