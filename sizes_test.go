package palimpsest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// ending is a context that ends after it was looked at so many times.
type ending struct {
	context.Context
	looks int
}

func (e *ending) Err() error {
	if e.looks--; e.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestCountingStops: of a thread of which nobody waits for the size no more messages
// are counted, and what was counted is not counted again.
func TestCountingStops(t *testing.T) {
	counter, err := token.New("chars/4", nil)
	if err != nil {
		t.Fatal(err)
	}
	var messages []thread.Message
	for n := range 200 {
		messages = append(messages, thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: fmt.Sprint("message ", n)}}})
	}
	log, err := thread.New("t").Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	k := &profileSizes{counter: counter, profile: render.Profile{}}
	for _, counted := range []int{10, 30, 60} {
		before := len(k.plain)
		if _, _, _, err := k.messageSizes(&ending{t.Context(), counted - before}, log); !errors.Is(err, context.Canceled) || len(k.plain) != counted {
			t.Fatalf("%d messages were counted, want %d: %v", len(k.plain), counted, err)
		}
	}
	// Another thread that goes on from there has its own sizes.
	other, err := log.Prefix(40).Append(thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "quite another message than the one there"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []*thread.Thread{other, log} {
		whole := &profileSizes{counter: counter}
		_, want, _, err := whole.messageSizes(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		if _, got, _, err := k.messageSizes(t.Context(), of); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, want %v: %v", got, want, err)
		}
	}
}

// TestCountingStopsInMessage: nor is a large message counted to its end, and its size is not kept.
func TestCountingStopsInMessage(t *testing.T) {
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	log, err := thread.New("t").Append(thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: strings.Repeat("a", 1<<19)}}})
	if err != nil {
		t.Fatal(err)
	}
	k, short := &profileSizes{counter: counter}, &ending{t.Context(), 100}
	if _, _, _, err := k.messageSizes(short, log); !errors.Is(err, context.Canceled) || len(k.plain) != 0 || short.looks < -2 {
		t.Errorf("%d sizes are kept, and it looked %d times after the end: %v", len(k.plain), -short.looks-1, err)
	}
}
