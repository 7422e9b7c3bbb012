package identify

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/pattern"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Client is what a request says of whom it comes from.
type Client struct {
	// API and Model are what is asked, the model as the table of models names it.
	API, Model string
	// Thread is the name that the client gives the conversation for us; empty for
	// none.
	Thread string
	// Session is what the client calls its session, in pairs of name and value. None
	// of these is a conversation by itself: titles, side requests and restarted
	// histories share it.
	Session []string
}

// sessionHeaders are the headers in which clients name a session: Claude Code,
// Codex, opencode, pi. sessionFields are the members of a body that do.
var (
	sessionHeaders = []string{
		"X-Claude-Code-Session-Id", "Session-Id", "Session_id", "Thread-Id", "X-Codex-Window-Id",
		"X-Session-Id", "Conversation_id", "X-Conversation-Id",
	}
	sessionFields = []string{"metadata.user_id", "metadata.session_id", "prompt_cache_key", "conversation", "session_id"}
)

// ClientOf reads what a request says of its client; header gives its headers.
func ClientOf(r *Request, header func(name string) string, model, thread string) Client {
	c := Client{API: r.Prompt.Source.API, Model: model, Thread: thread}
	for _, name := range sessionHeaders {
		if value := header(name); value != "" {
			c.Session = append(c.Session, name, value)
		}
	}
	for _, path := range sessionFields {
		if v := r.memberAt(path); v.Type == gjson.String {
			c.Session = append(c.Session, path, v.Str)
		}
	}
	return c
}

// logIDPattern is what the name of a conversation must look like to be the id of the log
// itself; any other name is hashed.
var logIDPattern = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)

// Base is the id of the conversation before any fork of it: the caller's own name, or
// a hash of all that the client says of itself together with model, system, tools and
// the first message. The same request gives the same id after a restart and on every
// machine.
func (c Client) Base(r *Request) string {
	switch {
	case logIDPattern().MatchString(c.Thread):
		return c.Thread
	case c.Thread != "":
		return "px-" + Digest("name", c.Thread)
	}
	parts := []string{c.API, c.Model, string(r.IDs[0])}
	return "px-" + Digest(slices.Concat(parts, c.Session, []string{r.SystemDigest})...)
}

// Beginning names the first message of a request, for a model: what conversations
// have in common whose system prompt, tools or session have changed on the way.
func (c Client) Beginning(r *Request) string { return Digest(c.API, c.Model, string(r.IDs[0])) }

// SessionID names what the client calls its session; empty where it says nothing.
func (c Client) SessionID() string {
	if len(c.Session) == 0 {
		return ""
	}
	return Digest(slices.Concat(c.Session, []string{c.API})...)
}

// changingDigits are what changes in a system prompt from request to request: dates, times,
// counters, builds.
var changingDigits = pattern.New(`[0-9]+`)

func withoutChanging(system string) string {
	if strings.HasPrefix(system, "x-anthropic-billing-header:") {
		return ""
	}
	return changingDigits().ReplaceAllString(system, "0")
}

// systemDigest is a digest of system and tools.
func systemDigest(p *prompt.Prompt) string {
	var parts []string
	for _, s := range p.System {
		parts = append(parts, "system", withoutChanging(s.Text))
	}
	for _, tool := range p.Tools {
		parts = append(parts, "tool", tool.Name)
	}
	return Digest(parts...)
}

// Digest is a short name for what several texts say together.
func Digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		io.WriteString(h, part)
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// Logs are what Find asks of the store.
type Logs struct {
	// Load returns a log, which is empty where there is none.
	Load func(id string) (*thread.Thread, error)
	// BasesWithBeginning are the bases of other conversations that begin with the same message,
	// the latest first; nil for none.
	BasesWithBeginning func() []string
	// ClaimLookups reports whether somebody may take up the lookups that a log ends with,
	// and takes them up; nil for nobody.
	ClaimLookups func(log string) bool
}

// Place is where a request goes on.
type Place struct {
	// Log is the id of the log; Base is that of the conversation which it is, or is
	// a fork of.
	Log, Base string
	// Thread is the log, and Shared how many of its messages belong to the request's
	// history. Where Fork is set, Log is not there yet and begins with those messages of
	// Thread, which is another. Thread is nil for a conversation that nobody has seen.
	Thread *thread.Thread
	Shared int
	Fork   bool
	// Logged is how many messages of the request the log holds: those behind them are
	// to be added to it.
	Logged int
	// HasHidden says that the log holds messages that the client has never seen.
	HasHidden bool
	// OpenLookups are lookups at the end of the log that wait for the model.
	OpenLookups []*thread.Message
	// Shortened are the logs from which the history parts because the client has cut
	// a result, Ancestors those that the log is a fork of; the latest first.
	Shortened, Ancestors []string
}

// maxForks bounds how often one request looks further where its history parts from a
// log.
const maxForks = 64

var errTooManyForks = errors.New("the history has too many forks")

