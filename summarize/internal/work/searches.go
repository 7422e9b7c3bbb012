package work

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// A search is a list of what is to do if the agent changes one after the other of the places that
// it showed: at least leastChanged of them, and one in leastShare.
const (
	leastPlaces  = 4
	leastChanged = 2
	leastShare   = 6
	recentTurns  = 3   // back to which a place was changed last
	maxPlaces    = 60  // of one search
	maxPlace     = 200 // bytes of the text of a place
	maxSearches  = 3   // that are told
	maxWatched   = 10  // of which changes are counted
	// leastPart is how long a part of a line must be to tell which line it is of, in bytes.
	leastPart = 4
)

// Replacement is a text that an edit replaces in its file.
type Replacement struct {
	Old, New string
	All      bool // wherever it stands
}

// searchPrograms are commands that print "path:line:text" of what they find.
var searchPrograms = scan.WordSet("grep egrep fgrep rg ag ack")

// readSearch reads what a call searches for.
func (c *Call) readSearch(args gjson.Result, line []shell.Command) {
	switch c.Class {
	case toolclass.Search:
		c.query = rawjson.FirstText(args, "pattern", "query", "regex", "search")
		var scope []string
		for _, key := range [...]string{"path", "glob", "type", "include", "directory"} {
			if v := args.Get(key); v.Type == gjson.String && v.Str != "" {
				scope = append(scope, v.Str)
			}
		}
		c.scope = clip.Brief(strings.Join(scope, " "), maxCommand)
	case toolclass.Shell: // one search, of which others show a part
		for i := range line {
			command := &line[i]
			sub, _, _ := gitWords(command)
			searches := searchPrograms[command.Name()] || sub == "grep"
			switch {
			case i < len(line)-1 && !command.Piped, i == 0 && (!searches || command.Dir != ""):
				c.query = ""
				return
			case i == 0:
				c.query = command.Text
			case !searches && command.Name() != "head" && command.Name() != "tail" && command.Name() != "sort":
				c.query = ""
				return
			}
		}
	}
	c.query = clip.Brief(c.query, maxCommand)
}

// scripts are programs that may change any file, and editors those that change the files that
// they are given, named or not.
var (
	scripts = scan.WordSet("python python2 python3 node ruby bash sh deno bun")
	editors = scan.WordSet("xargs patch comby ast-grep sg codemod jscodeshift rename")
)

// readMassEdit reads whether a command line may change files that it does not name, and by what.
func (c *Call) readMassEdit(line []shell.Command) {
	changes := map[*shell.Command]bool{}
	for i := range c.Files {
		if op := &c.Files[i]; op.Op != "read" {
			changes[op.By] = true
		}
	}
	for i := range line {
		command := &line[i]
		name := command.Name()
		sub, _, _ := gitWords(command)
		has := func(options ...string) bool {
			return slices.ContainsFunc(command.Words, func(w shell.Word) bool {
				return slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(w.Text, o) })
			})
		}
		named := changes[command]
		switch {
		case (name == "sed" && has("-i", "--in-place", "-Ei", "-ri") || name == "perl" && has("-i", "-pi", "-p")) && !named,
			name == "find" && has("-exec", "-ok"), editors[name], sub == "apply":
			if c.massEdit = name; sub != "" {
				c.massEdit = "git " + sub
			}
			return
		case command.Unread(), scripts[name] && checkOf(command.Plain()) == nil:
			c.mayEdit = true
		}
	}
}

// readPlaces reads the lines "path:line:text" of an output; nil if they are too many to go through.
func readPlaces(live *effort.Budget, output string) []state.Place {
	var places []state.Place
	lines := 0
	for line := range strings.Lines(output) {
		if !live.Live(lineEffort + len(line)) {
			return nil
		}
		file, rest, _ := strings.Cut(line, ":")
		number, text, ok := strings.Cut(rest, ":")
		n, err := strconv.Atoi(number)
		text = strings.TrimSpace(text)
		if !ok || err != nil || n <= 0 || text == "" || len(text) > maxPlace || !strings.ContainsAny(file, "./") || strings.ContainsAny(file, " \t()'\"") {
			continue
		}
		if lines++; lines > maxPlaces {
			return nil
		}
		file = path.Clean(file)
		if i := slices.IndexFunc(places, func(p state.Place) bool { return p.Path == file && p.Text == text }); i >= 0 {
			places[i].Lines = append(places[i].Lines, n)
			continue
		}
		places = append(places, state.Place{Path: strings.Clone(file), Text: strings.Clone(text), Lines: []int{n}})
	}
	return places
}

