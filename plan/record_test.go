package plan_test

import (
	"encoding/json"
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan"
)

// TestActionWords: what is written of an action can be read again.
func TestActionWords(t *testing.T) {
	for a := plan.Include; a <= plan.Drop; a++ {
		data, err := json.Marshal(plan.Ref{Action: a, Index: 3})
		if err != nil {
			t.Fatal(err)
		}
		var got plan.Ref
		if err := json.Unmarshal(data, &got); err != nil || got != (plan.Ref{Action: a, Index: 3}) {
			t.Errorf("%s: got %+v: %v", data, got, err)
		}
	}
	var a plan.Action
	if err := a.UnmarshalText([]byte("forget")); err == nil {
		t.Error("an unknown word was taken")
	}
}
