// Package shell reads command lines as models write them for POSIX shells: the
// simple commands that they are made of, and what the exit status and the output of
// a whole line tell of each.
package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// Command is one simple command of a command line.
type Command struct {
	Words    []Word  // without variables that are set for it alone
	Text     string  // as it was written, without redirections
	Document string  // the body of its here-document
	Writes   []Write // files that its redirections write
	Report

	after string // the operator behind it: "&&", "||", ";", "|", "&", or "" at the end
	back  string // of "popd": where it goes
}

// Word is one word with its quotes taken off.
type Word struct {
	Text string
	Open bool // it holds a variable or a substitution: nobody knows what it came to
}

// Write is a redirection into a file.
type Write struct {
	To     string
	Append bool
}

// Plain returns the words as text.
func (c *Command) Plain() []string {
	out := make([]string, len(c.Words))
	for i, w := range c.Words {
		out[i] = w.Text
	}
	return out
}

// Name is the first word, "" where there is none.
func (c *Command) Name() string {
	if len(c.Words) == 0 {
		return ""
	}
	return c.Words[0].Text
}

// Inner is the command without the words of loops, conditions and subshells in front of it.
func (c Command) Inner() Command {
	for len(c.Words) > 0 && compoundWords[c.Words[0].Text] {
		c.Words = c.Words[1:]
	}
	if len(c.Words) > 0 && strings.HasPrefix(c.Words[0].Text, "(") {
		c.Words = append([]Word{{Text: strings.TrimLeft(c.Words[0].Text, "("), Open: c.Words[0].Open}}, c.Words[1:]...)
	}
	return c
}

// Path returns the word if it can only be a path, else "".
func Path(word string) string {
	if word == "" || len(word) > 300 || strings.HasPrefix(word, "/dev/") || strings.ContainsAny(word, "$*?`(){}|&;<>=!\n") {
		return ""
	}
	return Clean(word)
}

// Clean takes "./" from the front of a path, so that one file has one name.
func Clean(p string) string {
	p = strings.TrimSpace(p)
	for strings.HasPrefix(p, "./") && len(p) > 2 {
		p = p[2:]
	}
	return p
}

// Unwrap takes off what only runs another command, and variables that are set for it.
func Unwrap(words []string) []string {
	for len(words) > 0 {
		name := path.Base(words[0])
		switch name {
		case "time", "nice", "nohup", "command", "sudo", "exec", "xvfb-run", "env", "timeout", "gtimeout":
			i := 1
			for i < len(words) && (strings.HasPrefix(words[i], "-") || strings.Contains(words[i], "=") && name == "env") {
				i++
			}
			if strings.HasSuffix(name, "timeout") {
				i++
			}
			words = words[min(i, len(words)):]
		default:
			if i := strings.IndexByte(words[0], '='); i <= 0 || strings.ContainsAny(words[0][:i], "/-. ") {
				return words
			}
			words = words[1:]
		}
	}
	return words
}

// maxLine bounds what is read of a command line, in bytes.
const maxLine = 20_000

// mostWords bounds the words of a line of so many bytes, each command counted as commandWords of
// them: what is held of a word takes some 40 bytes, and each command is compared with all others.
func mostWords(bytes int) int { return 480 + bytes/64 }

const commandWords = 12

// compoundWords are the words that begin what is no simple command.
var compoundWords = scan.WordSet("if then else elif fi for while until do done case esac function { } ! [[ select")

// Read splits a command line into its commands. It is not simple where it holds
// loops, conditions or subshells, or could not be read to its end: then their words
// are commands too, and nobody knows which of them ran. A line of very many commands is
// not read to its end.
func Read(line string) (commands []Command, simple bool) {
	r := reader{s: line, simple: true}
	if len(line) > maxLine {
		r.s, r.simple = strings.Clone(line[:clip.CutBefore(line, maxLine)]), false
	}
	r.room = mostWords(len(r.s))
	r.read()
	r.setReports()
	return slices.Clone(r.all), r.simple && len(r.all) > 0
}

type reader struct {
	s         string
	at        int
	all       []Command
	current   Command
	raw       []string // words of now, as they were written
	room      int      // for words
	documents []document
	simple    bool
}

// document is a here-document that is to come.
type document struct {
	mark string
	of   int // the index of its command
}

// operators stand behind commands.
var operators = []string{"&&", "||", "|&", ";;", ";", "|", "&"}

