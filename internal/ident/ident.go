// Package ident finds the identifiers in a text: what an agent may have to write again exactly and cannot guess. It
// finds and normalizes paths, addresses, hashes, ids, dates, numbers, symbols, versions, error names, quoted strings and
// proper names.
//
// The definition is that of the benchmark for future references (lab/README.md). All functions are pure.
package ident

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// Type is the kind of an identifier.
type Type uint8

// The types, as reports name them.
const (
	Path Type = iota
	URL
	Email
	Hex // UUIDs, and hexadecimal of at least 7 digits
	ID  // letters and digits mixed, at least 5
	Date
	Number
	Symbol
	Version
	Error
	Quoted
	Name
	types
)

var typeNames = [types]string{"path", "url", "email", "hex", "id", "date", "number", "symbol", "version", "error", "quoted", "name"}

// String is the word for the type.
func (t Type) String() string {
	if t >= types {
		return "unknown"
	}
	return typeNames[t]
}

// Ident is an identifier in a text.
type Ident struct {
	Type Type
	// Norm is the normalized form, for comparison.
	Norm string
	// Surface is the text at byte At.
	Surface string
	At      int
}

// Extract calls found for each identifier in a text, in order. Identifiers are as long as possible and do not overlap.
func Extract(text string, found func(Ident)) { ExtractWhile(nil, text, found) }

// ExtractWhile is Extract as long as the work goes on.
func ExtractWhile(live *effort.Budget, text string, found func(Ident)) {
	s := scanner{text: text, live: live}
	for from := 0; s.at < len(text) && live.Live(byteEffort*(s.at-from)); {
		from = s.at
		s.step(found)
	}
}

// byteEffort is about what reading a byte takes, in units of effort.
const byteEffort = 32

// All returns the identifiers in a text.
func All(text string) []Ident {
	var all []Ident
	Extract(text, func(x Ident) { all = append(all, x) })
	return all
}

type scanner struct {
	text string
	at   int
	live *effort.Budget
	// sentence says that the next word begins a sentence or a line.
	sentence bool
}

// The lengths of a quoted string, in bytes.
const (
	shortestQuote = 6
	longestQuote  = 120
)

// isSeparator marks the bytes that end a chunk.
var isSeparator = func() (is [256]bool) {
	for c := range 256 {
		is[c] = c < 33 || strings.IndexByte("\"'`()[]{}<>|;,=\\!?*\x7f", byte(c)) >= 0 || c == symbolLead
	}
	return is
}()

// symbolLead is the first of the three bytes of punctuation, arrows and box drawings from U+2000 on, which separate
// words. Agents number the lines of a file with an arrow.
const symbolLead = 0xE2

func (s *scanner) step(found func(Ident)) {
	c := s.text[s.at]
	if c == '\n' || s.at == 0 {
		s.sentence = true
	}
	switch {
	case c == '"' || c == '`':
		if s.scanQuoted(c, found) {
			return
		}
		s.at++
	case c == symbolLead:
		s.at = min(s.at+3, len(s.text))
	case isSeparator[c]:
		s.sentence = s.sentence || c == '!' || c == '?'
		s.at++
	default:
		s.scanChunk(found)
	}
}

// scanQuoted takes a quoted string of several words; false when there is none here.
// A quoted single word is read as what it is.
func (s *scanner) scanQuoted(quote byte, found func(Ident)) bool {
	rest := s.text[s.at+1 : min(len(s.text), s.at+longestQuote+2)]
	end := strings.IndexByte(rest, quote)
	if end < shortestQuote {
		return false
	}
	body := rest[:end]
	if strings.IndexByte(body, '\n') >= 0 || strings.IndexByte(body, ' ') < 0 || body[0] == ' ' || body[end-1] == ' ' || isSeparator[body[0]] {
		return false
	}
	found(Ident{Quoted, body, body, s.at + 1})
	s.at += end + 2
	s.sentence = false
	return true
}

