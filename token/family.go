package token

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Like returns what is to be assumed of a model that is not in the table: the figures of
// the row of its family that is nearest, by the words of its name and then by its version
// (the newest with the same first number, else the newest), under the given name. Its Source names the row, and its counter is an estimate.
// The error wraps ErrUnknownModel where the table has no such family. A model that is in
// the table is returned as it is.
func (s ModelSet) Like(name string) (Model, error) {
	known, err := s.Find(name)
	if err == nil {
		return known, nil
	}
	if len(name) > maxFamilyName {
		return Model{}, err
	}
	list := forms(name)
	own := splitName(list[len(list)-1])
	best, at := kinship{}, -1
	for i, m := range s.rows {
		if k := own.kinship(s.parts[i]); m.Window > 0 && k.shared > 0 && (at < 0 || k.compare(best) > 0) {
			best, at = k, i
		}
	}
	if at < 0 {
		return Model{}, err
	}
	m := s.rows[at]
	m.Source = "those of " + m.Name
	m.Name, m.Aliases, m.Estimated = strings.Clone(name), nil, true
	m.BindsThinking = m.BindsThinking || m.Provider == "anthropic"
	return m, nil
}

// maxFamilyName is the longest name, in bytes, whose family is looked for.
const maxFamilyName = 200

// nameParts are the words and the version of a model's name.
type nameParts struct {
	words   []string
	version []int
}

// splitName reads a name in lower case: "gpt-6.2-sol" has the words gpt and sol, and the
// version 6.2. Sizes such as 480b are no version.
func splitName(name string) (n nameParts) {
	for _, piece := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("-._/: ", r) }) {
		digits := strings.TrimLeft(piece, "abcdefghijklmnopqrstuvwxyz")
		word, number := piece[:len(piece)-len(digits)], strings.TrimRight(digits, "abcdefghijklmnopqrstuvwxyz")
		if word != "" {
			n.words = append(n.words, word)
		}
		if after := digits[len(number):]; after != "" {
			n.words = append(n.words, after)
			if after != "o" { // 4o is a version, 480b is none
				continue
			}
		}
		if v, err := strconv.Atoi(number); err == nil && len(number) < 4 {
			n.version = append(n.version, v)
		}
	}
	return n
}

// kinship says how near two names are.
type kinship struct {
	shared, other int // words that both have, and that one has
	major         int // 1 if the first number of the version is the same
	version       []int
}

// kinship is none unless the first words are the same, and the name has more than that one.
func (n nameParts) kinship(m nameParts) (k kinship) {
	if len(n.words) == 0 || len(m.words) == 0 || n.words[0] != m.words[0] || len(n.words)+len(n.version) < 2 {
		return k
	}
	for _, w := range n.words {
		if slices.Contains(m.words, w) {
			k.shared++
		}
	}
	k.other = len(n.words) + len(m.words) - 2*k.shared
	k.version = m.version
	if len(n.version) > 0 && len(m.version) > 0 && n.version[0] == m.version[0] {
		k.major = 1
	}
	return k
}

func (k kinship) compare(l kinship) int {
	return cmp.Or(cmp.Compare(k.shared, l.shared), cmp.Compare(k.major, l.major), slices.Compare(k.version, l.version), cmp.Compare(l.other, k.other))
}
