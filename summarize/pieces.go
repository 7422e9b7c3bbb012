package summarize

import (
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

const (
	// manyPieces is how many lines of outputs and edits any span may have, and a quarter of it how
	// many pieces of what people and models said: more than sessions of a megabyte have.
	manyPieces = 1 << 14
	// bytesOfPiece is how many bytes of input each further one takes: one piece is held with some
	// 600 bytes.
	bytesOfPiece = 3 << 10
)

// pieceLimit is how many pieces of the messages of a span may still be held, the newest first: lines of
// outputs and edits, and of what people and models said. What has no room is not known, as if it
// had been cleared, and counted.
type pieceLimit struct{ said, lines, leftSaid, leftLines int }

// readSpan reads the facts of the messages of a span, as far as there is room for them.
func readSpan(in *Input, of func(*thread.Message) *facts) (all []*facts, left pieceLimit) {
	n := manyPieces + in.bytes()/bytesOfPiece
	left, all = pieceLimit{said: n / 4, lines: n}, make([]*facts, len(in.Messages))
	for i := len(all) - 1; i >= 0; i-- {
		all[i] = left.keep(of(&in.Messages[i]))
	}
	return all, left
}

// keep returns the facts of a message, older than those before, without the pieces that have no room.
func (l *pieceLimit) keep(f *facts) *facts {
	said, lines := len(f.said)+len(f.recap), 0
	if f.result != nil {
		said, lines = said+len(f.result.report), len(f.result.idLines)
	}
	for i := range f.calls {
		lines += len(f.calls[i].changed)
	}
	l.said, l.lines = l.said-said, l.lines-lines
	if (said == 0 || l.said >= 0) && (lines == 0 || l.lines >= 0) {
		return f
	}
	if lines == 0 && f.result == nil && f.userFacts == noUser && f.notice == nil && f.next == "" && len(f.calls) == 0 {
		l.leftSaid += said
		return onlySpoke
	}
	out, result := *f, resultFacts{}
	if f.result != nil {
		result, out.result = *f.result, &result
	}
	if l.said < 0 {
		l.leftSaid += said
		out.said, result.report = nil, nil
		if len(f.recap) > 0 {
			out.userFacts = &userFacts{}
		}
	}
	if l.lines < 0 {
		l.leftLines += lines
		all := result.idLines
		result.idLines = nil
		for _, p := range all {
			if p.score != 0 { // it reports a failure
				result.idLines = append(result.idLines, p)
			}
		}
		out.calls = slices.Clone(f.calls)
		for i := range out.calls {
			if c := &out.calls[i]; len(c.changed) > 0 {
				c.changeFacts = new(*c.changeFacts)
				c.changed = nil
			}
		}
	}
	return &out
}

// omitted says what of a span no summary can show, as there is no room to hold it; nil if nothing.
func (l *pieceLimit) omitted(all []*facts) []summary.Item {
	files := 0
	for _, f := range all {
		for i := range f.calls {
			files += int(f.calls[i].moreFiles)
		}
	}
	var parts []string
	for _, p := range [...]struct {
		n    int
		what string
	}{{l.leftLines, "lines of older outputs and edits"}, {l.leftSaid, "paragraphs of older messages"}, {files, fmt.Sprintf("more files of calls that name over %d", maxFiles)}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if parts == nil {
		return nil
	}
	return []summary.Item{{Text: "[note by the compaction: " + strings.Join(parts, ", ") + " were left out here]"}}
}
