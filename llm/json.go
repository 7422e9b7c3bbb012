package llm

import (
	"encoding/json"
	"errors"
	"strings"
)

// FindJSON finds the JSON object in what a model wrote when it was asked for
// one: the text itself, or in a code fence, between sentences, behind a block of
// thinking; of several objects the longest. Commas before a closing bracket are
// taken out when nothing is found with them. Anything else is not repaired: an
// answer that was guessed at is worse than none. It is false when there is no
// object; the object is valid JSON and not checked against any schema.
func FindJSON(text string) (object string, ok bool) {
	text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	if object, ok = longestObject(afterThinking(text)); ok {
		return object, true
	}
	if bare := withoutTrailingCommas(text); bare != text {
		return longestObject(afterThinking(bare))
	}
	return "", false
}

// afterThinking cuts off the thinking that some servers leave in the text
// (DeepSeek and Qwen models behind servers without a reasoning parser). The
// template may have opened it, so only the end need be there.
func afterThinking(text string) string {
	const end = "</think>"
	if i := strings.LastIndex(text, end); i >= 0 {
		if rest := text[i+len(end):]; strings.Contains(rest, "{") {
			return rest
		}
	}
	return text
}

// longestObject tries every brace that is not inside an object already read.
// Where an object breaks off, the search goes on behind the break: what stands
// before it was part of something larger and is no answer. So every byte is
// read about once.
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

// opensObject reports whether what stands behind a brace can begin an object,
// which spares most braces a decoder.
func opensObject(rest string) bool {
	rest = strings.TrimLeft(rest, " \t\r\n")
	return rest != "" && (rest[0] == '"' || rest[0] == '}')
}

// withoutTrailingCommas takes out commas that only white space parts from a
// closing bracket, outside strings.
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

// maxGap is how much white space may stand between the comma and the bracket,
// in bytes.
const maxGap = 256
