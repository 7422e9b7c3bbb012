package summarize

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// textLines yields the lines of a text that are not empty, trimmed, with their number, as long as the work
// goes on.
func textLines(live *effort.Budget, s string) iter.Seq2[int, scan.Span] {
	return func(yield func(int, scan.Span) bool) {
		for n, p := range scan.Lines(s) {
			if !live.Live(readingByte*(1+p.To-p.From)) || p.From < p.To && !yield(n, p) {
				return
			}
		}
	}
}

// isDrawing reports whether a line is part of a tree or a frame.
func isDrawing(s string) bool {
	first, _ := utf8.DecodeRuneInString(s)
	return strings.ContainsRune("│├└┌", first)
}

// withoutLineNumber skips the number that file tools write in front of each line ("12→", "12\t", "12|"): it is
// stale after the next edit.
func withoutLineNumber(line string) string {
	if line == "" || !scan.IsDigit(line[0]) {
		return line
	}
	rest := strings.TrimLeftFunc(line, func(r rune) bool { return r >= '0' && r <= '9' })
	for _, mark := range [...]string{"\t", "|", "→"} {
		if text, ok := strings.CutPrefix(rest, mark); ok {
			return strings.TrimLeft(text, " \t\r\n")
		}
	}
	return line
}

// appendPieces adds a line as one piece, or as windows if it is long. Pieces without
// identifiers are left out, except for the first if anyway is set. Of a row of JSON those in values count.
func appendPieces(dst []piece, text string, line int, score float32, anyway, row bool) []piece {
	for n := 0; text != "" && (n == 0 || len(dst) < maxIDLines); {
		end := windowEnd(text)
		window := strings.TrimSpace(text[:end])
		if text = text[end:]; window == "" || !strings.Contains(window, " ") && keptByPrograms(window) {
			continue
		}
		told := window
		if row {
			told = rowValues(window)
		}
		if idents := mentions(nil, told); len(idents) > 0 || anyway && n == 0 {
			dst = append(dst, piece{text: window, idents: idents, score: score, place: place{line, n, text != ""}})
		}
		n++
	}
	return dst
}

// keptByPrograms reports whether a path is that of a file that no step names: of an installed package, of git itself,
// of a cache.
func keptByPrograms(path string) bool {
	return slices.ContainsFunc(strings.Split(path[:1+strings.LastIndexByte(path, '/')], "/"), func(dir string) bool { return programDirs[dir] })
}

var programDirs = scan.WordSet("node_modules site-packages __pycache__ .git .venv")

// windowEnd is where the first window of a long line ends: behind a comma near the end of maxLine bytes, or another
// mark or a space there, or before, or the first one after them. A line without any is cut at maxLine.
func windowEnd(s string) int {
	const near, marks = maxLine - 40, ",;} \t\r\n"
	if len(s) <= maxLine {
		return len(s)
	}
	if i := strings.LastIndexByte(s[near:maxLine], ','); i >= 0 {
		return near + i + 1
	}
	if i := strings.IndexAny(s[near:maxLine], marks); i >= 0 {
		return near + i + 1
	}
	if i := strings.LastIndexAny(s[maxLine/2:near], marks); i >= 0 {
		return maxLine/2 + i + 1
	}
	if i := strings.IndexAny(s[maxLine:min(len(s), maxSentence)], marks); i >= 0 {
		return maxLine + i + 1
	}
	if len(s) <= maxSentence {
		return len(s)
	}
	end := clip.Boundary(s, maxLine)
	if end < maxLine/2 { // one endless grapheme
		for end = maxLine; end > 1 && !utf8.RuneStart(s[end]); end-- {
		}
	}
	return end
}

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
