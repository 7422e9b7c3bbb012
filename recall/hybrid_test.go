package recall_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// themes embeds a text by what it speaks of: money, weather, or neither.
type themes struct {
	asked int
	err   error
	short bool
}

func (e *themes) Embed(_ context.Context, texts []string) ([][]float32, error) {
	e.asked += len(texts)
	if e.err != nil {
		return nil, e.err
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		v := []float32{0, 0, 0.1}
		for n, words := range []string{"invoice price tariff cost", "rain storm forecast umbrella"} {
			for w := range strings.FieldsSeq(words) {
				v[n] += float32(strings.Count(text, w))
			}
		}
		out[i] = v
	}
	if e.short {
		return out[1:], nil
	}
	return out, nil
}

func themed() []recall.Entry {
	texts := []string{
		"The rain begins at noon.",
		"Each zone has its tariff.",
		"func parse(line string) error",
		strings.Repeat("a line about nothing\n", 200) + "the umbrella stands here\n" + strings.Repeat("a line about nothing\n", 200),
	}
	entries := make([]recall.Entry, len(texts))
	for i, text := range texts {
		entries[i] = recall.Entry{ThreadID: "t", MessageID: thread.ID(text[:8]), Position: i, Action: plan.Drop, Text: text}
	}
	return entries
}

// TestHybrid: what means the same is found without a word in common, what holds
// the words as well, and what has both comes first; the same search gives the
// same hits. A23
func TestHybrid(t *testing.T) {
	e := &themes{}
	h := &recall.Hybrid{Embedder: e}
	x := recall.NewIndex(themed())
	search := func(query string) []recall.Hit {
		t.Helper()
		hits, err := h.Search(t.Context(), x, query, nil)
		if err != nil {
			t.Fatal(err)
		}
		return hits
	}
	if hits := search("invoice"); len(hits) != 1 || hits[0].MessageID != "Each zon" {
		t.Errorf("by meaning alone: %+v", hits)
	}
	if hits := search("parse"); len(hits) == 0 || hits[0].MessageID != "func par" {
		t.Errorf("by words alone: %+v", hits)
	}
	hits := search("rain")
	if len(hits) != 2 || hits[0].MessageID != "The rain" {
		t.Errorf("by both: %+v", hits)
	}
	if len(hits) == 2 && !strings.Contains(hits[1].Excerpt, "umbrella") {
		t.Errorf("the excerpt is not about what was meant: line %d, %q", hits[1].Line, hits[1].Excerpt)
	}
	before := e.asked
	if again := search("rain"); len(again) != len(hits) || e.asked != before {
		t.Errorf("asked for %d vectors again, %d hits", e.asked-before, len(again))
	}
	if _, err := h.Search(t.Context(), recall.NewIndex(append(themed(), recall.Entry{ThreadID: "t", MessageID: "new", Position: 9, Text: "a storm comes"})), "rain", nil); err != nil || e.asked != before+1 {
		t.Errorf("one entry more costs %d vectors: %v", e.asked-before, err)
	}
	if hits, err := h.Search(t.Context(), x, " ", nil); err != nil || hits != nil {
		t.Errorf("an empty query: %v, %v", hits, err)
	}
	if hits, err := h.Search(t.Context(), x, "rain", &recall.Options{ThreadID: "other"}); err != nil || len(hits) != 0 {
		t.Errorf("another thread: %v, %v", hits, err)
	}
}

// TestHybridErrors: an embedder that fails, or gives too few vectors, is an error.
func TestHybridErrors(t *testing.T) {
	down := errors.New("down")
	x := recall.NewIndex(themed())
	if _, err := (&recall.Hybrid{Embedder: &themes{err: down}}).Search(t.Context(), x, "rain", nil); !errors.Is(err, down) {
		t.Error(err)
	}
	if _, err := (&recall.Hybrid{Embedder: &themes{short: true}}).Search(t.Context(), x, "rain", nil); err == nil {
		t.Error("too few vectors are taken")
	}
}
