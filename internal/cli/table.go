package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// width is what every table fits into, in columns.
const width = 100

// printer writes reports for people. Only a terminal gets colours.
type printer struct {
	w      io.Writer
	colour bool
}

func newPrinter(w io.Writer) *printer { return &printer{w: w, colour: terminal(w)} }

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

// heading starts a section.
func (p *printer) heading(text string) {
	if p.colour {
		text = "\x1b[1m" + text + "\x1b[0m"
	}
	p.line("\n%s", text)
}

// table writes rows in columns. A column whose name begins with ">" is aligned
// to the right; the last column takes the room that is left and is cut there.
func (p *printer) table(columns []string, rows [][]string) {
	widths := make([]int, len(columns))
	for c, name := range columns {
		widths[c] = utf8.RuneCountInString(strings.TrimPrefix(name, ">"))
		for _, row := range rows {
			widths[c] = max(widths[c], utf8.RuneCountInString(row[c]))
		}
	}
	used := 0
	for _, w := range widths[:len(widths)-1] {
		used += w + 2
	}
	last := len(widths) - 1
	widths[last] = min(widths[last], max(width-used, 8))
	head := make([]string, len(columns))
	for c, name := range columns {
		head[c] = strings.TrimPrefix(name, ">")
	}
	for n, row := range append([][]string{head}, rows...) {
		var b strings.Builder
		for c, cell := range row {
			cell = shorten(cell, widths[c])
			pad := strings.Repeat(" ", widths[c]-utf8.RuneCountInString(cell))
			switch {
			case strings.HasPrefix(columns[c], ">"):
				b.WriteString(pad + cell)
			case c == last:
				b.WriteString(cell)
			default:
				b.WriteString(cell + pad)
			}
			if c != last {
				b.WriteString("  ")
			}
		}
		text := strings.TrimRight(b.String(), " ")
		if n == 0 && p.colour {
			text = "\x1b[2m" + text + "\x1b[0m"
		}
		p.line("%s", text)
	}
}

// shorten cuts a text to n columns, on one line and without control characters:
// reports quote what tools printed.
func shorten(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	return string(runes[:max(n-1, 0)]) + "…"
}

// number writes an integer with its thousands apart.
func number(n int) string {
	digits := strconv.Itoa(max(n, -n))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if n < 0 {
		return "-" + digits
	}
	return digits
}

// percent writes a share of a whole.
func percent(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}

// plural writes a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(n) + " " + noun + "s"
}
