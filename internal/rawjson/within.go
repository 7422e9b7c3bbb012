package rawjson

import (
	"strconv"
	"strings"
)

// Of a path to what nests too deep an error shows so many steps, of so many bytes.
const (
	shownSteps = 6
	shownName  = 24
)

// within says where a document that nests too deep leaves the path that people know,
// as ", in messages[2].content…"; empty where that cannot be said.
func within(doc string) string {
	var b strings.Builder
	i := space(doc, 0)
	for range shownSteps {
		if i >= len(doc) || doc[i] != '{' && doc[i] != '[' {
			break
		}
		object := doc[i] == '{'
		i = space(doc, i+1)
		for n := 0; ; n++ {
			step := "[" + strconv.Itoa(n) + "]"
			if object {
				end := stringEnd(doc, i)
				if i >= len(doc) || doc[i] != '"' || end >= len(doc) {
					return located(&b)
				}
				step = "." + shortened(doc[i+1:end])
				if i = space(doc, end+1); i >= len(doc) || doc[i] != ':' {
					return located(&b)
				}
				i = space(doc, i+1)
			}
			end := valueEnd(doc, i)
			if end >= len(doc) || TooDeep(doc[i:end], MaxDepth-shownSteps) {
				b.WriteString(step)
				break
			}
			if i = space(doc, end); i >= len(doc) || doc[i] != ',' {
				return located(&b)
			}
			i = space(doc, i+1)
		}
	}
	return located(&b)
}

func located(b *strings.Builder) string {
	if b.Len() == 0 {
		return ""
	}
	return ", in " + strings.TrimPrefix(b.String(), ".") + "…"
}

// shortened is the name of a member, where it is a plain word: others may be content.
func shortened(name string) string {
	if len(name) > shownName || strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}) {
		return "…"
	}
	return name
}
