package render

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// wholeLoops removes the reasoning of the tool loop that was under way when something was
// rewritten, up to its end: to the provider such a loop is one turn, which must begin with its
// reasoning or have none at all.
func (r *renderer) wholeLoops() {
	if !r.profile.BoundReasoning || r.rewritten == 0 {
		return
	}
	n := slices.IndexFunc(r.manifest.Messages, func(o Origin) bool {
		at, known := r.thread.Index(o.ID)
		return known && at >= r.rewritten
	})
	for n >= 0 && n < len(r.out) && !r.afterUser(n) {
		r.out[n] = r.profile.Translate(r.out[n], true)
		if len(r.out[n].Parts) > 0 {
			n++
			continue
		}
		r.repair(r.manifest.Messages[n].ID, unsendable)
		r.out = slices.Delete(r.out, n, n+1)
		r.manifest.Messages = slices.Delete(r.manifest.Messages, n, n+1)
		if r.current > n {
			r.current--
		}
	}
}

// thinkFirst gives summaries at the beginning of a turn of the model the user's role where
// the model's own message follows with its reasoning: the turn must begin with that.
func (r *renderer) thinkFirst() {
	if r.profile.API != wire.Anthropic || r.profile.BoundReasoning {
		return
	}
	stands := func(n int) bool { return r.out[n].Role == thread.Assistant && r.manifest.Messages[n].Synthetic }
	for n := 0; n < len(r.out); n++ {
		if !stands(n) || !r.afterUser(n) {
			continue
		}
		end := n
		for end < len(r.out) && stands(end) {
			end++
		}
		if end < len(r.out) && r.out[end].Role == thread.Assistant && reasons(&r.out[end]) {
			for i := n; i < end; i++ {
				r.out[i].Role = thread.User
			}
		}
		n = end - 1
	}
}

func reasons(m *thread.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p thread.Part) bool { _, is := p.(thread.Reasoning); return is })
}

// afterUser reports whether a turn of the model begins at n: the user spoke before it, and
// no results came in between.
func (r *renderer) afterUser(n int) bool {
	spoke := false
	for n--; n >= 0; n-- {
		switch r.out[n].Role {
		case thread.User:
			spoke = true
			continue
		case thread.System:
			continue
		case thread.Tool:
			return false
		}
		break
	}
	return spoke || n < 0
}
