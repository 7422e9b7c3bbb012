package palimpsest_test

import (
	"reflect"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestConcurrentUse: one Compactor serves growing and different threads from
// several goroutines, and gives each what it gives alone.
func TestConcurrentUse(t *testing.T) {
	f, err := transcript.Open("testdata/sessions/import-csv.openai-chat.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := f.Transcripts[0].Thread
	var requests []palimpsest.Request
	for _, length := range []int{whole.Len(), whole.Len() * 3 / 4, whole.Len() / 2} {
		th, err := thread.New(whole.ID()).Append(whole.Messages()[:length]...)
		if err != nil {
			t.Fatal(err)
		}
		for _, api := range []string{wire.Anthropic, wire.Chat} {
			requests = append(requests, palimpsest.Request{Thread: th, Budget: 8_000, Profile: render.For(api)})
		}
	}
	alone := make([]*palimpsest.Result, len(requests))
	for i, q := range requests {
		c, err := palimpsest.New(palimpsest.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if alone[i], err = c.Compact(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	shared, err := palimpsest.New(palimpsest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 2 {
		for i, q := range requests {
			all.Go(func() {
				res, err := shared.Compact(t.Context(), q)
				switch {
				case err != nil:
					t.Errorf("request %d: %v", i, err)
				case res.After != alone[i].After || !reflect.DeepEqual(res.Prompt.Messages, alone[i].Prompt.Messages):
					t.Errorf("request %d: %d tokens together with others, %d alone, or other messages", i, res.After, alone[i].After)
				}
			})
		}
	}
	all.Wait()
}
