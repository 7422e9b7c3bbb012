package gemini

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// continuesText is the first user content of a request that would begin with the model, or
// have no content at all: the API wants the user first.
const continuesText = "(conversation continues)"

// unit is a content that was read and is still whole, or one message to be written.
type unit struct {
	messages []*thread.Message
	raw      string // the content's bytes, "" for a message to be written
	model    bool   // who speaks
}

// layoutContents returns the contents of a prompt as JSON. It goes through the runs of
// units of one speaker: a run of only whole contents stays as it is, any other is written
// anew.
func layoutContents(p *prompt.Prompt) []string {
	w := writer{names: map[string]string{}}
	units := w.units(p.Messages)
	out := make([]string, 0, len(units)+1)
	silent := len(units) == 0 && len(p.Messages) > 0 && !isSpliced(p)
	if silent || len(units) > 0 && units[0].model && (units[0].raw == "" || !isSpliced(p)) {
		out = append(out, content("user", []string{textPart(continuesText)}))
	}
	var calls []*thread.Message // the model's messages before a run of the user's
	for i := 0; i < len(units); {
		j := i + 1
		for j < len(units) && units[j].model == units[i].model {
			j++
		}
		run := units[i:j]
		switch {
		case !slices.ContainsFunc(run, func(u unit) bool { return u.raw == "" }) && !isRefused(run): // as they were read
			for _, u := range run {
				out = append(out, u.raw)
			}
		case run[0].model:
			out = append(out, content("model", w.model(messages(run))))
		default:
			out = append(out, w.user(run, calls)...)
		}
		calls = nil
		if run[0].model {
			calls = messages(run)
			w.noteCalls(calls)
		}
		i = j
	}
	return out
}

// isSpliced reports whether the contents go into a body that was read. There any content
// that was read may come first, whoever speaks in it: its bytes are kept, and the renderer
// answers for what it removed before.
func isSpliced(p *prompt.Prompt) bool { return p.Source != nil && p.Source.API == wire.Gemini }

// isRefused reports whether every version of the API would refuse a run of the model's
// contents, because calls now follow another model content that was not there when they
// were read. Two contents of one role in a row, which only Vertex AI may refuse, are no
// reason to change bytes.
func isRefused(run []unit) bool {
	for i := 1; i < len(run) && run[0].model; i++ {
		before, after := run[i-1].messages[0].Frame, run[i].messages[0].Frame
		if before.Position()+before.Elements() != after.Position() && len(run[i].messages[0].Calls()) > 0 {
			return true
		}
	}
	return false
}

func messages(run []unit) (all []*thread.Message) {
	for _, u := range run {
		all = append(all, u.messages...)
	}
	return all
}

// units divides the messages into units, without those that have nothing to send, such as
// only another provider's reasoning.
func (w *writer) units(list []thread.Message) []unit {
	var units []unit
	for i := 0; i < len(list); {
		m := &list[i]
		u := unit{model: m.Role == thread.Assistant}
		if n := codec.WholeFrame(list[i:], wire.Gemini); n > 0 {
			u.raw = m.Frame.Raw()
			for k := range n {
				u.messages = append(u.messages, &list[i+k])
			}
			i += n
		} else {
			i++
			if m.Role == thread.System && m.Text() == "" || m.Role != thread.System && !slices.ContainsFunc(m.Parts, isSendable) {
				continue
			}
			u.messages = []*thread.Message{m}
		}
		units = append(units, u)
	}
	return units
}

// noteCalls records the names of calls for the responses after them. A later call may use
// the same id.
func (w *writer) noteCalls(list []*thread.Message) {
	for _, m := range list {
		for _, c := range m.Calls() {
			w.names[c.ID] = wireName(c)
		}
	}
}

func (w *writer) model(list []*thread.Message) (parts []string) {
	calls := 0
	for _, m := range list {
		for _, part := range m.Parts {
			if c, ok := part.(thread.ToolCall); ok {
				parts = append(parts, w.call(c, calls == 0))
				calls++
				continue
			}
			parts = w.part(parts, part)
		}
	}
	return parts
}

// user writes a run of the user's messages. Responses come first, in the order of the
// calls, in a content of their own, and the other parts follow in a second one. They stay
// together only if they were read from one content.
func (w *writer) user(run []unit, calls []*thread.Message) []string {
	var answers, others []*thread.Message
	for _, m := range messages(run) {
		if m.Role == thread.Tool {
			answers = append(answers, m)
		} else {
			others = append(others, m)
		}
	}
	sortByCall(answers, calls)
	if slices.ContainsFunc(answers, func(a *thread.Message) bool { // one was read from the same content as another part
		return a.Frame != nil && a.Frame.API() == wire.Gemini && slices.ContainsFunc(others, func(o *thread.Message) bool { return o.Frame == a.Frame })
	}) {
		parts := w.parts(answers)
		return []string{content("user", append(parts, w.parts(others)...))}
	}
	var out []string
	for _, group := range [][]*thread.Message{answers, others} {
		if len(group) == 0 {
			continue
		}
		if raw := rawOf(run, group); raw != nil {
			out = append(out, raw...)
			continue
		}
		if parts := w.parts(group); len(parts) > 0 {
			out = append(out, content("user", parts))
		}
	}
	return out
}

func (w *writer) parts(list []*thread.Message) (parts []string) {
	for _, m := range list {
		if m.Role == thread.System {
			if text := m.Text(); text != "" {
				parts = append(parts, textPart("[system]\n"+text))
			}
			continue
		}
		for _, part := range m.Parts {
			parts = w.part(parts, part)
		}
	}
	return parts
}

// rawOf returns the bytes of the whole contents that make up a group; nil if it holds any
// other message.
func rawOf(run []unit, group []*thread.Message) (raw []string) {
	for len(group) > 0 {
		at := slices.IndexFunc(run, func(u unit) bool { return u.messages[0] == group[0] })
		if at < 0 || run[at].raw == "" {
			return nil
		}
		n := len(run[at].messages)
		if n > len(group) || !slices.Equal(group[:n], run[at].messages) {
			return nil
		}
		raw, group = append(raw, run[at].raw), group[n:]
	}
	return raw
}

// sortByCall puts answers into the order of the calls that they answer.
// Answers to other calls come last, as they are.
func sortByCall(answers, calls []*thread.Message) {
	if len(answers) < 2 {
		return
	}
	order := map[string]int{}
	for _, m := range calls {
		for _, c := range m.Calls() {
			if _, again := order[c.ID]; !again {
				order[c.ID] = len(order)
			}
		}
	}
	position := func(m *thread.Message) int {
		r, _ := m.Result()
		if n, ok := order[r.CallID]; ok {
			return n
		}
		return len(order)
	}
	slices.SortStableFunc(answers, func(a, b *thread.Message) int { return position(a) - position(b) })
}
