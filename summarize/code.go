package summarize

import (
	"slices"
	"strings"

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

// lineEffort is about what looking at a line takes beside its bytes, in units of effort.
const lineEffort = 64
