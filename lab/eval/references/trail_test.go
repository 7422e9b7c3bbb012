package references

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestTrail: what is shown must tell what last became of each file.
func TestTrail(t *testing.T) {
	call := func(name, args string) thread.Message {
		return thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: name + args, Name: name, Arguments: args}}}
	}
	th, err := thread.New("files").Append(
		call("Read", `{"file_path":"/w/a/one.go"}`),
		call("Edit", `{"file_path":"/w/a/one.go"}`),
		call("Read", `{"file_path":"/w/a/two.go"}`),
		call("Write", `{"file_path":"/w/b/three.go"}`),
		call("Edit", `{"file_path":"/w/b/three.go"}`),
		call("Bash", `{"command":"rm /w/a/two.go"}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	m := &Moment{Session: &Session{Thread: th, trail: newTrail(th, nil)}, At: th.Len()}
	say := func(text string) *Shown {
		return &Shown{Other: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}}}}
	}
	for _, c := range []struct {
		name        string
		shown       *Shown
		right, told float64
	}{
		{"nothing", &Shown{}, 0, 0},
		{"everything", &Shown{Kept: []int{0, 1, 2, 3, 4, 5}}, 3, 3},
		{"reads alone", &Shown{Kept: []int{0, 2}}, 0, 2},
		{"a ledger", say("/w/a/one.go (read, edited)\n/w/a/two.go (deleted)\n/w/b/three.go created"), 3, 3},
		{"short paths", say("edited a/one.go\nremoved two.go\nviewed three.go"), 2, 3},
		{"names alone", say("one.go\ntwo.go"), 0, 0},
		{"names that are parts of others", say("edited bone.go"), 0, 0},
	} {
		right, told, all := m.Trails(c.shown)
		if right != c.right || told != c.told || all != 3 {
			t.Errorf("%s: %.0f right, %.0f told of %.0f files; want %.0f and %.0f of 3", c.name, right, told, all, c.right, c.told)
		}
	}
}
