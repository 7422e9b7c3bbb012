package proxy

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestWork: the work on large requests waits until it fits into the memory for it; small ones need
// no room.
func TestWork(t *testing.T) {
	m := NewMemory(&MemoryOptions{Work: 100})
	first, err := m.beginWork(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	small, err := m.beginWork(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	small()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.beginWork(gone, 50); !errors.Is(err, context.Canceled) {
		t.Errorf("work without room: %v", err)
	}
	begun := make(chan func())
	go func() {
		end, _ := m.beginWork(t.Context(), 50)
		begun <- end
	}()
	select {
	case <-begun:
		t.Fatal("work begins without room")
	default:
	}
	first()
	(<-begun)()
	if m.freeWork != 100 {
		t.Errorf("%d of 100 are free", m.freeWork)
	}
	text := strings.Repeat("a", 1<<20)
	for body, want := range map[string]int{"{}": 0, text: 12 << 20, text + strings.Repeat("{}", 20_000): 1<<20 + 40_000 + 20_000*(2<<10), strings.Repeat("{}", 1<<19): tooMuchWork} {
		if got := workBytes(wire.Chat, new(identify.NewSimilar(body))); got != want {
			t.Errorf("%.10s: %d bytes, want %d", body, got, want)
		}
	}
}
