package thread_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func say(role thread.Role, text string) thread.Message {
	return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: text}}}
}

// TestAppendSharesAndForks: appending never changes an earlier thread, and two
// appends to one thread are two forks that agree up to where they part. A1
func TestAppendSharesAndForks(t *testing.T) {
	base, err := thread.New("t").Append(say(thread.User, "fix it"), say(thread.Assistant, "looking"))
	if err != nil {
		t.Fatal(err)
	}
	left, _ := base.Append(say(thread.User, "left"))
	right, err := base.Append(say(thread.User, "right"), say(thread.Assistant, "done"))
	if err != nil {
		t.Fatal(err)
	}
	if base.Len() != 2 || left.Len() != 3 || right.Len() != 4 {
		t.Fatalf("lengths %d, %d, %d", base.Len(), left.Len(), right.Len())
	}
	if got := left.At(2).Text(); got != "left" {
		t.Errorf("the first fork lost its message: %q", got)
	}
	if got := right.At(2).Text(); got != "right" {
		t.Errorf("the second fork has the first one's message: %q", got)
	}
	if left.At(1).ID != right.At(1).ID || left.At(2).ID == right.At(2).ID {
		t.Error("forks must agree before, and only before, they part")
	}
	if i, ok := left.Index(right.At(2).ID); ok {
		t.Errorf("a fork knows a message of its sibling, at %d", i)
	}
	if left.At(2).Turn != 2 || right.Turns() != 2 || left.Version() != 3 {
		t.Errorf("turn %d, turns %d, version %d", left.At(2).Turn, right.Turns(), left.Version())
	}
}

// TestAppendRefusesKnownIDs: a duplicate id appends nothing, and the thread can
// still be appended to. A1
func TestAppendRefusesKnownIDs(t *testing.T) {
	a, b := say(thread.User, "one"), say(thread.User, "two")
	a.ID, b.ID = "a", "a"
	th := thread.New("t")
	if _, err := th.Append(a, b); !errors.Is(err, thread.ErrDuplicateID) {
		t.Fatalf("got %v", err)
	}
	th, err := th.Append(a)
	if err != nil || th.Len() != 1 {
		t.Fatalf("after the refusal: %v, %d messages", err, th.Len())
	}
	if _, err := th.Append(b); !errors.Is(err, thread.ErrDuplicateID) {
		t.Fatalf("got %v", err)
	}
}

// TestConcurrentAppends: every goroutine gets its own thread. Run with -race.
func TestConcurrentAppends(t *testing.T) {
	base, _ := thread.New("t").Append(say(thread.User, "start"))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			th := base
			for i := range 100 {
				next, err := th.Append(say(thread.Assistant, fmt.Sprint(g, " ", i)))
				if err != nil {
					t.Error(err)
					return
				}
				th = next
			}
			for i := range 100 {
				if got, want := th.At(i+1).Text(), fmt.Sprint(g, " ", i); got != want {
					t.Errorf("goroutine %d reads %q, want %q", g, got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestChainID: the id depends on everything that was said and on nothing else.
func TestChainID(t *testing.T) {
	call := func(args string, s thread.Source) thread.Message {
		return thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: "c1", Name: "read", Arguments: args, Source: s}}}
	}
	same := [][2]thread.Message{
		{call(`{"a":1,"b":2}`, thread.Source{}), call(`{ "b": 2, "a": 1 }`, thread.Source{API: "x", Raw: "y", Cache: "5m"})},
		{
			{Role: thread.Assistant, Parts: []thread.Part{thread.Opaque{Kind: "k", Source: thread.Source{Raw: `{"type":"k","cache_control":{"type":"ephemeral"}}`}}}},
			{Role: thread.Assistant, Kind: thread.Recap, Turn: 9, Parts: []thread.Part{thread.Opaque{Kind: "k", Source: thread.Source{Raw: `{"type": "k"}`}}}},
		},
	}
	result := func(r thread.ToolResult) thread.Message {
		r.CallID, r.Tool, r.Content = "c1", "ask", []thread.Part{thread.Text{Text: "blue, please"}}
		return thread.Message{Role: thread.Tool, Parts: []thread.Part{r}}
	}
	same = append(same, [2]thread.Message{ // who speaks in it is found out by the reader
		result(thread.ToolResult{}), result(thread.ToolResult{Said: []thread.Said{{Asked: "Which?", Text: "blue", To: 4}}, Author: thread.ByAgent, Denied: true, Program: true}),
	})
	for i, pair := range same {
		if thread.ChainID("p", &pair[0]) != thread.ChainID("p", &pair[1]) {
			t.Errorf("pair %d: the ids differ although the same was said", i)
		}
	}
	base := call(`{"a":1}`, thread.Source{})
	other := []thread.Message{
		call(`{"a":2}`, thread.Source{}),
		{Role: thread.User, Parts: base.Parts},
		{Role: thread.Assistant, Name: "n", Parts: base.Parts},
		{Role: thread.Assistant, Parts: append(base.Parts[:1:1], thread.Text{})},
		{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: "ab"}, thread.Text{Text: "c"}}},
		{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: "a"}, thread.Text{Text: "bc"}}},
	}
	seen := map[thread.ID]int{thread.ChainID("p", &base): -1, thread.ChainID("q", &base): -2}
	for i := range other {
		id := thread.ChainID("p", &other[i])
		if at, clash := seen[id]; clash {
			t.Errorf("messages %d and %d have one id", at, i)
		}
		seen[id] = i
	}
	if len(seen) != len(other)+2 {
		t.Error("the parent does not count")
	}
}