// addSearch watches the places that a search showed. Those of the same search before are out of date.
func (f *fold) addSearch(c *Call, r *Result, by proof) {
	if c.query == "" || r.Outcome == thread.Failure || r.halted {
		return
	}
	s := state.Search{Query: c.query, Scope: c.scope, Places: absolute(r.places, f.cwd), Turn: by.turn, Sources: by.sources}
	if i := slices.IndexFunc(f.work.Searches, func(old state.Search) bool { return old.Query == s.Query && old.Scope == s.Scope }); i >= 0 {
		old := &f.work.Searches[i]
		s.Before, s.LastChange = old.Before+old.Changed(), old.LastChange
		f.work.Searches = slices.Delete(f.work.Searches, i, i+1)
	}
	if s.Left()+s.Before < leastPlaces || len(s.Places) == 0 {
		return
	}
	f.work.Searches = append(f.work.Searches, s)
	if n := len(f.work.Searches) - maxWatched; n > 0 {
		f.work.Searches = slices.Delete(f.work.Searches, 0, n)
	}
}

// absolute returns places with their whole paths, as far as the folder is known.
func absolute(places []state.Place, dir string) []state.Place {
	places = slices.Clone(places)
	for i := range places {
		places[i].Path = whole(places[i].Path, dir)
	}
	return places
}

// whole is the path of a file that was named in a folder, as far as that is known.
func whole(file, dir string) string {
	if path.IsAbs(file) || !path.IsAbs(dir) {
		return path.Clean(file)
	}
	return path.Join(dir, file)
}

// locate gives a search whose folder is not known the one that an edited file tells: its path
// ends with a path that the search showed. A name alone does not tell.
func locate(s *state.Search, file string) {
	if !path.IsAbs(file) {
		return
	}
	dir := ""
	for _, p := range s.Places {
		if path.IsAbs(p.Path) {
			return
		}
		if rest, ok := strings.CutSuffix(file, "/"+p.Path); ok && strings.Contains(p.Path, "/") && (dir == "" || len(rest) < len(dir)) {
			dir = rest
		}
	}
	if dir != "" {
		s.Places = absolute(s.Places, dir)
	}
}

// applyEdit counts the places that an edit of a file changed.
func (f *fold) applyEdit(c *Call, file string, turn int) {
	if len(c.Replaced) == 0 {
		f.forgetPlaces(file)
		return
	}
	size := 0
	for _, r := range c.Replaced {
		size += len(r.Old) + len(r.New)
	}
	for i := range f.work.Searches {
		s := &f.work.Searches[i]
		locate(s, file)
		if !slices.ContainsFunc(s.Places, func(p state.Place) bool { return p.Path == file }) {
			continue
		}
		if !f.effort.Spend(size * len(s.Places)) {
			f.forgetPlaces(file)
			return
		}
		places, before := slices.Clone(s.Places), s.Changed()
		for _, r := range c.Replaced {
			places = r.apply(places, file)
		}
		kept := slices.DeleteFunc(places, func(p state.Place) bool { return p.Changed < 0 })
		s.Unknown += countLines(s.Places) - countLines(kept)
		if s.Places = kept; s.Changed() > before {
			s.LastChange = turn
		}
	}
}

// apply counts in places what a replacement changed. Of a place with a negative count nobody knows.
func (r *Replacement) apply(places []state.Place, file string) []state.Place {
	var parts []int // places of which it may have replaced a part of the line
	for i := range places {
		p := &places[i]
		if p.Path != file || p.Changed == len(p.Lines) || p.Changed < 0 {
			continue
		}
		n := lines(r.Old, p.Text) - lines(r.New, p.Text)
		switch {
		case n > 0 && r.All:
			p.Changed = len(p.Lines)
		case n > 0:
			p.Changed = min(p.Changed+n, len(p.Lines))
		case lines(r.Old, p.Text) == 0 && r.maybePart(p.Text):
			parts = append(parts, i)
		}
	}
	for _, i := range parts {
		p := &places[i]
		switch changed, sure := r.changes(p.Text); {
		case sure && !changed:
		case sure && r.All:
			p.Changed = len(p.Lines)
		case sure && len(parts) == 1 && len(p.Lines) == 1:
			p.Changed = 1
		default:
			p.Changed = -1
		}
	}
	return places
}

