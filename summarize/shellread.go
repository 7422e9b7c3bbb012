package summarize

import (
	"strings"
)

// step is one simple command of a command line: what it runs, and what the exit
// status and the output of the whole line tell about it.
type step struct {
	words   []word
	text    string // as it was written, without redirections
	body    string // of its here-document
	dir     string // where "cd" of the line went before it; "" nowhere, unknownDir if nobody knows
	proved  bool   // a status of 0 of the line says that it succeeded
	blamed  bool   // any other status of the line says that it failed
	alone   bool   // nothing else of the line could fail or print
	shown   shown
	targets []fileOp // files that its redirections write
	silent  bool     // its errors are not shown
	into    bool     // its output goes into the next command
	most    int      // so many lines of it are shown at the most; 0 is all
	list    int      // the list of commands that it stands in
	sure    bool     // it ran, if the commands before it in its list succeeded: there is no alternative
}

// word is one word with its quotes taken off.
type word struct {
	text string
	open bool // it holds a variable or a substitution: nobody knows what it came to
}

// shown says what of a command's output is seen.
type shown uint8

const (
	allShown   shown = iota
	endShown         // the last lines
	failsShown       // lines that match a pattern with "fail" in it
	partShown        // some lines
	notShown
)

const unknownDir = "?"

// maxScript bounds the command lines that are read, in bytes.
const maxScript = 20_000

// compound are the words that begin what is no simple command.
var compound = set("if then else elif fi for while until do done case esac function { } ! [[ select")

// command as it stands in the line, and the operator behind it.
type rawStep struct {
	step
	after string // "&&", "||", ";", "|", "&" or "" at the end
}

// steps reads a command line. It is false where the line holds loops, conditions
// or subshells, or is too long: then nothing is said of its commands.
func steps(s string) ([]step, bool) {
	if len(s) > maxScript {
		return nil, false
	}
	r := scriptReader{s: s}
	if !r.read() || len(r.all) == 0 {
		return nil, false
	}
	return r.judge(), true
}

type scriptReader struct {
	s     string
	at    int
	all   []rawStep
	now   step
	texts strings.Builder
	docs  []heredoc
}

type heredoc struct {
	mark string
	step int // its index in all, once known
}

// read splits the line into commands.
func (r *scriptReader) read() bool {
	for r.at < len(r.s) {
		c := r.s[r.at]
		rest := r.s[r.at:]
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			r.at++
		case strings.HasPrefix(rest, "\\\n"):
			r.at += 2
		case c == '\n':
			r.end(";")
			r.at++
			if !r.bodies() {
				return false
			}
		case c == '#':
			if n := strings.IndexByte(rest, '\n'); n >= 0 {
				r.at += n
			} else {
				r.at = len(r.s)
			}
		case strings.HasPrefix(rest, "&&"), strings.HasPrefix(rest, "||"):
			if len(r.now.words) == 0 {
				return false
			}
			r.end(rest[:2])
			r.at += 2
		case strings.HasPrefix(rest, "|&"):
			r.end("|")
			r.at += 2
		case strings.HasPrefix(rest, "&>"):
			if !r.redirect("&") {
				return false
			}
		case strings.HasPrefix(rest, ";;"):
			return false
		case c == ';', c == '|', c == '&':
			r.end(string(c))
			r.at++
		case c == '(' || c == ')':
			return false
		case c == '>' || c == '<':
			if !r.redirect("") {
				return false
			}
		case (c == '1' || c == '2') && len(rest) > 1 && rest[1] == '>':
			r.at++
			if !r.redirect(string(c)) {
				return false
			}
		default:
			w, ok := r.word()
			if !ok {
				return false
			}
			if len(r.now.words) == 0 && compound[w.text] {
				return false
			}
			r.now.words = append(r.now.words, w)
		}
	}
	r.end("")
	return len(r.docs) == 0
}

// end closes the command that is read.
func (r *scriptReader) end(after string) {
	r.now.text = strings.TrimSpace(r.texts.String())
	r.texts.Reset()
	for n := range r.docs {
		if r.docs[n].step < 0 {
			r.docs[n].step = len(r.all)
		}
	}
	for len(r.now.words) > 1 && assigns(r.now.words[0]) {
		r.now.words = r.now.words[1:]
	}
	if len(r.now.words) > 0 || len(r.now.targets) > 0 {
		r.all = append(r.all, rawStep{step: r.now, after: after})
	}
	r.now = step{}
}