func (r *reader) read() {
	for r.at < len(r.s) {
		if r.room < 0 {
			r.simple = false
			return
		}
		rest := r.s[r.at:]
		switch c := rest[0]; {
		case c == ' ' || c == '\t' || c == '\r':
			r.at++
		case strings.HasPrefix(rest, "\\\n"):
			r.at += 2
		case c == '\n':
			r.at++
			r.endCommand(";")
			if !r.readDocuments() {
				r.simple = false
				return
			}
		case c == '#':
			if n := strings.IndexByte(rest, '\n'); n >= 0 {
				r.at += n
			} else {
				r.at = len(r.s)
			}
		case strings.HasPrefix(rest, "&>"):
			r.at++
			r.redirect('&')
		case c == '>' || c == '<':
			r.redirect('1')
		case (c == '1' || c == '2') && len(rest) > 1 && rest[1] == '>':
			r.at++
			r.redirect(c)
		case c == '&' || c == '|' || c == ';':
			r.operator(rest)
		default:
			w, raw := r.word()
			r.room--
			r.simple = r.simple && !(len(r.current.Words) == 0 && compoundWords[w.Text])
			r.current.Words, r.raw = append(r.current.Words, w), append(r.raw, raw)
		}
	}
	r.endCommand("")
	r.simple = r.simple && len(r.documents) == 0
}

// operator reads the operator behind a command.
func (r *reader) operator(rest string) {
	for _, op := range operators {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		r.at += len(op)
		switch op {
		case "&&", "||":
			r.simple = r.simple && len(r.current.Words) > 0
		case "|&":
			op = "|"
		case ";;":
			r.simple = false
		}
		r.endCommand(op)
		return
	}
}

// endCommand closes the command that is read.
func (r *reader) endCommand(after string) {
	c := r.current
	c.after, c.Text = after, strings.TrimSpace(strings.Join(r.raw, " "))
	for len(c.Words) > 1 && isAssignment(c.Words[0]) {
		c.Words = c.Words[1:]
	}
	if len(c.Words) > 0 || len(c.Writes) > 0 {
		r.all = append(r.all, c)
		r.room -= commandWords
	}
	r.current, r.raw = Command{}, r.raw[:0]
}

// isAssignment reports whether a word sets a variable.
func isAssignment(w Word) bool {
	name, _, ok := strings.Cut(w.Text, "=")
	return ok && name != "" && (name[0] < '0' || name[0] > '9') && !strings.ContainsFunc(name, func(c rune) bool { return c < 0x80 && !isNameByte(byte(c)) })
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// wordEnds end a word that is not quoted.
const wordEnds = " \t\n\r;|&<>"

// word reads the word at the position, and how it is written.
func (r *reader) word() (w Word, raw string) {
	start := r.at
	for r.at < len(r.s) && strings.IndexByte(wordEnds+"'\"\\$`()", r.s[r.at]) < 0 {
		r.at++
	}
	if r.at == len(r.s) || strings.IndexByte(wordEnds, r.s[r.at]) >= 0 {
		return Word{Text: r.s[start:r.at]}, r.s[start:r.at]
	}
	var b strings.Builder
	b.WriteString(r.s[start:r.at])
	for r.at < len(r.s) && strings.IndexByte(wordEnds, r.s[r.at]) < 0 {
		switch c := r.s[r.at]; c {
		case '\'':
			text, _, closed := strings.Cut(r.s[r.at+1:], "'")
			b.WriteString(text)
			r.simple = r.simple && closed
			r.at += len(text) + 2
		case '"':
			r.quoted(&b, &w)
		case '\\':
			if r.at+1 < len(r.s) && r.s[r.at+1] != '\n' {
				b.WriteByte(r.s[r.at+1])
			}
			r.at += 2
		case '$', '`':
			r.expansion(&b, &w)
		default:
			r.simple = r.simple && c != '(' && c != ')'
			b.WriteByte(c)
			r.at++
		}
	}
	r.at = min(r.at, len(r.s))
	w.Text = b.String()
	return w, r.s[start:r.at]
}

// quoted reads a text in double quotes.
func (r *reader) quoted(b *strings.Builder, w *Word) {
	for r.at++; r.at < len(r.s); {
		switch c := r.s[r.at]; c {
		case '"':
			r.at++
			return
		case '\\':
			if next := r.s[r.at+1:]; next != "" {
				if strings.IndexByte("\"\\$`\n", next[0]) < 0 {
					b.WriteByte(c)
				}
				if next[0] != '\n' {
					b.WriteByte(next[0])
				}
			}
			r.at += 2
		case '$', '`':
			r.expansion(b, w)
		default:
			b.WriteByte(c)
			r.at++
		}
	}
	r.simple = false
}

// expansion reads a variable or a substitution. What "$(cat <<'EOF' …)" comes to is
// known, anything else is not.
func (r *reader) expansion(b *strings.Builder, w *Word) {
	rest := r.s[r.at:]
	n := -1
	switch {
	case !r.simple: // nobody asks what it comes to
	case strings.HasPrefix(rest, "$("):
		if n = substitution(rest[2:]); n < 0 {
			r.simple = false
			break
		}
		if text, ok := catOutput(rest[2 : 2+n]); ok {
			b.WriteString(text)
			r.at += n + 3
			return
		}
		n += 3
	case rest[0] == '`':
		if n = strings.IndexByte(rest[1:], '`') + 2; n < 2 {
			r.simple = false
		}
	}
	if n > 1 {
		b.WriteString(rest[:n])
		w.Open = true
		r.at += n
		return
	}
	w.Open = w.Open || rest[0] == '`' || len(rest) > 1 && (isNameByte(rest[1]) || rest[1] >= 0x80 || strings.IndexByte("({?!@*#$'\"", rest[1]) >= 0)
	b.WriteByte(rest[0])
	r.at++
}

// substitution returns where the text of "$(" ends: at its closing parenthesis,
// quotes and here-documents passed over; -1 if it has none.
func substitution(s string) int {
	depth := 0
	mark := ""
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\'':
			n := strings.IndexByte(s[i+1:], '\'')
			if n < 0 {
				return -1
			}
			i += n + 1
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth == 0 {
				return i
			}
			depth--
		case '<':
			if strings.HasPrefix(s[i:], "<<") && !strings.HasPrefix(s[i:], "<<<") {
				var n int
				mark, n, _ = documentMark(s[i+2:])
				i += 1 + n
			}
		case '\n':
			if mark == "" {
				break
			}
			n := bodyEnd(s[i+1:], mark)
			if n < 0 {
				return -1
			}
			i += n // the newline behind the mark, or the end of it
			mark = ""
		}
	}
	return -1
}

