package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/glyph"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// width limits every table, in columns, where no terminal says how many it has; one is used from
// leastWidth to mostWidth.
const (
	width      = 100
	leastWidth = 60
	mostWidth  = 200
)

// printer writes reports for people, with colours on a terminal.
type printer struct {
	w       io.Writer
	colour  bool
	columns int // 0 is width
}

func newPrinter(w io.Writer) *printer {
	p := &printer{w: w, colour: isTerminal(w)}
	if f, ok := underlyingWriter(w).(*os.File); ok && isTerminalFile(f) {
		if n := columnsOf(f); n > 0 {
			p.columns = min(max(n, leastWidth), mostWidth)
		}
	}
	return p
}

// isTerminal reports whether w is a terminal that shows colours.
func isTerminal(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminalFile(underlyingWriter(w))
}

// width is how many columns a line may take.
func (p *printer) width() int { return cmp.Or(p.columns, width) }

// line writes one line: a name in it may hold anything.
func (p *printer) line(format string, args ...any) {
	p.styled("", printable(fmt.Sprintf(format, args...)))
}

// heading is a title after an empty line.
func (p *printer) heading(text string) {
	p.line("")
	p.title(text)
}

// styled writes what is printable as a line, in a style where there are colours; "" is none.
func (p *printer) styled(style, text string) {
	if p.colour && style != "" {
		text = "\x1b[" + style + "m" + text + "\x1b[0m"
	}
	fmt.Fprintln(p.w, text)
}

// title writes a line in bold.
func (p *printer) title(text string) {
	p.styled("1", printable(text))
}

// section writes a heading and a table, unless there are no rows.
func (p *printer) section(heading string, columns []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	p.heading(heading)
	p.table(columns, rows)
}

// sectionUpTo is section with at most that many rows; it says how many more there are.
func (p *printer) sectionUpTo(heading string, columns []string, rows [][]string, most int, noun string) {
	p.section(heading, columns, rows[:min(most, len(rows))])
	if more := len(rows) - most; more > 0 {
		p.line("and %s", plural(more, noun))
	}
}

func joinEach[T any](all []T, say func(T) string) string {
	return strings.Join(mapSlice(all, say), ", ")
}

// joinWords joins words with commas, and the last one with a conjunction.
func joinWords(words []string, conjunction string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " " + conjunction + " " + words[last]
}

// table writes rows in columns. A column whose name begins with ">" is aligned to the
// right. The last column, and one whose name begins with "~", share the room that the
// others leave and may be cut. Empty columns are left out.
func (p *printer) table(columns []string, rows [][]string) {
	columns, rows = dropEmptyColumns(columns, rows)
	cells := [][]string{mapSlice(columns, func(name string) string { return strings.TrimLeft(name, ">~") })}
	for _, row := range rows {
		cells = append(cells, mapSlice(row, printable))
	}
	widths := columnWidths(columns, cells, p.width())
	for n, row := range cells {
		var b strings.Builder
		for c, cell := range row {
			cell = shorten(cell, widths[c])
			pad := strings.Repeat(" ", widths[c]-utf8.RuneCountInString(cell))
			if strings.HasPrefix(columns[c], ">") {
				cell, pad = pad+cell, ""
			}
			b.WriteString(cell + pad + "  ")
		}
		text := strings.TrimRight(b.String(), " ")
		p.styled(map[bool]string{true: "2"}[n == 0], text)
	}
}

// dropEmptyColumns removes the columns that are empty in every row.
func dropEmptyColumns(columns []string, rows [][]string) ([]string, [][]string) {
	var keep []int
	for c := range columns {
		if slices.ContainsFunc(rows, func(row []string) bool { return row[c] != "" }) {
			keep = append(keep, c)
		}
	}
	if len(keep) == 0 {
		return columns, rows
	}
	pick := func(row []string) []string {
		return mapSlice(keep, func(c int) string { return row[c] })
	}
	return pick(columns), mapSlice(rows, pick)
}

func mapSlice[T, U any](all []T, make func(T) U) (made []U) {
	for _, one := range all {
		made = append(made, make(one))
	}
	return made
}

// columnWidths fits a table into that many columns. If the columns that may be cut need more than
// there is, the first gets two fifths of the room and the last the rest.
func columnWidths(columns []string, cells [][]string, width int) []int {
	widths := make([]int, len(columns))
	for _, row := range cells {
		for c, cell := range row {
			widths[c] = max(widths[c], utf8.RuneCountInString(cell))
		}
	}
	last := len(columns) - 1
	room, first := width-2*last, last
	for c, w := range widths {
		switch {
		case strings.HasPrefix(columns[c], "~"):
			first = c
		case c != last:
			room -= w
		}
	}
	if first == last {
		widths[last] = min(widths[last], max(room, 8))
		return widths
	}
	share := max(room*2/5, 8)
	widths[first] = min(widths[first], max(share, room-widths[last]))
	widths[last] = min(widths[last], max(room-widths[first], 8))
	return widths
}

