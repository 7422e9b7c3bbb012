// Package texttable writes tables for people, in the width of a terminal.
package texttable

import (
	"strings"
	"unicode/utf8"
)

// Width is what every table fits into, in columns of a terminal.
const Width = 80

// Table is a table whose first column names the rows. Columns that do not fit
// beside each other stand in further parts below, the names repeated.
type Table struct {
	Head []string
	rows [][]string
}

// Row adds a row, a cell for each column.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Write writes the table.
func (t *Table) Write(b *strings.Builder) {
	widths := make([]int, len(t.Head))
	for _, row := range append([][]string{t.Head}, t.rows...) {
		for c, cell := range row {
			widths[c] = max(widths[c], utf8.RuneCountInString(cell))
		}
	}
	pad := func(cell string, width int) string {
		return strings.Repeat(" ", max(0, width-utf8.RuneCountInString(cell)))
	}
	for from := 1; from < len(t.Head); {
		to, wide := from, widths[0]
		for to < len(t.Head) && (to == from || wide+2+widths[to] <= Width) {
			wide += 2 + widths[to]
			to++
		}
		if from > 1 {
			b.WriteByte('\n')
		}
		for _, row := range append([][]string{t.Head}, t.rows...) {
			line := row[0] + pad(row[0], widths[0])
			for c := from; c < to; c++ {
				line += "  " + pad(row[c], widths[c]) + row[c]
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		from = to
	}
}

// List writes words in lines that fit, with commas between, behind what leads
// them; nothing for none.
func List(b *strings.Builder, lead string, items []string) {
	if len(items) == 0 {
		return
	}
	line, begun := lead, false
	for i, item := range items {
		if i < len(items)-1 {
			item += ","
		}
		if begun && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(item) > Width {
			b.WriteString(line + "\n")
			line = " "
		}
		if begun {
			line += " "
		}
		line, begun = line+item, true
	}
	b.WriteString(line + "\n")
}
