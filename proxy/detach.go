package proxy

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// detacher copies messages out of the request that they are parts of.
type detacher map[*thread.Frame]*thread.Frame

func (d detacher) message(m thread.Message) thread.Message {
	m.Name = strings.Clone(m.Name)
	m.Parts = parts(m.Parts)
	if m.Frame == nil {
		return m
	}
	own := d[m.Frame]
	if own == nil {
		frame := *m.Frame
		frame.Raw = strings.Clone(frame.Raw)
		own = &frame
		d[m.Frame] = own
	}
	m.Frame = own
	return m
}

func parts(list []thread.Part) []thread.Part {
	out := make([]thread.Part, len(list))
	for i, part := range list {
		out[i] = detached(part)
	}
	return out
}

func detached(part thread.Part) thread.Part {
	switch p := part.(type) {
	case thread.Text:
		p.Text, p.Source = strings.Clone(p.Text), source(p.Source)
		return p
	case thread.Reasoning:
		p.Text, p.Signature, p.Source = strings.Clone(p.Text), strings.Clone(p.Signature), source(p.Source)
		return p
	case thread.Media:
		p.MIME, p.Name, p.Detail = strings.Clone(p.MIME), strings.Clone(p.Name), strings.Clone(p.Detail)
		p.Data, p.URL, p.FileID, p.Text = strings.Clone(p.Data), strings.Clone(p.URL), strings.Clone(p.FileID), strings.Clone(p.Text)
		p.Source = source(p.Source)
		return p
	case thread.ToolCall:
		p.ID, p.Name, p.Arguments = strings.Clone(p.ID), strings.Clone(p.Name), strings.Clone(p.Arguments)
		p.Type, p.Signature, p.Source = strings.Clone(p.Type), strings.Clone(p.Signature), source(p.Source)
		return p
	case thread.ToolResult:
		p.CallID, p.Tool, p.Content = strings.Clone(p.CallID), strings.Clone(p.Tool), parts(p.Content)
		p.Structured, p.Source = strings.Clone(p.Structured), source(p.Source)
		return p
	case thread.Opaque:
		p.Kind, p.Text, p.Source = strings.Clone(p.Kind), strings.Clone(p.Text), source(p.Source)
		return p
	}
	return part
}

func source(s thread.Source) thread.Source {
	return thread.Source{API: strings.Clone(s.API), Raw: strings.Clone(s.Raw), Cache: strings.Clone(s.Cache)}
}