// assigns reports whether a word sets a variable for the command.
func assigns(w word) bool {
	name, _, ok := strings.Cut(w.text, "=")
	if !ok || name == "" || isDigit(name[0]) {
		return false
	}
	for i := range len(name) {
		if !wordByte(name[i]) {
			return false
		}
	}
	return true
}

// word reads the word at the position.
func (r *scriptReader) word() (word, bool) {
	var w word
	var b strings.Builder
	start := r.at
	for r.at < len(r.s) && strings.IndexByte(" \t\n\r;|&<>()", r.s[r.at]) < 0 {
		switch c := r.s[r.at]; c {
		case '\'':
			end := strings.IndexByte(r.s[r.at+1:], '\'')
			if end < 0 {
				return w, false
			}
			b.WriteString(r.s[r.at+1 : r.at+1+end])
			r.at += end + 2
		case '"':
			if !r.quoted(&b, &w) {
				return w, false
			}
		case '\\':
			if r.at+1 < len(r.s) && r.s[r.at+1] != '\n' {
				b.WriteByte(r.s[r.at+1])
			}
			r.at += 2
		case '$', '`':
			if !r.expansion(&b, &w) {
				return w, false
			}
		default:
			b.WriteByte(c)
			r.at++
		}
	}
	r.at = min(r.at, len(r.s))
	w.text = b.String()
	if r.texts.Len() > 0 {
		r.texts.WriteByte(' ')
	}
	r.texts.WriteString(r.s[start:r.at])
	return w, true
}

// quoted reads a text in double quotes.
func (r *scriptReader) quoted(b *strings.Builder, w *word) bool {
	for r.at++; r.at < len(r.s); {
		switch c := r.s[r.at]; c {
		case '"':
			r.at++
			return true
		case '\\':
			if r.at+1 < len(r.s) {
				if n := r.s[r.at+1]; n != '"' && n != '\\' && n != '$' && n != '`' && n != '\n' {
					b.WriteByte(c)
				}
				if r.s[r.at+1] != '\n' {
					b.WriteByte(r.s[r.at+1])
				}
			}
			r.at += 2
		case '$', '`':
			if !r.expansion(b, w) {
				return false
			}
		default:
			b.WriteByte(c)
			r.at++
		}
	}
	return false
}

