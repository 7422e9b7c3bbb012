package openai

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// chatError is a format error at a JSON path of the body.
func chatError(path, format string, args ...any) error {
	return fmt.Errorf("openai chat: %s: %s: %w", path, fmt.Sprintf(format, args...), wire.ErrFormat)
}

// chatRoot checks the document once and returns it for walking. Positions in
// the results are positions in doc.
func chatRoot(doc string, open byte, what string) (gjson.Result, error) {
	if err := rawjson.Check(doc); err != nil {
		return gjson.Result{}, chatError("body", "%v", err)
	}
	if strings.TrimLeft(doc, " \t\r\n")[0] != open {
		return gjson.Result{}, chatError("body", "not %s", what)
	}
	return gjson.Result{Type: gjson.JSON, Raw: doc}, nil
}

// chatArray is a JSON array taken apart without losing a byte, so that it can
// be put together again with other elements.
type chatArray struct {
	raw      string
	elements []chatSpan
}

type chatSpan struct{ start, end int }

func chatSplit(raw string) chatArray {
	a := chatArray{raw: raw}
	gjson.Result{Type: gjson.JSON, Raw: raw}.ForEach(func(_, v gjson.Result) bool {
		a.elements = append(a.elements, chatSpan{v.Index, v.Index + len(v.Raw)})
		return true
	})
	return a
}

// find returns i when the array's element i is raw, else -1.
func (a *chatArray) find(i int, raw string) int {
	if i < 0 || i >= len(a.elements) || a.raw[a.elements[i].start:a.elements[i].end] != raw {
		return -1
	}
	return i
}

// chatJoiner writes the elements of an array. The white space between them is
// that of the old array, as far as it goes.
type chatJoiner struct {
	old   chatArray
	b     []byte
	count int
	at    int // where in the old array the last element stood, or would stand
}

func (j *chatJoiner) open() {
	if len(j.old.elements) == 0 {
		j.b = append(j.b, '[')
		return
	}
	j.b = append(j.b, j.old.raw[:j.old.elements[0].start]...)
}

// next writes what stands before an element; at is the element's position in
// the old array, or -1 for a new one, which takes the next position.
func (j *chatJoiner) next(at int) {
	if at < 0 && j.count > 0 {
		at = j.at + 1
	}
	j.at = max(at, 0)
	if j.count++; j.count == 1 {
		return
	}
	if at > 0 && at < len(j.old.elements) {
		j.b = append(j.b, j.old.raw[j.old.elements[at-1].end:j.old.elements[at].start]...)
	} else {
		j.b = append(j.b, ',')
	}
}

func (j *chatJoiner) close() {
	switch n := len(j.old.elements); {
	case n > 0:
		j.b = append(j.b, j.old.raw[j.old.elements[n-1].end:]...)
	case j.count == 0 && len(j.old.raw) > 1:
		j.b = append(j.b, j.old.raw[1:]...)
	default:
		j.b = append(j.b, ']')
	}
}

// chatAppendField writes a member whose value is a string, with a comma before
// it unless it is the first of its object.
func chatAppendField(b []byte, name, value string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	return rawjson.AppendString(b, value)
}
