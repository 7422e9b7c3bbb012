package policy

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestDefaults: a policy whose defaults are written out decides as its zero
// value does, threads of every size and windows of every kind. A19
func TestDefaults(t *testing.T) {
	if a, b := (Ladder{}).Rungs(), (Ladder{}).Defaults().Rungs(); !reflect.DeepEqual(a, b) {
		t.Errorf("%+v, written out %+v", a, b)
	}
	for _, tool := range []string{"userQuestions", "proceedInOnboarding", "linear_create", "Bash", "lin", "userQuestion"} {
		if (Workstream{}).isAllowedTool(tool) != (Workstream{}).Defaults().isAllowedTool(tool) {
			t.Error(tool) // D4
		}
	}
	delta := manyOfAll(20)
	if a, b := (state.State{}).Apply(delta, state.Limits{}), (state.State{}).Apply(delta, Workstream{}.Defaults().Limits); !reflect.DeepEqual(a, b) {
		t.Errorf("%+v, written out %+v", a, b) // D7
	}
	due := 0
	for size := 500; size < 1<<19; size += size / 2 {
		messages := []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Go on."}}}}
		for range 14 {
			messages = append(messages, thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: strings.Repeat("word ", size/14)}}})
		}
		th, err := thread.New("t").Append(messages...)
		if err != nil {
			t.Fatal(err)
		}
		s := &Situation{Thread: th, Base: &prompt.Prompt{System: []prompt.System{{Text: "You help."}}}}
		s.PromptTokens = size
		for _, window := range []int{0, 8_000, 128_000, 200_000} {
			s.Window, s.Output = window, window/10
			for _, pair := range [][2]Policy{
				{Auto{}, Auto{}.Defaults()}, {Ladder{}, Ladder{}.Defaults()}, {Session{}, Session{}.Defaults()},
				{Timeline{}, Timeline{}.Defaults()}, {Workstream{}, Workstream{}.Defaults()}, {Loop{}, Loop{}.Defaults()},
			} {
				a, whyA := pair[0].Due(s)
				b, whyB := pair[1].Due(s)
				if a != b || whyA != whyB {
					t.Errorf("%s at %d of %d: %v %s, written out %v %s", pair[0].Name(), size, window, a, whyA, b, whyB)
				}
				if a {
					due++
				}
			}
		}
	}
	if due < 50 {
		t.Error("hardly ever due:", due)
	}
}

func manyOfAll(n int) (d state.Delta) {
	v := reflect.ValueOf(&d).Elem()
	for i := range v.NumField() {
		c, ok := v.Field(i).Addr().Interface().(*state.Change)
		if !ok {
			continue
		}
		for k := range n {
			c.Set = append(c.Set, state.Item{Text: "item " + strconv.Itoa(k)})
		}
	}
	return d
}
