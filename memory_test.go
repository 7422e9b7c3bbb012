package palimpsest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// TestMemoryIsBounded: two dozen conversations of about 130 KB share a memory that has room
// for a few. It stays within its bound, and each prompt is what a compactor that forgets
// nothing sends.
func TestMemoryIsBounded(t *testing.T) {
	const bound = 2 << 20
	db := [2]*store.Memory{{}, {}}
	noon := func() time.Time { return time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC) }
	var compactors [2]*Compactor
	for i, memory := range []*Memory{NewMemory(bound), nil} {
		c, err := New(Config{Policy: policy.Loop{ContextLimit: 9_000, MaxOutput: 1_000}, Memory: memory, Now: noon, Store: store.Tenant{Log: db[i], Plans: db[i], Documents: db[i]}})
		if err != nil {
			t.Fatal(err)
		}
		compactors[i] = c
	}
	text := strings.Repeat("of the queue ", 100)
	for step := range 3 {
		for n := range 24 {
			var prompts [2][]byte
			for i, c := range compactors {
				var news []thread.Message
				for k := range 33 {
					news = append(news, thread.Message{ID: thread.ID(fmt.Sprint(n, "-", step, "-", k)), Role: thread.Role([]string{"user", "assistant"}[k%2]), Parts: []thread.Part{thread.Text{Text: fmt.Sprint("part ", k, text)}}})
				}
				p, err := c.Session(fmt.Sprint(n)).PrepareStep(t.Context(), Step{Messages: news})
				if err != nil {
					t.Fatal(err)
				}
				prompts[i], _ = json.Marshal(p.Prompt.Messages)
			}
			if !bytes.Equal(prompts[0], prompts[1]) {
				t.Fatalf("step %d of conversation %d is another prompt", step, n)
			}
		}
		few, all := compactors[0].config.Memory, compactors[1].config.Memory
		if few.Bytes() > bound {
			t.Errorf("%d bytes are remembered", few.Bytes())
		}
		if entries, _ := few.conversations.Stats(); entries == 0 || entries > 12 {
			t.Errorf("%d conversations are remembered, with room for a few", entries)
		}
		if entries, _ := all.conversations.Stats(); entries != 24 {
			t.Errorf("%d conversations are remembered, with room for all", entries)
		}
	}
}

// TestForgottenInAStep: what is remembered stays with the step that is being taken,
// though other conversations have taken its place.
func TestForgottenInAStep(t *testing.T) {
	c, err := New(Config{Memory: NewMemory(1)})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Session("t")
	err = s.runLocked(t.Context(), "Test", func(held *Session) error {
		before := held.state()
		if _, err := c.Session("other").PrepareStep(context.Background(), Step{}); err != nil {
			return err
		}
		if _, ok := c.config.Memory.conversations.Get(s.conversation); ok {
			t.Error("the conversation is not forgotten: the test shows nothing")
		}
		if held.state() != before {
			t.Error("the step goes on with what another one holds")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestIndexIsHeld: with the first plan of a long conversation an index is there before anybody asks, and it is
// the one that the question uses. Without Config.Recall, or of a short conversation, there is none.
func TestIndexIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, q := range []struct {
			with *Recall
			long bool
		}{{nil, true}, {&Recall{}, true}, {&Recall{}, false}} {
			words, want := 100, q.with != nil && q.long
			if q.long {
				words = 1_000
			}
			var news []thread.Message
			for n := range 40 {
				news = append(news, thread.Message{Role: thread.Role([]string{"user", "assistant"}[n%2]), Parts: []thread.Part{thread.Text{Text: fmt.Sprintf("part %d %s", n, strings.Repeat("of the queue ", words))}}})
			}
			c, err := New(Config{Policy: policy.Loop{ContextLimit: 9_000, MaxOutput: 1_000}, Recall: q.with})
			if err != nil {
				t.Fatal(err)
			}
			s := c.Session("t")
			if p, err := s.PrepareStep(t.Context(), Step{Messages: news}); err != nil || p.Compacted == nil {
				t.Fatal("nothing was removed", err)
			}
			synctest.Wait()
			if held, _ := c.config.Memory.indexes.Stats(); held != 0 != want {
				t.Errorf("%d indexes are held: %+v", held, q)
			}
			before, _ := c.config.Memory.indexes.Get(conversation{c, "t"})
			if hits, err := s.Recall(t.Context(), "part 3", nil); err != nil || len(hits) == 0 {
				t.Errorf("%d hits, %v", len(hits), err)
			}
			synctest.Wait()
			if after, _ := c.config.Memory.indexes.Get(conversation{c, "t"}); want && after != before {
				t.Error("the question made another index")
			}
		}
	})
}

// TestIndexFactor: indexes take about as much as the memory is told, not a tenth of it.
func TestIndexFactor(t *testing.T) {
	var held []*recall.Index
	bytes, before := 0, heapInUse()
	for n := range 40 {
		var entries []recall.Entry
		for k := range 60 {
			text := new(strings.Builder)
			for line := range 30 {
				fmt.Fprintf(text, "internal/queue/worker_%d.go:%d: undefined: Retry%d\nthe build of part %d fails when a worker stops\n", n*k, line*k, n, k)
			}
			entries = append(entries, recall.Entry{Text: text.String()})
			bytes += text.Len()
		}
		held = append(held, recall.NewIndex(entries))
	}
	if factor := float64(heapInUse()-before) / float64(bytes); factor > indexFactor || factor < indexFactor/5 {
		t.Errorf("indexes take %.1f times their texts, the memory is told %d times", factor, indexFactor)
	}
	runtime.KeepAlive(held)
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestCountsAreShared: compactors of many tenants that count alike share what they have counted, so that a tenant
// more takes none of its own.
func TestCountsAreShared(t *testing.T) {
	memory := NewMemory(0)
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	var made [2]*Compactor
	for i := range made {
		if made[i], err = New(Config{Memory: memory, Counter: counter}); err != nil {
			t.Fatal(err)
		}
	}
	if made[0].config.Counter != made[1].config.Counter {
		t.Error("each has counts of its own")
	}
}
