package truth

import (
	"regexp"
	"strings"
)

// command is one simple command of a command line.
type command struct {
	words    []word
	redirect []redirect
	document string // of a here-document
	// piped says that its output goes into another command; orElse that it runs
	// only when the one before it fails.
	piped, orElse bool
	operator      string // in front of it
}

type word struct {
	text    string
	dynamic bool // it holds what only the shell knows: variables, globs, commands
}

type redirect struct {
	op string // ">", ">>", "<"
	to word
}

func (c command) name() string {
	if len(c.words) == 0 {
		return ""
	}
	n := c.words[0].text
	return n[strings.LastIndexByte(n, '/')+1:]
}

// args are the words after the name, options left out.
func (c command) args() []word {
	var out []word
	if len(c.words) == 0 {
		return nil
	}
	only := false
	for _, w := range c.words[1:] {
		switch {
		case w.text == "--":
			only = true
		case !only && len(w.text) > 1 && w.text[0] == '-':
		default:
			out = append(out, w)
		}
	}
	return out
}

func (c command) option(names ...string) bool {
	for _, w := range c.words[min(1, len(c.words)):] {
		for _, n := range names {
			if w.text == n {
				return true
			}
		}
	}
	return false
}

// plain is the command as one line.
func (c command) plain() string {
	var out []string
	for _, w := range c.words {
		out = append(out, w.text)
	}
	return strings.Join(out, " ")
}

var (
	assignment = regexp.MustCompile(`^[A-Za-z_]\w*=`)
	before     = map[string]bool{"do": true, "then": true, "else": true, "if": true, "elif": true, "while": true, "!": true, "time": true, "sudo": true, "{": true, "(": true, "env": true, "command": true}
)

