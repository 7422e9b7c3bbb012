package palimpsest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestIndexIsHeld: with the first plan an index is there before anybody asks, and it is
// the one that the question uses. Without Config.Recall there is none.
func TestIndexIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var news []thread.Message
		for n := range 40 {
			news = append(news, thread.Message{Role: thread.Role([]string{"user", "assistant"}[n%2]), Parts: []thread.Part{thread.Text{Text: fmt.Sprintf("part %d %s", n, strings.Repeat("of the queue ", 100))}}})
		}
		for _, with := range []*Recall{nil, {}} {
			c, err := New(Config{Policy: policy.Loop{ContextLimit: 9_000, MaxOutput: 1_000}, Recall: with})
			if err != nil {
				t.Fatal(err)
			}
			s := c.Session("t")
			if p, err := s.PrepareStep(t.Context(), Step{Messages: news}); err != nil || p.Compacted == nil {
				t.Fatal("nothing was removed", err)
			}
			synctest.Wait()
			if held, _ := c.config.Memory.indexes.Stats(); held != 0 != (with != nil) {
				t.Errorf("%d indexes are held, recall is %v", held, with)
			}
			before, _ := c.config.Memory.indexes.Get(conversation{c, "t"})
			if hits, err := s.Recall(t.Context(), "part 3", nil); err != nil || len(hits) == 0 {
				t.Errorf("%d hits, %v", len(hits), err)
			}
			synctest.Wait()
			if after, _ := c.config.Memory.indexes.Get(conversation{c, "t"}); with != nil && after != before {
				t.Error("the question made another index")
			}
		}
	})
}
