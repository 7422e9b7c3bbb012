package rehydrate

import (
	"fmt"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
)

// shortRule is the number of dashes in the lines around content that holds none
// like them.
const shortRule = 5

// frameContent puts content between two lines that it cannot forge, since it holds no
// line with as many dashes before these words: what stands between them is data,
// whatever it says. The name is that of what is shown.
func frameContent(name, content string) string {
	used := map[int]bool{}
	for _, word := range []string{" begin ", " end "} {
		for from := 0; ; {
			i := strings.Index(content[from:], word)
			if i < 0 {
				break
			}
			before := content[from : from+i]
			used[len(before)-len(strings.TrimRight(before, "-"))] = true
			from += i + len(word) - 1
		}
	}
	n := shortRule
	for used[n] {
		n++
	}
	rule := strings.Repeat("-", n)
	return fmt.Sprintf("%s begin %s %s\n%s\n%s end %s %s", rule, name, rule, strings.TrimSuffix(content, "\n"), rule, name, rule)
}

// originLine says which tool gave the content, and when.
func originLine(tool string, turn int) string {
	what := "Content"
	if tool != "" {
		what = "Output of " + oneLine(tool)
	}
	if turn > 0 {
		what += fmt.Sprintf(" from turn %d", turn)
	}
	return what
}

// oneLine keeps a name in its line and of a length that a name has.
func oneLine(name string) string { return clip.Line(name, 64) }
