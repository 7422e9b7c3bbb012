package references

import "slices"

// Superseded reports whether all that tells an identifier before the moment is out
// of date: each place is an old value, or a reading of a file that was read or
// changed again since.
func (m *Moment) Superseded(r *Reference) bool {
	if m.isOldValue(r.Norm) {
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

// isOldValue reports whether a value that changed before the moment is this one, and
// no value that is true then.
func (m *Moment) isOldValue(value string) bool {
	old := false
	for _, c := range m.changing {
		c = c.valueBefore(m.At)
		if len(c.told) > 0 && c.lastValue() == value {
			return false
		}
		old = old || slices.ContainsFunc(c.told, func(t toldValue) bool { return t.value == value })
	}
	return old
}