// documentMark reads the word behind "<<", how long it is as written, and whether it
// is quoted.
func documentMark(s string) (mark string, n int, quoted bool) {
	rest := strings.TrimLeft(strings.TrimPrefix(s, "-"), " \t")
	if rest != "" && strings.IndexByte(`'"\`, rest[0]) >= 0 {
		quoted, rest = true, rest[1:]
	}
	end := 0
	for end < len(rest) && (isNameByte(rest[end]) || rest[end] >= 0x80) {
		end++
	}
	mark, rest = rest[:end], rest[end:]
	if quoted && rest != "" && (rest[0] == '\'' || rest[0] == '"') {
		rest = rest[1:]
	}
	return mark, len(s) - len(rest), quoted
}

// bodyEnd returns where the line with the mark of a here-document ends, which
// begins at the start of s; -1 if there is none.
func bodyEnd(s, mark string) int {
	at := 0
	for line := range strings.Lines(s) {
		text := strings.TrimSuffix(line, "\n")
		bare := strings.TrimLeft(text, "\t")
		if bare == mark {
			return at + len(text)
		}
		if strings.HasPrefix(bare, mark+")") { // EOF)"
			return at + len(text) - len(bare) + len(mark)
		}
		at += len(line)
	}
	return -1
}

// catOutput is what "cat <<'EOF' …" prints, if the text is that and nothing more.
func catOutput(s string) (string, bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(s), "cat")
	if !ok {
		return "", false
	}
	rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " "), "<<")
	mark, n, quoted := documentMark(rest)
	head, body, more := strings.Cut(rest[n:], "\n")
	if !ok || !more || mark == "" || strings.TrimSpace(head) != "" {
		return "", false
	}
	end := bodyEnd(body, mark)
	if end < 0 || strings.TrimSpace(body[end:]) != "" || !quoted && strings.ContainsAny(body[:end], "$`") {
		return "", false
	}
	return strings.TrimSuffix(body[:end], mark), true
}

// redirect reads a redirection of a stream, or, with '&', of both.
func (r *reader) redirect(stream byte) {
	rest := r.s[r.at:]
	into := Write{Append: strings.HasPrefix(rest, ">>")}
	switch {
	case strings.HasPrefix(rest, "<<") && !strings.HasPrefix(rest, "<<<"):
		mark, n, _ := documentMark(rest[2:])
		if mark == "" {
			r.simple = false
		} else {
			r.documents = append(r.documents, document{mark, len(r.all)})
		}
		r.at += 2 + n
		return
	case strings.HasPrefix(rest, "<("), strings.HasPrefix(rest, ">("):
		r.simple = false
	case strings.HasPrefix(rest, "<<<"):
		r.at += 2
	case into.Append, strings.HasPrefix(rest, ">|"):
		r.at++
	}
	r.at++
	r.room--
	other := strings.HasPrefix(r.s[r.at:], "&") // another stream
	if other {
		r.at++
	}
	r.at += len(r.s[r.at:]) - len(strings.TrimLeft(r.s[r.at:], " \t"))
	r.simple = r.simple && (r.at < len(r.s) || other || rest[0] == '<')
	to, _ := r.word()
	switch {
	case other || rest[0] == '<':
	case stream == '2':
		r.current.Silent = true
	default:
		r.current.Silent = r.current.Silent || stream == '&'
		r.current.Shown = NotShown
		into.To = to.Text
		r.current.Writes = append(r.current.Writes, into)
	}
}

// readDocuments takes the here-documents that begin on the line that just ended.
func (r *reader) readDocuments() bool {
	for _, d := range r.documents {
		end := bodyEnd(r.s[r.at:], d.mark)
		if end < 0 {
			return false
		}
		if d.of < len(r.all) {
			r.all[d.of].Document = strings.TrimSuffix(r.s[r.at:r.at+end], d.mark)
		}
		r.at = min(r.at+end+1, len(r.s))
	}
	r.documents = nil
	return true
}
