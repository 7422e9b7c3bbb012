package render

import (
	"fmt"
	"maps"
	"slices"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Rehydrated is content that was brought back for this turn. It is never part of the
// log (seed A, "Rehydration Loop Breaking").
type Rehydrated struct {
	// ArtifactID names externalized content. Where it is empty, the content is that of a
	// removed message, MessageID; where both are, it is a text of the harness.
	ArtifactID string
	MessageID  thread.ID
	// Content is what is shown, including a note that it is data; Truncated says that it
	// is not all.
	Content   string
	Truncated bool
	// Reach is how the rest of a truncated artifact is read; see Profile.
	Reach Reach
	// At is the place where an earlier prompt showed it (see End); empty for the end.
	At thread.ID
}

// Text is what the prompt shows: a heading that names the artifact, the content, and a
// note where it was cut.
func (r Rehydrated) Text() string {
	if r.ArtifactID == "" && r.MessageID == "" {
		return r.Content
	}
	if r.ArtifactID == "" {
		return fmt.Sprintf("[Recalled Content - message:%s]\n%s", r.MessageID, r.Content)
	}
	text := fmt.Sprintf("[Rehydrated Content - artifact:%s]\n%s", r.ArtifactID, r.Content)
	if !r.Truncated {
		return text
	}
	if verb, what := r.Reach.how(r.ArtifactID); verb != "" {
		return text + "\n[truncated; " + verb + " " + what + " for the rest]"
	}
	return text + "\n[truncated]"
}

// Message is the content as a message of its own, in the assistant's role.
func (r Rehydrated) Message() thread.Message {
	return thread.Message{Role: thread.Assistant, Kind: thread.Recap, Parts: []thread.Part{thread.Text{Text: r.Text()}}}
}

// End names the place where Append shows content that is new to the prompt: the last result
// where the prompt ends with results, else the first of the user's last words. It is empty
// where that place has no name.
func End(p *prompt.Prompt, m *Manifest) thread.ID {
	if at := end(p); at < len(m.Messages) {
		return m.Messages[at].ID
	}
	return ""
}

// end is the index of the message that End names; without one, that behind the last message.
func end(p *prompt.Prompt) int {
	at := len(p.Messages)
	if at > 0 && p.Messages[at-1].Role == thread.Tool {
		return at - 1
	}
	for at > 0 && p.Messages[at-1].Role == thread.User {
		at--
	}
	return at
}

// Shows reports whether the prompt has the place that End named in an earlier one.
func (m *Manifest) Shows(place thread.ID) bool { return m.find(place) >= 0 }

func (m *Manifest) find(place thread.ID) int {
	if place == "" {
		return -1
	}
	return slices.IndexFunc(m.Messages, func(o Origin) bool { return o.ID == place })
}

// Append returns the prompt with content that was brought back for it alone. It comes at
// the end, so that the cached prefix stays the same, and not in the user's role if another
// will do, since tools said it: in the last result where the prompt ends with results,
// else in messages before the user's last words. Cache points move in front of it, since
// the next prompt may have other content there. Content with a place that the prompt shows
// stands there again, and moves no cache points. The given prompt and manifest are not
// changed.
func Append(p *prompt.Prompt, m *Manifest, contents []Rehydrated, profile Profile) (*prompt.Prompt, *Manifest) {
	if len(contents) == 0 {
		return p, m
	}
	out, origins := *p, *m
	out.Messages, origins.Messages, out.CachePoints = slices.Clone(p.Messages), slices.Clone(m.Messages), slices.Clone(p.CachePoints)
	byPlace := map[int][]Rehydrated{}
	for _, r := range contents {
		at := m.find(r.At)
		if at < 0 {
			at = end(p)
			out.CachePoints = before(out.CachePoints, at)
		}
		byPlace[at] = append(byPlace[at], r)
	}
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(byPlace))) {
		if at < len(p.Messages) && p.Messages[at].Role == thread.Tool {
			out.Messages[at] = withMore(out.Messages[at], byPlace[at])
			continue
		}
		for n, r := range byPlace[at] {
			message := r.Message()
			message.Role = profile.ours()
			if profile.FirstUser && at == 0 || profile.LastUser && at == len(p.Messages) {
				message.Role = thread.User
			}
			out.Messages = slices.Insert(out.Messages, at+n, message)
			origins.Messages = slices.Insert(origins.Messages, at+n, Origin{Synthetic: true})
		}
		for i := range out.CachePoints {
			if out.CachePoints[i].After >= at {
				out.CachePoints[i].After += len(byPlace[at])
			}
		}
	}
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
