package summarize

import (
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
	p := scan.Trim(line, scan.Span{From: 0, To: len(line)})
	line = line[afterLineNumber(line, p):p.To]
	if line == "" {
		return false
	}
	first := scan.Lower(line[0])
	for _, d := range definitions {
		if d[0] == first && scan.MatchPhrase(line, d) {
			return true
		}
	}
	return false
}

// blocks are the functions and types in which a line of a source file stands, the outermost
// first, by the indentation of the lines that begin them.
type blocks []block

type block struct{ indent, head int }

// enter goes on to the next line of s, and returns the head of the block in which it stands: the
// index of its piece, plus 1, or 0. If the line begins a block itself, that becomes its piece, at
// the given index; kept says that there is one.
func (b *blocks) enter(s string, line scan.Span, at int, kept bool) (head int) {
	text := s[line.From:line.To]
	if text == "" { // a line number alone
		return 0
	}
	indent := 0
	for i := line.From; i > 0 && (s[i-1] == ' ' || s[i-1] == '\t'); i-- {
		indent++
	}
	for n := len(*b); n > 0 && (*b)[n-1].indent >= indent && text[0] != ')'; n-- {
		*b = (*b)[:n-1] // a line that begins with ")" ends a signature, not the block
	}
	if n := len(*b); n > 0 {
		head = (*b)[n-1].head
	}
	opens := strings.IndexByte("{:(", text[len(text)-1]) >= 0 || strings.HasSuffix(text, ",") && strings.Count(text, "(") > strings.Count(text, ")")
	if opens && text[0] != '#' && Defines(text) {
		own := 0
		if kept {
			own = at + 1
		}
		*b = append(*b, block{indent, own})
	}
	return head
}

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
	for at := 0; at < len(text) && len(defines) < maxChanged; {
		var p scan.Span
		p, at = scan.NextLine(text, at)
		if !live.Live(lineEffort + p.To - p.From) {
			break
		}
		line := strings.TrimSpace(text[p.From:p.To])
		if waits != "" {
			waits += " " + line
			if strings.Contains(line, ")") || len(waits) > maxDefined {
				defines = append(defines, clip.Brief(waits, maxDefined))
				waits = ""
			}
			continue
		}
		heading := strings.HasPrefix(line, "#")
		if len(line) < leastDefined || !Defines(line) || heading != prose || prose && !heading {
			continue
		}
		if inside := p.From < p.To && scan.IsSpace(text[p.From]); inside && (strings.HasPrefix(line, "var ") || strings.HasPrefix(line, "let ") || strings.HasPrefix(line, "const ")) {
			continue // a variable of a function
		}
		if opens := strings.Count(line, "("); opens > strings.Count(line, ")") && strings.HasSuffix(line, "(") || strings.HasSuffix(line, ",") && opens > 0 {
			waits = line
			continue
		}
		defines = append(defines, clip.Brief(line, maxDefined))
	}
	return defines
}
