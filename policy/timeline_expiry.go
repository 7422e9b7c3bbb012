package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// ttl is the age at which blocks are hidden; 0 hides none.
func (l Timeline) ttl(s *Situation) time.Duration {
	if l.TTL == 0 {
		return s.CacheLife
	}
	return max(l.TTL, 0)
}

// isCacheExpired reports whether the provider last read the prompt longer ago than the
// TTL: at the time of the message before the model's last answer. In a proxy's log the
// answer itself only arrives with the next request.
func (l Timeline) isCacheExpired(s *Situation) bool {
	answered := false
	for i := s.Thread.Len() - 1; i >= 0 && l.ttl(s) > 0; i-- {
		m := s.Thread.At(i)
		if answered && m.Role != thread.Assistant || m.Role == thread.Assistant && i == 0 {
			return l.isExpired(s, m)
		}
		answered = answered || m.Role == thread.Assistant
	}
	return false
}

func (l Timeline) isExpired(s *Situation, m *thread.Message) bool {
	return !m.Time.IsZero() && s.Now.Sub(m.Time) > l.ttl(s)
}

// expiredPlaceholders are the placeholders of the blocks from a position on that have
// expired and are not hidden yet. What the model has not answered yet stays, and so do its
// newest words and the newest call of each tool, since models copy what they see, and what
// the user has pinned.
func (l Timeline) expiredPlaceholders(s *history, from int) []plan.Clearing {
	if l.ttl(s.Situation) <= 0 {
		return nil
	}
	actions := s.Current.Actions()
	var out []plan.Clearing
	answered, spoken, called := false, false, map[string]bool{}
	for i := s.Thread.Len() - 1; i >= from; i-- {
		m := s.Thread.At(i)
		calls := m.Calls()
		newest := len(calls) == 0 && !spoken
		for _, c := range calls {
			newest = newest || !called[c.Name]
			called[c.Name] = true
		}
		hides := m.Role == thread.Tool && answered || m.Role == thread.Assistant && !newest && len(s.Pairs().Missing(i)) == 0
		answered = answered || m.Role == thread.Assistant
		spoken = spoken || m.Role == thread.Assistant && len(calls) == 0
		first, last := s.Pairs().Unit(i)
		if hides && first == last && !s.pinned[i] && l.isExpired(s.Situation, m) && actions[m.ID].Action == plan.Include {
			if r, saves := l.placeholder(s.Situation, i); saves {
				out = append(out, r)
			}
		}
	}
	slices.Reverse(out)
	return out
}

// replacementHead is how much of the model's words stays in a placeholder, in bytes.
const replacementHead = 240

// placeholder is the placeholder of the message at a position, and whether it is smaller.
func (l Timeline) placeholder(s *Situation, i int) (r plan.Clearing, saves bool) {
	m := s.Thread.At(i)
	r = plan.Clearing{
		Span: s.Thread.Range(i, i+1), PreservedFields: thread.Fields{"hidden": hiddenReason},
		Origin: plan.Origin{Strategy: l.Name(), Reason: hiddenReason, TokensBefore: s.ChangedSizes[i]},
	}
	switch {
	case m.Role == thread.Tool:
	case len(m.Calls()) > 0:
		r.PreservedFields = nil // the placeholder is the call itself, with shorter arguments
	default:
		head := clip.Sentences(m.Text(), replacementHead)
		r.PreservedFields[plan.ReplacementField] = strings.TrimSpace(fmt.Sprintf("[%s: %s]\n%s", blockSaid, hiddenReason, head))
	}
	replacement := s.Profile.Replacement(*m, r, true)[0]
	r.TokensAfter = s.Counter.Message(&replacement)
	return r, r.TokensAfter < r.TokensBefore && (len(m.Calls()) == 0 || !slices.Equal(replacement.Calls(), m.Calls()))
}
