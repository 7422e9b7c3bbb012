package summarize

import (
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
)

// fileOp is something that a call did to a file.
type fileOp struct {
	path string
	op   string // as in summary.File
	note string
}

// shellFiles finds the files that a command line surely creates, changes or
// deletes, and those that it prints. Where a word may be anything else than a
// path (a variable, a pattern, an option), it is left out: a wrong ledger is
// worse than a short one.
func shellFiles(command string) []fileOp {
	var ops []fileOp
	dir := "" // where "cd" went
	depth := 0
	loop, values := "", []string(nil)
	for _, words := range shellCommands(command) {
		if words[0] == "do" {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "while", "until":
			return ops // nobody knows how often the rest happens
		case "if", "case":
			depth++
		case "fi", "esac":
			depth--
		case "for":
			if loop = ""; len(words) > 3 && words[2] == "in" {
				loop, values = "$"+words[1], words[3:]
			}
		case "done":
			loop = ""
		}
		if depth > 0 {
			continue // nobody knows whether it ran
		}
		if words[0] == "cd" && len(words) > 1 {
			to := shellPath(words[1])
			switch {
			case to == "":
				return ops // nobody knows where the rest happens
			case path.IsAbs(to) || dir == "":
				dir = to
			default:
				dir = path.Join(dir, to)
			}
			continue
		}
		at := slices.Index(words, loop)
		if loop == "" || at < 0 {
			ops = appendOps(ops, words, dir)
			continue
		}
		for _, value := range values {
			words = slices.Clone(words)
			words[at] = value
			ops = appendOps(ops, words, dir)
		}
	}
	return ops
}

func appendOps(ops []fileOp, words []string, dir string) []fileOp {
	place := func(name string) string {
		if name = shellPath(name); name == "" || name == "." || name == ".." {
			return ""
		}
		if dir != "" && !path.IsAbs(name) && !strings.HasPrefix(name, "~") {
			name = path.Join(dir, name)
		}
		return name
	}
	add := func(op, name, note string) {
		if name = place(name); name != "" {
			ops = append(ops, fileOp{name, op, note})
		}
	}
	// move is "mv": a folder as the target takes the names of the files.
	move := func(a []string, gone bool) {
		if len(a) < 2 {
			return
		}
		target := a[len(a)-1]
		for _, name := range a[:len(a)-1] {
			to := target
			if len(a) > 2 || strings.HasSuffix(target, "/") || target == "." {
				to = path.Join(target, path.Base(name))
			}
			from := place(name)
			if to = place(to); from == "" || to == "" {
				continue
			}
			if gone {
				ops = append(ops, fileOp{from, "deleted", "moved to " + to}, fileOp{to, "created", "moved from " + from})
			} else {
				ops = append(ops, fileOp{to, "created", "copied from " + from})
			}
		}
	}
	args := func(from int) []string {
		var out []string
		for _, w := range words[min(from, len(words)):] {
			if w == ">" || w == ">>" || w == "<" {
				break
			}
			if !strings.HasPrefix(w, "-") {
				out = append(out, w)
			}
		}
		return out
	}
	for i, w := range words {
		if (w == ">" || w == ">>") && i+1 < len(words) {
			op := "created"
			if w == ">>" {
				op = "edited"
			}
			add(op, words[i+1], "")
		}
	}
	if len(words) == 0 {
		return ops
	}
	switch words[0] {
	case "rm", "unlink", "rmdir":
		for _, a := range args(1) {
			add("deleted", a, "")
		}
	case "mv":
		move(args(1), true)
	case "cp":
		move(args(1), false)
	case "touch", "tee":
		for _, a := range args(1) {
			add("created", a, "")
		}
	case "cat", "head", "tail", "nl", "less", "bat":
		for _, a := range args(1) {
			if strings.ContainsAny(a, "./") {
				add("read", a, "")
			}
		}
	case "sed":
		a := args(1)
		inPlace := false
		for _, w := range words[1:] {
			inPlace = inPlace || strings.HasPrefix(w, "-i")
		}
		if len(a) >= 2 {
			op := "read"
			if inPlace {
				op = "edited"
			}
			add(op, a[len(a)-1], a[0])
		}
	case "git":
		if len(words) < 3 {
			break
		}
		switch words[1] {
		case "rm":
			for _, a := range args(2) {
				add("deleted", a, "")
			}
		case "mv":
			move(args(2), true)
		case "checkout", "restore":
			if words[1] == "restore" || slices.Contains(words, "--") {
				for _, a := range args(2) {
					if strings.ContainsAny(a, "./") {
						add("edited", a, "restored by git")
					}
				}
			}
		}
	}
	return ops
}

