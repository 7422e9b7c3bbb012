package transcript

import (
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"
)

// A session is a path over its records, and over its files. Agents write it down in two ways: as a
// lineage, in which every entry names the one that it follows, or as a course, in which an entry
// follows the newest until the user goes back.

// lineage is a session in which entries name what they follow. Where the user went back, or calls
// ran side by side, several follow the same one: the conversation is the path from an entry up
// to the first, and the rest are branches. The zero value is an empty session.
type lineage[E any] struct {
	entries []entry[E]
	places  map[string]int // by id
}

// entry is one record of a session, or a file of it.
type entry[E any] struct {
	id, parent string
	line       int
	value      E
}

// add adds an entry that names its parent; an empty name is none.
func (l *lineage[E]) add(id, parent string, line int, value E) {
	if l.places == nil {
		l.places = map[string]int{}
	}
	if id != "" {
		l.places[id] = len(l.entries)
	}
	l.entries = append(l.entries, entry[E]{id, parent, line, value})
}

// parent is the place of what an entry follows; -1 if it is the first, or that is not there.
func (l *lineage[E]) parent(at int) int { return l.find(l.entries[at].parent) }

// find is the place of an id, or -1.
func (l *lineage[E]) find(id string) int {
	if at, ok := l.places[id]; ok && id != "" {
		return at
	}
	return -1
}

// path marks the entries from one up to the first. Where an entry follows none, join says where
// the path goes on: -1 ends it, and so does an entry that is on the path: it is told, as there is a circle.
func (l *lineage[E]) path(from int, report *Report, join func(root int, on []bool) int) []bool {
	on := make([]bool, len(l.entries))
	if met := l.extend(on, from, join); met >= 0 {
		report.warn(l.entries[met].line, "the entries follow each other in a circle, which was cut before this one")
	}
	return on
}

// extend marks the entries from one up to the first that is marked, as path does. It returns that, or -1.
func (l *lineage[E]) extend(on []bool, from int, join func(root int, on []bool) int) (at int) {
	for at = from; at >= 0 && !on[at]; {
		on[at] = true
		if up := l.parent(at); up >= 0 {
			at = up
		} else {
			at = join(at, on)
		}
	}
	return at
}

// roots are, for each entry that is not on the path, the highest one that is not: entries of one
// branch have the same. For those on the path it is -1. Entries in a circle have one of them.
func (l *lineage[E]) roots(on []bool) []int {
	const unknown = -2
	roots := make([]int, len(l.entries))
	for i := range roots {
		roots[i] = unknown
		if on[i] {
			roots[i] = -1
		}
	}
	var passed []int
	for i := range l.entries {
		root, at := i, i
		for passed = passed[:0]; at >= 0 && roots[at] == unknown; at = l.parent(at) {
			root, roots[at] = at, at // also ends a circle
			passed = append(passed, at)
		}
		if at >= 0 && roots[at] >= 0 {
			root = roots[at]
		}
		for _, p := range passed {
			roots[p] = root
		}
	}
	return roots
}

// branches are the entries that are not on the path, each branch in the order of the file, by
// their first entries.
func (l *lineage[E]) branches(on []bool) (all [][]E) {
	number := map[int]int{}
	for i, root := range l.roots(on) {
		if root < 0 {
			continue
		}
		n, held := number[root]
		if !held {
			n = len(all)
			number[root] = n
			all = append(all, nil)
		}
		all[n] = append(all[n], l.entries[i].value)
	}
	return all
}

// of are the values of the entries on the path, in the order of the file.
func (l *lineage[E]) of(on []bool) (values []E) {
	for i := range l.entries {
		if on[i] {
			values = append(values, l.entries[i].value)
		}
	}
	return values
}

// course is a session in which an entry follows the newest. The zero value is an empty session.
type course[E any] struct {
	now   []E   // the conversation
	turns []int // where the user began a turn in it
	left  [][]E // what was taken back, in the order in which that happened
}

// goBack takes back all from a place of the conversation on.
func (c *course[E]) goBack(at int) {
	if at < len(c.now) {
		c.left = append(c.left, slices.Clone(c.now[at:]))
		c.now = c.now[:at]
	}
	for n := len(c.turns); n > 0 && c.turns[n-1] >= at; n-- {
		c.turns = c.turns[:n-1]
	}
}