// lines is how many lines of a text are just these words.
func lines(text, words string) (n int) {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == words {
			n++
		}
	}
	return n
}

// maybePart reports whether what is replaced may be a part of a line, or begin or end in it.
func (r *Replacement) maybePart(line string) bool {
	old := strings.Trim(r.Old, "\n")
	first, rest, more := strings.Cut(old, "\n")
	if !more {
		return r.partOf(line)
	}
	first, last := strings.TrimSpace(first), strings.TrimSpace(rest[strings.LastIndexByte(rest, '\n')+1:])
	return first != "" && strings.HasSuffix(line, first) || last != "" && strings.HasPrefix(line, last)
}

// partOf reports whether the replaced text stands in a line, which is told without its indentation.
func (r *Replacement) partOf(line string) bool {
	old := strings.Trim(r.Old, "\n")
	if inner := strings.TrimLeft(old, " \t"); inner != old {
		return strings.Contains(line, old) || strings.HasPrefix(line+"\n", strings.TrimRight(inner, " \t"))
	}
	return old != "" && (strings.Contains(line, old) || strings.HasSuffix(line, strings.TrimRight(old, " \t")))
}

// changes reports whether the line is another one afterwards; sure is false where nobody knows.
func (r *Replacement) changes(line string) (changed, sure bool) {
	old := strings.Trim(r.Old, "\n")
	if strings.Contains(old, "\n") || len(strings.TrimSpace(old)) < leastPart {
		return false, false
	}
	part := old
	if !strings.Contains(line, part) {
		part = strings.TrimSpace(old)
	}
	return lines(strings.Replace(line, part, strings.Trim(r.New, "\n"), 1), line) == 0, true
}

// forgetPlaces forgets the places in files, or below folders, that were changed nobody knows
// where; all if none is named.
func (f *fold) forgetPlaces(files ...string) {
	places := 0
	for i := range f.work.Searches {
		places += len(f.work.Searches[i].Places)
	}
	if !f.effort.Spend(places * len(files) * comparing) {
		files = nil // of all
	}
	for i := range f.work.Searches {
		s := &f.work.Searches[i]
		var kept []state.Place
		if len(files) > 0 {
			kept = slices.DeleteFunc(slices.Clone(s.Places), func(p state.Place) bool {
				return slices.ContainsFunc(files, func(file string) bool {
					return within(p.Path, file) || strings.HasSuffix(file, "/"+p.Path) || strings.HasSuffix(p.Path, "/"+file)
				})
			})
		}
		s.Unknown += countLines(s.Places) - countLines(kept)
		s.Places = kept
	}
	f.work.Searches = slices.DeleteFunc(f.work.Searches, func(s state.Search) bool { return len(s.Places) == 0 })
}

func countLines(places []state.Place) (n int) {
	for _, p := range places {
		n += len(p.Lines)
	}
	return n
}

// keepSearches keeps the newest searches that the agent goes through and has not ended. What was
// left when the user went on to other things was mostly meant to stay.
func (f *fold) keepSearches() {
	var kept []state.Search
	for _, s := range slices.Backward(f.work.Searches) {
		changed, left := s.Changed(), s.Left()
		done := changed + s.Before
		if len(kept) == maxSearches || left == 0 || s.LastChange < f.turn-recentTurns || done < leastChanged || done*leastShare < done+left || slices.ContainsFunc(kept, s.ShownBy) {
			continue
		}
		kept = append(kept, s)
	}
	slices.Reverse(kept)
	f.work.Searches = kept
}

// changedFiles are the files that operations changed.
func changedFiles(ops []shell.FileOp) (files []string) {
	for _, op := range ops {
		if op.Op != "read" && op.Path != "" {
			files = append(files, op.Path)
		}
	}
	return files
}
