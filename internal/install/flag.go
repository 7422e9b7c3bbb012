package install

import (
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
)

// contextFlag is the argument of an MCP server for the context tools.
const contextFlag = `"--context-tools"`

// errNoArgs is about an entry of ours whose arguments are not a list that something can be added to.
var errNoArgs = fmt.Errorf("%w: its args are missing or empty, or in another form than an array: add %s there", ErrOthers, contextFlag)

// arrayOf is a document from the bracket at which the arguments of our server begin, "" without any. The path of our
// entry is empty for TOML.
func arrayOf(doc string, path []string) string {
	if len(path) > 0 {
		args, _, _ := jsonedit.Member(doc, slices.Concat(path, []string{"args"})...)
		if args == "" { // all in one
			args, _, _ = jsonedit.Member(doc, slices.Concat(path, []string{"command"})...)
		}
		return args
	}
	for _, p := range partsOf(doc) {
		if p.name == ownServer {
			return tomlArray(doc[p.body:p.to])
		}
	}
	return ""
}

// words are the places of the strings in an array at the beginning of a text; none if it is no array, holds others, or does not end.
func words(text string) (all [][]int) {
	if !strings.HasPrefix(text, "[") {
		return nil
	}
	for _, at := range brackets().FindAllStringIndex(text, -1)[1:] {
		switch text[at[0]] {
		case '"', '\'':
			all = append(all, at)
		case '[':
			return nil
		case ']':
			return all
		}
	}
	return nil
}

// offersContextTools reports whether the array at the beginning of a text has the flag.
func offersContextTools(text string) bool {
	return slices.ContainsFunc(words(text), func(at []int) bool { return strings.Trim(text[at[0]:at[1]], `"'`) == strings.Trim(contextFlag, `"`) })
}

// withContextTools is a text with the flag behind the last string of the array at its beginning; as it was where that has it, or is none.
func withContextTools(text string) string {
	all := words(text)
	if len(all) == 0 || offersContextTools(text) {
		return text
	}
	end := all[len(all)-1][1]
	return text[:end] + ", " + contextFlag + text[end:]
}
