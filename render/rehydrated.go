package render

import (
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Rehydrated is content that was brought back for this one prompt. It is never part of the
// log (seed A, "Rehydration Loop Breaking").
type Rehydrated struct {
	// ArtifactID names externalized content. Where it is empty, the content is that of a
	// removed message, MessageID.
	ArtifactID string
	MessageID  thread.ID
	// Content is what is shown, including a note that it is data; Truncated says that it
	// is not all.
	Content   string
	Truncated bool
	// Reach is how the rest of a truncated artifact is read; see Profile.
	Reach Reach
}

// Text is what the prompt shows: a heading that names the artifact, the content, and a
// note where it was cut.
func (r Rehydrated) Text() string {
	if r.ArtifactID == "" {
		return fmt.Sprintf("[Recalled Content - message:%s]\n%s", r.MessageID, r.Content)
	}
	text := fmt.Sprintf("[Rehydrated Content - artifact:%s]\n%s", r.ArtifactID, r.Content)
	switch {
	case !r.Truncated:
	case r.Reach == "", r.Reach == Tools:
		text += fmt.Sprintf("\n[truncated; call read_artifact(%q) for the rest]", r.ArtifactID)
	case r.Reach == Command:
		text += "\n[truncated; run palimpsest artifact get " + r.ArtifactID + " for the rest]"
	default:
		text += "\n[truncated]"
	}
	return text
}

// Message is the content as a message of its own, in the assistant's role.
func (r Rehydrated) Message() thread.Message {
	return thread.Message{Role: thread.Assistant, Kind: thread.Recap, Parts: []thread.Part{thread.Text{Text: r.Text()}}}
}

// Append returns the prompt with content that was brought back for it alone. It comes at
// the end, so that the cached prefix stays the same, and not in the user's role if another
// will do, since tools said it: in the last result where the prompt ends with results,
// else in messages before the user's last words. Cache points move in front of it, since
// the next prompt has other content there. The given prompt and manifest are not changed.
func Append(p *prompt.Prompt, m *Manifest, contents []Rehydrated, profile Profile) (*prompt.Prompt, *Manifest) {
	if len(contents) == 0 {
		return p, m
	}
	out, origins := *p, *m
	out.Messages, origins.Messages = slices.Clone(p.Messages), slices.Clone(m.Messages)
	last := len(out.Messages) - 1
	if last >= 0 && out.Messages[last].Role == thread.Tool {
		out.Messages[last] = withMore(out.Messages[last], contents)
		out.CachePoints = before(p.CachePoints, last)
		return &out, &origins
	}
	at := last + 1
	for at > 0 && out.Messages[at-1].Role == thread.User {
		at--
	}
	for n, r := range contents {
		message := r.Message()
		if profile.FirstUser && at == 0 || profile.LastUser && at > last {
			message.Role = thread.User
		}
		out.Messages = slices.Insert(out.Messages, at+n, message)
		origins.Messages = slices.Insert(origins.Messages, at+n, Origin{Synthetic: true})
	}
	out.CachePoints = before(p.CachePoints, at)
	return &out, &origins
}

// withMore is a tool message with content after what the tool said.
func withMore(m thread.Message, contents []Rehydrated) thread.Message {
	m.Frame, m.Index, m.Parts = nil, 0, slices.Clone(m.Parts)
	for i, part := range m.Parts {
		result, ok := part.(thread.ToolResult)
		if !ok {
			continue
		}
		result.Source, result.Content = thread.Source{}, slices.Clone(result.Content)
		for _, r := range contents {
			result.Content = append(result.Content, thread.Text{Text: "\n" + r.Text()})
		}
		m.Parts[i] = result
		break
	}
	return m
}

// before moves cache points before a message.
func before(points []prompt.CachePoint, at int) []prompt.CachePoint {
	var out []prompt.CachePoint
	for _, p := range points {
		if p.After = min(p.After, at-1); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}
