package identify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// isShortened reports whether a history parts from a log at a result that the client has cut.
func isShortened(log *thread.Thread, m match, messages []thread.Message) bool {
	if m.shared >= log.Len() || m.logged >= len(messages) {
		return false
	}
	was, ok := log.At(m.shared).Result()
	if !ok {
		return false
	}
	is, ok := messages[m.logged].Result()
	return ok && is.CallID == was.CallID && len(is.Text()) < len(was.Text())
}

// HasRecap reports whether a history begins with a summary by the client.
func HasRecap(messages []thread.Message) bool {
	return slices.ContainsFunc(messages[:min(len(messages), 3)], func(m thread.Message) bool { return m.Kind == thread.Recap })
}

// CallKeys name the tool calls in messages, in order: by their ids, which some providers count anew
// in every conversation, and by what they call. Calls without an id of the provider's have no name.
func CallKeys(messages []thread.Message) []string {
	var keys []string
	for i := range messages {
		for _, c := range messages[i].Calls() {
			if !thread.IsLocalID(c.ID) {
				keys = append(keys, canonjson.Digest(c.ID, c.Name, c.Arguments))
			}
		}
	}
	return keys
}

// LacksCall reports whether a history does not have the first tool call of another log behind what
// both begin with: its client has taken it out. What only the log has seen does not count.
func LacksCall(log *thread.Thread, messages []thread.Message, ids []thread.ID) bool {
	n := 0
	for ; n < min(log.Len(), len(ids)) && log.At(n).ID == ids[n]; n++ {
	}
	for ; n < log.Len(); n++ {
		m := log.At(n)
		if first := CallKeys([]thread.Message{*m}); len(first) > 0 && !isHidden(m.ID) {
			return !slices.Contains(CallKeys(messages), first[0])
		}
	}
	return false
}

// Logs is the access to the store that Find needs.
type Logs struct {
	// Load returns a log; an empty one if there is none.
	Load func(id string) (*thread.Thread, error)
	// BasesWithBeginning returns the bases of other conversations that begin with the same message,
	// the latest first. Nil returns none.
	BasesWithBeginning func() []string
	// ClaimLookups takes up the lookups that a log ends with, and reports whether that is allowed.
	// Nil does not allow it.
	ClaimLookups func(log string) bool
	// Canceled is called where messages are read in another way.
	Canceled Canceled
}

// Place is the place in a log that a request continues.
type Place struct {
	// Log is the id of the log, and Base that of its conversation, before any fork.
	Log, Base string
	// Request is the request with its messages as the log has them.
	Request *Request
	// Thread is the log, and Shared how many of its messages belong to the request's history. With
	// Fork, Log does not exist yet, and begins with those messages of Thread, which is another log.
	// Thread is nil for a new conversation.
	Thread *thread.Thread
	Shared int
	Fork   bool
	// Logged is how many messages of the request the log holds; the others are new.
	Logged int
	// HasHidden says that the log holds messages that the client has never seen.
	HasHidden bool
	// OpenLookups are lookups at the end of the log that wait for the model.
	OpenLookups []*thread.Message
	// Cleared are the messages of the log whose results the client has cleared in what it sends.
	Cleared []thread.ID
	// Shortened are the logs from which the history parts because the client has cut a result, and
	// Ancestors those that the log is a fork of; the latest first.
	Shortened, Ancestors []string
}

// maxForks bounds how many forks a request is followed through.
const maxForks = 64

var errTooManyForks = errors.New("the history has too many forks")

// Find finds the log that a history continues, and writes nothing. If the history parts from the log, the
// rest is a fork, whose id follows from the place, so that the same history finds it again. A
// conversation that is not found under its base is looked for under others that begin with the
// same message: the client's system prompt, tools or session may have changed. Answers that a log
// holds whole, from before they were split, are read whole, and so are results that the client has cleared.
func Find(base string, r *Request, logs Logs) (Place, error) {
	found, err := findJoined(base, r, logs)
	if err != nil || len(found.Shortened) == 0 {
		return found, err
	}
	whole, cleared, err := found.Request.withResults(found.Logged, found.Shortened[0], logs)
	if err == nil && whole != nil {
		if other, err := findJoined(base, whole, logs); err != nil || other.Logged > found.Logged {
			for _, id := range cleared {
				if i, ok := other.Thread.Index(id); ok && i < other.Shared {
					other.Cleared = append(other.Cleared, id)
				}
			}
			return other, err
		}
	}
	return found, err
}

