package plan

import "reflect"

// Since lists the records that are new in the plan: those that before does not hold
// in the same form, lowest precedence first. A nil before holds none.
func (p *Plan) Since(before *Plan) []Record {
	held := map[string][]Record{}
	if before != nil {
		for _, ref := range before.Refs() {
			r := before.Record(ref)
			held[keyOf(r)] = append(held[keyOf(r)], r)
		}
	}
	var fresh []Record
	for _, ref := range p.Refs() {
		r, known := p.Record(ref), false
		for _, old := range held[keyOf(r)] {
			known = known || reflect.DeepEqual(old, r)
		}
		if !known {
			fresh = append(fresh, r)
		}
	}
	return fresh
}

func keyOf(r Record) string {
	s := r.Covers()
	return r.Action().String() + " " + string(s.First()) + " " + string(s.Last())
}