// expansion reads a variable or a substitution. What "$(cat <<'EOF' …)" comes to
// is known, anything else is not.
func (r *scriptReader) expansion(b *strings.Builder, w *word) bool {
	rest := r.s[r.at:]
	switch {
	case strings.HasPrefix(rest, "$(("), strings.HasPrefix(rest, "$("):
		end := substitution(rest[2:])
		if end < 0 {
			return false
		}
		inner := rest[2 : 2+end]
		if text, ok := document(inner); ok {
			b.WriteString(text)
		} else {
			b.WriteString(rest[:end+3])
			w.open = true
		}
		r.at += end + 3
	case rest[0] == '`':
		end := strings.IndexByte(rest[1:], '`')
		if end < 0 {
			return false
		}
		b.WriteString(rest[:end+2])
		w.open = true
		r.at += end + 2
	default:
		w.open = w.open || len(rest) > 1 && (wordByte(rest[1]) || strings.IndexByte("{?!@*#$'\"", rest[1]) >= 0)
		b.WriteByte('$')
		r.at++
	}
	return true
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
				mark, n, _ = heredocMark(s[i+2:])
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

// heredocMark reads the word behind "<<", how long it is as written, and whether it
// is quoted.
func heredocMark(s string) (mark string, n int, quoted bool) {
	i := 0
	for i < len(s) && (s[i] == '-' && i == 0 || s[i] == ' ' || s[i] == '\t') {
		i++
	}
	if i < len(s) && (s[i] == '\'' || s[i] == '"' || s[i] == '\\') {
		quoted = true
		i++
	}
	from := i
	for i < len(s) && wordByte(s[i]) {
		i++
	}
	mark = s[from:i]
	if quoted && i < len(s) && (s[i] == '\'' || s[i] == '"') {
		i++
	}
	return mark, i, quoted
}

// bodyEnd returns where the line with the mark of a here-document ends, which
// begins at the start of s; -1 if there is none.
func bodyEnd(s, mark string) int {
	for at := 0; at < len(s) || at == 0; {
		p, next := nextLine(s, at)
		if line := strings.TrimLeft(s[p.from:p.to], "\t"); line == mark {
			return p.to
		} else if strings.HasPrefix(line, mark+")") { // EOF)"
			return p.to - len(line) + len(mark)
		}
		if next <= at {
			break
		}
		at = next
	}
	return -1
}

// document is what "cat <<'EOF' …" prints, if the text is that and nothing more.
func document(s string) (string, bool) {
	s = strings.TrimSpace(s)
	rest, ok := strings.CutPrefix(s, "cat")
	if !ok {
		return "", false
	}
	rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " "), "<<")
	if !ok {
		return "", false
	}
	mark, n, quoted := heredocMark(rest)
	if mark == "" {
		return "", false
	}
	head, body, ok := strings.Cut(rest[n:], "\n")
	if !ok || strings.TrimSpace(head) != "" {
		return "", false
	}
	end := bodyEnd(body, mark)
	if end < 0 || strings.TrimSpace(body[end:]) != "" || !quoted && strings.ContainsAny(body[:end], "$`") {
		return "", false
	}
	return strings.TrimSuffix(body[:end], mark), true
}

// redirect reads a redirection; from is what stands in front of its sign.
func (r *scriptReader) redirect(from string) bool {
	rest := r.s[r.at:]
	if from == "&" {
		r.at++
		rest = rest[1:]
	}
	switch {
	case strings.HasPrefix(rest, "<<<"):
		r.at += 3
		return r.skipWord()
	case strings.HasPrefix(rest, "<<"):
		mark, n, _ := heredocMark(rest[2:])
		if mark == "" {
			return false
		}
		r.docs = append(r.docs, heredoc{mark: mark, step: -1})
		r.at += 2 + n
		return true
	case strings.HasPrefix(rest, "<("), strings.HasPrefix(rest, ">("):
		return false
	case rest[0] == '<':
		r.at++
		return r.skipWord()
	}
	op := "created"
	r.at++
	if strings.HasPrefix(rest, ">>") {
		op = "edited"
		r.at++
	} else if strings.HasPrefix(rest, ">|") {
		r.at++
	}
	if strings.HasPrefix(r.s[r.at:], "&") { // to another stream
		r.at++
		return r.skipWord()
	}
	before := r.texts.String()
	r.space()
	if r.at >= len(r.s) {
		return false
	}
	w, ok := r.word()
	r.texts.Reset()
	r.texts.WriteString(before)
	if !ok {
		return false
	}
	if from == "2" {
		r.now.silent = true
		return true
	}
	r.now.silent = r.now.silent || from == "&"
	r.now.shown = notShown
	if name := shellPath(w.text); name != "" && !w.open {
		r.now.targets = append(r.now.targets, fileOp{name, op, ""})
	}
	return true
}

func (r *scriptReader) space() {
	for r.at < len(r.s) && (r.s[r.at] == ' ' || r.s[r.at] == '\t') {
		r.at++
	}
}

func (r *scriptReader) skipWord() bool {
	before := r.texts.String()
	r.space()
	_, ok := r.word()
	r.texts.Reset()
	r.texts.WriteString(before)
	return ok
}

// bodies takes the here-documents that begin on the line that just ended.
func (r *scriptReader) bodies() bool {
	for _, d := range r.docs {
		end := bodyEnd(r.s[r.at:], d.mark)
		if end < 0 {
			return false
		}
		body := r.s[r.at : r.at+end]
		if d.step >= 0 && d.step < len(r.all) {
			r.all[d.step].body = strings.TrimSuffix(body, d.mark)
		}
		r.at = min(r.at+end+1, len(r.s))
	}
	r.docs = nil
	return true
}
