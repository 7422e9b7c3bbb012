// Package brief says in a few words what a message, a call or a result is about, as
// reports and pages name them.
package brief

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// What a call is about, by the names that agents give to arguments: what it
// looks for, what it runs, which file or page it is for.
var (
	soughtNames = []string{"pattern", "query", "regex"}
	placeNames  = []string{"file_path", "path", "filePath", "absolute_path", "filename", "file", "url"}
	actionNames = []string{"command", "cmd", "description", "prompt"}
)

// Call is a call as people write it: the tool and its main arguments, or
// else all short ones by name.
func Call(c thread.ToolCall) string {
	arguments := gjson.Parse(c.Arguments)
	if !rawjson.Valid(c.Arguments) || !arguments.IsObject() {
		return strings.TrimSpace(c.Name + " " + c.Arguments)
	}
	words := []string{c.Name}
	sought, place := argument(arguments, soughtNames), argument(arguments, placeNames)
	switch action := argument(arguments, actionNames); {
	case sought != "":
		words = append(words, sought)
		if place != "" {
			words = append(words, "in", place)
		}
	case place != "" && action != "" && argument(arguments, []string{"command"}) == action:
		words = append(words, action, place) // one tool with sub-commands: view FILE
	case place != "":
		words = append(words, place)
	case action != "":
		words = append(words, action)
	default:
		arguments.ForEach(func(k, v gjson.Result) bool {
			words = append(words, fmt.Sprintf("%s=%s", k.String(), oneLine(v)))
			return len(words) < 8
		})
	}
	return strings.Join(words, " ")
}

// Target is the file or page that a call is for; empty where it names none.
func Target(c thread.ToolCall) string { return argument(gjson.Parse(c.Arguments), placeNames) }

func argument(arguments gjson.Result, names []string) string {
	for _, name := range names {
		if v := oneLine(arguments.Get(name)); v != "" {
			return v
		}
	}
	return ""
}

// oneLine writes a value briefly: a list of words as a command line, of
// anything longer the beginning.
func oneLine(v gjson.Result) string {
	text := v.String()
	if v.IsArray() {
		var words []string
		for _, word := range v.Array() {
			words = append(words, word.String())
		}
		text = strings.Join(words, " ")
	}
	const most = 200
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most])
	}
	return strings.Join(strings.Fields(text), " ")
}

// Message describes a message in a few words: its text, or else its first call. It is empty
// where there is neither.
func Message(m *thread.Message) string {
	if text := strings.TrimSpace(m.Text()); text != "" {
		return text
	}
	for _, c := range m.Calls() {
		return Call(c)
	}
	return ""
}

// MessageAt describes the message at a position in a few words: of a result the call behind it,
// else its own.
func MessageAt(t *thread.Thread, pairs *thread.Pairing, i int) string {
	m := uncopied.At(t, i)
	r, ok := m.Result()
	if !ok {
		return Message(m)
	}
	if c, ok := pairs.Answered(i); ok {
		return Call(c)
	}
	return r.Tool
}

// Speaker is the role of a message, with the harness told apart from the user.
func Speaker(m *thread.Message) string {
	if m.Role == thread.User && m.Kind != thread.Plain {
		return "harness"
	}
	return string(m.Role)
}