// withResults is the request with the results from a position on that the client has cleared as a log has them, and
// which these are; nil if the first message there is none of these.
func (r *Request) withResults(from int, id string, logs Logs) (_ *Request, cleared []thread.ID, err error) {
	log, err := logs.Load(id)
	if err != nil {
		return nil, nil, err
	}
	logged := map[string]*thread.Message{} // by call; nil where several have the id: some providers count anew in every answer
	for i := range log.Len() {
		if result, ok := log.At(i).Result(); ok {
			_, again := logged[result.CallID]
			if logged[result.CallID] = log.At(i); again {
				logged[result.CallID] = nil
			}
		}
	}
	messages := slices.Clone(r.Prompt.Messages)
	for i := from; i < len(messages); i++ {
		m := &messages[i]
		result, _ := m.Result()
		if was := logged[result.CallID]; was != nil && injected.IsCleared(result.Text()) {
			m.Kind, m.Parts, m.Frame, m.Index = was.Kind, was.Parts, was.Frame, was.Index
			cleared = append(cleared, was.ID)
		} else if i == from {
			return nil, nil, nil
		}
	}
	whole, err := r.reading(from, messages, logs.Canceled)
	return whole, cleared, err
}

// findJoined is Find for results as they are: an answer that was split is read joined, where a log holds it so.
func findJoined(base string, r *Request, logs Logs) (Place, error) {
	found, err := findInBases(base, r, logs)
	if err != nil || found.Thread == nil || hosted.FirstSplit(r.Prompt.Messages[found.Logged:]) < 0 {
		return found, err
	}
	first := hosted.FirstSplit(r.Prompt.Messages)
	if found.Logged > first {
		return found, nil
	}
	whole, err := r.reading(first, hosted.Join(r.Prompt.Messages), logs.Canceled)
	if err != nil {
		return Place{}, err
	}
	other, err := findInBases(base, whole, Logs{Load: logs.Load, BasesWithBeginning: logs.BasesWithBeginning})
	if err != nil || other.Logged <= first {
		return found, err
	}
	messages := whole.Prompt.Messages
	messages = slices.Concat(messages[:other.Logged], hosted.Split(messages[other.Logged:]))
	if whole, err = whole.reading(other.Logged, messages, logs.Canceled); err != nil {
		return Place{}, err
	}
	return findInBases(base, whole, logs)
}

// reading is the request with its messages read in another way from a position on.
func (r *Request) reading(from int, messages []thread.Message, canceled Canceled) (*Request, error) {
	ids, err := chainIDs(r.IDs[:from], messages, canceled)
	out, p := *r, *r.Prompt
	p.Messages = messages
	out.Prompt, out.IDs, out.asRead = &p, ids, cmp.Or(r.asRead, r)
	return &out, err
}

// Prefix is the request up to a message.
func (r *Request) Prefix(n int) *Request {
	out, p := *r, *r.Prompt
	p.Messages = p.Messages[:n]
	out.Prompt, out.IDs = &p, r.IDs[:n]
	return &out
}

// findInBases looks under the base, and where that has no log under others that begin with the same message.
func findInBases(base string, r *Request, logs Logs) (Place, error) {
	found, err := followForks(base, r, logs)
	if err != nil || found.Thread != nil || logs.BasesWithBeginning == nil {
		return found, err
	}
	best := found
	for _, other := range logs.BasesWithBeginning() {
		p, err := followForks(other, r, Logs{Load: logs.Load})
		if err != nil {
			return Place{}, err
		}
		if p.Logged > max(best.Logged, 1) { // more than the same greeting
			best = p
		}
	}
	if best.Thread == nil {
		return found, nil
	}
	return followForks(best.Base, r, logs)
}

// followForks follows the forks of a base.
func followForks(base string, r *Request, logs Logs) (Place, error) {
	messages, ids := r.Prompt.Messages, r.IDs
	p := Place{Log: base, Base: base, Request: r}
	for range maxForks {
		log, err := logs.Load(p.Log)
		if err != nil {
			return Place{}, err
		}
		if log.Len() == 0 {
			if p.Thread == nil {
				return p, nil
			}
			m := matchLog(p.Thread.Prefix(p.Shared), messages, ids)
			p.Fork, p.Logged, p.HasHidden = true, m.logged, m.hasHidden
			return p, nil
		}
		m := matchLog(log, messages, ids)
		p.Thread, p.Shared, p.Logged, p.HasHidden = log, m.shared, m.logged, m.hasHidden
		if m.canAppend {
			return p, nil
		}
		if m.openLookups != nil && logs.ClaimLookups != nil && logs.ClaimLookups(p.Log) {
			p.OpenLookups = m.openLookups
			return p, nil
		}
		if isShortened(log, m, messages) {
			p.Shortened = append([]string{p.Log}, p.Shortened...)
		}
		p.Ancestors = append([]string{p.Log}, p.Ancestors...)
		p.Log = forkID(base, log, m, ids)
	}
	return Place{}, errTooManyForks
}