// shellPath returns the word if it can only be a path, else "".
func shellPath(w string) string {
	if w == "" || len(w) > 300 || strings.HasPrefix(w, "/dev/") || strings.ContainsAny(w, "$*?`(){}|&;<>=!\n") || strings.HasPrefix(w, "&") {
		return ""
	}
	return cleanPath(w)
}

// cleanPath takes "./" from the front, so that one file has one name.
func cleanPath(p string) string {
	p = strings.TrimSpace(p)
	for strings.HasPrefix(p, "./") && len(p) > 2 {
		p = p[2:]
	}
	return p
}

// shellCommands splits a command line at ; & | and newlines and each command
// into words, quotes taken off. The body of a here-document is left out.
func shellCommands(s string) [][]string {
	const limit = 4000
	if len(s) > limit {
		s = s[:clip.Before(s, limit)]
	}
	var all [][]string
	var words []string
	var word strings.Builder
	inWord := false
	heredoc := ""
	endWord := func() {
		if inWord {
			words = append(words, word.String())
			word.Reset()
			inWord = false
		}
	}
	endCommand := func() {
		endWord()
		for len(words) > 0 && (words[0] == "sudo" || strings.Contains(words[0], "=") && !strings.HasPrefix(words[0], "-")) {
			words = words[1:] // variables set for one command
		}
		if len(words) > 0 {
			all = append(all, words)
			words = nil
		}
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '#':
			if inWord {
				word.WriteByte(c)
				break
			}
			// A comment, up to the end of the line.
			if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
				i += n - 1
			} else {
				i = len(s)
			}
		case '\'', '"':
			inWord = true
			end := strings.IndexByte(s[i+1:], c)
			if end < 0 {
				word.WriteString(s[i+1:])
				i = len(s)
				break
			}
			word.WriteString(s[i+1 : i+1+end])
			i += end + 1
		case '\\':
			if i+1 < len(s) {
				i++
				if s[i] != '\n' {
					inWord = true
					word.WriteByte(s[i])
				}
			}
		case ' ', '\t':
			endWord()
		case '\n':
			endCommand()
			if heredoc != "" {
				_, rest, ok := strings.Cut(s[i:], "\n"+heredoc+"\n")
				if !ok {
					return all
				}
				i = len(s) - len(rest) - 1
				heredoc = ""
			}
		case ';', '|', '&':
			if c == '&' && i > 0 && s[i-1] == '>' {
				inWord = true
				word.WriteByte(c) // 2>&1
				break
			}
			endCommand()
		case '>':
			w := word.String()
			if w == "2" || w == "1" || w == "&" {
				word.Reset()
				inWord = false
				if w == "2" { // errors: not the file that is written
					words = append(words, "2>")
					if i+1 < len(s) && s[i+1] == '>' {
						i++
					}
					break
				}
			}
			endWord()
			if i+1 < len(s) && s[i+1] == '>' {
				i++
				words = append(words, ">>")
			} else {
				words = append(words, ">")
			}
		case '<':
			endWord()
			if strings.HasPrefix(s[i:], "<<") && !strings.HasPrefix(s[i:], "<<<") {
				mark, n, _ := heredocMark(s[i+2:])
				heredoc = mark
				i += 1 + n
				break
			}
			words = append(words, "<")
		default:
			inWord = true
			word.WriteByte(c)
		}
	}
	endCommand()
	return all
}
