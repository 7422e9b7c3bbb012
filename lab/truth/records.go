package truth

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// records are the words of the records of a JSON text: of each object that is an element of a list
// or the whole, with the words of those around it.
type records struct{ each []string }

// readRecords reads a JSON text, or the rows of one; nil if it is none.
func readRecords(raw string) *records {
	at := strings.IndexAny(raw, "{[")
	if at < 0 {
		return nil
	}
	r := &records{}
	for decoder := json.NewDecoder(strings.NewReader(raw[at:])); ; {
		decoder.UseNumber()
		var doc any
		if decoder.Decode(&doc) != nil {
			break
		}
		r.add("", doc)
	}
	if len(r.each) == 0 {
		return nil
	}
	return r
}

// add adds a value as a record of its own, inside of another.
func (r *records) add(around string, v any) {
	var inner []any // elements of lists, which are records too
	var own func(v any) string
	own = func(v any) (s string) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				s += " " + name + " " + own(v[name])
			}
		case []any:
			for _, x := range v {
				if _, is := x.(map[string]any); is {
					inner = append(inner, x)
				} else {
					s += " " + own(x)
				}
			}
		case nil:
			s = "null"
		default:
			s = strings.Join(leaves(v), "")
		}
		return s
	}
	words := around + "|" + flat(own(v))
	r.each = append(r.each, words)
	for _, x := range inner {
		r.add(words, x)
	}
}

// flat are the words of a text, parted and enclosed by spaces.
func flat(s string) string { return " " + strings.Join(tokens(s), " ") + " " }

// holds reports whether a line tells fields of one record, punctuation left out;
// anywhere whether its fields stand in the text at all.
func (r *records) holds(line string) (one, anywhere bool) {
	var parts [][]string
	for _, piece := range strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(",:;()[]{}…|\"", c) }) {
		if p := tokens(piece); len(p) > 0 {
			parts = append(parts, p)
		}
	}
	missing := func(text string) bool {
		for i, p := range parts {
			if !inRuns(text, p, min(2, len(p))) && !(i == 0 && strings.Contains(line, ": ") && inRuns(text, p, 1)) { // a path of names comes first
				return true
			}
		}
		return false
	}
	if len(parts) == 0 || missing(strings.Join(r.each, "|")) {
		return len(parts) == 0, len(parts) == 0
	}
	return slices.ContainsFunc(r.each, func(rec string) bool { return !missing(rec) }), true
}

// inRuns reports whether a text, which flat made, holds words in runs of at least some of them.
func inRuns(text string, words []string, least int) bool {
	for len(words) > 0 {
		n := len(words)
		for n >= least && !strings.Contains(text, " "+strings.Join(words[:n], " ")+" ") {
			n--
		}
		if n < least && len(words) <= 2 && strings.Contains(text, " "+words[0]) && least == 1 {
			n = 1 // the last word of a shortened piece may be cut
		}
		if n < least {
			return false
		}
		words = words[n:]
	}
	return true
}
