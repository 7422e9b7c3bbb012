package ident

import (
	"path"
	"slices"
	"strings"
)

// classifyWhole reads a chunk as one identifier; ok is false when it is none as a whole.
func classifyWhole(c string) (t Type, norm string, ok bool) {
	if isEmail(c) {
		return Email, strings.ToLower(c), true
	}
	f := featuresOf(c)
	if f.letters == 0 && f.digits == 0 {
		return 0, "", false
	}
	switch {
	case isDate(c, f):
		return Date, c, true
	case isVersion(c, f):
		return Version, strings.TrimPrefix(c, "v"), true
	}
	if n, is := parseNumber(c, f); is {
		return Number, n, n != ""
	}
	if f.slashes > 0 || f.dots > 0 {
		if p, is := filePath(c, f); is {
			return Path, p, true
		}
	}
	switch {
	case f.colons > 0 && !strings.Contains(c, "::"):
		return 0, "", false
	case isHex(c, f):
		return Hex, strings.ToLower(c), true
	case isError(c, f):
		return Error, c, true
	case isSymbol(c, f):
		return Symbol, c, true
	case f.letters > 0 && f.digits > 0 && len(c) >= 5 && f.other == 0 && f.slashes == 0 && f.colons == 0:
		return ID, c, true
	}
	return 0, "", false
}

// features are what the characters of a chunk are.
type features struct {
	letters, digits, dots, slashes, dashes, scores, colons, other int
	uppers                                                        int
}

func featuresOf(c string) (f features) {
	for i := range len(c) {
		switch b := c[i]; {
		case isDigit(b):
			f.digits++
		case isLetter(b):
			f.letters++
			if isUpper(b) {
				f.uppers++
			}
		case b == '.':
			f.dots++
		case b == '/':
			f.slashes++
		case b == '-':
			f.dashes++
		case b == '_':
			f.scores++
		case b == ':':
			f.colons++
		default:
			f.other++
		}
	}
	return f
}

func isEmail(c string) bool {
	at := strings.IndexByte(c, '@')
	if at < 1 || at+4 > len(c) || strings.IndexByte(c, '/') >= 0 || strings.Count(c, "@") != 1 {
		return false
	}
	dot := strings.LastIndexByte(c, '.')
	return dot > at+1 && dot < len(c)-1 && isLetter(c[dot+1])
}

// isDate takes 2026-11-21, with or without a time, 2026/11/21, and 14:03 or
// 14:03:59 alone.
func isDate(c string, f features) bool {
	if len(c) >= 10 && isDigit(c[0]) && isDigit(c[3]) && (c[4] == '-' || c[4] == '/') && isDigit(c[5]) && isDigit(c[6]) && c[7] == c[4] && isDigit(c[8]) && isDigit(c[9]) {
		return len(c) == 10 || c[10] == 'T'
	}
	if f.colons == 0 || f.letters > 0 || f.digits < 3 || f.digits > 6 || f.slashes+f.dashes+f.scores+f.other+f.dots > 0 || f.colons > 2 {
		return false
	}
	for part := range strings.SplitSeq(c, ":") {
		if len(part) < 1 || len(part) > 2 || part[0] > '5' {
			return false
		}
	}
	return len(c[strings.LastIndexByte(c, ':')+1:]) == 2
}

// isVersion takes 1.2.3, v1.2, 1.2.3-rc.1.
func isVersion(c string, f features) bool {
	v := c
	if v[0] == 'v' {
		v = v[1:]
	}
	if f.dots == 0 || v == "" || !isDigit(v[0]) || f.slashes+f.colons+f.scores > 0 {
		return false
	}
	core, rest, _ := strings.Cut(v, "-")
	if rest == "" && f.dashes > 0 {
		return false
	}
	parts := strings.Split(core, ".")
	if len(parts) < 2 || len(parts) < 3 && len(v) == len(c) {
		return false
	}
	return !slices.ContainsFunc(parts, func(p string) bool { return p == "" || len(p) > 5 || strings.Trim(p, "0123456789") != "" })
}

// parseNumber canonicalises a number. is reports whether the chunk is a number at
// all; norm is empty for one that says too little: fewer than three significant
// digits without a decimal, a unit or a currency, years, round powers of ten.
func parseNumber(c string, f features) (norm string, is bool) {
	if f.digits == 0 || f.slashes+f.colons+f.scores > 0 {
		return "", false
	}
	body := strings.TrimLeft(c, "$€£-+~")
	money := len(body) < len(c) && strings.ContainsAny(c[:len(c)-len(body)], "$€£")
	end := 0
	for end < len(body) && (isDigit(body[end]) || body[end] == '.' || body[end] == ',') {
		end++
	}
	unit := body[end:]
	if end == 0 || len(unit) > 3 || strings.ContainsAny(unit, "-.,0123456789") || unit != "" && !isUnit(unit) {
		return "", false
	}
	digits := strings.ReplaceAll(body[:end], ",", "")
	if strings.Count(digits, ".") > 1 {
		return "", false
	}
	decimal := false
	if whole, part, ok := strings.Cut(digits, "."); ok {
		part = strings.TrimRight(part, "0")
		decimal = part != ""
		digits = whole
		if decimal {
			digits += "." + part
		}
	}
	digits = strings.TrimLeft(digits, "0")
	significant := strings.Trim(strings.ReplaceAll(digits, ".", ""), "0")
	switch {
	case significant == "":
		return "", true
	case decimal || money || unit != "" && len(digits) >= 2:
	case len(digits) < 3:
		return "", true
	case significant == "1":
		return "", true
	case len(digits) == 4 && (strings.HasPrefix(digits, "199") || strings.HasPrefix(digits, "20") && digits[2] < '4'):
		return "", true
	}
	return digits + unit, true
}

