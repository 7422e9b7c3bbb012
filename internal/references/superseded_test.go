package references

import "testing"

// TestSuperseded: an old value, and what stood in a reading of a file that was
// read again since, are out of date; what stands elsewhere too is not.
func TestSuperseded(t *testing.T) {
	s := ordered(t)
	m := &Moment{Session: s, At: 11, Tail: 9}
	at := func(norm string, positions ...int) *Reference {
		r := &Reference{}
		r.Norm = norm
		for _, pos := range positions {
			r.Seen = append(r.Seen, Sighting{Pos: pos})
		}
		return r
	}
	for _, c := range []struct {
		ref  *Reference
		want bool
	}{
		{at("pending", 2), true}, {at("shipped", 6), false},
		{at("8080", 4, 8), false}, {at("30s", 4), true}, {at("60s", 8), false},
		{at("app_name", 4), true}, {at("app_name", 2, 4), false},
	} {
		if got := m.Superseded(c.ref); got != c.want {
			t.Errorf("%s at %v: superseded %v", c.ref.Norm, c.ref.Seen, got)
		}
	}
	early := &Moment{Session: s, At: 5, Tail: 5}
	if early.Superseded(at("30s", 4)) || early.Superseded(at("pending", 2)) {
		t.Error("what changes later is out of date before")
	}
}
