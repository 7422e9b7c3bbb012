// Package grid writes tables for people, in the width of a terminal.
package grid

import (
	"strings"
	"unicode/utf8"
)

// Width is what every table fits into, in columns of a terminal.
const Width = 80

// Grid is a table whose first column names the rows. Columns that do not fit
// beside each other stand in further parts below, the names repeated.
type Grid struct {
	Head []string
	rows [][]string
}

// Row adds a row, a cell for each column.
func (g *Grid) Row(cells ...string) { g.rows = append(g.rows, cells) }

// Write writes the table.
func (g *Grid) Write(b *strings.Builder) {
	widths := make([]int, len(g.Head))
	for _, row := range append([][]string{g.Head}, g.rows...) {
		for c, cell := range row {
			widths[c] = max(widths[c], utf8.RuneCountInString(cell))
		}
	}
	pad := func(cell string, width int) string {
		return strings.Repeat(" ", max(0, width-utf8.RuneCountInString(cell)))
	}
	for from := 1; from < len(g.Head); {
		to, wide := from, widths[0]
		for to < len(g.Head) && (to == from || wide+2+widths[to] <= Width) {
			wide += 2 + widths[to]
			to++
		}
		if from > 1 {
			b.WriteByte('\n')
		}
		for _, row := range append([][]string{g.Head}, g.rows...) {
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
