// Package describe describes messages, calls and results in a few words, for reports and pages.
package describe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// The names of arguments for what a call searches, where, and what it runs.
var (
	soughtNames = []string{"pattern", "query", "regex"}
	placeNames  = slices.Concat(toolclass.PathArguments, []string{"url"})
	actionNames = []string{"command", "cmd", "description", "prompt"}
)

// Call returns a call as people write it: the tool and its main arguments, else the first ones by name.
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

func argument(arguments gjson.Result, names []string) string {
	for _, name := range names {
		if v := oneLine(arguments.Get(name)); v != "" {
			return v
		}
	}
	return ""
}

// oneLine returns the beginning of a value; of a list, the words joined.
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

// Message returns the text of a message, or else its first call.
func Message(m *thread.Message) string {
	if text := strings.TrimSpace(m.Text()); text != "" {
		return text
	}
	for _, c := range m.Calls() {
		return Call(c)
	}
	return ""
}

// MessageAt is Message for a message of a thread. Of a result it returns the call.
func MessageAt(t *thread.Thread, pairs *thread.Pairing, i int) string {
	m := t.At(i)
	r, ok := m.Result()
	if !ok {
		return Message(m)
	}
	if c, ok := pairs.Answered(i); ok {
		return Call(c)
	}
	return r.Tool
}

// Speaker returns the role of a message, and the author of what a program put in the user's name.
func Speaker(m *thread.Message) string {
	if m.Role == thread.User && !m.StartsTurn() {
		return string(m.Author())
	}
	return string(m.Role)
}
