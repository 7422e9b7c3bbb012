package proxy

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// detacher copies messages out of the request that they are parts of: a message that
// is kept must not keep a whole request. The bytes of a frame are copied once, and
// what its parts hold of them stays a part of the copy.
type detacher map[*thread.Frame]*thread.Frame

func (d detacher) message(m thread.Message) thread.Message {
	var c copied
	if m.Frame != nil {
		own := d[m.Frame]
		if own == nil {
			f := m.Frame
			own = thread.NewFrame(f.API(), strings.Clone(f.Raw()), f.Position(), f.Elements(), f.Messages())
			d[m.Frame] = own
		}
		c = copied{m.Frame.Raw(), own.Raw()}
		m.Frame = own
	}
	m.Role, m.Name, m.Parts = role(m.Role), c.string(m.Name), c.parts(m.Parts)
	return m
}

// ownSurroundings copies what stands around the messages out of the request: a
// conversation keeps that longer than the request.
func ownSurroundings(p *prompt.Prompt) *prompt.Prompt {
	out := *p
	out.Model = strings.Clone(p.Model)
	out.System, out.Tools = slices.Clone(p.System), slices.Clone(p.Tools)
	for i := range out.System {
		s := &out.System[i]
		c := copied{s.Raw, strings.Clone(s.Raw)}
		s.Text, s.Role, s.Source = c.string(s.Text), c.string(s.Role), c.source(s.Source)
	}
	for i := range out.Tools {
		t := &out.Tools[i]
		c := copied{t.Raw, strings.Clone(t.Raw)}
		t.Name, t.Description, t.Schema, t.Source = c.string(t.Name), c.string(t.Description), c.string(t.Schema), c.source(t.Source)
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

// copied is a text and its copy.
type copied struct{ from, to string }

// string returns a copy of a text: a part of the copy where it is a part of what was
// copied.
func (c copied) string(s string) string {
	if at, within := c.place(s); within {
		return c.to[at : at+len(s)]
	}
	return strings.Clone(s)
}

// place is where a text stands in what was copied, if it is a part of it in memory.
// Nothing is read or written through the addresses.
func (c copied) place(s string) (at int, within bool) {
	if len(s) == 0 || len(s) > len(c.from) {
		return 0, false
	}
	off := uintptr(unsafe.Pointer(unsafe.StringData(s))) - uintptr(unsafe.Pointer(unsafe.StringData(c.from)))
	if off > uintptr(len(c.from)-len(s)) { // also what lies before it: the difference is unsigned
		return 0, false
	}
	return int(off), c.to[off:int(off)+len(s)] == s
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
