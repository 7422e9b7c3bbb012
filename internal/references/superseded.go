package references

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// readings are the results of a session that tell what stands in a file, and when
// each file was read or changed.
type readings struct {
	file map[int]int32 // by the position of the result
	when [][]int       // by file: the positions of the calls, in order
}

func newReadings(t *thread.Thread, r *trail) readings {
	out := readings{file: map[int]int32{}, when: make([][]int, len(r.files))}
	asked := map[string]int32{}
	for i, m := range uncopied.All(t) {
		for _, op := range r.ops[i] {
			out.when[op.file] = append(out.when[op.file], i)
		}
		for _, c := range m.Calls() {
			if toolpolicy.ClassOf(c.Name) == toolpolicy.Read && len(r.ops[i]) > 0 {
				one := thread.Message{Role: thread.Assistant, Parts: []thread.Part{c}}
				for _, op := range r.of(&one, false) {
					asked[c.ID] = op.file
				}
			}
		}
		if result, ok := m.Result(); ok {
			if f, known := asked[result.CallID]; known {
				out.file[i] = f
			}
		}
	}
	return out
}

// Superseded reports whether all that tells an identifier before the moment is out
// of date: each place is an old value, or a reading of a file that was read or
// changed again since.
func (m *Moment) Superseded(r *Reference) bool {
	if m.oldValue(r.Norm) {
		return true
	}
	for _, s := range r.Seen {
		if s.Pos >= m.Tail {
			break
		}
		f, ok := m.readings.file[s.Pos]
		if !ok {
			return false
		}
		when := m.readings.when[f]
		next, _ := slices.BinarySearch(when, s.Pos)
		if next == len(when) || when[next] >= m.At {
			return false
		}
	}
	return true
}

// oldValue reports whether a value that changed before the moment is this one, and
// no value that is true then.
func (m *Moment) oldValue(value string) bool {
	old := false
	for _, c := range m.changing {
		now, was := "", false
		for _, t := range c.told {
			if t.pos >= m.At {
				break
			}
			was = was || t.value == value
			now = t.value
		}
		if now == value {
			return false
		}
		old = old || was
	}
	return old
}
