package references

import (
	"path"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// fileState is the last state of a file.
type fileState uint8

// The states. wasWritten stands for created or edited, when a call writes a whole file
// and nothing is known of it before.
const (
	untouched fileState = iota
	wasRead
	wasEdited
	wasCreated
	wasDeleted
	wasWritten
)

// stateWords are the words for the states.
var stateWords = map[string]fileState{
	"read": wasRead, "reads": wasRead, "viewed": wasRead, "view": wasRead,
	"edit": wasEdited, "edited": wasEdited, "edits": wasEdited, "modified": wasEdited, "updated": wasEdited, "changed": wasEdited,
	"created": wasCreated, "create": wasCreated, "wrote": wasCreated, "write": wasCreated, "written": wasCreated, "added": wasCreated,
	"deleted": wasDeleted, "removed": wasDeleted, "rm": wasDeleted,
}

// fileOp is the operation of a call on a file.
type fileOp struct {
	file  int32
	class toolclass.Class
}

// shellDeletes is the class of a command that deletes files.
const shellDeletes = toolclass.Class("delete")

// trail are the files of a session and the operations of each message on them.
type trail struct {
	files []string
	index map[string]int32
	ops   [][]fileOp
	when  [][]int // by file: the positions of the calls, in order
	find  *finder
	// readings are the files that results show, by the position of the result.
	readings map[int]int32
}

func newTrail(t *thread.Thread, all []answer) *trail {
	r := &trail{index: map[string]int32{}, ops: make([][]fileOp, t.Len()), find: newFinder(), readings: map[int]int32{}}
	for i, m := range t.All() {
		r.ops[i] = r.opsOf(m, true)
		for _, op := range r.ops[i] {
			r.when[op.file] = append(r.when[op.file], i)
		}
	}
	for _, a := range all {
		if f, known := r.index[path.Clean(a.file)]; known && toolclass.ClassOf(a.call.Name) == toolclass.Read {
			r.readings[a.pos] = f
		}
	}
	r.addNames()
	return r
}

// addNames adds to the finder the path of each file and every end of it that means this
// file alone: people and models shorten paths.
func (r *trail) addNames() {
	count := map[string]int{}
	each := func(file string, do func(form string)) {
		do(file)
		for i := 1; i < len(file); i++ {
			if file[i-1] == '/' {
				do(file[i:])
			}
		}
	}
	for _, file := range r.files {
		each(file, func(form string) { count[form]++ })
	}
	for f, file := range r.files {
		each(file, func(form string) {
			if count[form] == 1 {
				r.find.Add(int32(f), form)
			}
		})
	}
}

// opsOf are the file operations in the calls of a message. With learn it adds new files;
// without, it passes over them.
func (r *trail) opsOf(m *thread.Message, learn bool) []fileOp {
	var ops []fileOp
	add := func(name string, class toolclass.Class) {
		name = path.Clean(name)
		f, ok := r.index[name]
		if !ok {
			if !learn || len(name) < 3 {
				return
			}
			f = int32(len(r.files))
			r.files, r.when = append(r.files, name), append(r.when, nil)
			r.index[name] = f
		}
		ops = append(ops, fileOp{f, class})
	}
	for _, c := range m.Calls() {
		class := toolclass.ClassOf(c.Name)
		args := gjson.Parse(c.Arguments)
		switch class {
		case toolclass.Read, toolclass.Edit, toolclass.Write:
			if file := FileOf(args); file != "" {
				add(file, class)
			}
		case toolclass.Shell:
			words := strings.Fields(args.Get("command").String())
			if len(words) > 1 && (words[0] == "rm" || words[0] == "git" && words[1] == "rm") {
				for _, w := range words[1:] {
					if _, known := r.index[path.Clean(w)]; known {
						add(w, shellDeletes)
					}
				}
			}
		}
	}
	return ops
}

// FileOf is the file that arguments name, "" for none.
func FileOf(arguments gjson.Result) string {
	for _, key := range []string{"file_path", "path", "filePath", "filename", "notebook_path"} {
		if v := arguments.Get(key); v.Type == gjson.String && v.Str != "" {
			return v.Str
		}
	}
	return ""
}

// apply replays operations. Whole says that they are all of the session's, so that a
// file that was never touched is not there.
func apply(state map[int32]fileState, ops []fileOp, whole bool) {
	for _, op := range ops {
		old := state[op.file]
		switch op.class {
		case toolclass.Read:
			if old == untouched || old == wasDeleted {
				state[op.file] = wasRead
			}
		case toolclass.Edit:
			if old != wasCreated && old != wasWritten {
				state[op.file] = wasEdited
			}
		case toolclass.Write:
			switch {
			case !whole && old == untouched:
				state[op.file] = wasWritten
			case old == untouched, old == wasDeleted:
				state[op.file] = wasCreated
			case old == wasRead:
				state[op.file] = wasEdited
			}
		case shellDeletes:
			state[op.file] = wasDeleted
		}
	}
}

// Trails counts the files whose last state the prompt tells right, those of which it
// tells any state, and all files.
func (m *Moment) Trails(s *Shown) (right, told, all float64) {
	truth := map[int32]fileState{}
	for i := range m.At {
		apply(truth, m.trail.ops[i], true)
	}
	if len(truth) == 0 {
		return 0, 0, 0
	}
	// said are the states on the lines of a file in text that the contender made.
	said := map[int32][]fileState{}
	claims := map[int32]fileState{}
	for i := range s.Other {
		apply(claims, m.trail.opsOf(&s.Other[i], false), false)
		text, calls := MessageLines(&s.Other[i])
		text = text[:calls]
		m.trail.find.Find(text, func(f int32, at, end int) {
			from := max(strings.LastIndexByte(text[:at], '\n'), at-bindWithin, 0)
			to := min(len(text), end+bindWithin)
			if i := strings.IndexByte(text[end:to], '\n'); i >= 0 {
				to = end + i
			}
			say := func(w string) bool {
				if state := stateWords[strings.ToLower(w)]; state != untouched {
					said[f] = append(said[f], state)
				}
				return true
			}
			eachWord(text[from:at], say)
			eachWord(text[end:to], say)
		})
	}
	for _, i := range s.Kept {
		apply(claims, m.trail.ops[i], false)
	}
	for f, state := range truth {
		all++
		claim := claims[f]
		switch {
		case slices.Contains(said[f], state), claim == state, claim == wasWritten && (state == wasCreated || state == wasEdited):
			right++
			told++
		case claim != untouched, len(said[f]) > 0:
			told++
		}
	}
	return right, told, all
}
