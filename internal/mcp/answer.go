package mcp

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
)

// The size of an answer by default, and its limits, in tokens.
const (
	defaultTokens = 2_000
	minTokens     = 200
	maxTokens     = 20_000
)

// tokens is the size that was asked for.
func (r answerSize) tokens() (int, error) {
	asked := cmp.Or(r.MaxTokens, defaultTokens)
	if asked < minTokens || asked > maxTokens {
		return 0, fmt.Errorf("max_tokens: want a number from %d to %d, got %d", minTokens, maxTokens, asked)
	}
	return asked, nil
}

// fitTokens builds a text of at most that many tokens: it builds it with fewer and fewer bytes,
// and at last cuts it.
func (s *Server) fitTokens(tokens int, build func(bytes int) string) string {
	bytes := 4 * tokens // a usual ratio
	for range 8 {
		text := build(bytes)
		n := s.options.Count(text)
		if n <= tokens {
			return text
		}
		bytes = max(1, min(bytes*tokens/n, bytes*9/10))
	}
	text := build(bytes)
	for keep := len(text); s.options.Count(text) > tokens; {
		keep = keep * 3 / 4
		text = text[:clip.Boundary(text, keep)] + " …"
	}
	return text
}

// pageOfRows writes a head, then as many rows as fit from the cursor on, and how to get the
// rest.
func (s *Server) pageOfRows(head string, rows []string, cursor string, tokens int) (string, error) {
	from, err := readCursor(cursor, len(rows))
	if err != nil {
		return "", err
	}
	return s.fitTokens(tokens, func(bytes int) string {
		var b strings.Builder
		b.WriteString(head)
		end := from
		for ; end < len(rows); end++ {
			if end > from && b.Len()+len(rows[end])+1 > bytes {
				break
			}
			b.WriteString("\n" + rows[end])
		}
		if left := len(rows) - end; left > 0 {
			fmt.Fprintf(&b, "\n%d more: call it again with cursor=%q", left, strconv.Itoa(end))
		}
		return b.String()
	}), nil
}

// readCursor returns how many rows were shown already.
func readCursor(cursor string, rows int) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(cursor)
	if err != nil || n < 0 || n > rows {
		return 0, errCursor
	}
	return n, nil
}

var errCursor = errors.New("cursor: want one from an earlier answer to the same question; or start again without it")

// quotedName quotes a name from a caller or a file, on one line.
func quotedName(text string) string { return strconv.Quote(clip.Line(text, 80)) }
