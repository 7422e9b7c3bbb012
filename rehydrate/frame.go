package rehydrate

import (
	"fmt"
	"strings"
)

// framed puts content between two lines that it cannot forge, since it holds
// neither: what stands between them is data, whatever it says. The name is that
// of what is shown.
func framed(name, content string) string {
	rule := "-----"
	for strings.Contains(content, rule+" begin ") || strings.Contains(content, rule+" end ") {
		rule += "-"
	}
	return fmt.Sprintf("%s begin %s %s\n%s\n%s end %s %s", rule, name, rule, strings.TrimSuffix(content, "\n"), rule, name, rule)
}

// origin says which tool gave the content, and when.
func origin(tool string, turn int) string {
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
func oneLine(name string) string {
	name = strings.Join(strings.Fields(name), " ")
	if r := []rune(name); len(r) > 64 {
		name = string(r[:64]) + "…"
	}
	return name
}
