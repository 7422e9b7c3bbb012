// Package glyph knows characters by how they look: a reader, and even more a model, takes a
// look-alike for the character that it looks like, and overlooks others.
package glyph

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Unseen reports invisible characters that stay in a text: format characters, combining
// marks, fillers.
func Unseen(r rune) bool {
	switch r {
	case 0x115f, 0x1160, 0x3164, 0xffa0, 0x2800:
		return true
	}
	return r >= 0x80 && unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me) && !Hidden(r)
}

// Hidden reports invisible characters that no text needs, and that are replaced: they
// steer the order of what is shown, hide a text of their own, or split words. Joiners and
// variation selectors are needed in some scripts and emoji.
func Hidden(r rune) bool {
	switch {
	case r < 0x80:
		return r < ' ' || r == 0x7f
	case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Bidi_Control, r),
		r == 0x180e, r == 0x200b, r >= 0x2060 && r <= 0x206f, r == 0xfeff, r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}

// alike maps characters to the ASCII character that they look like. In each row it comes
// first.
var alike = func() map[rune]byte {
	m := map[rune]byte{}
	for _, row := range [...]string{
		"aаΑαАɑ", "bΒВЬƄʙ", "cсСϲϹᴄ", "dԁɗ", "eеΕЕєҽ", "fƒϜ", "gɡԍց", "hһΗНհʜ", "iіΙιІıɩӏ", "jјЈϳ", "kκΚкКᴋ", "lӏΙⅼǀ",
		"mΜмМᴍⅿ", "nΝոռᴨɴ", "oоΟοОօᴏσ", "pрΡρР", "qԛգ", "rгᴦʀ", "sѕЅꜱ", "tΤτтТᴛ", "uυսᴜμ", "vνѵᴠⅴ", "wԝᴡω", "xхΧχХⅹ", "yуΥγУүʏ", "zΖᴢ",
		"[［【〔〖⟦❲⁅﹝", "]］】〕〗⟧❳⁆﹞", "<＜‹〈《⟨❮˂ᐸ≺﹤", ">＞›〉》⟩❯˃ᐳ≻﹥", "(（❨⁽₍﹙⦅", ":：∶꞉˸ː﹕։", "#＃♯﹟", "|｜∣ǀ│", "_＿﹍", "'’ʼ＇‘′", "/／∕⁄",
	} {
		for _, r := range row[1:] {
			if m[r] == 0 {
				m[r] = row[0]
			}
		}
	}
	return m
}()

// Looks is the ASCII character that r looks like, in lower case; 0 for none. White space
// of any kind looks like a space.
func Looks(r rune) byte {
	switch {
	case 'A' <= r && r <= 'Z':
		return byte(r) + 'a' - 'A'
	case r < 0x80:
		return byte(r)
	case 0xff01 <= r && r <= 0xff5e: // of full width
		return Looks(r - 0xff01 + '!')
	case 0x1d400 <= r && r <= 0x1d6a3: // of mathematics
		return 'a' + byte((r-0x1d400)%26)
	case 0x24b6 <= r && r <= 0x24e9, 0x1f130 <= r && r <= 0x1f149: // in circles and squares
		if r >= 0x1f130 {
			return 'a' + byte(r-0x1f130)
		}
		return 'a' + byte((r-0x24b6)%26)
	case unicode.Is(unicode.Zs, r):
		return ' '
	}
	return alike[r]
}

// Visible writes a text on one line so that it shows what it holds, for people who go by the names of
// tools, files and threads. Control characters, bytes that are no UTF-8, marks that steer the order of what
// is shown and what nobody sees, such as a mark that stands on nothing, become \x1b, \u202e or \U000e0041, and so
// does a letter that looks like an ASCII one in a name that has ASCII letters, or is of such letters alone beside digits
// or "_". Line ends and tabs become spaces.
func Visible(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
		return s
	}
	var b strings.Builder
	mixed, end := false, 0 // of the name at i
	before := rune(0)
	for i, r := range s {
		if i >= end {
			name := s[i:]
			if n := strings.IndexFunc(name, func(r rune) bool { return !inName(r) }); n >= 0 {
				name = name[:n]
			}
			mixed, end = imitates(name), i+max(len(name), 1)
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case strings.ContainsRune("\n\t\u2028\u2029", r):
			b.WriteByte(' ')
		case r == utf8.RuneError && size == 1, Hidden(r), unshown(before, r), mixed && looksASCII(r):
			b.WriteString(strings.Trim(strconv.QuoteToASCII(s[i:i+size]), `"`))
		default:
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}

// inName reports what a name is made of.
func inName(r rune) bool { return r == '_' || unicode.In(r, unicode.L, unicode.M, unicode.Nd) }

// imitates reports whether letters of a name that look like ASCII ones are taken for them: it has ASCII
// letters too, or digits or "_" and no letter that looks like none.
func imitates(name string) bool {
	other := func(r rune) bool { return unicode.IsLetter(r) && !looksASCII(r) }
	return strings.ContainsFunc(name, isASCIILetter) || strings.ContainsAny(name, "_0123456789") && !strings.ContainsFunc(name, other)
}

func isASCIILetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }

// looksASCII reports a letter that looks like an ASCII one and is none.
func looksASCII(r rune) bool { return r >= 0x80 && isASCIILetter(rune(Looks(r))) }

// unshown reports what nobody sees behind another character: format characters, fillers, and marks that stand on
// nothing. Joiners have a use behind letters that are not ASCII, and variation selectors behind symbols.
func unshown(before, r rune) bool {
	switch {
	case r == 0x200c || r == 0x200d:
		return before < 0x80
	case unicode.Is(unicode.Variation_Selector, r):
		return before < 0x80 || !unicode.Is(unicode.S, before)
	case unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	case unicode.In(r, unicode.Mn, unicode.Me):
		return !unicode.In(before, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
	}
	return Unseen(r)
}
