package eval

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
)

// TestValidity: every policy compacts, every API accepts every prompt, and auto
// keeps to its budget.
func TestValidity(t *testing.T) {
	counter := counterOf(t)
	set := &references.Set{Counter: counter, Sessions: []*references.Session{worked(t, counter, 16).Session}}
	v, err := Validity(t.Context(), set, nil)
	if err != nil {
		t.Fatal(err)
	}
	tight, err := Validity(t.Context(), set, &ValidityOptions{Tight: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range tight.Rows {
		if r.Invalid > 0 || r.Policy == references.AutoName && r.Compactions <= v.Rows[i].Compactions {
			t.Errorf("%+v, with more room %+v", r, v.Rows[i])
		}
	}
	if len(v.Rows) != 28 {
		t.Fatalf("%d rows, want seven policies for four APIs", len(v.Rows))
	}
	for _, r := range v.Rows {
		if r.Prompts != 17 || r.Invalid > 0 || r.Policy == references.AutoName && (r.Over > 0 || r.Compactions == 0) {
			t.Errorf("%+v %q", r, v.Problems)
		}
	}
}