// forkID names the fork of a log at a place. A history that ends before the log does (a rewind, or the
// same request again) has no message of its own there: the id and the length of the log tell one
// such fork from the next.
func forkID(base string, log *thread.Thread, m match, ids []thread.ID) string {
	if m.logged < len(ids) {
		return base + "." + shortDigest(ids[m.logged])
	}
	return fmt.Sprintf("%s.r%d-%s", base, log.Len(), shortDigest(thread.ID(log.ID())+ids[len(ids)-1]))
}

// SummaryLog is the id of the log for a client's request to summarize a conversation, which never sees
// that request.
func SummaryLog(base string, ids []thread.ID) string {
	return base + ".s" + shortDigest(ids[len(ids)-1])
}

func shortDigest(id thread.ID) string { return canonjson.Digest(string(id))[:12] }

// match is how far a history and a log are the same.
type match struct {
	logged int // the messages of the history that the log holds
	shared int // where in the log they end
	// canAppend says that the rest of the history can be appended.
	canAppend bool
	// hasHidden says that the log holds lookups that the client has not seen.
	hasHidden bool
	// openLookups are lookups at the end of the log that wait for the model; the history ends before
	// them.
	openLookups []*thread.Message
}

// matchLog compares a history with a log. In the log, lookups that the client has not seen are in the
// place of the one answer that it was given.
func matchLog(log *thread.Thread, messages []thread.Message, ids []thread.ID) match {
	var p match
	var lookups []*thread.Message
	for p.shared < log.Len() {
		m := log.At(p.shared)
		told := p.logged < len(ids) && ids[p.logged] == m.ID // the history was read from the log
		p.hasHidden = p.hasHidden || isHidden(m.ID)
		if isHidden(m.ID) && !told {
			lookups = append(lookups, m)
			p.shared++
			continue
		}
		switch {
		case p.logged == len(ids):
			return p // a rewind
		case m.ID == ids[p.logged]:
			p.logged, p.shared = p.logged+1, p.shared+1
			lookups = nil
		case len(lookups) > 0 && matchesShown(lookups, messages[p.logged:]) > 0:
			p.logged += matchesShown(lookups, messages[p.logged:])
			lookups = nil
		default:
			p.shared -= len(lookups) // which do not belong to the history
			return p
		}
	}
	if len(lookups) > 0 {
		if p.logged == len(ids) && isOpen(lookups) {
			p.openLookups = lookups
		}
		if p.logged == len(ids) || matchesShown(lookups, messages[p.logged:]) == 0 {
			p.shared -= len(lookups)
			return p
		}
		p.logged += matchesShown(lookups, messages[p.logged:])
	}
	p.canAppend = true
	return p
}

// hiddenPrefix begins the ids of messages that the client does not see.
const hiddenPrefix = "hidden:"

func isHidden(id thread.ID) bool { return strings.HasPrefix(string(id), hiddenPrefix) }

// HiddenID is the id of the n-th message behind another that the client does not see.
func HiddenID(behind thread.ID, n int) thread.ID {
	return thread.ID(fmt.Sprintf("%s%s-%d", hiddenPrefix, canonjson.Digest(string(behind)), n))
}

// matchesShown returns as how many messages the client has seen lookups: the answer that a list begins with,
// if its calls are among theirs or, without calls, its text is the same; else 0. A client whose first
// try broke off has only the text of the last lookups.
func matchesShown(lookups []*thread.Message, list []thread.Message) int {
	m, n := hosted.Whole(list)
	if m.Role != thread.Assistant {
		return 0
	}
	said, calls := []string{}, map[string]bool{}
	for _, r := range lookups {
		if r.Role == thread.Assistant {
			said = append(said, withoutSpace(r.Text()))
			for _, c := range r.Calls() {
				calls[c.ID] = true
			}
		}
	}
	own := m.Calls()
	for _, c := range own {
		if !calls[c.ID] {
			return 0
		}
	}
	if len(own) > 0 {
		return n
	}
	shown := withoutSpace(m.Text())
	for from := range said {
		if strings.Join(said[from:], "") == shown {
			return n
		}
	}
	return 0
}

// withoutSpace drops white space: clients trim and join texts.
func withoutSpace(s string) string { return strings.Join(strings.Fields(s), "") }

// isOpen reports whether lookups wait for the model: all calls of the last one have been answered here.
func isOpen(lookups []*thread.Message) bool {
	answered := map[string]bool{}
	for _, m := range slices.Backward(lookups) {
		if r, ok := m.Result(); ok {
			answered[r.CallID] = true
			continue
		}
		for _, c := range m.Calls() {
			if !answered[c.ID] {
				return false
			}
		}
		return len(answered) > 0
	}
	return false
}