func isUnit(u string) bool {
	return slices.Contains([]string{
		"%", "ms", "s", "us", "ns", "m", "h", "d", "B", "KB", "kB", "MB", "GB", "KiB", "MiB", "GiB", "K", "k", "M", "G", "kg", "g", "km", "px", "USD", "EUR",
	}, u)
}

// fileTypes are the endings by which a name without a slash is a file.
var fileTypes = map[string]bool{
	"go": true, "mod": true, "sum": true, "ts": true, "tsx": true, "js": true, "jsx": true, "mjs": true, "cjs": true, "py": true, "rb": true,
	"rs": true, "java": true, "kt": true, "c": true, "h": true, "cc": true, "cpp": true, "hpp": true, "cs": true, "php": true, "swift": true,
	"sh": true, "bash": true, "zsh": true, "sql": true, "md": true, "mdx": true, "txt": true, "rst": true, "json": true, "jsonl": true,
	"yaml": true, "yml": true, "toml": true, "ini": true, "cfg": true, "conf": true, "env": true, "lock": true, "xml": true, "html": true,
	"css": true, "scss": true, "svg": true, "png": true, "jpg": true, "jpeg": true, "gif": true, "pdf": true, "csv": true, "tsv": true,
	"log": true, "diff": true, "patch": true, "zip": true, "gz": true, "tar": true, "proto": true, "vue": true, "ipynb": true, "db": true,
	"sqlite": true, "gitignore": true, "example": true, "tmpl": true, "snap": true, "golden": true, "service": true, "exe": true, "wasm": true,
}

func filePath(c string, f features) (string, bool) {
	if i := strings.IndexByte(c, ':'); i >= 0 {
		return "", false
	}
	if f.letters == 0 {
		return "", false
	}
	base := c[strings.LastIndexByte(c, '/')+1:]
	ending := base[strings.LastIndexByte(base, '.')+1:]
	file := len(ending) < len(base) && fileTypes[strings.ToLower(ending)]
	if f.slashes == 0 {
		return c, file && len(base) > len(ending)+1
	}
	parts := 0
	for p := range strings.SplitSeq(c, "/") {
		if p != "" && p != "." && p != ".." && p != "~" {
			parts++
		}
	}
	rooted := c[0] == '/' || strings.HasPrefix(c, "~/") || strings.HasPrefix(c, "./") || strings.HasPrefix(c, "../")
	if parts == 0 || parts == 1 && !rooted && !file || len(c) < 4 || strings.HasPrefix(c, "//") || strings.Contains(c, "//") && !rooted {
		return "", false
	}
	if rooted && parts == 1 && !file && len(c) < 5 {
		return "", false
	}
	return path.Clean(c), true
}

// isHex takes UUIDs, and hexadecimal of at least 7 digits that has both letters
// and figures.
func isHex(c string, f features) bool {
	if len(c) < 7 || f.digits == 0 || f.letters == 0 {
		return false
	}
	if f.dashes > 0 && (len(c) != 36 || f.dashes != 4) {
		return false
	}
	return strings.Trim(c, "0123456789abcdefABCDEF-") == ""
}

// isError takes names of errors: ErrNotFound, TimeoutError, ENOENT, E0308.
func isError(c string, f features) bool {
	if f.slashes+f.dashes+f.other > 0 || len(c) < 5 || f.letters == 0 {
		return false
	}
	last := c[strings.LastIndexByte(c, '.')+1:]
	switch {
	case strings.HasPrefix(last, "Err") && len(last) > 4 && isUpper(last[3]):
		return true
	case isUpper(last[0]) && len(last) > 6 && (strings.HasSuffix(last, "Error") || strings.HasSuffix(last, "Exception")):
		return true
	case last[0] == 'E' && f.dots+f.scores == 0 && len(c) <= 14 && f.uppers == f.letters && f.digits == 0:
		return errnos[c]
	case last[0] == 'E' && len(c) == 5 && f.digits == 4:
		return true
	}
	return false
}

var errnos = map[string]bool{
	"ENOENT": true, "EACCES": true, "EPERM": true, "EEXIST": true, "EISDIR": true, "ENOTDIR": true, "EINVAL": true, "EPIPE": true,
	"ECONNREFUSED": true, "ECONNRESET": true, "ETIMEDOUT": true, "EADDRINUSE": true, "ENOTEMPTY": true, "ENOSPC": true, "EAGAIN": true,
	"ERESOLVE": true, "ENOTFOUND": true, "EMFILE": true, "ELOOP": true, "EINTR": true, "EHOSTUNREACH": true, "ENOMEM": true,
}

// isSymbol takes names in code: snake, camel, dotted or with ::, at least six
// characters and two parts.
func isSymbol(c string, f features) bool {
	if len(c) < 6 || f.letters < 4 || f.slashes+f.dashes+f.other > 0 || isDigit(c[0]) {
		return false
	}
	parts, run := 0, 0
	alpha := 0
	for i := range len(c) {
		b := c[i]
		switch {
		case b == '_' || b == '.' || b == ':':
			run = 0
			continue
		case run == 0, isUpper(b) && i > 0 && isLower(c[i-1]):
			parts++
			if isLetter(b) {
				alpha++
			}
		}
		run++
	}
	// An id such as ab_12x has one part of letters and one of figures.
	return parts >= 2 && alpha >= 2 && f.digits*2 <= f.letters
}
