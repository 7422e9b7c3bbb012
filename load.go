package palimpsest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/permit"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// loaded is what the stores hold of a conversation.
type loaded struct {
	log *thread.Thread
	// first is where the messages that came last begin.
	first int
	// plan is in force, nil for none; version is its version, round counts the
	// compactions up to it.
	plan           *plan.Plan
	version, round int
	// usage is what the provider last counted.
	usage calibration
}

// load reads log, plan in force and usage. A plan that does not hold for the log
// any more is left aside, and an event says so.
func (s *Session) load(ctx context.Context) (l loaded, err error) {
	if err = s.c.readKey(ctx); err != nil {
		return l, err
	}
	if l.log, err = s.c.config.Log.Load(ctx, s.id); err != nil {
		return l, err
	}
	l.first = l.log.Len()
	if l.plan, l.version, err = store.CurrentUncopied(ctx, s.c.config.Plans, s.id, permit.Key{}); err != nil {
		return l, err
	}
	l.round = roundOf(l.plan, l.version)
	k := s.cached()
	if err := s.look(ctx, l.version); err != nil {
		return l, err
	}
	if k.monitor != nil && l.version != k.told {
		if k.told = l.version; !l.plan.Empty() {
			k.monitor.Compacted(l.log, l.plan)
		}
	}
	l.usage = s.calibration(ctx)
	return l, nil
}

// roundOf is how many compactions there were up to a plan. Plans of earlier
// versions of this module do not say it; of these each was one.
func roundOf(p *plan.Plan, version int) int {
	switch {
	case p == nil:
		return 0
	case p.Round == 0 && !p.Empty():
		return version
	}
	return p.Round
}

// append adds messages behind what was loaded, or behind whatever was added
// meanwhile. Messages that stand there already are not added again: those that
// are known by their ids, and, where they may be a step's that is made again, those
// that the log ends with.
func (s *Session) append(ctx context.Context, l loaded, messages []thread.Message, again bool) (loaded, error) {
	if len(messages) == 0 {
		if want := s.only.Log; want != nil && *want != l.log.Version() {
			return l, &VersionError{*want, l.log.Version()}
		}
		return l, nil
	}
	messages = s.told(l.log, messages)
	s.captured(l.log, messages)
	for range tries {
		first := s.place(l.log, messages, again)
		if first > l.log.Version() {
			return l, &VersionError{first, l.log.Version()}
		}
		before := l.log.Version()
		next, err := s.c.config.Log.Append(ctx, s.id, first, messages)
		if err == nil {
			l.log, l.first = next, first
			s.watch(ctx, next, before)
			return l, nil
		}
		if !conflicted(err) {
			return l, err
		}
		if l.log, err = s.c.config.Log.Load(ctx, s.id); err != nil {
			return l, err
		}
		if want := s.only.Log; want != nil && l.log.Version() != first {
			return l, &VersionError{*want, l.log.Version()}
		}
	}
	return l, fmt.Errorf("after %d tries: %w", tries, store.ErrConflict)
}

// answersOnly reports whether all messages are a model's: the same answer twice,
// with nothing in between, is one that was added again. A person may say the same
// twice.
func answersOnly(messages []thread.Message) bool {
	return !slices.ContainsFunc(messages, func(m thread.Message) bool { return m.Role != thread.Assistant })
}

// told are messages that come behind a log: those without a time get that of their
// arrival, and those in the user's name that nobody certainly wrote are marked.
func (s *Session) told(log *thread.Thread, messages []thread.Message) []thread.Message {
	now := s.c.config.Now().UTC()
	out := slices.Clone(messages)
	for i := range out {
		if out[i].Time.IsZero() {
			out[i].Time = now
		}
	}
	return s.authors(out, lastOf(log))
}

// lastOf is the last message of a log, nil where there is none.
func lastOf(log *thread.Thread) *thread.Message {
	if log.Len() == 0 {
		return nil
	}
	return uncopied.At(log, log.Len()-1)
}

// place is where messages belong in the log: behind the version that the
// condition names, where they stand already, or at the end.
func (s *Session) place(log *thread.Thread, messages []thread.Message, again bool) int {
	if s.only.Log != nil {
		return *s.only.Log
	}
	if at, known := log.Index(messages[0].ID); known && messages[0].ID != "" {
		return at
	}
	at := log.Len() - len(messages)
	if at < 0 || messages[0].ID != "" || !again {
		return log.Len()
	}
	parent := log.Prefix(at).Last()
	for i := range messages {
		if parent = thread.ChainID(parent, &messages[i]); uncopied.At(log, at+i).ID != parent {
			return log.Len()
		}
	}
	return at
}

// watch tells the monitor of the messages from a position on.
func (s *Session) watch(ctx context.Context, log *thread.Thread, from int) {
	k := s.cached()
	if k.monitor == nil {
		return
	}
	for i := from; i < log.Len(); i++ {
		k.monitor.Message(ctx, *uncopied.At(log, i))
	}
}

func (s *Session) emit(ctx context.Context, e event.Event) {
	e.ThreadID, e.TenantID = s.id, s.c.config.Requester.TenantID
	e.Policy = cmp.Or(e.Policy, s.c.config.Policy.Name())
	event.Emit(ctx, s.c.config.Events, e)
}

// again loads what is there after a conflict; what the step brought stays where
// it stands.
func (s *Session) again(ctx context.Context, l loaded) (loaded, error) {
	next, err := s.load(ctx)
	next.first = l.first
	return next, err
}
