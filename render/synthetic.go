package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// formatVersion is the version of the texts that replace removed messages (seed A,
// "Rendering format version").
const formatVersion = "v1.0"

const (
	// unanswered stands where the log has no result for a call.
	unanswered = "[No result: the call was interrupted before it gave one.]"
	// continues opens a prompt whose provider wants the user to speak first,
	// when the log begins with another role.
	continues = "[The conversation continues from here.]"
	// unsendable is the repair of a message that is left without parts.
	unsendable = "nothing in it can be sent to this provider; it is left out"
	// argumentLimit and argumentHead say when a string inside the arguments of
	// a cleared call is shortened, and how much of it stays, in bytes.
	argumentLimit, argumentHead = 300, 120
)

// Replacement is what the prompt shows for m under a record, exactly as the renderer
// writes it: for a cleared message its placeholder; for a summarized or externalized one
// the synthetic message or, where m is a result whose call stays in the prompt (inPlace),
// a result with that text; nothing for a dropped one. A record over one message of the
// user's keeps the user's role. A summarization with a format of its own may give several
// messages. Pointers say how they can be followed, by the profile's Reach.
func (p Profile) Replacement(m thread.Message, record plan.Record, inPlace bool) []thread.Message {
	var said []plan.Replacement
	switch r := record.(type) {
	case plan.Clearing:
		return []thread.Message{p.cleared(m, r.PreservedFields)}
	case plan.Summarization:
		if said = r.Stand; len(said) == 0 {
			said = []plan.Replacement{{Text: SummaryText(r.Span, r.Summary.Render())}}
		}
	case plan.Externalization:
		said = []plan.Replacement{{Text: externalText(&r, p.Reach)}}
	default:
		return nil
	}
	if inPlace && m.Role == thread.Tool {
		texts := make([]string, len(said))
		for n, s := range said {
			texts[n] = s.Text
		}
		return []thread.Message{withResult(m, strings.Join(texts, "\n"))}
	}
	stand := make([]thread.Message, len(said))
	for n, s := range said {
		role := s.Role
		switch {
		case role != "" && role != thread.Assistant:
		case role == "" && m.Role == thread.User && record.Covers().Len() == 1:
			role = thread.User
		default:
			role = p.ours()
		}
		stand[n] = synthetic(&m, role, ownformat.Sign(s.Text, p.Key))
	}
	return stand
}

func synthetic(at *thread.Message, role thread.Role, text string) thread.Message {
	return thread.Message{ID: at.ID, Role: role, Kind: thread.Recap, Turn: at.Turn, Parts: []thread.Part{thread.Text{Text: text}}}
}

// SummaryText is the default text for a summarized span: the rendered summary in the
// seed's format.
func SummaryText(s thread.Span, rendered string) string {
	return fmt.Sprintf("[Context Summary - Turns %d-%d]\n", s.FirstTurn, s.LastTurn) + rendered
}

// externalText is the seed's format for externalized content, without the line that says
// how it is read where it cannot be.
func externalText(r *plan.Externalization, reach Reach) string {
	text := fmt.Sprintf("[Externalized Content - artifact:%s]\nSummary: %s", r.ArtifactID, r.Summary.Render())
	if verb, what := reach.how(r.ArtifactID); verb != "" {
		return text + "\nTo retrieve full content, " + verb + ": " + what
	}
	return strings.TrimRight(text, "\n")
}