// undo takes back the last turns, all of them where there are fewer. It is false where there are none.
func (c *course[E]) undo(turns int) bool {
	if begun := max(0, len(c.turns)-turns); turns > 0 && begun < len(c.turns) {
		c.goBack(c.turns[begun])
		return true
	}
	return turns <= 0
}

// built makes a conversation of each branch that the user left.
func built[E any](branches [][]E, build func([]E) *builder) (all []*builder) {
	for _, branch := range branches {
		all = append(all, build(branch))
	}
	return all
}

// record is a line of a session whose lines are a tree.
type record struct {
	gjson.Result
	line  int
	loose bool // it does not say what it follows, or that was looked for
}

// maxSwapped is how many lines on the one may stand that a line follows.
const maxSwapped = 8

// linesInOrder is lines for a session whose lines have an id, and the id of the one that they follow, at these paths.
// A line that stands before that, as two writers at once leave it, comes behind it. What read gets is valid until it returns.
func (j *importJob) linesInOrder(id, parent string, known func(id string) bool, read func(v gjson.Result, number int)) error {
	var waiting []record
	next := func() {
		for {
			first := waiting[0]
			up, at := first.Get(parent).Str, -1
			if up != "" && !first.loose && !known(up) {
				at = slices.IndexFunc(waiting, func(r record) bool { return r.Get(id).Str == up })
			}
			waiting = waiting[1:]
			if at <= 0 {
				read(first.Result, first.line)
				return
			}
			first.loose = true // once, as lines may follow each other in a circle
			first.line = waiting[at-1].line
			waiting = slices.Insert(waiting, at, first)
		}
	}
	err := j.in.each(func(line []byte, number int) {
		if v := gjson.Parse(unsafe.String(unsafe.SliceData(line), len(line))); len(waiting) == 0 { // nearly always
			if up := v.Get(parent).Str; up == "" || known(up) {
				read(v, number)
				return
			}
		}
		if waiting = append(waiting, record{Result: gjson.ParseBytes(line), line: number}); len(waiting) > maxSwapped {
			next()
		}
	})
	for len(waiting) > 0 {
		next()
	}
	return err
}

// readTree reads a session whose lines have an id, and the id of the one that they follow, at these
// paths; one that does not say follows the line before. apart reports whether a line is no part
// of the tree. build makes a conversation of the path to the newest line, and of each branch.
func (j *importJob) readTree(id, parent string, apart func(record) bool, build func([]record) *builder) ([]Transcript, error) {
	var tree lineage[record]
	known := func(id string) bool { return tree.find(id) >= 0 }
	err := j.linesInOrder(id, parent, known, func(v gjson.Result, number int) {
		v = gjson.Parse(strings.Clone(v.Raw))
		r := record{Result: v, line: number, loose: !v.Get(parent).Exists()}
		if apart(r) {
			return
		}
		own, up, last := v.Get(id).Str, v.Get(parent), ""
		if to := v.Get("targetId"); to.Exists() && v.Get("type").Str == "leaf" { // of pi: the user went there
			up = to
		}
		if n := len(tree.entries); n > 0 {
			last = tree.entries[n-1].id
		}
		follows := up.Str
		if r.loose {
			follows = last
		}
		if at := tree.find(own); at >= 0 {
			twin := tree.entries[at]
			if twin.value.Raw == r.Raw {
				j.report.warn(number, "repeats line %d (id %s) and was left out", twin.line, own)
				return
			}
			j.report.warn(number, "has the id of line %d (%s) and other content; both were kept", twin.line, own)
			own, follows = "line "+strconv.Itoa(number), last
		}
		tree.add(own, follows, number, r)
	})
	if err != nil {
		return nil, err
	}
	on := j.newestPath(&tree)
	return build(tree.of(on)).transcripts(built(tree.branches(on), build)...)
}

// newestPath marks the lines on the path to the newest. Lines without an id are on it, and those
// behind one of it that do not say what they follow.
func (j *importJob) newestPath(tree *lineage[record]) []bool {
	last := len(tree.entries) - 1
	list := last < 0 || tree.entries[last].id == ""
	on := tree.path(last, j.report, func(root int, on []bool) int {
		e := tree.entries[root]
		if e.parent == "" {
			return -1
		}
		j.report.warn(e.line, "its parent %s is not in the file; it was joined to the entry before it", e.parent)
		return root - 1
	})
	for i, e := range tree.entries {
		up := tree.parent(i)
		on[i] = on[i] || list || e.id == "" || e.value.loose && up >= 0 && on[up]
	}
	return on
}
