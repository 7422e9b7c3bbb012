package cli

import (
	"github.com/palimpsest-ai/palimpsest/internal/brief"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// tally collects what inspect counts while it walks over a conversation.
type tally struct {
	pairs   *thread.Pairing
	kinds   map[string]*kindRow            // by speaker
	ofIt    map[string]map[string]*kindRow // by speaker and kind of part
	tools   map[string]*inspectTool
	repeats map[string]*repeatRow // by the exact call
	files   map[string]*fileRow   // by path
	turns   map[int]*turnRow
}

// message counts one message of a size in tokens, and its parts.
func (s *tally) message(m *thread.Message, size int, count *token.Counter) {
	who := brief.Speaker(m)
	add(s.kinds, who, size)
	turn := s.turns[m.Turn]
	if turn == nil {
		turn = &turnRow{Turn: m.Turn, Text: shorten(brief.Words(m), 200)}
		s.turns[m.Turn] = turn
	}
	turn.Steps++
	turn.Tokens += size
	for _, part := range m.Parts {
		switch part := part.(type) {
		case thread.Reasoning, thread.Media, thread.Opaque:
			one := thread.Message{Role: m.Role, Parts: []thread.Part{part}}
			empty := thread.Message{Role: m.Role}
			if s.ofIt[who] == nil {
				s.ofIt[who] = map[string]*kindRow{}
			}
			add(s.ofIt[who], partName(part), count.Message(&one)-count.Message(&empty))
		case thread.ToolCall:
			tool := s.tool(part.Name)
			tool.Calls++
			tool.Arguments += count.Text(part.Arguments)
		}
	}
}

// result counts the tool result at position i, and the call behind it.
func (s *tally) result(t *thread.Thread, i int, r thread.ToolResult, size int) {
	tool := s.tool(r.Tool)
	tool.Results += size
	if r.Outcome == thread.Failure {
		tool.Failed++
	}
	at, ok := s.pairs.Call(i)
	if !ok {
		return
	}
	for _, c := range uncopied.At(t, at).Calls() {
		if c.ID == r.CallID {
			s.call(c, size)
		}
	}
}

func (s *tally) call(c thread.ToolCall, size int) {
	key := c.Name + "\x00" + c.Arguments
	if s.repeats[key] == nil {
		s.repeats[key] = &repeatRow{Call: shorten(brief.Call(c), 200)}
	}
	s.repeats[key].Times++
	s.repeats[key].Tokens += size

	class := toolpolicy.ClassOf(c.Name)
	path := brief.Place(c)
	if path == "" || class != toolpolicy.Read && class != toolpolicy.Edit && class != toolpolicy.Write {
		return
	}
	if s.files[path] == nil {
		s.files[path] = &fileRow{Path: path}
	}
	if class == toolpolicy.Read {
		s.files[path].Reads++
	} else {
		s.files[path].Changes++
	}
	s.files[path].Tokens += size
}

func (s *tally) tool(name string) *inspectTool {
	if s.tools[name] == nil {
		policy := toolpolicy.New(nil).Policy(name)
		s.tools[name] = &inspectTool{Name: name, Durable: string(policy.Durability)}
	}
	return s.tools[name]
}

func add(rows map[string]*kindRow, name string, tokens int) {
	if rows[name] == nil {
		rows[name] = &kindRow{Name: name}
	}
	rows[name].Count++
	rows[name].Tokens += tokens
}