// TestSpan: a span names its messages, and the error names the one that fails. A2
func TestSpan(t *testing.T) {
	th, _ := thread.New("t").Append(say(thread.User, "1"), say(thread.Assistant, "2"), say(thread.User, "3"))
	id := func(i int) thread.ID { return th.At(i).ID }
	s, err := thread.NewSpan(th, id(0), id(2))
	if err != nil || s.FirstTurn != 1 || s.LastTurn != 2 || !s.Contains(id(2)) || s.Contains(id(1)) {
		t.Fatalf("%+v, %v", s, err)
	}
	if _, err := thread.NewSpan(th); err == nil || err.Error() != "it has no messages" {
		t.Errorf("empty: %v", err)
	}
	if _, err := thread.NewSpan(th, id(0), "nobody"); !errors.Is(err, thread.ErrUnknownID) || err.Error()[:6] != "nobody" {
		t.Errorf("unknown: %v", err)
	}
	for _, ids := range [][]thread.ID{{id(1), id(0)}, {id(1), id(1)}} {
		if _, err := thread.NewSpan(th, ids...); err == nil || !strings.Contains(err.Error(), "comes after position") {
			t.Errorf("%v: %v", ids, err)
		}
	}
}

// TestPairing checks the pairs of random threads against the definition.
func TestPairing(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		th := threadgen.Thread().Draw(rt, "thread")
		p := thread.Pair(th)
		for i, m := range th.All() {
			answered := map[string]int{}
			for _, r := range p.Results(i) {
				result, _ := th.At(r).Result()
				if r <= i {
					rt.Fatalf("the result at %d comes before its call at %d", r, i)
				}
				if call, ok := p.Call(r); !ok || call != i {
					rt.Fatalf("results and calls disagree about %d", r)
				}
				if twice := answered[result.CallID] > 0; twice != p.Duplicate(r) {
					rt.Fatalf("result at %d: duplicate %v, want %v", r, p.Duplicate(r), twice)
				}
				answered[result.CallID]++
			}
			for _, c := range m.Calls() {
				missing := false
				for _, open := range p.Missing(i) {
					missing = missing || open.ID == c.ID
				}
				if missing == (answered[c.ID] > 0) {
					rt.Fatalf("call %s at %d: missing %v, answered %d times", c.ID, i, missing, answered[c.ID])
				}
			}
		}
	})
}

// TestCleared is the seed's placeholder. A6
func TestCleared(t *testing.T) {
	r := thread.ToolResult{Tool: "create_order", Outcome: thread.Success}
	if got, want := r.Cleared(nil), "[create_order: success]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r.KeyFields = thread.Fields{"total": 12.5, "order_id": "ORD-1", "note": "a, b: <c>"}
	want := "[create_order: success]\nKey data: {\"note\": \"a, b: <c>\", \"order_id\": \"ORD-1\", \"total\": 12.5}"
	if got := r.Cleared(nil); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := (thread.ToolResult{Tool: "x"}).Cleared(thread.Fields{"list": []any{1, "two"}}), "[x: success]\nKey data: {\"list\": [1, \"two\"]}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestDrift: content hash, then ETag, then mtime, then version; nothing to
// compare means changed. A8
func TestDrift(t *testing.T) {
	tests := []struct {
		captured, current thread.Determinism
		changed           bool
	}{
		{thread.Determinism{}, thread.Determinism{}, true},
		{thread.Determinism{ContentHash: "a", MTime: 1}, thread.Determinism{ContentHash: "a", MTime: 2}, false},
		{thread.Determinism{ContentHash: "a", ETag: "e"}, thread.Determinism{ContentHash: "b", ETag: "e"}, true},
		{thread.Determinism{ETag: "e", MTime: 1}, thread.Determinism{ETag: "e", MTime: 2}, false},
		{thread.Determinism{ContentHash: "a", MTime: 1}, thread.Determinism{MTime: 1}, false},
		{thread.Determinism{MTime: 1}, thread.Determinism{MTime: 2}, true},
		{thread.Determinism{Version: "1"}, thread.Determinism{Version: "1"}, false},
		{thread.Determinism{Version: "1"}, thread.Determinism{ETag: "e"}, true},
	}
	for _, tt := range tests {
		if got := tt.captured.Changed(tt.current); got != tt.changed {
			t.Errorf("%+v, now %+v: changed %v", tt.captured, tt.current, got)
		}
	}
}

// BenchmarkAppend appends one by one to a thread of a million messages.
func BenchmarkAppend(b *testing.B) {
	b.ReportAllocs()
	messages := make([]thread.Message, 1_000_000)
	for i := range messages {
		messages[i] = say(thread.Assistant, "step")
	}
	th, err := thread.New("b").Append(messages...)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if th, err = th.Append(say(thread.Assistant, "one more")); err != nil {
			b.Fatal(err)
		}
	}
}
