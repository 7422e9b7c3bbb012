package identify

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Detached are messages for a log: with the given ids, and with strings of their own,
// since a message that is kept must not keep the request that it was read from. The
// bytes of a frame are copied once, and what its parts hold of them is a part of the
// copy.
func Detached(messages []thread.Message, ids []thread.ID) []thread.Message {
	out := make([]thread.Message, len(messages))
	var from, to *thread.Frame
	for i, m := range messages {
		own := copied("")
		if m.Frame != nil {
			if m.Frame != from {
				from, to = m.Frame, thread.NewFrame(m.Frame.API(), strings.Clone(m.Frame.Raw()), m.Frame.Position(), m.Frame.Elements(), m.Frame.Messages())
			}
			m.Frame, own = to, copied(to.Raw())
		}
		m.Role, m.Name, m.Parts, m.ID = role(m.Role), own.string(m.Name), own.parts(m.Parts), ids[i]
		out[i] = m
	}
	return out
}

// ownSurroundings copies what stands around the messages out of the request: a
// conversation keeps that longer than the request.
func ownSurroundings(p *prompt.Prompt) *prompt.Prompt {
	out := *p
	out.Model = strings.Clone(p.Model)
	out.System, out.Tools = slices.Clone(p.System), slices.Clone(p.Tools)
	for i := range out.System {
		s := &out.System[i]
		own := copied(strings.Clone(s.Raw))
		s.Text, s.Role, s.Source = own.string(s.Text), own.string(s.Role), own.source(s.Source)
	}
	for i := range out.Tools {
		t := &out.Tools[i]
		own := copied(strings.Clone(t.Raw))
		t.Name, t.Description, t.Schema, t.Source = own.string(t.Name), own.string(t.Description), own.string(t.Schema), own.source(t.Source)
	}
	return &out
}

// role is the same role, as a constant.
func role(r thread.Role) thread.Role {
	for _, known := range []thread.Role{thread.User, thread.Assistant, thread.Tool, thread.System} {
		if r == known {
			return known
		}
	}
	return thread.Role(strings.Clone(string(r)))
}

// copied is a text that was copied out of a request.
type copied string

// string returns a copy of a text: a part of what was copied where it stands in it.
func (c copied) string(s string) string {
	if s == "" {
		return ""
	}
	if at := strings.Index(string(c), s); at >= 0 {
		return string(c[at : at+len(s)])
	}
	return strings.Clone(s)
}

func (c copied) parts(list []thread.Part) []thread.Part {
	out := make([]thread.Part, len(list))
	for i, part := range list {
		out[i] = c.part(part)
	}
	return out
}

func (c copied) part(part thread.Part) thread.Part {
	switch p := part.(type) {
	case thread.Text:
		p.Text, p.Source = c.string(p.Text), c.source(p.Source)
		return p
	case thread.Reasoning:
		p.Text, p.Signature, p.Source = c.string(p.Text), c.string(p.Signature), c.source(p.Source)
		return p
	case thread.Media:
		p.Type, p.MIME = thread.MediaType(c.string(string(p.Type))), c.string(p.MIME)
		p.Name, p.Detail = c.string(p.Name), c.string(p.Detail)
		p.Data, p.URL, p.FileID, p.Text = c.string(p.Data), c.string(p.URL), c.string(p.FileID), c.string(p.Text)
		p.Source = c.source(p.Source)
		return p
	case thread.ToolCall:
		p.ID, p.Name, p.Arguments = c.string(p.ID), c.string(p.Name), c.string(p.Arguments)
		p.Type, p.Signature, p.Source = c.string(p.Type), c.string(p.Signature), c.source(p.Source)
		return p
	case thread.ToolResult:
		p.CallID, p.Tool, p.Content = c.string(p.CallID), c.string(p.Tool), c.parts(p.Content)
		p.Structured, p.Source = c.string(p.Structured), c.source(p.Source)
		return p
	case thread.Opaque:
		p.Kind, p.Text, p.Source = c.string(p.Kind), c.string(p.Text), c.source(p.Source)
		return p
	}
	return part
}

func (c copied) source(s thread.Source) thread.Source {
	return thread.Source{API: s.API, Raw: c.string(s.Raw), Cache: c.string(s.Cache)}
}
