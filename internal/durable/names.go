package durable

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// maxName is how long a name may be after escaping, in bytes; file systems take
// 255. Of a longer one the beginning stays, and a hash stands for the rest.
const maxName = 150

// reserved names are devices on Windows, whatever follows their first dot.
var reserved = []string{"con", "prn", "aux", "nul", "conin$", "conout$",
	"com0", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
	"lpt0", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9"}

// Escape makes one path element of any text, another for each. Letters, digits,
// dash and underscore stay as they are, and dots inside; every other byte is
// written as % and two digits. Capitals are escaped too unless they are asked
// for: some file systems do not tell them from small letters. What ids say comes
// from files and from the network, so this is what keeps them from naming other
// paths.
func Escape(id string, capitals bool) string {
	const hexDigits = "0123456789abcdef"
	var b strings.Builder
	stem, _, _ := strings.Cut(strings.ToLower(id), ".")
	device := slices.Contains(reserved, stem)
	for i := range len(id) {
		c := id[i]
		switch {
		case i == 0 && device:
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_',
			capitals && 'A' <= c && c <= 'Z',
			c == '.' && i > 0 && i < len(id)-1:
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hexDigits[c>>4])
		b.WriteByte(hexDigits[c&15])
	}
	if b.Len() == 0 {
		return "%"
	}
	if b.Len() > maxName {
		sum := sha256.Sum256([]byte(id))
		return b.String()[:maxName/2] + "%~" + hex.EncodeToString(sum[:16])
	}
	return b.String()
}
