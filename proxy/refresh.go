package proxy

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// withCurrentBytes is a rendered prompt with messages as the client sent them in this request, not as
// the log holds them from an earlier one: cache marks change from request to request. The
// rendered prompt is not changed, since it may be remembered for the next step.
func withCurrentBytes(rendered *prompt.Prompt, log *thread.Thread, r *parsedRequest) *prompt.Prompt {
	p := *rendered
	p.Messages = slices.Clone(rendered.Messages)
	messages, ids := r.Prompt.Messages, r.IDs
	var now map[thread.ID]*thread.Message
	next := 0 // the likely place of the next message in the log
	for k := range p.Messages {
		m := &p.Messages[k]
		at, logged := next, next < log.Len() && log.At(next).ID == m.ID
		if !logged {
			at, logged = log.Index(m.ID)
		}
		if !logged {
			continue
		}
		next = at + 1
		var fresh *thread.Message
		switch {
		case at < len(ids) && ids[at] == m.ID:
			fresh = &messages[at] // up to here the log holds just what the client sent
		case now == nil:
			now = make(map[thread.ID]*thread.Message, len(ids))
			for i, id := range ids {
				now[id] = &messages[i]
			}
			fallthrough
		default:
			fresh = now[m.ID]
		}
		if fresh == nil {
			continue
		}
		was := log.At(at)
		if len(was.Parts) != len(fresh.Parts) {
			continue
		}
		if isUnchanged(m, was) {
			id := m.ID
			*m = *fresh
			m.ID = id
			continue
		}
		own := make([]thread.Part, len(m.Parts))
		for i, part := range m.Parts {
			own[i] = currentPart(part, was, fresh)
		}
		m.Parts = own
	}
	return &p
}

// isUnchanged reports whether the renderer kept a message of the log as it is.
func isUnchanged(m, was *thread.Message) bool {
	return m.Frame != nil && was.Frame != nil && m.Index == was.Index && m.Frame.Raw() == was.Frame.Raw() && len(m.Parts) == len(was.Parts)
}

// currentPart is a part as the client sent it now, if the renderer kept it as it is.
func currentPart(part thread.Part, was, fresh *thread.Message) thread.Part {
	raw := part.From().Raw
	if raw == "" {
		return part
	}
	for i := range was.Parts {
		if was.Parts[i].From().Raw == raw {
			return fresh.Parts[i]
		}
	}
	return part
}
