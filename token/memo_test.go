package token

import (
	"fmt"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func TestMemoKnowsFormsOfOneMessage(t *testing.T) {
	c := counter(t, "o200k")
	memo := NewMemo(c, 0)
	whole := thread.Message{ID: "1", Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "a", Content: []thread.Part{thread.Text{Text: "one two three four five"}}}}}
	cleared := whole
	cleared.Parts = []thread.Part{thread.ToolResult{CallID: "a", Content: []thread.Part{thread.Text{Text: "[read: success]"}}}}
	for range 2 {
		for _, m := range []*thread.Message{&whole, &cleared} {
			if got, want := memo.Message(m), c.Message(m); got != want {
				t.Errorf("%d tokens from memory, %d counted", got, want)
			}
		}
	}
	if memo.Counter() != c {
		t.Error("the memo has another counter")
	}
}

func TestMemoIsBoundedAndConcurrent(t *testing.T) {
	c := counter(t, "chars/4")
	memo := NewMemo(c, 50)
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range 2000 {
				m := thread.Message{ID: thread.ID(fmt.Sprint(i % (100 + g))), Parts: []thread.Part{thread.Text{Text: fmt.Sprintf("%0*d", i%97+1, i)}}}
				if got, want := memo.Message(&m), c.Message(&m); got != want {
					t.Errorf("%d tokens from memory, %d counted", got, want)
					return
				}
			}
		})
	}
	group.Wait()
	if n, _ := memo.known.Stats(); n > 50 {
		t.Errorf("the memo holds %d counts, at most 50 were asked for", n)
	}
}

// A message counted before is found, not counted again.
func TestMemoCountsOnce(t *testing.T) {
	counted := 0
	c := &Counter{text: func(_ *effort.Budget, s string) int { counted++; return len(s) }}
	memo := NewMemo(c, 10)
	messages := make([]thread.Message, 5)
	for i := range messages {
		messages[i] = thread.Message{ID: thread.ID(fmt.Sprint(i)), Parts: []thread.Part{thread.Text{Text: fmt.Sprint("text ", i)}}}
	}
	for range 3 {
		for i := range messages {
			memo.Message(&messages[i])
		}
	}
	if counted != len(messages) {
		t.Errorf("%d counts for %d messages", counted, len(messages))
	}
}

func BenchmarkMemo(b *testing.B) {
	s := sample()
	var messages []thread.Message
	for i := 0; i+2000 < 400_000; i += 2000 {
		messages = append(messages, thread.Message{ID: thread.ID(fmt.Sprint(i)), Parts: []thread.Part{thread.Text{Text: s[i : i+2000]}}})
	}
	memo := NewMemo(counter(b, "o200k"), 0)
	b.SetBytes(400_000)
	b.ReportAllocs()
	for b.Loop() {
		for i := range messages {
			memo.Message(&messages[i])
		}
	}
}
