package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// sent is one event of a stream, with the bytes it came as.
type sent struct {
	raw  []byte
	name string
	data string
}

// maxEvent bounds one event, in bytes. A larger one passes in pieces that nobody
// looks into.
const maxEvent = 16 << 20

// events reads a stream event by event and loses no byte of it.
type events struct{ r *bufio.Reader }

func newEvents(r io.Reader) *events { return &events{bufio.NewReaderSize(r, 16<<10)} }

// next returns the next event. With an error it returns what came before it,
// which is no whole event.
func (e *events) next() (sent, error) {
	var ev sent
	var data []string
	start := true
	for {
		line, err := e.line()
		ev.raw = append(ev.raw, line...)
		if err != nil {
			return ev, err
		}
		text := strings.TrimRight(string(line), "\r\n")
		if start {
			text = strings.TrimPrefix(text, "\ufeff")
		}
		start = false
		switch {
		case text == "":
			ev.data = strings.Join(data, "\n")
			return ev, nil
		case len(ev.raw) > maxEvent:
			return ev, nil
		}
		field, value, _ := strings.Cut(text, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			ev.name = value
		case "data":
			data = append(data, value)
		}
	}
}

// line reads up to the end of a line, whichever of the three kinds it is.
func (e *events) line() ([]byte, error) {
	var line []byte
	for {
		piece, err := e.r.ReadSlice('\n')
		line = append(line, piece...)
		if errors.Is(err, bufio.ErrBufferFull) {
			if len(line) > maxEvent {
				return line, nil
			}
			continue
		}
		return line, err
	}
}

// with is the event with other data.
func (ev sent) with(data string) []byte {
	var b bytes.Buffer
	if ev.name != "" {
		b.WriteString("event: " + ev.name + "\n")
	}
	b.WriteString("data: " + data + "\n\n")
	return b.Bytes()
}

// add sums up two objects of counts, such as a usage: numbers are added, objects
// gone through, anything else is that of the later one.
func add(a, b string) string { return addWithin(a, b, countLevels) }

// countLevels is how deep counts are gone through. Providers nest them twice.
const countLevels = 8

func addWithin(a, b string, levels int) string {
	if !gjson.Parse(a).IsObject() {
		return b
	}
	if !gjson.Parse(b).IsObject() {
		return a
	}
	out := []byte("{")
	member := func(key, raw string) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), raw...)
	}
	seen := map[string]bool{}
	other := gjson.Parse(b)
	gjson.Parse(a).ForEach(func(k, v gjson.Result) bool {
		seen[k.Str] = true
		w := field(other, k.Str)
		switch {
		case !w.Exists() || w.Type == gjson.Null:
			member(k.Raw, v.Raw)
		case v.Type == gjson.Number && w.Type == gjson.Number:
			member(k.Raw, sum(v, w))
		case levels > 1 && v.IsObject() && w.IsObject():
			member(k.Raw, addWithin(v.Raw, w.Raw, levels-1))
		default:
			member(k.Raw, w.Raw)
		}
		return true
	})
	other.ForEach(func(k, v gjson.Result) bool {
		if !seen[k.Str] {
			member(k.Raw, v.Raw)
		}
		return true
	})
	return string(append(out, '}'))
}

// over is the members of b put over those of a: what a stream counts last is the
// whole.
func over(a, b string) string {
	counts := gjson.Parse(b)
	if !counts.IsObject() {
		return a
	}
	out := or(a, "{}")
	counts.ForEach(func(k, v gjson.Result) bool {
		if v.Type != gjson.Null {
			out = set(out, gjson.Escape(k.Str), v.Raw)
		}
		return true
	})
	return out
}

func sum(a, b gjson.Result) string {
	if strings.ContainsAny(a.Raw+b.Raw, ".eE") {
		return strconv.FormatFloat(a.Num+b.Num, 'f', -1, 64)
	}
	return strconv.FormatInt(a.Int()+b.Int(), 10)
}

// field is a member of an object by its plain name.
func field(v gjson.Result, name string) gjson.Result { return v.Get(gjson.Escape(name)) }

// set puts a value at a path. The document is JSON that was parsed already, so
// that the path is all that could be wrong, and it is ours.
func set(doc, path, raw string) string {
	out, err := sjson.SetRaw(doc, path, raw)
	if err != nil {
		return doc
	}
	return out
}

// without takes a member out of a document; see set.
func without(doc, path string) string {
	out, err := sjson.Delete(doc, path)
	if err != nil {
		return doc
	}
	return out
}
