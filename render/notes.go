package render

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// noteRecord is the record behind whose text the plan's notes stand: the last summary, else the last
// that removes something in a place of its own. It is the zero Ref where there are no notes, or
// where nothing was removed: the calls that wrote them stand there then.
func noteRecord(r *renderer) (at plan.Ref) {
	if len(r.plan.Notes) == 0 {
		return at
	}
	begun := map[plan.Ref]bool{}
	for i := range r.messages {
		ref := r.actions[r.messages[i].ID]
		if !ref.Action.Removes() || begun[ref] {
			continue
		}
		begun[ref] = true
		if call, paired := r.pairs.Call(i); paired && r.stays(call) {
			continue // its text is a tool's result
		}
		if ref.Action == plan.Summarize || at.Action != plan.Summarize {
			at = ref
		}
	}
	return at
}

// withNotes adds the notes to what stands in place of m and those after it: to our own words there,
// which are the user's or the assistant's, never to those of the system.
func (p Profile) withNotes(m thread.Message, stand []thread.Message, notes string) []thread.Message {
	for i := range stand {
		text := stand[i].Text()
		if stand[i].Role == thread.System || text == "" {
			continue
		}
		text = strings.TrimRight(ownformat.StripSignatures(text), "\n") + "\n" + notes
		stand[i].Parts = []thread.Part{thread.Text{Text: ownformat.Sign(text, p.Key)}}
		return stand
	}
	return append(stand, synthetic(&m, p.ours(), ownformat.Sign(notes, p.Key)))
}
