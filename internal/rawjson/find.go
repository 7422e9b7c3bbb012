package rawjson

import (
	"encoding/json"
	"errors"
	"strings"
)

// FindObject finds the JSON object in a model's answer: the text itself, or part of it, in a code
// fence, between sentences or after a block of thinking. Of several objects it takes the
// longest. If there is none, it tries again without commas before closing brackets. It
// repairs nothing else, because a guessed answer is worse than none. The object is valid
// JSON, but not checked against any schema.
func FindObject(text string) (object string, ok bool) {
	text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	if object, ok = longestObject(afterThinking(text)); ok {
		return object, true
	}
	if bare := withoutTrailingCommas(text); bare != text {
		return longestObject(afterThinking(bare))
	}
	return "", false
}

// afterThinking cuts off the thinking that servers without a reasoning parser leave in the text
// of DeepSeek and Qwen models. Only its end must be there, because the template may have
// opened it.
func afterThinking(text string) string {
	const end = "</think>"
	if i := strings.LastIndex(text, end); i >= 0 {
		if rest := text[i+len(end):]; strings.Contains(rest, "{") {
			return rest
		}
	}
	return text
}

// longestObject tries every brace outside of the objects found so far. If an object breaks off,
// the search goes on after the break: objects before it are parts of something larger, and
// no answer. So every byte is read about once.
func longestObject(text string) (object string, ok bool) {
	for i := 0; i < len(text); {
		next := strings.IndexByte(text[i:], '{')
		if next < 0 {
			break
		}
		i += next
		if !opensObject(text[i+1:]) {
			i++
			continue
		}
		var raw json.RawMessage
		if err := json.NewDecoder(strings.NewReader(text[i:])).Decode(&raw); err != nil {
			syntax, ok := errors.AsType[*json.SyntaxError](err)
			if !ok {
				break // the end never came
			}
			i += max(int(syntax.Offset)-1, 1)
			continue
		}
		if len(raw) > len(object) {
			object = string(raw)
		}
		i += len(raw)
	}
	return object, object != ""
}

// opensObject reports whether the text after a brace can begin an object, which saves a decoder
// for most braces.
func opensObject(rest string) bool {
	rest = strings.TrimLeft(rest, " \t\r\n")
	return rest != "" && (rest[0] == '"' || rest[0] == '}')
}

// withoutTrailingCommas removes commas before closing brackets, outside strings.
func withoutTrailingCommas(text string) string {
	var b strings.Builder
	inString := false
	from := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && c == ',':
			rest := strings.TrimLeft(text[i+1:min(i+1+maxGap, len(text))], " \t\r\n")
			if rest != "" && (rest[0] == '}' || rest[0] == ']') {
				b.WriteString(text[from:i])
				from = i + 1
			}
		}
	}
	return b.String() + text[from:]
}

// maxGap is how much white space may be between the comma and the bracket, in bytes.
const maxGap = 256
