package references

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// ordered is a conversation in which an order and a file change and are read
// again.
func ordered(t *testing.T) *Session {
	t.Helper()
	call := func(id, name, args string) thread.Message {
		return thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: name, Arguments: args}}}
	}
	result := func(id, text string) thread.Message {
		return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Content: []thread.Part{thread.Text{Text: text}}}}}
	}
	th, err := thread.New("ordered").Append(
		thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Ship it."}}},
		call("1", "get_order", `{"order":"ORD-48213"}`),
		result("1", `{"order_id":"ORD-48213","status":"pending","total":12.5}`),
		call("2", "Read", `{"file_path":"conf/app.yaml"}`),
		result("2", "  1→port: 8080\n  2→timeout: 30s\n  3→port: 8081\n"),
		call("3", "ship", `{"what":"ORD-48213"}`),
		result("3", `{"order_id":"ORD-48213","status":"shipped"}`),
		call("4", "Read", `{"file_path":"conf/app.yaml"}`),
		result("4", "  1→port: 8080\n  2→timeout: 60s\n"),
		call("5", "Bash", `{"command":"make"}`),
		result("5", "ok"),
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: "Shipped."}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSession(&transcript.Transcript{Name: "ordered", Thread: th}, "ordered", "ordered", counterOf(t))
	if err != nil {
		t.Fatal(err)
	}
	s.Link(tooCommon([]*Session{s}))
	return s
}

// TestStale: an old value that stands alone is stale; one beside the current is
// not, nor is the same value of something else.
func TestStale(t *testing.T) {
	s := ordered(t)
	if len(s.changing) != 2 || s.changing[0].key != "status" || s.changing[1].key != "timeout" {
		t.Fatalf("what changes is %+v", s.changing)
	}
	m := s.Moment(4)
	say := func(text string) *Shown {
		return &Shown{Other: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}}}}
	}
	for _, c := range []struct {
		name string
		s    *Shown
		want Freshness
	}{
		{"all", &Shown{Kept: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}, Freshness{2, 0}},
		{"old order", &Shown{Kept: []int{1, 2}}, Freshness{0, 1}},
		{"old both", &Shown{Kept: []int{1, 2, 3, 4}}, Freshness{0, 2}},
		{"new order, old file", &Shown{Kept: []int{3, 4, 5, 6}}, Freshness{1, 1}},
		{"told old", say("Order ORD-48213: status pending"), Freshness{0, 1}},
		{"told both", say("ORD-48213 status: pending, then status: shipped"), Freshness{1, 0}},
		{"of another", say("Order ORD-5: status: pending"), Freshness{}},
		{"longer word", say("ORD-48213 substatus: pending, status: pendingly"), Freshness{}},
		{"file", say(`conf/app.yaml has "timeout": "30s"`), Freshness{0, 1}},
		{"nothing", &Shown{}, Freshness{}},
	} {
		if got := m.Freshness(c.s); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if r := (Freshness{3, 1}).Rate(); r != 0.25 {
		t.Errorf("the rate is %g", r)
	}
}

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
