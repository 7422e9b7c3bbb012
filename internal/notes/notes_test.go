package notes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/notes"
)

func words(text string) int { return len(strings.Fields(text)) }

// TestBook: ids are never used twice, what is there is not added again, and a text of several lines
// becomes one.
func TestBook(t *testing.T) {
	var b notes.Book
	for n, text := range []string{"one\n\x1b[31mtwo", "three", "three"} {
		if _, err := b.Write(text, nil, words); err != nil {
			t.Errorf("%d: %v", n, err)
		}
	}
	if err := b.Remove("n2"); err != nil {
		t.Error(err)
	}
	if n, err := b.Write("four", []string{"art_1"}, words); err != nil || n.ID != "n3" {
		t.Errorf("%+v, %v", n, err)
	}
	if got, want := b.List(), "n1: one [31mtwo\nn3: four [art_1]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := b.Remove("n2"); err == nil {
		t.Error("it is removed twice")
	}
}

// TestFullBook: a book that is full, by number or by size, refuses and stays as it was.
func TestFullBook(t *testing.T) {
	for name, tt := range map[string]struct {
		text  string
		count func(string) int
		most  int
	}{
		"number": {"fact", words, notes.MaxNotes},
		"size":   {"fact", func(text string) int { return 300 * strings.Count(text, "\n") }, 6},
	} {
		var b notes.Book
		for n := range notes.MaxNotes + 1 {
			_, err := b.Write(fmt.Sprintf("%s %d", tt.text, n), nil, tt.count)
			if (err == nil) != (n < tt.most) {
				t.Fatalf("%s: after %d: %v", name, n, err)
			}
			if err != nil && (!strings.Contains(err.Error(), `n1 ("fact 0")`) || len(b.Notes) != tt.most) {
				t.Errorf("%s: %d notes: %v", name, len(b.Notes), err)
			}
			if err != nil {
				break
			}
		}
	}
}

// TestAsk: what a compaction is to keep in mind is bounded, and on one line.
func TestAsk(t *testing.T) {
	var b notes.Book
	b.Ask(strings.Repeat("keep\n", 1000), 7)
	if b.AskedAt != 7 || len(b.Asked.Keep) > 500 || strings.Contains(b.Asked.Keep, "\n") {
		t.Errorf("%d: %d bytes", b.AskedAt, len(b.Asked.Keep))
	}
}
