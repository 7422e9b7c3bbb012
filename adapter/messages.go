package adapter

import (
	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// written puts a prompt into the framework's messages: its own wherever a message is
// sent as it was.
func (s *Sessions[M]) written(call Call[M], p *palimpsest.Prepared) (Call[M], error) {
	call.prepared = p
	call.System = nil
	if p.PlanVersion == 0 {
		call.Messages = call.history // nothing is compacted, and nothing is put right
		return call, nil
	}
	w := writer[M]{codec: s.codec, history: call.history}
	if holder, ok := s.codec.(Holder[M]); ok {
		w.codec = holder.Holding(call.history)
	}
	lead := len(call.history)
	if len(call.own) > 0 {
		lead = call.own[0].Frame.Position()
	}
	w.add(false, call.history[:lead]...)
	for _, block := range p.System[len(call.base.System):] {
		call.System = append(call.System, block.Text)
		w.changed = append(w.changed, thread.NewMessage(thread.System, block.Text))
	}
	at := make(map[thread.ID]int, len(call.own))
	for i := range call.own {
		at[call.own[i].ID] = i
	}
	for i := 0; i < len(p.Messages); {
		own, known := at[p.Manifest.Messages[i].ID]
		if n := 0; known {
			if n = whole(p.Messages[i:], p.Manifest.Messages[i:], call.own[own:]); n > 0 {
				w.same(call.own[own].Frame)
				i += n
				continue
			}
		}
		w.changed = append(w.changed, p.Messages[i])
		i++
	}
	w.flush()
	call.Messages = w.out
	return call, w.err
}

// whole is how many messages at the beginning of a prompt are all those of the frame
// that own begins with, as they were; 0 where they are not.
func whole(messages []thread.Message, origins []render.Origin, own []thread.Message) int {
	n := own[0].Frame.Messages()
	if n > len(messages) || n > len(own) || own[0].Index != 0 {
		return 0
	}
	for i := range n {
		// The renderer takes the frame from a message that it changes, and what it
		// writes itself has none.
		if origins[i].ID != own[i].ID || messages[i].Frame == nil {
			return 0
		}
	}
	return n
}

// writer makes the messages of the framework, in order.
type writer[M any] struct {
	codec   Codec[M]
	history []M
	out     []M
	written bool             // the last of out was written here
	changed []thread.Message // are to be written before what comes next
	err     error
}

// same takes over a piece of the history.
func (w *writer[M]) same(f *thread.Frame) {
	w.flush()
	w.add(false, w.history[f.Position():f.Position()+f.Elements()]...)
}

func (w *writer[M]) flush() {
	if len(w.changed) == 0 || w.err != nil {
		return
	}
	var messages []M
	if messages, w.err = w.codec.Encode(w.changed); w.err == nil {
		w.add(true, messages...)
	}
	w.changed = nil
}

func (w *writer[M]) add(written bool, messages ...M) {
	joiner, _ := w.codec.(Joiner[M])
	for _, m := range messages {
		if last := len(w.out) - 1; joiner != nil && last >= 0 && (written || w.written) {
			if joined, ok := joiner.Join(w.out[last], m); ok {
				w.out[last], w.written = joined, true
				continue
			}
		}
		w.out, w.written = append(w.out, m), written
	}
}