// scanChunk reads up to the next separator. Commas between digits and what an
// address may hold do not end it.
func (s *scanner) scanChunk(found func(Ident)) {
	start := s.at
	text := s.text
	for s.at < len(text) && isLower(text[s.at]) {
		s.at++
	}
	if s.at == len(text) || isSeparator[text[s.at]] && s.at > start { // a word, as most are: no identifier
		s.sentence = false
		return
	}
	address := false
	for ; s.at < len(text); s.at++ {
		c := text[s.at]
		if isSeparator[c] && !(address && (c == '=' || c == '?' || c == '!')) && !(c == ',' && s.at > start && scan.IsDigit(text[s.at-1]) && groupOf3(text[s.at+1:])) {
			break
		}
		address = address || c == ':' && s.at > start && strings.HasPrefix(text[s.at:], "://")
	}
	chunk, at := trimPunctuation(text[start:s.at], start)
	if chunk == "" {
		return
	}
	first := s.sentence
	s.sentence = s.at > start && strings.IndexByte(".:", text[s.at-1]) >= 0
	s.classify(chunk, at, first, found)
}

// groupOf3 reports whether a text begins with a group of three digits, as large
// numbers are written.
func groupOf3(s string) bool {
	return len(s) >= 3 && digits(s[:3]) && (len(s) == 3 || !scan.IsDigit(s[3]))
}

// trimPunctuation takes punctuation off both ends.
func trimPunctuation(chunk string, at int) (string, int) {
	from, to := 0, len(chunk)
	for from < to && punctuation[chunk[from]] > 1 {
		from++
	}
	for to > from && punctuation[chunk[to-1]]%2 == 1 {
		to--
	}
	return chunk[from:to], at + from
}

// punctuation is 1 for the bytes that end no identifier, 2 for those that begin none, and 3 for both.
var punctuation = func() (is [256]uint8) {
	for _, c := range []byte(".:,;&@#^+-") {
		is[c] = 1
	}
	for _, c := range []byte(":,;%&@#^+") {
		is[c] += 2
	}
	return is
}()

// maxChunk is the length in bytes from which a piece of text is no identifier but an
// address, or several that colons join: to look at each rest of it as a whole would
// take time with the square of its length.
const maxChunk = 2048

func (s *scanner) classify(chunk string, at int, first bool, found func(Ident)) {
	for s.live.Live(byteEffort * min(len(chunk), maxChunk) / 8) {
		if i := strings.Index(chunk[:min(len(chunk), maxChunk)], "://"); i > 1 && len(chunk) > i+5 {
			found(Ident{URL, strings.TrimRight(chunk, "/"), chunk, at})
			return
		}
		if len(chunk) <= maxChunk {
			if t, norm, ok := classifyWhole(chunk); ok {
				found(Ident{t, norm, chunk, at})
				return
			}
		}
		// What stands before or behind a colon, a place in a file, a shell's redirection.
		i := strings.IndexByte(chunk, ':')
		if i < 0 {
			break
		}
		for i+1 < len(chunk) && chunk[i+1] == ':' {
			i++
		}
		head := strings.TrimRight(chunk[:i], ":")
		if head, at := trimPunctuation(head, at); head != "" {
			s.classify(head, at, first, found) // has no colon: this goes no deeper
		}
		if chunk, at = trimPunctuation(chunk[i+1:], at+i+1); chunk == "" {
			return
		}
		first = false
	}
	if !first && len(chunk) <= maxChunk {
		s.scanName(chunk, at, found)
	}
}

// scanName takes a capitalised n-gram in the middle of a sentence: two to five words, each with a small
// letter.
func (s *scanner) scanName(chunk string, at int, found func(Ident)) {
	if !capitalised(chunk) {
		return
	}
	end, words := at+len(chunk), 1
	for ; words < 5 && end+1 < len(s.text) && s.text[end] == ' '; words++ {
		next := end + 1
		for next < len(s.text) && isLetter(s.text[next]) {
			next++
		}
		if !capitalised(s.text[end+1:next]) || next < len(s.text) && (scan.IsDigit(s.text[next]) || s.text[next] == '_' || s.text[next] == '/') {
			break
		}
		end = next
	}
	if words > 1 {
		found(Ident{Name, s.text[at:end], s.text[at:end], at})
		s.at = max(s.at, end)
	}
}

func capitalised(w string) bool {
	if len(w) < 2 || w[0] < 'A' || w[0] > 'Z' {
		return false
	}
	small := false
	for i := 1; i < len(w); i++ {
		if !isLetter(w[i]) {
			return false
		}
		small = small || w[i] >= 'a'
	}
	return small
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 }
func isUpper(c byte) bool  { return c >= 'A' && c <= 'Z' }
func isLower(c byte) bool  { return c >= 'a' && c <= 'z' }
