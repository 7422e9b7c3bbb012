package proxy

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestEqualParts: of equal parts each gets the bytes that it has now, wherever the mark is.
func TestEqualParts(t *testing.T) {
	text := func(raw string) thread.Part { return thread.Text{Source: thread.Source{Raw: raw}, Text: "again"} }
	const plain, marked = `{"text":"again"}`, `{"text":"again","cache_control":{}}`
	was := &thread.Message{Parts: []thread.Part{text(`{"text":"long"}`), text(plain), text(plain)}}
	fresh := &thread.Message{Parts: []thread.Part{text(`{"text":"long"}`), text(plain), text(marked)}}
	for _, k := range []struct {
		at        int
		raw, want string
	}{
		{1, plain, plain},
		{2, plain, marked},
		{3, plain, plain},                         // it was moved
		{0, plain, plain},                         // others before it went
		{1, `{"text":"made"}`, `{"text":"made"}`}, // the renderer wrote it
		{2, `{"text":"long"}`, `{"text":"long"}`},
	} {
		if got := currentPart(k.at, text(k.raw), was, fresh).From().Raw; got != k.want {
			t.Errorf("part %d, %s: %s", k.at, k.raw, got)
		}
	}
}