// text wraps a sentence into lines that fit; the later ones are indented.
func (p *printer) text(format string, args ...any) {
	for _, line := range clip.Wrap(printable(fmt.Sprintf(format, args...)), p.width(), "    ") {
		p.line("%s", line)
	}
}

// printable puts a text on one line and shows what is hidden in it: reports quote the output of
// tools.
func printable(s string) string { return glyph.Visible(s) }

// shorten makes a text printable and cuts it to n columns. It first shortens the paths in it
// from the front, as the name of a file says most.
func shorten(s string, n int) string {
	s = printable(s)
	excess := utf8.RuneCountInString(s) - n
	if excess <= 0 {
		return s
	}
	words := strings.Split(s, " ")
	for i, word := range words {
		if strings.Count(word, "/") < 2 || strings.Contains(word, "://") {
			continue
		}
		short := shortenPath(word, utf8.RuneCountInString(word)-excess)
		excess -= utf8.RuneCountInString(word) - utf8.RuneCountInString(short)
		words[i] = short
		if excess <= 0 {
			return strings.Join(words, " ")
		}
	}
	runes := []rune(strings.Join(words, " "))
	return string(runes[:max(n-1, 0)]) + "…"
}

// shortenPath removes leading directories of a path until it fits n columns or only the
// file's name remains.
func shortenPath(path string, n int) string {
	whole := utf8.RuneCountInString(path)
	at, columns := 0, whole // path[at:] is kept and begins with a slash
	for {
		from := at
		if strings.HasPrefix(path[at:], "/") {
			from++
		}
		next := strings.IndexByte(path[from:], '/')
		if next < 0 || from+next+1 == len(path) {
			break
		}
		columns -= utf8.RuneCountInString(path[at : from+next])
		if at = from + next; columns+1 <= n {
			break
		}
	}
	if columns+1 >= whole {
		return path
	}
	return "…" + path[at:]
}

// number writes an integer with commas between thousands.
func number(n int) string { return clip.Number(n) }

// numberOr writes a number, or what stands for one that is not known, which is 0.
func numberOr(n int, unknown string) string {
	if n == 0 {
		return unknown
	}
	return number(n)
}

// firstN returns at most that many elements of a list; 0 is all.
func firstN[T any](all []T, most int) []T {
	if most <= 0 {
		return all
	}
	return all[:min(most, len(all))]
}

// inBrackets puts a text into brackets behind another; nothing for an empty one.
func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func percent(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}

// shortID is the beginning of a message id, long enough for `artifact get`.
func shortID(id thread.ID) string { return string(id[:min(12, len(id))]) }

func plural(n int, noun string) string { return clip.Count(n, noun) }

// kinds prints one line of each kind, and how many there are like it.
func (p *printer) kinds(prefix string, lines []string) {
	var first []string
	like := map[string]int{}
	for _, line := range lines {
		if like[kindOf(line)]++; like[kindOf(line)] == 1 {
			first = append(first, line)
		}
	}
	for _, line := range firstN(first, maxListLines) {
		if more := like[kindOf(line)] - 1; more > 0 {
			line += fmt.Sprintf("; %d more like it", more)
		}
		p.text("%s: %s", prefix, line)
	}
	if more := len(first) - maxListLines; more > 0 {
		p.line("%s: and %s (--json lists all)", prefix, plural(more, "other kind"))
	}
}

// maxListLines limits lists of warnings and repairs.
const maxListLines = 5

// kindOf is a line without what differs among those of a kind: numbers and ids.
func kindOf(line string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(line), func(word string) bool { return strings.ContainsAny(word, "0123456789") }), " ")
}

// rows are rows by what they are about.
type rows[K cmp.Ordered, R any] map[K]*R

// at returns the row of a key, a new one if there was none.
func (r rows[K, R]) at(key K, fresh func() R) *R {
	if r[key] == nil {
		row := fresh()
		r[key] = &row
	}
	return r[key]
}

// list returns the rows in the order of their keys.
func (r rows[K, R]) list() (list []R) {
	for _, key := range slices.Sorted(maps.Keys(r)) {
		list = append(list, *r[key])
	}
	return list
}

// largest sorts rows, the largest first, and returns at most that many. It does not use
// package slices, whose sort would be compiled for each kind of row.
func largest[R any](rows []R, most int, size func(R) int) []R {
	sort.SliceStable(rows, func(i, j int) bool { return size(rows[i]) > size(rows[j]) })
	return rows[:min(most, len(rows))]
}
