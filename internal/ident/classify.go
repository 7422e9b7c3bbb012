package ident

import (
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// kinds are the types that a chunk may have as a whole, in the order in which they are tried: one that has all, any and
// none of some classes of characters, as is says. norm returns the normalized form; "" for a chunk that is of the type
// and says too little.
var kinds = []struct {
	Type
	example        string
	all, any, none set
	is             func(c string, f features) bool
	norm           func(c string) string // nil: as it stands
}{
	{Email, "ann@example.org", other | dot, 0, slash, isEmail, strings.ToLower},
	{Date, "2026-11-21T14:03", digit, dash | slash | colon, 0, isDate, nil},
	{Version, "v1.2.3-rc.1", digit | dot, 0, slash | colon | score, isVersion, func(c string) string { return strings.TrimPrefix(c, "v") }},
	{Number, "$1,250.50", digit, 0, slash | colon | score, isNumber, numberOf},
	{Path, "src/client.go", letter, slash | dot, colon, isPath, path.Clean},
	{Hex, "a3f29c1", letter | digit, 0, other | dot | slash | score | colon, isHex, strings.ToLower},
	{Error, "ErrNotFound", letter, 0, slash | dash | other, isError, nil},
	{Symbol, "parse_header", letter, 0, slash | dash | other, isSymbol, nil},
	{ID, "TICKET-4821", letter | digit, 0, other | slash | colon, isID, nil},
}

// classifyWhole reads a chunk as one identifier; ok is false when it is none as a whole.
func classifyWhole(c string) (t Type, norm string, ok bool) {
	f := featuresOf(c)
	if f.has&(letter|digit) == 0 || int(f.letters) == len(c) && (f.uppers == 0 || f.uppers == 1 && isUpper(c[0]) && c[0] != 'E') {
		return 0, "", false // marks, or a word, which Exception is not
	}
	for i := range kinds {
		if k := &kinds[i]; f.has&k.all == k.all && f.has&k.none == 0 && (k.any == 0 || f.has&k.any != 0) && k.is(c, f) {
			if norm = c; k.norm != nil {
				norm = k.norm(c)
			}
			return k.Type, norm, norm != ""
		}
	}
	return 0, "", false
}

// features are the classes of characters that a chunk has, and how many of some.
type features struct {
	has                                     set
	letters, uppers, digits, dashes, colons uint16
}

// set is a set of classes of characters; upper ones are letters too.
type set uint16

const (
	other set = 1 << iota
	letter
	upper
	digit
	dot
	slash
	dash
	score
	colon
)

// classOf is the class of each byte.
var classOf = func() (of [256]set) {
	for c := range 256 {
		of[c] = other
		switch b := byte(c); {
		case scan.IsDigit(b):
			of[c] = digit
		case isUpper(b):
			of[c] = letter | upper
		case isLetter(b):
			of[c] = letter
		}
	}
	of['.'], of['/'], of['-'], of['_'], of[':'] = dot, slash, dash, score, colon
	return of
}()

func featuresOf(c string) (f features) {
	for i := range len(c) {
		class := classOf[c[i]]
		f.has |= class
		f.letters += uint16(class & letter / letter)
		f.uppers += uint16(class & upper / upper)
		f.digits += uint16(class & digit / digit)
		f.dashes += uint16(class & dash / dash)
		f.colons += uint16(class & colon / colon)
	}
	return f
}

func isEmail(c string, _ features) bool {
	at, end := strings.IndexByte(c, '@'), strings.LastIndexByte(c, '.')
	return at > 0 && strings.LastIndexByte(c, '@') == at && end > at+1 && end < len(c)-1 && isLetter(c[end+1])
}

// isDate takes 2026-11-21, with or without a time, 2026/11/21, and 14:03 or
// 14:03:59 alone.
func isDate(c string, f features) bool {
	if len(c) >= 10 && c[4] == c[7] && (c[4] == '-' || c[4] == '/') && digits(c[:1]+c[3:4]+c[5:7]+c[8:10]) {
		return len(c) == 10 || c[10] == 'T'
	}
	if f.colons > 2 || f.digits < 3 || f.digits > 6 || f.has != digit|colon {
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
	if !scan.IsDigit(v[0]) {
		return false
	}
	core, rest, _ := strings.Cut(v, "-")
	parts := strings.Split(core, ".")
	if rest == "" && f.has&dash != 0 || len(parts) < 2 || len(parts) < 3 && len(v) == len(c) {
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

func isNumber(c string, _ features) bool {
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
	isFile := func() bool {
		base := c[strings.LastIndexByte(c, '/')+1:]
		at := strings.LastIndexByte(base, '.')
		return at >= 0 && (at > 0 || f.has&slash != 0) && fileTypes[strings.ToLower(base[at+1:])]
	}
	if f.has&slash == 0 {
		return isFile()
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
	case parts == 1 && !isFile():
		return rooted && len(c) > 4
	}
	return parts > 0
}

// isHex takes UUIDs, and hexadecimal of at least 7 digits that has both letters
// and figures.
func isHex(c string, f features) bool {
	return len(c) >= 7 && (f.dashes == 0 || len(c) == 36 && f.dashes == 4) && strings.Trim(c, "0123456789abcdefABCDEF-") == ""
}

// joins reports whether the colons of a chunk, if it has any, join parts of a name.
func joins(c string, f features) bool { return f.colons == 0 || strings.Contains(c, "::") }

// isError takes names of errors: ErrNotFound, TimeoutError, ENOENT, E0308.
func isError(c string, f features) bool {
	if len(c) < 5 || !joins(c, f) {
		return false
	}
	last := c[strings.LastIndexByte(c, '.')+1:]
	switch {
	case strings.HasPrefix(last, "Err") && len(last) > 4 && isUpper(last[3]):
		return true
	case isUpper(last[0]) && len(last) > 6 && (strings.HasSuffix(last, "Error") || strings.HasSuffix(last, "Exception")):
		return true
	}
	return last[0] == 'E' && (errnos[c] || len(c) == 5 && f.digits == 4)
}

var errnos = scan.WordSet("ENOENT EACCES EPERM EEXIST EISDIR ENOTDIR EINVAL EPIPE ECONNREFUSED ECONNRESET ETIMEDOUT EADDRINUSE ENOTEMPTY ENOSPC EAGAIN " +
	"ERESOLVE ENOTFOUND EMFILE ELOOP EINTR EHOSTUNREACH ENOMEM")

// isSymbol takes names in code: snake, camel, dotted or with ::, at least six
// characters and two parts.
func isSymbol(c string, f features) bool {
	if len(c) < 6 || f.letters < 4 || scan.IsDigit(c[0]) || !joins(c, f) {
		return false
	}
	parts, alpha := 0, 0 // those that begin with a letter
	const joint = score | dot | colon
	last := score
	for i := range len(c) {
		class := classOf[c[i]]
		if class&joint == 0 && (last&joint != 0 || class&upper != 0 && isLower(c[i-1])) {
			if parts++; class&letter != 0 {
				alpha++
			}
		}
		last = class
	}
	// An id such as ab_12x has one part of letters and one of figures.
	return parts >= 2 && alpha >= 2 && f.digits*2 <= f.letters
}

func isID(c string, _ features) bool { return len(c) >= 5 }
