package summary

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A reader, and even more a model, takes a look-alike for the character that it looks like,
// and overlooks others. The functions here compare texts with our markers in the same way;
// what is written stays as it was.

// unseen reports invisible characters that stay in a text: format characters, combining
// marks, fillers.
func unseen(r rune) bool {
	switch r {
	case 0x115f, 0x1160, 0x3164, 0xffa0, 0x2800:
		return true
	}
	return r >= 0x80 && unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me) && !hidden(r)
}

// hidden reports invisible characters that no text needs, and that are replaced: they
// steer the order of what is shown, hide a text of their own, or split words. Joiners and
// variation selectors are needed in some scripts and emoji.
func hidden(r rune) bool {
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

// looks is the ASCII character that r looks like, in lower case; 0 for none. White space
// of any kind looks like a space.
func looks(r rune) byte {
	switch {
	case 'A' <= r && r <= 'Z':
		return byte(r) + 'a' - 'A'
	case r < 0x80:
		return byte(r)
	case 0xff01 <= r && r <= 0xff5e: // of full width
		return looks(r - 0xff01 + '!')
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

// hasPrefixFold reports whether s begins with what looks like the word, which is in lower
// case.
func hasPrefixFold(s, lower string) bool {
	for i := 0; i < len(lower); {
		r, n := utf8.DecodeRuneInString(s)
		if n == 0 {
			return false
		}
		s = s[n:]
		if unseen(r) {
			continue
		}
		if looks(r) != lower[i] {
			return false
		}
		i++
	}
	return true
}

// endsFold reports whether s ends in what looks like the word, ignoring spaces after it.
func endsFold(s, lower string) bool {
	for i := len(lower) - 1; i >= 0; {
		r, n := utf8.DecodeLastRuneInString(s)
		if n == 0 {
			return false
		}
		s = s[:len(s)-n]
		c := looks(r)
		if unseen(r) || i == len(lower)-1 && (c == ' ' || c == '\t') {
			continue
		}
		if c != lower[i] {
			return false
		}
		i--
	}
	return true
}

// trimSeen removes white space and invisible characters from the beginning of a text.
func trimSeen(s string) string {
	return strings.TrimLeftFunc(s, func(r rune) bool { c := looks(r); return unseen(r) || c == ' ' || c == '\t' })
}
