package work

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/state"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
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
)

// searchPrograms are commands that print "path:line:text" of what they find.
var searchPrograms = []string{"grep", "egrep", "fgrep", "rg", "ag", "ack"}

// readSearch reads what a call searches for.
func (c *Call) readSearch(args gjson.Result, line []shell.Command) {
	switch c.Class {
	case toolpolicy.Search:
		c.query = rawjson.FirstText(args, "pattern", "query", "regex", "search")
	case toolpolicy.Shell:
		for i := range line {
			command := &line[i]
			switch sub, _, _ := gitWords(command); {
			case slices.Contains(searchPrograms, command.Name()) && i == 0, sub == "grep" && i == 0:
				c.query = command.Text
			case slices.Contains(searchPrograms, command.Name()), command.Name() == "head", command.Name() == "tail", command.Name() == "sort":
			default:
				c.query = ""
				return
			}
		}
	}
	c.query = clip.Brief(c.query, maxCommand)
}

// readPlaces reads the lines "path:line:text" of an output; nil if they are few.
func readPlaces(output string) []state.Place {
	var places []state.Place
	lines := 0
	for line := range strings.Lines(output) {
		file, rest, _ := strings.Cut(line, ":")
		number, text, ok := strings.Cut(rest, ":")
		n, err := strconv.Atoi(number)
		text = strings.TrimSpace(text)
		if !ok || err != nil || n <= 0 || text == "" || len(text) > maxPlace || !strings.ContainsAny(file, "./") || strings.ContainsAny(file, " \t()'\"") {
			continue
		}
		if lines++; lines > maxPlaces {
			return nil // a list that long is not gone through
		}
		if i := slices.IndexFunc(places, func(p state.Place) bool { return p.Path == file && p.Text == text }); i >= 0 {
			places[i].Lines = append(places[i].Lines, n)
			continue
		}
		places = append(places, state.Place{Path: strings.Clone(file), Text: strings.Clone(text), Lines: []int{n}})
	}
	if lines < leastPlaces || !slices.ContainsFunc(places, func(p state.Place) bool { return p.Path != places[0].Path }) {
		return nil
	}
	return places
}

// addSearch watches the places that a search showed. Those of the same search before are out of date.
func (f *fold) addSearch(c *Call, r *Result, by proof) {
	if c.query == "" || len(r.places) == 0 {
		return
	}
	s := state.Search{Query: c.query, Places: slices.Clone(r.places), Turn: by.turn, Sources: by.sources}
	if i := slices.IndexFunc(f.work.Searches, func(old state.Search) bool { return old.Query == s.Query }); i >= 0 {
		old := &f.work.Searches[i]
		s.Before, s.LastChange = old.Before+old.Changed(), old.LastChange
		f.work.Searches = slices.Delete(f.work.Searches, i, i+1)
	}
	f.work.Searches = append(f.work.Searches, s)
	if n := len(f.work.Searches) - maxWatched; n > 0 {
		f.work.Searches = slices.Delete(f.work.Searches, 0, n)
	}
}

// applyEdit counts the places that an edit of a file changed.
func (f *fold) applyEdit(c *Call, file string, turn int) {
	for i := range f.work.Searches {
		s := &f.work.Searches[i]
		var at []int // places in the file that the edit may have changed
		taken := map[int]int{}
		for k, p := range s.Places {
			if !sameFile(file, p.Path) {
				continue
			}
			if c.Fragment != "" && strings.Contains(p.Text, c.Fragment) {
				at = append(at, k)
				continue
			}
			for _, line := range c.TakesOut {
				if line == p.Text {
					taken[k]++
				}
			}
		}
		if len(at) == 1 || c.everywhere {
			for _, k := range at {
				taken[k] = 1
			}
		}
		if len(taken) == 0 {
			continue
		}
		s.Places, s.LastChange = slices.Clone(s.Places), turn
		for k, n := range taken {
			p := &s.Places[k]
			if p.Changed = min(p.Changed+n, len(p.Lines)); c.everywhere {
				p.Changed = len(p.Lines)
			}
		}
	}
}

// forgetPlaces forgets the places in files that were changed nobody knows where; all if none is named.
func (f *fold) forgetPlaces(files ...string) {
	for i := range f.work.Searches {
		s := &f.work.Searches[i]
		if len(files) == 0 {
			s.Places = nil
		} else {
			s.Places = slices.DeleteFunc(slices.Clone(s.Places), func(p state.Place) bool {
				return slices.ContainsFunc(files, func(file string) bool { return sameFile(file, p.Path) })
			})
		}
	}
	f.work.Searches = slices.DeleteFunc(f.work.Searches, func(s state.Search) bool { return len(s.Places) == 0 })
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

// sameFile reports whether a file is the one that an output names, perhaps from another folder.
func sameFile(file, shown string) bool {
	shown = path.Clean(shown)
	return file == shown || strings.HasSuffix(file, "/"+strings.TrimPrefix(shown, "../")) || strings.HasSuffix(shown, "/"+file)
}

// changedFiles are the files that operations changed.
func changedFiles(ops ...shell.FileOp) (files []string) {
	for _, op := range ops {
		if op.Op != "read" && op.Path != "" {
			files = append(files, op.Path)
		}
	}
	return files
}

// mayShowPlaces reports whether a result can be that of a search.
func (w *Result) mayShowPlaces(class toolpolicy.Class) bool {
	return w.Outcome != thread.Failure && (class == toolpolicy.Search || class == toolpolicy.Shell)
}
