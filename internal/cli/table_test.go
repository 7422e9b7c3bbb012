package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
)

// TestLine: what a name holds ends no line of a report, and steers no terminal.
func TestLine(t *testing.T) {
	var b bytes.Buffer
	newPrinter(&b).line("%s is off", "a\x1b[2J\n\u202eb")
	(&deferredLines{w: &b}).print(event.Event{}, "the model \x1b[2J")
	if got, want := b.String(), `a\x1b[2J \u202eb is off`+"\npalimpsest: the model \\x1b[2J\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"short", 10, "short"},
		{"a sentence that is too long", 10, "a sentenc…"},
		{"Read /home/dev/shipq/dispatch/worker_test.go", 30, "Read …/dispatch/worker_test.go"},
		{"Read /home/dev/shipq/dispatch/worker_test.go", 24, "Read …/worker_test.go"},
		{"Read /home/dev/shipq/dispatch/worker_test.go", 12, "Read …/work…"},
		{"bash cd /home/dev/work && go test ./...", 34, "bash cd …/work && go test ./..."},
		{"cp /home/dev/a/one.go /home/dev/b/two.go", 22, "cp …/one.go …/b/two.go"},
		{"see https://example.com/a/b/c/d now", 20, "see https://example…"},
		{"cat docs/plan.md and more", 12, "cat docs/pl…"},
		{"two\nlines\tand \x1b[31mred\x1b[0m", 40, `two lines and \x1b[31mred\x1b[0m`},
		{"\u202egnp.exe\u202c", 40, `\u202egnp.exe\u202c`},
		{"broken \xff byte", 40, `broken \xff byte`},
		{"bell\a and \x9b31m", 40, `bell\a and \x9b31m`},
		{"anything", 0, "…"},
	} {
		if got := shorten(c.text, c.n); got != c.want {
			t.Errorf("shorten(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

// Whatever stands in the cells, a table fits its width and prints nothing that
// steers a terminal.
func TestTableFits(t *testing.T) {
	cell := rapid.OneOf(
		rapid.StringN(0, 200, -1),
		rapid.StringMatching(`(Read )?(/[a-z_]{1,12}){1,12}\.go( [a-z]{0,9}){0,20}`),
		rapid.SampledFrom([]string{"\x1b]0;title\x07", "\u202e\u2066", "line\r\nline", "日本語", "\xff\xfe"}),
	)
	property.Check(t, func(t *rapid.T) {
		var rows [][]string
		for range rapid.IntRange(1, 6).Draw(t, "rows") {
			rows = append(rows, []string{"action", number(rapid.IntRange(0, 1e9).Draw(t, "tokens")), cell.Draw(t, "what"), cell.Draw(t, "why")})
		}
		var b bytes.Buffer
		newPrinter(&b).table([]string{"action", ">tokens", "~what", "why"}, rows)
		newPrinter(&b).text("note: %s", rows[0][3])
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		for _, line := range lines[:len(rows)+1] {
			if n := utf8.RuneCountInString(line); n > width {
				t.Fatalf("%d columns: %q", n, line)
			}
		}
		for _, r := range strings.ReplaceAll(b.String(), "\n", "") {
			if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
				t.Fatalf("%U in %q", r, b.String())
			}
		}
	})
}

// A terminal's own width holds for tables and sentences.
func TestTableOfATerminal(t *testing.T) {
	for _, columns := range []int{leastWidth, 80, mostWidth} {
		var b bytes.Buffer
		p := &printer{w: &b, columns: columns}
		p.table([]string{"a", "~what", "why"}, [][]string{{"x", strings.Repeat("word ", 80), strings.Repeat("word ", 80)}})
		p.text("%s", strings.Repeat("word ", 80))
		longest := 0
		for line := range strings.Lines(b.String()) {
			longest = max(longest, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
		}
		if longest > columns || longest < columns-6 {
			t.Errorf("the longest line of a terminal of %d columns has %d", columns, longest)
		}
	}
}

// Room that one of the two flexible columns leaves goes to the other.
func TestTableSharesRoom(t *testing.T) {
	long := strings.Repeat("word ", 40)
	for _, c := range []struct{ what, why string }{{long, "short"}, {"short", long}, {long, long}} {
		var b bytes.Buffer
		newPrinter(&b).table([]string{"a", "~what", "why"}, [][]string{{"x", c.what, c.why}})
		row := strings.Split(b.String(), "\n")[1]
		if n := utf8.RuneCountInString(row); n < width-6 || n > width {
			t.Errorf("a row of %d columns, want about %d: %q", n, width, row)
		}
		if c.why == "short" && !strings.HasSuffix(row, "short") {
			t.Errorf("the short reason was cut: %q", row)
		}
	}
}

func TestColumnsWithoutCellsAreLeftOut(t *testing.T) {
	var b bytes.Buffer
	newPrinter(&b).table([]string{"a", "~b", "because"}, [][]string{{"x", "y", ""}, {"z", "w", ""}})
	if got, want := b.String(), "a  b\nx  y\nz  w\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestKinds: of what differs in numbers and ids alone one line is printed, with how many there are; others stand for themselves.
func TestKinds(t *testing.T) {
	var lines []string
	for n := range 20 {
		lines = append(lines, fmt.Sprintf("line %d: its parent 627198fe-%04d is not in the file", n, n))
	}
	lines = append(lines, `line 7: a message of the unknown role "x" was left out`, `line 9: a message of the unknown role "y" was left out`, "a", "b", "c", "d")
	var out strings.Builder
	newPrinter(&out).kinds("warning", lines)
	const want = `warning: line 0: its parent 627198fe-0000 is not in the file; 19 more like it
warning: line 7: a message of the unknown role "x" was left out
warning: line 9: a message of the unknown role "y" was left out
warning: a
warning: b
warning: and 2 other kinds (--json lists all)
`
	if out.String() != want {
		t.Error(out.String())
	}
}
