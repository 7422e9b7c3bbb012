package rawjson

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// An error shows so many steps of the path to JSON that nests too deep, each in so many
// bytes.
const (
	shownSteps = 6
	shownName  = 24
)

// deepPath says where a document nests too deep, as ", in messages[2].content…"; "" if that
// cannot be found.
func deepPath(doc string) string {
	path, at, found := "", gjson.Parse(doc), true
	for n := 0; found && n < shownSteps; n++ {
		object, i := at.IsObject(), 0
		found = false
		at.ForEach(func(key, value gjson.Result) bool {
			if found = value.Type == gjson.JSON && TooDeep(value.Raw, MaxDepth-shownSteps); !found {
				i++
				return true
			}
			if at = value; object {
				path += "." + shortName(key.Str)
			} else {
				path += "[" + strconv.Itoa(i) + "]"
			}
			return false
		})
	}
	if path == "" {
		return ""
	}
	return ", in " + strings.TrimPrefix(path, ".") + "…"
}

// shortName returns the name of a member if it is a plain word; others may be content.
func shortName(name string) string {
	if len(name) > shownName || strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}) {
		return "…"
	}
	return name
}
