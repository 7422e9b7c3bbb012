package secret

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Messages returns messages with their secrets masked, under the ids that they have, and how many of them
// changed. The others are shared. Reasoning that has a secret loses its signature: encoders then leave it out,
// since providers refuse it changed.
func Messages(all []thread.Message) (masked []thread.Message, changed int) {
	masked = slices.Clone(all)
	for i := range masked {
		m := &masked[i]
		parts, ok := maskParts(m.Parts)
		raw := ""
		if m.Frame != nil {
			raw = m.Frame.Raw() // it may have more than the parts say
		}
		if ok || Mask(raw) != raw {
			m.Parts, m.Frame, m.Index, m.Final = parts, nil, 0, false
			changed++
		}
	}
	return masked, changed
}

// Prompt is a prompt with its secrets masked, as Messages does it.
func Prompt(p prompt.Prompt) (masked prompt.Prompt, changed int) {
	p.Messages, changed = Messages(p.Messages)
	p.System = slices.Clone(p.System)
	for i := range p.System {
		s := &p.System[i]
		maskInto(&s.Source, &s.Text)
	}
	return p, changed
}

// maskParts reports whether a part has a secret.
func maskParts(parts []thread.Part) (masked []thread.Part, changed bool) {
	masked = slices.Clone(parts)
	for i := range masked {
		one := false
		masked[i], one = maskPart(masked[i])
		changed = changed || one
	}
	return masked, changed
}

func maskPart(p thread.Part) (masked thread.Part, changed bool) {
	switch p := p.(type) {
	case thread.Text:
		changed = maskInto(&p.Source, &p.Text)
		return p, changed
	case thread.Reasoning:
		if changed = maskInto(&p.Source, &p.Text); changed {
			p.Signature = ""
		}
		return p, changed
	case thread.ToolCall:
		changed = maskInto(&p.Source, &p.Arguments)
		return p, changed
	case thread.Media:
		changed = maskInto(&p.Source, &p.Text, &p.URL)
		return p, changed
	case thread.Opaque: // it is its raw form
		raw := Mask(p.Raw)
		changed = raw != p.Raw
		p.Raw, p.Text = raw, Mask(p.Text)
		return p, changed
	case thread.ToolResult:
		content, within := maskParts(p.Content)
		p.Content = content
		changed = maskInto(&p.Source, &p.Structured) || within
		if changed {
			p.Raw, p.Said = "", nil // they quote the content
		}
		return p, changed
	}
	return p, false
}

// maskInto masks texts of a part, whose raw form then says something else, or has a secret beside them.
func maskInto(from *thread.Source, texts ...*string) (changed bool) {
	for _, text := range texts {
		if masked := Mask(*text); masked != *text {
			*text, changed = masked, true
		}
	}
	if changed || Mask(from.Raw) != from.Raw {
		from.Raw, changed = "", true
	}
	return changed
}
