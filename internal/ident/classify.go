package ident

import (
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// kinds are the types that a chunk may have as a whole, in the order in which they are tried. norm returns the
// normalized form; "" for a chunk that is of the type and says too little.
var kinds = []struct {
	Type
	example string
	is      func(c string, f features) bool
	norm    func(c string) string // nil: as it stands
}{
	{Email, "ann@example.org", isEmail, strings.ToLower},
	{Date, "2026-11-21T14:03", isDate, nil},
	{Version, "v1.2.3-rc.1", isVersion, func(c string) string { return strings.TrimPrefix(c, "v") }},
	{Number, "$1,250.50", isNumber, numberOf},
	{Path, "src/client.go", isPath, path.Clean},
	{Hex, "a3f29c1", isHex, strings.ToLower},
	{Error, "ErrNotFound", isError, nil},
	{Symbol, "parse_header", isSymbol, nil},
	{ID, "TICKET-4821", isID, nil},
}

// classifyWhole reads a chunk as one identifier; ok is false when it is none as a whole.
func classifyWhole(c string) (t Type, norm string, ok bool) {
	f := featuresOf(c)
	if f[letter]+f[digit] == 0 || int(f[letter]) == len(c) && (f[upper] == 0 || f[upper] == 1 && isUpper(c[0]) && c[0] != 'E') {
		return 0, "", false // marks, or a word, which Exception is not
	}
	for i := range kinds {
		if k := &kinds[i]; k.is(c, f) {
			if norm = c; k.norm != nil {
				norm = k.norm(c)
			}
			return k.Type, norm, norm != ""
		}
	}
	return 0, "", false
}

// features counts the characters of a chunk, of maxChunk bytes at most, by their class; upper ones are letters too.
type features [classes]uint16

const (
	other = iota
	letter
	upper
	digit
	dot
	slash
	dash
	score
	colon
	classes
)

// classOf is the class of each byte.
var classOf = func() (of [256]uint8) {
	for c := range 256 {
		switch b := byte(c); {
		case scan.IsDigit(b):
			of[c] = digit
		case isUpper(b):
			of[c] = upper
		case isLetter(b):
			of[c] = letter
		}
	}
	of['.'], of['/'], of['-'], of['_'], of[':'] = dot, slash, dash, score, colon
	return of
}()

func featuresOf(c string) (f features) {
	for i := range len(c) {
		f[classOf[c[i]]]++
	}
	f[letter] += f[upper]
	return f
}

// lacks reports whether there are no characters of some classes.
func (f features) lacks(all ...int) bool {
	n := uint16(0)
	for _, class := range all {
		n += f[class]
	}
	return n == 0
}

func isEmail(c string, f features) bool {
	at, end := strings.IndexByte(c, '@'), strings.LastIndexByte(c, '.')
	return at > 0 && strings.LastIndexByte(c, '@') == at && f[slash] == 0 && end > at+1 && end < len(c)-1 && isLetter(c[end+1])
}

// isDate takes 2026-11-21, with or without a time, 2026/11/21, and 14:03 or
// 14:03:59 alone.
func isDate(c string, f features) bool {
	if len(c) >= 10 && c[4] == c[7] && (c[4] == '-' || c[4] == '/') && digits(c[:1]+c[3:4]+c[5:7]+c[8:10]) {
		return len(c) == 10 || c[10] == 'T'
	}
	if f[colon] == 0 || f[colon] > 2 || f[digit] < 3 || f[digit] > 6 || !f.lacks(letter, slash, dash, score, other, dot) {
		return false
	}
	for part := range strings.SplitSeq(c, ":") {
		if part == "" || len(part) > 2 || part[0] > '5' {
			return false
		}
	}
	return len(c[strings.LastIndexByte(c, ':')+1:]) == 2
}

// digits reports whether a text is of figures.
func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// isVersion takes 1.2.3, v1.2, 1.2.3-rc.1.
func isVersion(c string, f features) bool {
	v := strings.TrimPrefix(c, "v")
	if f[dot] == 0 || v == "" || !scan.IsDigit(v[0]) || !f.lacks(slash, colon, score) {
		return false
	}
	core, rest, _ := strings.Cut(v, "-")
	parts := strings.Split(core, ".")
	if rest == "" && f[dash] > 0 || len(parts) < 2 || len(parts) < 3 && len(v) == len(c) {
		return false
	}
	return !slices.ContainsFunc(parts, func(p string) bool { return p == "" || len(p) > 5 || !digits(p) })
}

// units may stand behind a number.
var units = scan.WordSet("% ms s us ns m h d B KB kB MB GB KiB MiB GiB K k M G kg g km px USD EUR")

// cutNumber parts a number with its sign or currency, its figures and its unit.
func cutNumber(c string) (sign, number, unit string) {
	body := strings.TrimLeft(c, "$€£-+~")
	unit = strings.TrimLeft(body, "0123456789.,")
	return c[:len(c)-len(body)], body[:len(body)-len(unit)], unit
}

func isNumber(c string, f features) bool {
	if f[digit] == 0 || !f.lacks(slash, colon, score) {
		return false
	}
	_, number, unit := cutNumber(c)
	return number != "" && (unit == "" || units[unit]) && strings.Count(number, ".") <= 1
}

// numberOf canonicalises a number. It is empty for one that says too little: fewer than three significant
// digits without a decimal, a unit or a currency, years, round powers of ten.
func numberOf(c string) string {
	sign, number, unit := cutNumber(c)
	whole, part, _ := strings.Cut(strings.ReplaceAll(number, ",", ""), ".")
	if part = strings.TrimRight(part, "0"); part != "" {
		part = "." + part
	}
	norm := strings.TrimLeft(whole+part, "0")
	switch significant := strings.Trim(strings.ReplaceAll(norm, ".", ""), "0"); {
	case significant == "":
		return ""
	case part != "" || strings.ContainsAny(sign, "$€£") || unit != "" && len(norm) >= 2:
	case len(norm) < 3 || significant == "1":
		return ""
	case len(norm) == 4 && (strings.HasPrefix(norm, "199") || strings.HasPrefix(norm, "20") && norm[2] < '4'):
		return ""
	}
	return norm + unit
}

// fileTypes are the endings by which a name without a slash is a file.
var fileTypes = scan.WordSet("go mod sum ts tsx js jsx mjs cjs py rb rs java kt c h cc cpp hpp cs php swift sh bash zsh sql md mdx txt rst json jsonl " +
	"yaml yml toml ini cfg conf env lock xml html css scss svg png jpg jpeg gif pdf csv tsv log diff patch zip gz tar proto vue ipynb db " +
	"sqlite gitignore example tmpl snap golden service exe wasm")

func isPath(c string, f features) bool {
	if f[slash]+f[dot] == 0 || f[colon] > 0 || f[letter] == 0 {
		return false
	}
	base := c[strings.LastIndexByte(c, '/')+1:]
	ending := base[strings.LastIndexByte(base, '.')+1:]
	file := len(ending) < len(base) && fileTypes[strings.ToLower(ending)]
	if f[slash] == 0 {
		return file && len(base) > len(ending)+1
	}
	parts := 0
	for p := range strings.SplitSeq(c, "/") {
		if p != "" && p != "." && p != ".." && p != "~" {
			parts++
		}
	}
	rooted := c[0] == '/' || strings.HasPrefix(c, "~/") || strings.HasPrefix(c, "./") || strings.HasPrefix(c, "../")
	switch {
	case len(c) < 4, strings.HasPrefix(c, "//"), strings.Contains(c, "//") && !rooted:
		return false
	case parts == 1 && !file:
		return rooted && len(c) > 4
	}
	return parts > 0
}

// isHex takes UUIDs, and hexadecimal of at least 7 digits that has both letters
// and figures.
func isHex(c string, f features) bool {
	return len(c) >= 7 && f[digit] > 0 && f[letter] > 0 && (f[dash] == 0 || len(c) == 36 && f[dash] == 4) && strings.Trim(c, "0123456789abcdefABCDEF-") == ""
}

// joins reports whether the colons of a chunk, if it has any, join parts of a name.
func joins(c string, f features) bool { return f[colon] == 0 || strings.Contains(c, "::") }

// isError takes names of errors: ErrNotFound, TimeoutError, ENOENT, E0308.
func isError(c string, f features) bool {
	if !f.lacks(slash, dash, other) || len(c) < 5 || f[letter] == 0 || !joins(c, f) {
		return false
	}
	last := c[strings.LastIndexByte(c, '.')+1:]
	switch {
	case strings.HasPrefix(last, "Err") && len(last) > 4 && isUpper(last[3]):
		return true
	case isUpper(last[0]) && len(last) > 6 && (strings.HasSuffix(last, "Error") || strings.HasSuffix(last, "Exception")):
		return true
	}
	return last[0] == 'E' && (errnos[c] || len(c) == 5 && f[digit] == 4)
}

var errnos = scan.WordSet("ENOENT EACCES EPERM EEXIST EISDIR ENOTDIR EINVAL EPIPE ECONNREFUSED ECONNRESET ETIMEDOUT EADDRINUSE ENOTEMPTY ENOSPC EAGAIN " +
	"ERESOLVE ENOTFOUND EMFILE ELOOP EINTR EHOSTUNREACH ENOMEM")

// isSymbol takes names in code: snake, camel, dotted or with ::, at least six
// characters and two parts.
func isSymbol(c string, f features) bool {
	if len(c) < 6 || f[letter] < 4 || !f.lacks(slash, dash, other) || scan.IsDigit(c[0]) || !joins(c, f) {
		return false
	}
	parts, alpha := 0, 0 // those that begin with a letter
	last := byte('_')
	for i := range len(c) {
		b := c[i]
		joint := b == '_' || b == '.' || b == ':'
		if !joint && (strings.IndexByte("_.:", last) >= 0 || isUpper(b) && isLower(last)) {
			if parts++; isLetter(b) {
				alpha++
			}
		}
		last = b
	}
	// An id such as ab_12x has one part of letters and one of figures.
	return parts >= 2 && alpha >= 2 && f[digit]*2 <= f[letter]
}

func isID(c string, f features) bool {
	return f[letter] > 0 && f[digit] > 0 && len(c) >= 5 && f.lacks(other, slash, colon)
}
