package summarize

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// definitions begin lines that name what a file defines.
var definitions = []string{
	"func ", "type ", "class ", "def ", "async def ", "function ", "export ", "const ", "var ", "let ", "interface ", "struct ", "enum ", "impl ", "fn ", "pub ",
	"public ", "private ", "protected ", "static ", "package ", "module ", "# ", "## ", "### ", "create table", "alter table", "t.run(", "it(", "test(", "describe(",
}

// Defines reports whether a line of a file defines something: a function, a type, a table, a
// test, a heading. A line number in front of it, as file tools write it, is skipped.
func Defines(line string) bool {
	line = withoutLineNumber(strings.TrimSpace(line))
	return line != "" && slices.ContainsFunc(definitions, func(d string) bool { return d[0] == scan.Lower(line[0]) && scan.MatchPhrase(line, d) })
}

// blocks are the functions and types in which a line of a source file stands, the outermost
// first, by the indentation of the lines that begin them.
type blocks []block

type block struct{ indent, head int }

// enter goes on to the next line of a file, and returns the head of the block in which it stands: the
// index of its piece, plus 1, or 0. before is what the file holds before the line. If the line begins a block
// itself, that becomes its piece, at the given index; kept says that there is one.
func (b *blocks) enter(before, line string, at int, kept bool) (head int) {
	if line == "" { // a line number alone
		return 0
	}
	indent := len(before) - len(strings.TrimRight(before, " \t"))
	for n := len(*b); n > 0 && (*b)[n-1].indent >= indent && line[0] != ')'; n-- {
		*b = (*b)[:n-1] // a line that begins with ")" ends a signature, not the block
	}
	if n := len(*b); n > 0 {
		head = (*b)[n-1].head
	}
	opens := strings.HasSuffix(line, "{") || strings.HasSuffix(line, ":") || strings.HasSuffix(line, "(") || strings.HasSuffix(line, ",") && openSignature(line)
	if opens && line[0] != '#' && Defines(line) {
		own := 0
		if kept {
			own = at + 1
		}
		*b = append(*b, block{indent, own})
	}
	return head
}

// openSignature reports whether a line opens more brackets than it closes.
func openSignature(line string) bool { return strings.Count(line, "(") > strings.Count(line, ")") }

// maxDefined bounds a definition that an edit shows, in bytes.
const maxDefined = 200

// leastDefined is the shortest line that counts as a definition, in bytes.
const leastDefined = 10

// lineEffort is about what looking at a line takes beside its bytes, in units of effort.
const lineEffort = 64

// define appends the definitions in a text of a file. A signature of several lines becomes
// one line.
func define(live *effort.Budget, defines []string, text, path string) []string {
	prose := prosePath(path)
	waits := "" // the beginning of a signature of several lines
	for _, p := range textLines(live, text) {
		line := text[p.From:p.To]
		inside := p.From > 0 && text[p.From-1] != '\n' && (strings.HasPrefix(line, "var ") || strings.HasPrefix(line, "let ") || strings.HasPrefix(line, "const "))
		heading := line[0] == '#'
		switch {
		case len(defines) == maxChanged:
			return defines
		case waits != "":
			waits += " " + line
			if strings.Contains(line, ")") || len(waits) > maxDefined {
				defines, waits = append(defines, clip.Brief(waits, maxDefined)), ""
			}
		case len(line) < leastDefined || heading != prose || inside || !Defines(line): // inside a function it is a variable
		case openSignature(line) && strings.HasSuffix(line, "("), strings.HasSuffix(line, ",") && strings.Contains(line, "("):
			waits = line
		default:
			defines = append(defines, clip.Brief(line, maxDefined))
		}
	}
	return defines
}
