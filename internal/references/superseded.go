package references

import "slices"

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
		f, ok := m.trail.readings[s.Pos]
		if !ok {
			return false
		}
		when := m.trail.when[f]
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
		c = c.before(m.At)
		if len(c.told) > 0 && c.now() == value {
			return false
		}
		old = old || slices.ContainsFunc(c.told, func(t telling) bool { return t.value == value })
	}
	return old
}
