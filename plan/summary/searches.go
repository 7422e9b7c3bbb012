package summary

import (
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/state"
)

// maxLeft bounds how much is told of the places that are left of a search, in bytes.
const maxLeft = 480

// search writes how far the agent went through the places that a search showed.
func (w *writer) search(s state.Search, home string) {
	changed, left := s.Changed(), s.Left()
	w.raw("of "+strconv.Itoa(changed+left+s.Unknown)+" places that a search").in(s.Turn).raw(" showed for ").said(s.Query, true).raw(" " + strconv.Itoa(changed) + " were changed since")
	if s.Before > 0 {
		w.raw(", " + strconv.Itoa(s.Before) + " before it")
	}
	if s.Unknown > 0 {
		w.raw(", of " + strconv.Itoa(s.Unknown) + " it is not known")
	}
	w.raw("; no edit seen of (lines as of then) ")
	var files []string
	size := 0
	for _, f := range placesLeft(s.Places) {
		if size > maxLeft {
			break
		}
		label := relative(f.path, home) + ":" + joined(f.lines)
		if f.changed > 0 {
			label += " (but " + strconv.Itoa(f.changed) + " of these)"
		}
		files = append(files, label)
		size += len(label)
		left -= len(f.lines) - f.changed
	}
	if w.byFolder(files); left > 0 {
		w.raw(" and " + strconv.Itoa(left) + " more")
	}
}

// fileLeft is a file with lines of which no edit was seen, but of some of them: nobody knows which.
type fileLeft struct {
	path    string
	lines   []int
	changed int
}

func placesLeft(places []state.Place) (files []fileLeft) {
	for _, p := range places {
		if p.Changed == len(p.Lines) {
			continue
		}
		i := slices.IndexFunc(files, func(f fileLeft) bool { return f.path == p.Path && f.changed == 0 && p.Changed == 0 })
		if i < 0 {
			i, files = len(files), append(files, fileLeft{path: p.Path})
		}
		f := &files[i]
		f.lines, f.changed = append(f.lines, p.Lines...), p.Changed
		slices.Sort(f.lines)
	}
	return files
}

func joined(numbers []int) string {
	var b strings.Builder
	for i, n := range numbers {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}
