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
