package ourform

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// MarkRecaps gives our summaries among messages that were read the kind Recap. Where
// one shares a message with other words, as providers join messages of one role,
// it becomes a message of its own, and what is left is as it was: a request that
// follows a summary stays the user's. Messages that have an id already are not
// parted, nor are those that are known to be Injected. The list is returned, or a longer one with
// the same messages around those. before is the message in front of them, or nil.
func MarkRecaps(messages []thread.Message, before *thread.Message) []thread.Message {
	out := messages
	for i := 0; i < len(out); i++ {
		m := &out[i]
		switch {
		case m.Role == thread.Tool, m.Kind == thread.Injected:
		case IsSummary(m):
			m.Kind = thread.Recap
		case m.Role == thread.Assistant && isAssent(m, before):
			m.Kind = thread.Recap
		case m.ID != "": // a name that two messages cannot share
		default:
			if pieces := splitSummaries(m); len(pieces) > 1 {
				out = slices.Replace(slices.Clone(out), i, i+1, pieces...)
				i += len(pieces) - 1
				reframe(out, i)
			}
		}
		before = &out[i]
	}
	return out
}

// isAssent reports whether m is the word of assent behind a summary of policy loop.
// Where it is joined to what the model said next, it stays with that.
func isAssent(m, before *thread.Message) bool {
	return before != nil && before.Kind == thread.Recap && before.Role == thread.User && len(m.Parts) == 1 &&
		strings.TrimSpace(m.Text()) == assent && strings.HasPrefix(strings.TrimSpace(before.Text()), loopOpening)
}

// splitSummaries parts a message into summaries and the rest, in order. The assistant's
// and the system's hold summaries at the front only: further down they quote them.
func splitSummaries(m *thread.Message) []thread.Message {
	var pieces []thread.Message
	add := func(kind thread.Kind, p thread.Part) {
		if n := len(pieces); n > 0 && pieces[n-1].Kind == kind {
			pieces[n-1].Parts = append(pieces[n-1].Parts, p)
			return
		}
		piece := *m
		piece.Kind, piece.Parts = kind, []thread.Part{p}
		pieces = append(pieces, piece)
	}
	quoting := false
	for _, p := range m.Parts {
		t, isText := p.(thread.Text)
		if !isText || quoting {
			quoting = quoting || m.Role != thread.User
			add(m.Kind, p)
			continue
		}
		summary, rest, ok := CutSummary(t.Text)
		switch {
		case isWholeSummary(m.Role, p):
			add(thread.Recap, p)
		case !ok:
			quoting = m.Role != thread.User
			add(m.Kind, p)
		default:
			add(thread.Recap, thread.Text{Text: summary, Source: thread.Source{API: t.API}})
			quoting = m.Role != thread.User
			add(m.Kind, thread.Text{Text: rest, Source: thread.Source{API: t.API, Cache: t.Cache}})
		}
	}
	return pieces
}

// packingAPIs are the APIs whose encoders take several messages out of one element.
var packingAPIs = map[string]bool{"anthropic": true, "gemini": true}

// reframe gives the messages of the frame at i one that counts them anew, so that
// the element is sent as it was while all of them are there. Encoders that know
// one message of an element only write the pieces themselves.
func reframe(messages []thread.Message, i int) {
	f := messages[i].Frame
	if f == nil {
		return
	}
	from, to := i, i+1
	for from > 0 && messages[from-1].Frame == f {
		from--
	}
	for to < len(messages) && messages[to].Frame == f {
		to++
	}
	var own *thread.Frame
	if packingAPIs[f.API()] {
		own = thread.NewFrame(f.API(), f.Raw(), f.Position(), f.Elements(), to-from)
	}
	for n := range messages[from:to] {
		m := &messages[from+n]
		if m.Frame, m.Index = own, n; own == nil {
			m.Index = 0
		}
	}
}