// splitShell reads a command line, as far as needed to know which files it
// touches. What it cannot read it leaves out.
func splitShell(line string) []command {
	var out []command
	var c command
	var w strings.Builder
	var in, dynamic bool
	redirecting := ""
	vars := map[string][]word{}
	type here struct {
		end  string
		dash bool
		of   int
	}
	var heres []here
	endWord := func() {
		if !in {
			return
		}
		x := word{w.String(), dynamic}
		w.Reset()
		in, dynamic = false, false
		if redirecting != "" {
			if redirecting == "<<" || redirecting == "<<-" {
				heres = append(heres, here{x.text, redirecting == "<<-", len(out)})
			} else if redirecting != "<<<" {
				c.redirect = append(c.redirect, redirect{redirecting, x})
			}
			redirecting = ""
			return
		}
		if len(c.words) == 0 && (before[x.text] || assignment.MatchString(x.text)) {
			return
		}
		c.words = append(c.words, expand(vars, x)...)
	}
	orElse, operator := false, ""
	endCommand := func(op string) {
		endWord()
		if n := c.name(); n == "for" && len(c.words) > 3 && c.words[2].text == "in" {
			vars[c.words[1].text] = c.words[3:]
		} else if len(c.words) > 0 || len(c.redirect) > 0 {
			c.piped, c.orElse, c.operator = op == "|", orElse, operator
			out = append(out, c)
		}
		if op != "|" {
			orElse = op == "||"
		}
		operator = op
		c = command{}
	}
	for i := 0; i < len(line); i++ {
		ch := line[i]
		rest := line[i:]
		switch {
		case ch == '\\' && i+1 < len(line):
			if line[i+1] != '\n' {
				w.WriteByte(line[i+1])
				in = true
			}
			i++
		case ch == '\'':
			n := strings.IndexByte(line[i+1:], '\'')
			if n < 0 {
				n = len(line) - i - 1
			}
			w.WriteString(line[i+1 : i+1+n])
			in = true
			i += n + 1
		case ch == '"':
			in = true
			for i++; i < len(line) && line[i] != '"'; i++ {
				switch {
				case line[i] == '\\' && i+1 < len(line):
					i++
					w.WriteByte(line[i])
				case strings.HasPrefix(line[i:], "$("):
					n := closing(line[i+1:])
					w.WriteString(line[i : i+1+n])
					dynamic = true
					i += n
				default:
					if line[i] == '$' || line[i] == '`' {
						dynamic = true
					}
					w.WriteByte(line[i])
				}
			}
		case strings.HasPrefix(rest, "$("):
			n := closing(line[i+1:])
			w.WriteString(line[i : i+1+n])
			in, dynamic = true, true
			i += n
		case ch == '#' && !in && (i == 0 || strings.IndexByte(" \t\n;&|(", line[i-1]) >= 0):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			i += n - 1
		case strings.HasPrefix(rest, "&>>"), strings.HasPrefix(rest, "&>"):
			endWord()
			redirecting = ">"
			i++
			if strings.HasPrefix(rest, "&>>") {
				i++
			}
		case ch == '>' || ch == '<':
			number := w.String()
			if in && (number == "1" || number == "2") {
				w.Reset()
				in = false
			} else {
				number = ""
			}
			endWord()
			op := string(ch)
			for i+1 < len(line) && (line[i+1] == ch || line[i+1] == '|' || op == "<<" && line[i+1] == '-') {
				i++
				if line[i] != '|' {
					op += string(line[i])
				}
			}
			if i+1 < len(line) && line[i+1] == '&' {
				i++
				op = "&"
			}
			if number == "2" {
				op = "2" + op
			}
			redirecting = op
		case ch == '\n':
			endWord()
			mark := len(out)
			endCommand("\n")
			for _, h := range heres {
				n, body := hereBody(line[i+1:], h.end, h.dash)
				if k := min(h.of, mark); k < len(out) {
					out[k].document = body
				}
				i += n
			}
			heres = nil
		case ch == ';':
			endCommand(";")
		case strings.HasPrefix(rest, "&&"):
			endCommand("&&")
			i++
		case strings.HasPrefix(rest, "||"):
			endCommand("||")
			i++
		case ch == '|':
			endCommand("|")
			if strings.HasPrefix(rest, "|&") {
				i++
			}
		case ch == '&':
			endCommand("&")
		case ch == '(' || ch == ')':
			endCommand(";")
		case ch == ' ' || ch == '\t' || ch == '\r':
			endWord()
		default:
			if strings.IndexByte("$`*?[{", ch) >= 0 {
				dynamic = true
			}
			w.WriteByte(ch)
			in = true
		}
	}
	endCommand(";")
	return out
}

// closing is where the bracket that s begins with is closed.
func closing(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// hereBody reads a here-document, and how long it is.
func hereBody(s, end string, dash bool) (int, string) {
	n := 0
	var body strings.Builder
	for n < len(s) {
		line, _, more := strings.Cut(s[n:], "\n")
		n += len(line)
		if more {
			n++
		}
		t := line
		if dash {
			t = strings.TrimLeft(t, "\t")
		}
		if t == end {
			break
		}
		body.WriteString(line)
		body.WriteByte('\n')
	}
	return n, body.String()
}

// expand puts in the values of a loop's variable.
func expand(vars map[string][]word, w word) []word {
	if !w.dynamic {
		return []word{w}
	}
	for name, values := range vars {
		for _, form := range []string{"${" + name + "}", "$" + name} {
			if !strings.Contains(w.text, form) {
				continue
			}
			var out []word
			for _, v := range values {
				t := strings.ReplaceAll(w.text, form, v.text)
				out = append(out, word{t, v.dynamic || strings.ContainsAny(t, "$`*?[{")})
			}
			return out
		}
	}
	if m := strings.IndexByte(w.text, '{'); m >= 0 && !strings.ContainsAny(w.text, "$`*?[") {
		head, list, _ := strings.Cut(w.text, "{")
		inner, tail, ok := strings.Cut(list, "}")
		if ok && strings.Contains(inner, ",") && !strings.ContainsAny(tail, "{}") {
			var out []word
			for x := range strings.SplitSeq(inner, ",") {
				out = append(out, word{head + x + tail, false})
			}
			return out
		}
	}
	return []word{w}
}
