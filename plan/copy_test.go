package plan

import (
	"reflect"
	"testing"
	"time"
)

type inner struct{ Names []string }

type Embedded struct{ List []int }

type sample struct {
	Embedded
	At     *inner
	Table  map[string][]inner
	Any    any
	Pair   [2][]string
	Time   time.Time
	None   []string
	Empty  []string
	hidden int
}

func made() sample {
	return sample{
		Embedded: Embedded{[]int{1}}, At: &inner{[]string{"a"}}, Table: map[string][]inner{"k": {{[]string{"b"}}}},
		Any: map[string]any{"x": []any{"c"}}, Pair: [2][]string{{"d"}, nil}, Time: time.Unix(1, 2), Empty: []string{}, hidden: 7,
	}
}

// TestCopyOf: the copy is the same, and writing to it changes the original nowhere.
func TestCopyOf(t *testing.T) {
	v := made()
	c := copyOf(v)
	if !reflect.DeepEqual(v, c) {
		t.Fatalf("the copy is %+v, want %+v", c, v)
	}
	c.List[0] = 2
	c.At.Names[0] = "z"
	c.Table["k"][0].Names[0] = "z"
	c.Table["n"] = nil
	c.Any.(map[string]any)["x"].([]any)[0] = "z"
	c.Pair[0][0] = "z"
	if want := made(); !reflect.DeepEqual(v, want) {
		t.Errorf("the original is %+v, want %+v", v, want)
	}
	if copyOf[*inner](nil) != nil || copyOf[any](nil) != nil {
		t.Error("nil has a copy")
	}
}
