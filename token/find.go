package token

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/suggest"
)

// forms returns the names under which a model may be in the table: the given one, and then with
// more and more prefixes and suffixes removed.
func forms(name string) []string {
	name = strings.ToLower(strings.TrimSpace(name))
	list := []string{name}
	add := func(s string) {
		if s != "" && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	add(strings.TrimSuffix(name, "[1m]"))
	last := list[len(list)-1]
	if i := strings.LastIndexByte(last, '/'); i >= 0 {
		add(last[i+1:])
	}
	last = list[len(list)-1]
	// Bedrock: region, vendor and model with points between, "-v1:0" behind.
	for _, vendor := range []string{"anthropic.", "openai.", "meta.", "deepseek.", "qwen.", "mistral.", "moonshot.", "zai."} {
		if i := strings.Index(last, vendor); i == 0 || i > 0 && last[i-1] == '.' {
			add(last[i+len(vendor):])
			break
		}
	}
	for range 4 { // each suffix at most once
		last = list[len(list)-1]
		add(withoutSuffix(last))
		if list[len(list)-1] == last {
			break
		}
	}
	// Some gateways write the version of a Claude model with a point.
	last = list[len(list)-1]
	if strings.HasPrefix(last, "claude") {
		add(strings.ReplaceAll(last, ".", "-"))
	}
	return list
}

// withoutSuffix cuts one date, version or variant off the end of a name.
func withoutSuffix(s string) string {
	if i := strings.LastIndexAny(s, "@:"); i > 0 {
		return s[:i]
	}
	for _, suffix := range []string{"-latest", "-preview", "-exp"} {
		if rest, ok := strings.CutSuffix(s, suffix); ok {
			return rest
		}
	}
	i := strings.LastIndexByte(s, '-')
	if i <= 0 {
		return s
	}
	tail := s[i+1:]
	switch {
	case isDigits(tail) && len(tail) == 8: // -20250929
		return s[:i]
	case len(tail) == 2 && tail[0] == 'v' && isDigits(tail[1:]): // -v1
		return s[:i]
	case isDigits(tail) && len(tail) == 2 && i >= 8 && s[i-3] == '-' && s[i-8] == '-' && isDigits(s[i-7:i-3]) && isDigits(s[i-2:i]): // -2024-08-06
		return s[:i-8]
	}
	return s
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// nearest returns the n names of the table that differ least from the name.
func (s ModelSet) nearest(name string, n int) []string {
	all := forms(name)
	var known []string
	for _, m := range s.rows {
		known = append(known, m.Name)
	}
	if names := suggest.Names(all[len(all)-1], known, n); names != nil {
		return names
	}
	return []string{"none"}
}
