package truth

import (
	"encoding/json"
	"slices"
	"strings"
)

// records are the words of a JSON text in their order, each with the record that
// it belongs to: the innermost object that is an element of a list, or the whole.
type records struct {
	words  []string
	of     []int
	parent []int // of a record; -1 of the whole
}

// readRecords reads a JSON text, or the rows of one.
func readRecords(raw string) *records {
	trimmed := strings.TrimSpace(raw)
	at := strings.IndexAny(trimmed, "{[")
	if at < 0 {
		return nil
	}
	r := &records{parent: []int{-1}}
	decoder := json.NewDecoder(strings.NewReader(trimmed[at:]))
	decoder.UseNumber()
	type level struct {
		list bool
		rec  int
	}
	var stack []level
	rec, read := 0, 0
	add := func(s string) {
		for _, w := range tokens(s) {
			r.words, r.of = append(r.words, w), append(r.of, rec)
		}
	}
	for {
		token, err := decoder.Token()
		if err != nil {
			break
		}
		read++
		switch v := token.(type) {
		case json.Delim:
			switch v {
			case '{':
				stack = append(stack, level{false, rec})
				if n := len(stack); n == 1 || stack[n-2].list {
					r.parent = append(r.parent, rec)
					rec = len(r.parent) - 1
				}
			case '[':
				stack = append(stack, level{true, rec})
			default:
				rec = stack[len(stack)-1].rec
				stack = stack[:len(stack)-1]
			}
		case string:
			add(v)
		case json.Number:
			add(v.String())
		case bool:
			if v {
				add("true")
			} else {
				add("false")
			}
		case nil:
			add("null")
		}
	}
	if len(r.words) < 2 || read < 4 {
		return nil
	}
	return r
}

// chain lists a record and those around it.
func (r *records) chain(rec int) []int {
	var out []int
	for ; rec >= 0; rec = r.parent[rec] {
		out = append(out, rec)
	}
	return out
}

// holds reports whether a line tells fields of one record, punctuation left out;
// anywhere whether its fields stand in the text at all.
func (r *records) holds(line string) (one, anywhere bool) {
	var parts [][]string
	// A name before a colon may be a path of names.
	if label, rest, ok := strings.Cut(line, ": "); ok && !r.has(tokens(label)) {
		if words := tokens(label); len(words) < 8 {
			for _, w := range words {
				if !r.has([]string{w}) {
					return false, false
				}
			}
			line = rest
		}
	}
	for _, piece := range strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(",:;()[]{}…|=\"", c) }) {
		if p := tokens(piece); len(p) > 0 {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return true, true
	}
	// The records that each part stands in.
	in := make([]map[int]bool, len(parts))
	for i, p := range parts {
		in[i] = map[int]bool{}
		for at := 0; at+len(p) <= len(r.words); at++ {
			if slices.Equal(r.words[at:at+len(p)], p) {
				in[i][r.of[at+len(p)-1]] = true
			}
		}
		if len(in[i]) == 0 {
			return false, false
		}
	}
	for rec := range r.parent {
		chain := r.chain(rec)
		all := true
		for i := range parts {
			if !slices.ContainsFunc(chain, func(c int) bool { return in[i][c] }) {
				all = false
				break
			}
		}
		if all {
			return true, true
		}
	}
	return false, true
}

// has reports whether the words stand side by side.
func (r *records) has(words []string) bool {
	for at := 0; at+len(words) <= len(r.words); at++ {
		if slices.Equal(r.words[at:at+len(words)], words) {
			return true
		}
	}
	return false
}
