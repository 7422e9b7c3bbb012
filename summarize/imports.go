package summarize

import (
	"regexp"
	"strings"
)

// imports tells the lines of a source file that only bring names in: they are the
// first of each file and say next to nothing about it. The zero value stands before
// the first line.
type imports struct{ open bool } // inside of a list that goes over several lines

var (
	importing = regexp.MustCompile(`^(?:import (?:type )?(?:\(|\{|[\w.]* ?"[^" ]+"|[\w.]+\*?(?: as \w+)?;?$|static [\w.]+\*?;$|['"][^'" ]+['"]|[\w$*, {}]+ from ['"])|` +
		`from [\w.]+ import |(?:pub )?use [\w:]+[^ ]*.*;$|using [\w.]+;$|#include ["<]|package [\w.]+;?$|\} from ['"])`)
	imported = regexp.MustCompile(`^(?:(?:[\w.]+ )?"[^" ]+"(?:\s*//.*)?|(?:(?:type )?[\w$]+(?: as [\w$]+)?,\s*)+)$`)
)

// holds reports whether the next line, without the white space around it, is one.
func (x *imports) holds(line string) bool {
	if x.open {
		if closes := line == ")" || strings.HasPrefix(line, "}"); closes || line == "" || imported.MatchString(line) {
			x.open = !closes
			return true
		}
		x.open = false
	}
	if line == "" || strings.IndexByte("ifu#p}", line[0]) < 0 || !importing.MatchString(line) {
		return false
	}
	x.open = strings.HasSuffix(line, "(") || strings.HasSuffix(line, "{")
	return true
}
