package cli

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

// callText is a call as people write it: the tool and its main arguments, or
// else all short ones by name.
func callText(c thread.ToolCall) string {
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

// firstWords is a message in a few words: how its text begins, or its first
// call.
func firstWords(m *thread.Message) string {
	if text := strings.TrimSpace(m.Text()); text != "" {
		return text
	}
	for _, c := range m.Calls() {
		return callText(c)
	}
	return ""
}

// what describes a span in a few words: the call behind a result, or the first
// words of a message.
func what(t *thread.Thread, pairs *thread.Pairing, span thread.Span) string {
	i, _ := t.Index(span.First())
	m := uncopied.At(t, i)
	if span.Len() > 1 {
		return plural(span.Len(), "message")
	}
	r, ok := m.Result()
	if !ok {
		return firstWords(m)
	}
	if at, ok := pairs.Call(i); ok {
		for _, c := range uncopied.At(t, at).Calls() {
			if c.ID == r.CallID {
				return callText(c)
			}
		}
	}
	return r.Tool
}
