package cli

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/brief"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// rowsBy are rows by what they are about, as they are added up.
type rowsBy[K cmp.Ordered, R any] map[K]*R

// at is the row of a key, a new one where there was none.
func (m rowsBy[K, R]) at(key K, fresh func() R) *R {
	if m[key] == nil {
		row := fresh()
		m[key] = &row
	}
	return m[key]
}

// byKey are the rows in the order of their keys.
func (m rowsBy[K, R]) byKey() iter.Seq2[K, R] {
	return func(yield func(K, R) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, *m[key]) {
				return
			}
		}
	}
}

// rows are the rows that are wanted, all where wanted is nil, in the order of their keys.
func (m rowsBy[K, R]) rows(wanted func(R) bool) (rows []R) {
	for _, row := range m.byKey() {
		if wanted == nil || wanted(row) {
			rows = append(rows, row)
		}
	}
	return rows
}

// largest sorts rows, the largest first, and keeps so many.
func largest[R any](rows []R, most int, size func(R) int) []R {
	slices.SortStableFunc(rows, func(a, b R) int { return cmp.Compare(size(b), size(a)) })
	return rows[:min(most, len(rows))]
}

// tally collects what inspect counts while it walks over a conversation.
type tally struct {
	thread  *thread.Thread
	pairs   *thread.Pairing
	kinds   rowsBy[string, kindRow]            // by speaker
	parts   map[string]rowsBy[string, kindRow] // by speaker and kind of part
	tools   rowsBy[string, inspectTool]
	repeats rowsBy[string, repeatRow] // by the exact call
	files   rowsBy[string, fileRow]   // by path
	turns   rowsBy[int, turnRow]
}

func newTally(t *thread.Thread) *tally {
	return &tally{
		thread: t, pairs: thread.Pair(t), kinds: rowsBy[string, kindRow]{}, parts: map[string]rowsBy[string, kindRow]{},
		tools: rowsBy[string, inspectTool]{}, repeats: rowsBy[string, repeatRow]{}, files: rowsBy[string, fileRow]{}, turns: rowsBy[int, turnRow]{},
	}
}

// message counts the message at position i, of a size in tokens, and its parts.
func (s *tally) message(i int, m *thread.Message, size int, count *token.Counter) {
	who := brief.Speaker(m)
	add(s.kinds, who, size)
	turn := s.turns.at(m.Turn, func() turnRow { return turnRow{Turn: m.Turn, Text: shorten(brief.Words(m), 200)} })
	turn.Steps++
	turn.Tokens += size
	for _, part := range m.Parts {
		switch part := part.(type) {
		case thread.Reasoning, thread.Media, thread.Opaque:
			one := thread.Message{Role: m.Role, Parts: []thread.Part{part}}
			empty := thread.Message{Role: m.Role}
			if s.parts[who] == nil {
				s.parts[who] = rowsBy[string, kindRow]{}
			}
			add(s.parts[who], partName(part), count.Message(&one)-count.Message(&empty))
		case thread.ToolCall:
			tool := s.tool(part.Name)
			tool.Calls++
			tool.Arguments += count.Text(part.Arguments)
		case thread.ToolResult:
			s.result(i, part, size)
		}
	}
}

// result counts a tool result, and the call behind it.
func (s *tally) result(i int, r thread.ToolResult, size int) {
	tool := s.tool(r.Tool)
	tool.Results += size
	if r.Outcome == thread.Failure {
		tool.Failed++
	}
	at, ok := s.pairs.Call(i)
	if !ok {
		return
	}
	for _, c := range uncopied.At(s.thread, at).Calls() {
		if c.ID == r.CallID {
			s.call(c, size)
		}
	}
}

func (s *tally) call(c thread.ToolCall, size int) {
	same := s.repeats.at(c.Name+"\x00"+c.Arguments, func() repeatRow { return repeatRow{Call: shorten(brief.Call(c), 200)} })
	same.Times++
	same.Tokens += size

	class := toolpolicy.ClassOf(c.Name)
	path := brief.Place(c)
	if path == "" || class != toolpolicy.Read && class != toolpolicy.Edit && class != toolpolicy.Write {
		return
	}
	file := s.files.at(path, func() fileRow { return fileRow{Path: path} })
	if class == toolpolicy.Read {
		file.Reads++
	} else {
		file.Changes++
	}
	file.Tokens += size
}

func (s *tally) tool(name string) *inspectTool {
	return s.tools.at(name, func() inspectTool {
		return inspectTool{Name: name, Durable: string(toolpolicy.New(nil).Policy(name).Durability)}
	})
}

func add(rows rowsBy[string, kindRow], name string, tokens int) {
	row := rows.at(name, func() kindRow { return kindRow{Name: name} })
	row.Count++
	row.Tokens += tokens
}

func partName(p thread.Part) string {
	switch p := p.(type) {
	case thread.Reasoning:
		return "reasoning"
	case thread.Media:
		return string(p.Type) + "s"
	case thread.Opaque:
		return p.Kind
	}
	return "other"
}