// Find finds the log that a history goes on with, and writes nothing. Where the
// history parts from what is there, the rest is a fork: its id follows from the place,
// so that the same history finds it again. A conversation that is not there under its
// base is looked for under others that begin with the same message: the client's
// system prompt, tools or session have changed since.
func Find(base string, messages []thread.Message, ids []thread.ID, logs Logs) (Place, error) {
	found, err := findFrom(base, messages, ids, logs)
	if err != nil || found.Thread != nil || logs.BasesWithBeginning == nil {
		return found, err
	}
	best := found
	for _, other := range logs.BasesWithBeginning() {
		p, err := findFrom(other, messages, ids, Logs{Load: logs.Load})
		if err != nil {
			return Place{}, err
		}
		if p.Logged > max(best.Logged, 1) { // one that only greets in the same words is another
			best = p
		}
	}
	if best.Thread == nil {
		return found, nil
	}
	return findFrom(best.Base, messages, ids, logs)
}

// findFrom goes from a base through its forks.
func findFrom(base string, messages []thread.Message, ids []thread.ID, logs Logs) (Place, error) {
	p := Place{Log: base, Base: base}
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

// forkID names the fork of a log at a place. A history that ends where the log goes
// on (a rewind, or the same request once more) has no message of its own there, so
// that the name and the length of the log tell one such fork from the next.
func forkID(base string, log *thread.Thread, m match, ids []thread.ID) string {
	if m.logged < len(ids) {
		return base + "." + shortDigest(ids[m.logged])
	}
	return fmt.Sprintf("%s.r%d-%s", base, log.Len(), shortDigest(thread.ID(log.ID())+ids[len(ids)-1]))
}

// SummaryLog is the id of the log in which a client has the history of a conversation
// summed up: beside the conversation, which never sees the question.
func SummaryLog(base string, ids []thread.ID) string {
	return base + ".s" + shortDigest(ids[len(ids)-1])
}

func shortDigest(id thread.ID) string { return Digest(string(id))[:12] }

// match is how far a history and a log go together.
type match struct {
	logged int // the messages of the history that the log holds
	shared int // where in the log they end
	// canAppend says that the rest of the history can be appended.
	canAppend bool
	// hasHidden says that the log holds lookups that the client has not seen.
	hasHidden bool
	// openLookups are lookups at the end of the log that wait for the model, where the
	// history ends before them.
	openLookups []*thread.Message
}

// matchLog walks a history and a log together. Lookups that the client has not seen
// stand in the log behind the message that they answered, and stand for the answer
// that the client was given.
func matchLog(log *thread.Thread, messages []thread.Message, ids []thread.ID) match {
	var p match
	var lookups []*thread.Message
	for p.shared < log.Len() {
		m := uncopied.At(log, p.shared)
		told := p.logged < len(ids) && ids[p.logged] == m.ID // of a history that was read from the log
		p.hasHidden = p.hasHidden || isHidden(m.ID)
		if isHidden(m.ID) && !told {
			lookups = append(lookups, m)
			p.shared++
			continue
		}
		switch {
		case p.logged == len(ids):
			return p // the client went back
		case m.ID == ids[p.logged]:
			p.logged, p.shared = p.logged+1, p.shared+1
			lookups = nil
		case len(lookups) > 0 && matchesShown(lookups, &messages[p.logged]):
			p.logged++
			lookups = nil
		default:
			return p.withoutLookups(lookups)
		}
	}
	if len(lookups) > 0 {
		if p.logged == len(ids) && isOpen(lookups) {
			p.openLookups = lookups
		}
		if p.logged == len(ids) || !matchesShown(lookups, &messages[p.logged]) {
			return p.withoutLookups(lookups)
		}
		p.logged++
	}
	p.canAppend = true
	return p
}

// withoutLookups is the place before the last lookups, which do not belong to this history.
func (p match) withoutLookups(lookups []*thread.Message) match {
	p.shared -= len(lookups)
	return p
}

// hiddenPrefix begins the ids of messages that the client has not seen.
const hiddenPrefix = "hidden:"

// isHidden reports whether a message is one that the client has not seen.
func isHidden(id thread.ID) bool { return strings.HasPrefix(string(id), hiddenPrefix) }

// HiddenID is the id of the n-th message that the client does not see behind another.
func HiddenID(behind thread.ID, n int) thread.ID {
	return thread.ID(fmt.Sprintf("%s%s-%d", hiddenPrefix, Digest(string(behind)), n))
}

// matchesShown reports whether lookups that were answered here are what the client has
// seen as one message: the calls that it has to answer are the same, or, without
// calls, the words. A client whose first try broke off was told those of the last
// lookups alone.
func matchesShown(lookups []*thread.Message, m *thread.Message) bool {
	if m.Role != thread.Assistant {
		return false
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
			return false
		}
	}
	if len(own) > 0 {
		return true
	}
	shown := withoutSpace(m.Text())
	for from := range said {
		if strings.Join(said[from:], "") == shown {
			return true
		}
	}
	return false
}

// withoutSpace leaves out white space: clients trim and join what they were sent.
func withoutSpace(s string) string { return strings.Join(strings.Fields(s), "") }

// isOpen reports whether lookups wait for the model: the last of them holds
// nothing but answers to calls that have all been answered here.
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
