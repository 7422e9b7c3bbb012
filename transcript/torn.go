package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// Crashes, full disks and two writers at once leave lines that are no JSON: cut off, several in one,
// one over several, with NUL bytes where nothing was written. Every whole record in them is read,
// and what is lost is told.

const (
	// maxJoined is over how many lines a record with line breaks in its texts may go.
	maxJoined = 16
	// maxFirstKeys is how many first keys of records are remembered.
	maxFirstKeys = 16
	// blanks are the bytes around a record that say nothing.
	blanks = " \t\r\n\x00\ufeff"
)

// trimLine takes off what is around a record. NUL bytes are told.
func (in *input) trimLine(line []byte) []byte {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != 0 && line[len(line)-1] != 0 && line[0] != blanks[len(blanks)-3] {
		return line
	}
	trimmed := bytes.Trim(line, blanks)
	if n := bytes.Count(line, []byte{0}) - bytes.Count(trimmed, []byte{0}); n > 0 {
		in.report.warn(in.number, "%s NUL bytes, as a crash leaves them, were left out", clip.Number(n))
	}
	return trimmed
}

// control matches a control character. NUL bytes stand for what was lost.
var control = lazyregexp.New(`[\x01-\x1f]`)

// mend finds the records in a line that is not valid JSON, and those that follow for next. It is false if
// the line is the last and has none.
func (in *input) mend(line []byte, number int, broken error) bool {
	line = bytes.ToValidUTF8(bytes.Clone(line), []byte("\uFFFD"))
	if clean := control().ReplaceAll(line, []byte(" ")); rawjson.Valid(clean) {
		in.report.warn(number, "control characters stand in a text of this record, which was read with spaces in their place")
		in.mended = append(in.mended, unreadLine{clean, number})
		return true
	}
	ended := !in.lookAhead(1)
	if !ended && in.whatCutOff(broken) == plainCutOff && in.join(line, number) {
		return true
	}
	records, lost := in.records(line)
	if len(records) == 0 && ended {
		return false
	}
	for _, r := range records {
		in.mended = append(in.mended, unreadLine{r, number})
	}
	if lost > 0 {
		in.report.warn(number, "%v; of the line %s bytes are lost; whole records in it, which were read: %d", errors.Unwrap(broken), clip.Number(lost), len(records))
	} else {
		in.report.warn(number, "not one record in one line; whole records in it, which were read: %d", len(records))
	}
	return true
}

// join reads a record in whose texts line breaks were not escaped. It is false if the line makes none
// with those that follow.
func (in *input) join(line []byte, number int) bool {
	joined := slices.Clip(line)
	for n := 1; n <= maxJoined && in.lookAhead(n); n++ {
		next := in.raw[n-1].line
		if rawjson.Valid(next) || len(joined)+len(next) > in.maxLine {
			return false
		}
		joined = append(append(joined, `\n`...), next...)
		if joined[len(joined)-1] == '}' && rawjson.Valid(joined) {
			in.report.warn(number, "a line break stands in a text of this record, which goes over %d lines; it was read", n+1)
			in.mended = append(in.mended, unreadLine{joined, number})
			in.raw = in.raw[n:]
			return true
		}
	}
	return false
}

// lookAhead reads so many lines that follow, which stay. It is false if there are fewer: the next read
// says why.
func (in *input) lookAhead(n int) bool {
	for len(in.raw) < n && in.failed == nil {
		next, err := in.readLine()
		if err != nil {
			in.failed = err
			break
		}
		in.raw = append(in.raw, unreadLine{bytes.Clone(next), in.number})
	}
	return len(in.raw) >= n
}

// records are the whole objects in a line, and how many bytes are in none. An object within a record
// that was cut off is no record: it must end where another begins or the line ends, and begin
// with a key with which records begin in this file.
func (in *input) records(line []byte) (records [][]byte, lost int) {
	effort := 8 * len(line) // bytes that may be looked at
	for at := 0; ; {
		rest := bytes.TrimLeft(line[at:], blanks)
		at = len(line) - len(rest)
		if len(rest) == 0 {
			return records, lost
		}
		begins := rest[0] == '{' && (len(in.keys) == 0 || slices.Contains(in.keys, firstKey(rest)))
		if begins && effort > 0 {
			object, read := firstObject(rest)
			effort -= read
			if object != nil && rawjson.Valid(object) {
				after := bytes.TrimLeft(rest[len(object):], blanks)
				if len(after) == 0 || after[0] == '{' {
					records = append(records, object)
					at += len(object)
					continue
				}
			}
		}
		next := bytes.Index(rest[1:], []byte(`{"`))
		if next < 0 || effort <= 0 {
			return records, lost + len(rest)
		}
		lost += 1 + next
		at += 1 + next
	}
}

// firstObject is the object that a text begins with, or nil, and how much of the text was read.
func firstObject(text []byte) (object []byte, read int) {
	var value json.RawMessage
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&value); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, int(syntax.Offset)
		}
		return nil, len(text)
	}
	return text[:d.InputOffset()], int(d.InputOffset())
}

func isObject(text []byte) bool { return len(text) > 0 && text[0] == '{' }

// firstKey is the first key of an object; empty if it has none, or one with an escape.
func firstKey(object []byte) string {
	text := bytes.TrimLeft(object[1:], " \t\r\n")
	if len(text) == 0 || text[0] != '"' {
		return ""
	}
	key, _, _ := bytes.Cut(text[1:], []byte{'"'})
	return string(key)
}

// learn remembers with which keys the records of the file begin.
func (in *input) learn(record []byte) {
	if len(in.keys) >= maxFirstKeys || !isObject(record) {
		return
	}
	text := bytes.TrimLeft(record[1:], " \t\r\n")
	for _, key := range in.keys { // mostly there; nothing is allocated
		if len(text) > len(key)+1 && text[0] == '"' && string(text[1:len(key)+1]) == key && text[len(key)+1] == '"' {
			return
		}
	}
	if key := firstKey(record); key != "" {
		in.keys = append(in.keys, key)
	}
}

// asLines reports whether a text that is no JSON document is one of records in lines: half of them
// are whole, or some are and none ends like one within a document.
func asLines(text []byte) bool {
	if bytes.IndexByte(text, '\n') < 0 {
		first, _ := firstObject(text)
		return first != nil
	}
	whole, all, within := 0, 0, len(firstKey(text)) == 0
	for line := range bytes.Lines(text) {
		line = bytes.Trim(line, blanks)
		if len(line) == 0 {
			continue
		}
		all++
		if isObject(line) && rawjson.Valid(line) {
			whole++
		}
		within = within || bytes.HasSuffix(line, []byte(","))
	}
	return whole > 0 && (2*whole >= all || !within)
}
