package proxy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/permit"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// branch is the log that a request goes on with.
type branch struct {
	id   string
	news []thread.Message // what the log does not hold yet
	// changed says that the log holds messages that the client has never seen.
	changed bool
	// rounds are those at the end of the log that still wait for the model.
	rounds []*thread.Message
	// shortened are the logs from which the history parts because the client has
	// cut a result, the latest first.
	shortened []string
	// above are the logs that this one is a fork of, the latest first.
	above []string
}

// maxForks bounds how often one request looks further after a divergence.
const maxForks = 64

// branch finds the log that the history goes on with. Where it parts from what
// is there, the rest is a fork: its id follows from the place, so that the same
// history finds it again.
func (t *Transport) branch(ctx context.Context, base, scope string, messages []thread.Message, ids []thread.ID) (branch, error) {
	id := base
	var parent *thread.Thread
	kept := 0 // of the parent's log
	var shortened, above []string
	for range maxForks {
		log, err := t.log.Load(ctx, id)
		if err != nil {
			return branch{}, err
		}
		switch {
		case log.Len() > 0:
		case parent != nil:
			log, err = t.fork(ctx, id, parent, kept)
		default:
			id, log, err = t.elsewhere(ctx, id, log, scope, messages, ids)
		}
		if err != nil {
			return branch{}, err
		}
		where := follow(log, messages, ids)
		if where.fits {
			return branch{id: id, news: fresh(messages[where.seen:], ids[where.seen:]), changed: where.hidden, shortened: shortened, above: above}, nil
		}
		if where.open != nil && t.left.claim(id) {
			return branch{id: id, changed: true, rounds: where.open, shortened: shortened, above: above}, nil
		}
		if shortens(log, where, messages) {
			shortened = append([]string{id}, shortened...)
		}
		parent, kept, above = log, where.at, append([]string{id}, above...)
		id = forkID(base, log, where, ids)
	}
	return branch{}, errForks
}

// forkID names the fork of a log at a place. A history that ends where the log
// goes on (a rewind, or the same request once more) has no message of its own
// there, so that the name and the length of the log tell one such fork from the
// next.
func forkID(base string, log *thread.Thread, where place, ids []thread.ID) string {
	if where.seen < len(ids) {
		return base + "." + short(ids[where.seen])
	}
	return fmt.Sprintf("%s.r%d-%s", base, log.Len(), short(thread.ID(log.ID())+ids[len(ids)-1]))
}

// elsewhere looks for the history in a log that was found under another id: the
// client's system prompt or tools have changed since.
func (t *Transport) elsewhere(ctx context.Context, id string, empty *thread.Thread, scope string, messages []thread.Message, ids []thread.ID) (string, *thread.Thread, error) {
	found := t.known.find(scope, ids)
	if found == "" || found == id {
		return id, empty, nil
	}
	log, err := t.log.Load(ctx, found)
	if err != nil || follow(log, messages, ids).seen == 0 {
		return id, empty, err
	}
	return found, log, nil
}

var errForks = errors.New("the history has too many forks")

func short(id thread.ID) string { return digest(string(id))[:12] }

// place is how far a history and a log go together.
type place struct {
	seen int // the messages of the history that the log holds
	at   int // where in the log they end
	// fits says that the rest of the history can be appended.
	fits bool
	// hidden says that the log holds rounds that the client has not seen.
	hidden bool
	// open are rounds at the end of the log that wait for the model, where the
	// history ends before them.
	open []*thread.Message
}

// follow walks a history and a log together. Rounds that the client has not seen
// stand in the log behind the message that they answered, and stand for the
// answer that the client was given.
func follow(log *thread.Thread, messages []thread.Message, ids []thread.ID) place {
	var p place
	var rounds []*thread.Message
	for p.at < log.Len() {
		m := uncopied.At(log, p.at)
		told := p.seen < len(ids) && ids[p.seen] == m.ID // of a history that was read from the log
		p.hidden = p.hidden || hidden(m.ID)
		if hidden(m.ID) && !told {
			rounds = append(rounds, m)
			p.at++
			continue
		}
		switch {
		case p.seen == len(ids):
			return p // the client went back
		case m.ID == ids[p.seen]:
			p.seen, p.at = p.seen+1, p.at+1
			rounds = nil
		case len(rounds) > 0 && standsFor(rounds, &messages[p.seen]):
			p.seen++
			rounds = nil
		default:
			return p.beforeRounds(len(rounds))
		}
	}
	if len(rounds) > 0 {
		if p.seen == len(ids) && unanswered(rounds) {
			p.open = rounds
		}
		if p.seen == len(ids) || !standsFor(rounds, &messages[p.seen]) {
			return p.beforeRounds(len(rounds))
		}
		p.seen++
	}
	p.fits = true
	return p
}

// beforeRounds is the place before the last rounds, which do not belong to this
// history.
func (p place) beforeRounds(n int) place {
	p.at -= n
	return p
}

// hiddenPrefix begins the ids of messages that the client has not seen.
const hiddenPrefix = "hidden:"

func hidden(id thread.ID) bool { return strings.HasPrefix(string(id), hiddenPrefix) }

// standsFor reports whether rounds that were answered here are what the client
// has seen as one message: the calls that it has to answer are the same, or,
// without calls, the words. A client whose first try broke off was told those of
// the last rounds alone.
func standsFor(rounds []*thread.Message, m *thread.Message) bool {
	if m.Role != thread.Assistant {
		return false
	}
	said, calls := []string{}, map[string]bool{}
	for _, r := range rounds {
		if r.Role == thread.Assistant {
			said = append(said, squeezed(r.Text()))
			for _, c := range r.Calls() {
				calls[c.ID] = true
			}
		}
	}
	own := m.Calls()
	for _, c := range own {
		if !calls[c.ID] {
			return false
		}
	}
	if len(own) > 0 {
		return true
	}
	shown := squeezed(m.Text())
	for from := range said {
		if strings.Join(said[from:], "") == shown {
			return true
		}
	}
	return false
}

// squeezed leaves out white space: clients trim and join what they were sent.
func squeezed(s string) string { return strings.Join(strings.Fields(s), "") }

// fork begins a log with what two histories share, and with the newest plan of
// the parent that still holds for it, so that the prefix stays as it is.
func (t *Transport) fork(ctx context.Context, id string, parent *thread.Thread, kept int) (*thread.Thread, error) {
	log, err := t.log.Append(ctx, id, 0, uncopied.Messages(parent)[:kept])
	if err != nil {
		return nil, err
	}
	_, version, err := store.CurrentUncopied(ctx, t.plans, parent.ID(), permit.Key{})
	for ; err == nil && version > 0; version-- {
		var p *plan.Plan
		if p, err = t.plans.Plan(ctx, parent.ID(), version); err != nil {
			break
		}
		inherited := *p
		inherited.ThreadID = id
		inherited.ThreadVersion = min(p.ThreadVersion, log.Version())
		if inherited.Validate(log) != nil {
			continue
		}
		if _, err = t.plans.Commit(ctx, id, 0, store.Commit{Plan: &inherited}); errors.Is(err, store.ErrConflict) {
			err = nil // another request of the same fork was faster
		}
		break
	}
	return log, err
}

// fresh are messages for the log: with the client's ids, and with strings of
// their own, since a message that is kept must not keep a whole request.
func fresh(messages []thread.Message, ids []thread.ID) []thread.Message {
	out := make([]thread.Message, len(messages))
	d := detacher{}
	for i := range messages {
		out[i] = d.message(messages[i])
		out[i].ID = ids[i]
	}
	return out
}