// cleared is the placeholder of a message: of a tool result its cleared form; of the
// model's words the text that the record has for them; of any other message its text, with
// media named instead of shown and the arguments of calls shortened. Reasoning goes, unless
// the provider wants it everywhere.
func (p Profile) cleared(m thread.Message, extra thread.Fields) thread.Message {
	if r, ok := m.Result(); ok && extra[plan.MediaField] != true {
		return withResult(m, r.Cleared(extra))
	} else if ok {
		r.Content, r.Source = withoutMedia(r.Content, "; call "+cmp.Or(r.Tool, "the tool")+" again to see it"), thread.Source{}
		return edited(m, []thread.Part{r})
	}
	if m.Role == thread.User {
		return edited(m, withoutMedia(m.Parts, "; ask for it if it is needed"))
	}
	if text, ok := extra[plan.ReplacementField].(string); ok && m.Role == thread.Assistant && len(m.Calls()) == 0 {
		var parts []thread.Part
		if p.ReasoningEverywhere {
			parts = slices.DeleteFunc(slices.Clone(m.Parts), isText)
		}
		return edited(m, append(parts, thread.Text{Text: text}))
	}
	parts := make([]thread.Part, 0, len(m.Parts))
	for _, part := range m.Parts {
		switch part := part.(type) {
		case thread.Reasoning:
			if p.ReasoningEverywhere {
				parts = append(parts, part)
			}
		case thread.ToolCall:
			if short := shortenArguments(part.Arguments); short != part.Arguments {
				part = withArguments(part, short)
			}
			parts = append(parts, part)
		default:
			parts = append(parts, part)
		}
	}
	return edited(m, withoutMedia(parts, ""))
}

// withArguments is a call with other arguments. An entry of tool_calls keeps its further
// members, which servers expect back (extra_content with Gemini's signatures, for example).
func withArguments(c thread.ToolCall, arguments string) thread.ToolCall {
	edited := thread.Source{}
	if c.API == wire.Chat {
		for _, path := range [...]string{"function.arguments", "custom.input"} {
			if v := gjson.Get(c.Raw, path); v.Index > 0 && v.Str == c.Arguments {
				edited = thread.Source{API: c.API, Raw: c.Raw[:v.Index] + rawjson.Quote(arguments) + c.Raw[v.Index+len(v.Raw):]}
			}
		}
	}
	c.Arguments, c.Source = arguments, edited
	return c
}

func isText(part thread.Part) bool { _, is := part.(thread.Text); return is }

// withResult replaces the content of a tool message's result.
func withResult(m thread.Message, text string) thread.Message {
	r, _ := m.Result()
	r.Content, r.Structured, r.Source = []thread.Part{thread.Text{Text: text}}, "", thread.Source{}
	return edited(m, []thread.Part{r})
}

// edited returns the message with other parts, and without the bytes it came from.
func edited(m thread.Message, parts []thread.Part) thread.Message {
	m.Parts, m.Frame, m.Index = parts, nil, 0
	return m
}

// withoutMedia puts a note in place of each picture and file, which may say how it is seen again.
func withoutMedia(parts []thread.Part, again string) []thread.Part {
	out := slices.Clone(parts)
	for i, part := range out {
		if m, ok := part.(thread.Media); ok {
			out[i] = thread.Text{Text: "[" + strings.Join(strings.Fields(string(m.Type)+" "+m.MIME+" "+m.Name), " ") + " left out" + again + "]"}
		}
	}
	return out
}

// shortenArguments cuts the long strings of a JSON document and keeps everything else as it was
// written, so that the arguments of a cleared call stay valid. Free text, as custom tools
// take it, is cut as a whole.
func shortenArguments(arguments string) string {
	if len(arguments) <= argumentLimit {
		return arguments
	}
	if !rawjson.Valid(arguments) {
		return clip.Head(arguments, argumentHead)
	}
	var b strings.Builder
	shortenValue(&b, gjson.Parse(arguments))
	return b.String()
}

func shortenValue(b *strings.Builder, v gjson.Result) {
	switch {
	case v.Type == gjson.String && len(v.Str) > argumentLimit:
		quoted, _ := json.Marshal(clip.Head(v.Str, argumentHead)) // a string always marshals
		b.Write(quoted)
	case v.IsObject() || v.IsArray():
		open, shut := byte('{'), byte('}')
		if v.IsArray() {
			open, shut = '[', ']'
		}
		b.WriteByte(open)
		first := true
		v.ForEach(func(key, value gjson.Result) bool {
			if !first {
				b.WriteByte(',')
			}
			first = false
			if v.IsObject() {
				b.WriteString(key.Raw)
				b.WriteByte(':')
			}
			shortenValue(b, value)
			return true
		})
		b.WriteByte(shut)
	default:
		b.WriteString(v.Raw)
	}
}
