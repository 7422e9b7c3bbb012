package transcript_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// item is a line of Codex in which the user says a word.
func item(word string) string {
	return fmt.Sprintf(`{"timestamp":"2026-11-20T10:00:00.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, word)
}

// words are what the user says in a session.
func words(f *transcript.File) string {
	var all []string
	for _, t := range f.Transcripts {
		for _, m := range t.Thread.All() {
			all = append(all, m.Text())
		}
	}
	return strings.Join(all, " ")
}

// TestDamagedLines: every whole record is read, and what is lost is told with its line.
func TestDamagedLines(t *testing.T) {
	one, two, three := item("one"), item("two"), item("three")
	nul := strings.Repeat("\x00", 300)
	inside := strings.Index(one, `}]}}`) + 1 // within the record, behind an object that is whole
	for _, tt := range []struct{ name, in, want, says string }{
		{"whole", one + "\n" + two + "\n" + three, "one two three", ""},
		{"glued", one + "\n" + two + three + "\n", "one two three", "line 2: not one record in one line; whole records in it, which were read: 2"},
		{"all in one", one + two + three, "one two three", "line 1: not one record in one line; whole records in it, which were read: 3"},
		{"torn", one + "\n" + two[:50] + "\n" + three, "one three", "line 2: not valid JSON: unexpected end of JSON input; of the line 50 bytes are lost"},
		{"torn and glued", one + "\n" + two[:50] + three + "\n" + item("four"), "one three four", "line 2: not valid JSON"},
		{"torn in a word and glued", one + "\n" + two[:len(two)-7] + three + "\n", "one three", "bytes are lost; whole records in it, which were read: 1"},
		{"torn behind an object", one + "\n" + two[:inside] + "\n" + three, "one three", "line 2"},
		{"glued and torn", one + two[:50] + "\n" + three, "one three", "line 1: not valid JSON"},
		{"first line torn", one[:50] + "\n" + two + "\n" + three, "two three", "line 1: not valid JSON"},
		{"two first lines torn", one[:50] + "\n" + one[:30] + "\n" + two + "\n" + three, "two three", "line 2: not valid JSON"},
		{"last line torn and glued", one + "\n" + two[:50] + three, "one three", "line 2: not valid JSON"},
		{"zeros at the end", one + "\n" + two + "\n" + nul, "one two", "line 3: 300 NUL bytes"},
		{"zeros at the beginning", nul + one + "\n" + two, "one two", "line 1: 300 NUL bytes"},
		{"zeros before a line", one + "\n" + nul + two + "\n" + three, "one two three", "line 2: 300 NUL bytes"},
		{"zeros between", one + nul + two + "\n" + three, "one two three", "line 1: not one record in one line; whole records in it, which were read: 2"},
		{"zeros within", one + "\n" + two[:50] + nul + three, "one three", "line 2: not valid JSON"},
		{"a line break in a text", one + "\n" + strings.Replace(two, "two", "t\nw\n\no", 1) + "\n" + three, "one t\nw\no three", "line 2: a line break stands in a text"},
		{"a line break in the first text", strings.Replace(one, "one", "o\nne", 1) + "\n" + two, "o\nne two", "line 1: a line break stands in a text"},
		{"the beginning torn", one[50:] + "\n" + two + "\n" + three, "two three", "line 1: not valid JSON"},
		{"the beginning torn in two lines", one[50:] + "\n" + one[90:] + "\n" + two, "two", "line 2: not valid JSON"},
		{"a word of a program before it", "npm warn\n" + one + "\n" + two, "one two", "line 1: not valid JSON"},
		{"a page of zeros at the beginning", strings.Repeat("\x00", 5000) + one[50:] + "\n" + two, "two", "line 1: 5,000 NUL bytes"},
		{"control characters in a text", one + "\n" + strings.Replace(two, "two", "t\two\x1b[0m", 1) + "\n" + three, "one t wo [0m three", "line 2: control characters"},
		{"a mark within", one + "\n\ufeff" + two, "one two", ""},
		{"half a surrogate", one + "\n" + strings.Replace(two, "two", `two\ud83d`, 1) + "\n" + three, "one two\ufffd three", ""},
		{"a separator of lines in a text", one + "\n" + strings.Replace(two, "two", "t\u2028wo", 1), "one t\u2028wo", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := transcript.Read(strings.NewReader(tt.in), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := words(f); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if got := warnings(f); !strings.Contains(got, tt.says) || tt.says == "" && got != "" || len(f.Report.Unknown) > 0 {
				t.Errorf("warnings %q, want %q", got, tt.says)
			}
		})
	}
}

// TestAnyDamage: wherever bytes of a line are lost or doubled, the other lines are read.
func TestAnyDamage(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		lines := []string{item("zero"), item("one"), item("two"), item("three"), item("four")}
		at := rapid.IntRange(0, 3).Draw(t, "line") // the last is told in another way
		hurt := lines[at]
		from := rapid.IntRange(2, len(hurt)-1).Draw(t, "from")
		lines[at] = hurt[:from] + rapid.SampledFrom([]string{"", "\x00\x00", "\n", `{"`, `}`, hurt}).Draw(t, "with")
		f, err := transcript.Read(strings.NewReader(strings.Join(lines, "\n")), &transcript.Options{Format: "codex"})
		if err != nil {
			t.Fatal(err)
		}
		for i, word := range []string{"zero", "one", "two", "three", "four"} {
			if i != at && !strings.Contains(words(f), word) {
				t.Fatalf("%q is lost: %s", word, warnings(f))
			}
		}
		if len(f.Report.Warnings) == 0 && lines[at] != hurt { // its last mark was put back
			t.Fatal("nothing is told")
		}
	})
}

// TestTornLines: no fact that stands whole in one of the case's files is lost.
func TestTornLines(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t, "cases/agents/torn-lines"), "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, path := range files {
		f, err := transcript.Open(path, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 12 {
			fact := fmt.Sprintf("FACT%d.", n)
			if strings.Contains(string(data), fact) && !strings.Contains(words(f), fact) {
				t.Errorf("%s: %s is lost: %s", filepath.Base(path), fact, warnings(f))
			}
		}
	}
}
