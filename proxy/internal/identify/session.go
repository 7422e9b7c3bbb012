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
		if v := r.member(path); v.Type == gjson.String {
			c.Session = append(c.Session, path, v.Str)
		}
	}
	return c
}

// ownName is what the name of a conversation must look like to be the id of the log
// itself; any other name is hashed.
var ownName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)

// Base is the id of the conversation before any fork of it: the caller's own name, or
// a hash of all that the client says of itself together with model, system, tools and
// the first message. The same request gives the same id after a restart and on every
// machine.
func (c Client) Base(r *Request) string {
	switch {
	case ownName().MatchString(c.Thread):
		return c.Thread
	case c.Thread != "":
		return "px-" + Digest("name", c.Thread)
	}
	parts := []string{c.API, c.Model, string(r.IDs[0])}
	return "px-" + Digest(slices.Concat(parts, c.Session, []string{r.Surroundings})...)
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

// digits are what changes in a system prompt from request to request: dates, times,
// counters, builds.
var digits = pattern.New(`[0-9]+`)

func steady(system string) string {
	if strings.HasPrefix(system, "x-anthropic-billing-header:") {
		return ""
	}
	return digits().ReplaceAllString(system, "0")
}

// surroundings is a digest of system and tools.
func surroundings(p *prompt.Prompt) string {
	var parts []string
	for _, s := range p.System {
		parts = append(parts, "system", steady(s.Text))
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
	// Others are the bases of other conversations that begin with the same message,
	// the latest first; nil for none.
	Others func() []string
	// Waits reports whether somebody may take up the lookups that a log ends with,
	// and takes them up; nil for nobody.
	Waits func(log string) bool
}

// Place is where a request goes on.
type Place struct {
	// Log is the id of the log; Base is that of the conversation which it is, or is
	// a fork of.
	Log, Base string
	// Of is the log, and At how many of its messages belong to the request's history.
	// Where Fork is set the log is not there yet, and begins with those messages of
	// Of, which is another. Of is nil for a conversation that nobody has seen.
	Of   *thread.Thread
	At   int
	Fork bool
	// Seen is how many messages of the request the log holds: those behind them are
	// to be added to it.
	Seen int
	// Changed says that the log holds messages that the client has never seen.
	Changed bool
	// Open are lookups at the end of the log that wait for the model.
	Open []*thread.Message
	// Shortened are the logs from which the history parts because the client has cut
	// a result, Above those that the log is a fork of; the latest first.
	Shortened, Above []string
}

// maxForks bounds how often one request looks further where its history parts from a
// log.
const maxForks = 64

var errForks = errors.New("the history has too many forks")

// Find finds the log that a history goes on with, and writes nothing. Where the
// history parts from what is there, the rest is a fork: its id follows from the place,
// so that the same history finds it again. A conversation that is not there under its
// base is looked for under others that begin with the same message: the client's
// system prompt, tools or session have changed since.
func Find(base string, messages []thread.Message, ids []thread.ID, logs Logs) (Place, error) {
	found, err := walk(base, messages, ids, logs)
	if err != nil || found.Of != nil || logs.Others == nil {
		return found, err
	}
	best := found
	for _, other := range logs.Others() {
		p, err := walk(other, messages, ids, Logs{Load: logs.Load})
		if err != nil {
			return Place{}, err
		}
		if p.Seen > max(best.Seen, 1) { // one that only greets in the same words is another
			best = p
		}
	}
	if best.Of == nil {
		return found, nil
	}
	return walk(best.Base, messages, ids, logs)
}

// walk goes from a base through its forks.
func walk(base string, messages []thread.Message, ids []thread.ID, logs Logs) (Place, error) {
	p := Place{Log: base, Base: base}
	for range maxForks {
		log, err := logs.Load(p.Log)
		if err != nil {
			return Place{}, err
		}
		if log.Len() == 0 {
			if p.Of == nil {
				return p, nil
			}
			m := follow(p.Of.Prefix(p.At), messages, ids)
			p.Fork, p.Seen, p.Changed = true, m.seen, m.hidden
			return p, nil
		}
		m := follow(log, messages, ids)
		p.Of, p.At, p.Seen, p.Changed = log, m.at, m.seen, m.hidden
		if m.fits {
			return p, nil
		}
		if m.open != nil && logs.Waits != nil && logs.Waits(p.Log) {
			p.Open = m.open
			return p, nil
		}
		if shortens(log, m, messages) {
			p.Shortened = append([]string{p.Log}, p.Shortened...)
		}
		p.Above = append([]string{p.Log}, p.Above...)
		p.Log = forkID(base, log, m, ids)
	}
	return Place{}, errForks
}

// forkID names the fork of a log at a place. A history that ends where the log goes
// on (a rewind, or the same request once more) has no message of its own there, so
// that the name and the length of the log tell one such fork from the next.
func forkID(base string, log *thread.Thread, m match, ids []thread.ID) string {
	if m.seen < len(ids) {
		return base + "." + short(ids[m.seen])
	}
	return fmt.Sprintf("%s.r%d-%s", base, log.Len(), short(thread.ID(log.ID())+ids[len(ids)-1]))
}

// SummaryLog is the id of the log in which a client has the history of a conversation
// summed up: beside the conversation, which never sees the question.
func SummaryLog(base string, ids []thread.ID) string { return base + ".s" + short(ids[len(ids)-1]) }

func short(id thread.ID) string { return Digest(string(id))[:12] }

// match is how far a history and a log go together.
type match struct {
	seen int // the messages of the history that the log holds
	at   int // where in the log they end
	// fits says that the rest of the history can be appended.
	fits bool
	// hidden says that the log holds lookups that the client has not seen.
	hidden bool
	// open are lookups at the end of the log that wait for the model, where the
	// history ends before them.
	open []*thread.Message
}

// follow walks a history and a log together. Lookups that the client has not seen
// stand in the log behind the message that they answered, and stand for the answer
// that the client was given.
func follow(log *thread.Thread, messages []thread.Message, ids []thread.ID) match {
	var p match
	var lookups []*thread.Message
	for p.at < log.Len() {
		m := uncopied.At(log, p.at)
		told := p.seen < len(ids) && ids[p.seen] == m.ID // of a history that was read from the log
		p.hidden = p.hidden || hidden(m.ID)
		if hidden(m.ID) && !told {
			lookups = append(lookups, m)
			p.at++
			continue
		}
		switch {
		case p.seen == len(ids):
			return p // the client went back
		case m.ID == ids[p.seen]:
			p.seen, p.at = p.seen+1, p.at+1
			lookups = nil
		case len(lookups) > 0 && standsFor(lookups, &messages[p.seen]):
			p.seen++
			lookups = nil
		default:
			return p.before(lookups)
		}
	}
	if len(lookups) > 0 {
		if p.seen == len(ids) && unanswered(lookups) {
			p.open = lookups
		}
		if p.seen == len(ids) || !standsFor(lookups, &messages[p.seen]) {
			return p.before(lookups)
		}
		p.seen++
	}
	p.fits = true
	return p
}

// before is the place before the last lookups, which do not belong to this history.
func (p match) before(lookups []*thread.Message) match {
	p.at -= len(lookups)
	return p
}

// hiddenPrefix begins the ids of messages that the client has not seen.
const hiddenPrefix = "hidden:"

// hidden reports whether a message is one that the client has not seen.
func hidden(id thread.ID) bool { return strings.HasPrefix(string(id), hiddenPrefix) }

// HiddenID is the id of the n-th message that the client does not see behind another.
func HiddenID(behind thread.ID, n int) thread.ID {
	return thread.ID(fmt.Sprintf("%s%s-%d", hiddenPrefix, Digest(string(behind)), n))
}

// standsFor reports whether lookups that were answered here are what the client has
// seen as one message: the calls that it has to answer are the same, or, without
// calls, the words. A client whose first try broke off was told those of the last
// lookups alone.
func standsFor(lookups []*thread.Message, m *thread.Message) bool {
	if m.Role != thread.Assistant {
		return false
	}
	said, calls := []string{}, map[string]bool{}
	for _, r := range lookups {
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

// unanswered reports whether lookups wait for the model: the last of them holds
// nothing but answers to calls that have all been answered here.
func unanswered(lookups []*thread.Message) bool {
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
