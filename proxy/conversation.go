package proxy

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// conversations decodes requests, names their clients, and finds the logs of their conversations.
type conversations struct {
	*core
	models      *models
	asked       *lru.Cache[thread.ID, string] // which model was asked last, by the last message
	log         store.Log
	plans       store.Plans
	openLookups *lru.Cache[string, bool] // see keepLookups
	beginnings  records[[]string]        // conversations by their first message
	lineage     lineage
}

// loggedHistory is the part of a conversation that a request does not send: a compaction of
// ours stands for it, or the provider holds it.
type loggedHistory struct {
	// Log is the id of the log, At how many of its messages belong to the history, and Last
	// the id of the last of them. Without a log the request holds everything.
	Log  string    `json:"log,omitempty"`
	At   int       `json:"at,omitempty"`
	Last thread.ID `json:"last,omitempty"`
}

var errHistoryChanged = errors.New("the log no longer holds the history that the request continues")

func (cv *conversations) appendNew(ctx context.Context, at identify.Place, userAgent string) error {
	log, err := cv.log.Load(ctx, at.Log)
	if news := at.Request.News(at.Logged, userAgent); err == nil && len(news) > 0 {
		_, err = cv.log.Append(ctx, at.Log, log.Version(), news)
	}
	return err
}

// findConversation finds the place in a log that a request continues (see package identify), and makes
// the fork that it begins.
func (cv *conversations) findConversation(ctx context.Context, x *received, r *parsedRequest) (identify.Place, error) {
	if r.isSummary {
		return cv.findSummaryFork(ctx, x, r)
	}
	at, err := identify.Find(r.base, r.Request, cv.knownLogs(ctx, x, r, true))
	switch {
	case err != nil:
		return at, err
	case at.Fork:
		return at, cv.forkLog(ctx, at.Log, at.Thread, at.Shared)
	case at.Thread == nil && r.client.Thread == "":
		cv.noteBeginning(ctx, r.client.Beginning(r.Request), at.Base)
	}
	if at.OpenLookups != nil {
		at.HasHidden = true
	}
	return at, nil
}

// findSummaryFork is the place of a request for a summary, in a fork of its own.
func (cv *conversations) findSummaryFork(ctx context.Context, x *received, r *parsedRequest) (identify.Place, error) {
	id := identify.SummaryLog(r.base, r.IDs)
	log, err := cv.log.Load(ctx, id)
	if err == nil && log.Len() == 0 {
		var about identify.Place
		if about, err = cv.findSummarized(ctx, x, r); err == nil && about.Thread != nil {
			err = cv.forkLog(ctx, id, about.Thread, about.Shared)
		}
	}
	if err != nil {
		return identify.Place{}, err
	}
	at, err := identify.Find(id, r.Request, identify.Logs{Load: logLoader(ctx, cv.log), Canceled: ctx.Err})
	if err == nil && at.Fork {
		err = cv.forkLog(ctx, at.Log, at.Thread, at.Shared)
	}
	return at, err
}

// findSummarized is the place of the conversation that a request for a summary is about, also if the
// client left out its last turns to make the question fit.
func (cv *conversations) findSummarized(ctx context.Context, x *received, r *parsedRequest) (identify.Place, error) {
	n := len(r.IDs) - 1
	if n == 0 {
		return identify.Place{}, nil
	}
	return identify.Find(r.base, r.Prefix(n), cv.knownLogs(ctx, x, r, false))
}

// readAs is the request with another reading of its messages.
func (r *parsedRequest) readAs(reading *identify.Request) *parsedRequest {
	if reading == r.Request {
		return r
	}
	out := *r
	out.Request = reading
	return &out
}

func logLoader(ctx context.Context, log store.Log) func(string) (*thread.Thread, error) {
	return func(id string) (*thread.Thread, error) { return log.Load(ctx, id) }
}

// knownLogs is the access to the store that finds a place. claim says that open lookups at the place
// are taken up.
func (cv *conversations) knownLogs(ctx context.Context, x *received, r *parsedRequest, claim bool) identify.Logs {
	logs := identify.Logs{Load: logLoader(ctx, cv.log), Canceled: ctx.Err}
	if claim {
		logs.ClaimLookups = cv.openLookups.Delete
	}
	if r.client.Thread == "" {
		logs.BasesWithBeginning = func() []string {
			bases, _ := cv.beginnings.getValue(ctx, r.client.Beginning(r.Request)) // else the conversation is a new one
			return bases
		}
	}
	return logs
}

// forkLog begins a log with the first messages of its parent, and with the newest plan of the parent
// that is valid for them, so that the prefix stays as it is.
func (cv *conversations) forkLog(ctx context.Context, id string, parent *thread.Thread, shared int) error {
	log, err := cv.log.Append(ctx, id, 0, parent.Messages()[:shared])
	if err != nil {
		return err
	}
	_, version, err := cv.plans.Current(ctx, parent.ID())
	for ; err == nil && version > 0; version-- {
		var p *plan.Plan
		if p, err = cv.plans.Plan(ctx, parent.ID(), version); err != nil {
			break
		}
		inherited := *p
		inherited.ThreadID = id
		inherited.ThreadVersion = min(p.ThreadVersion, log.Version())
		inherited.Arrived = max(0, inherited.ThreadVersion-(p.ThreadVersion-p.Arrived)) // as many had been sent
		inherited.Edited = min(p.Edited, log.Version())
		if inherited.Validate(log) != nil {
			continue
		}
		if _, err = cv.plans.Commit(ctx, id, 0, store.Commit{Plan: &inherited}); errors.Is(err, store.ErrConflict) {
			return nil // another request of the same fork has made it
		}
		return err
	}
	return err
}

// maxBeginnings bounds the conversations that are known by one first message.
const maxBeginnings = 8

// beginningsIn are the conversations by their first message (identify.Client.Beginning), the latest
// first.
func beginningsIn(documents store.Documents) records[[]string] {
	return records[[]string]{documents: documents, kind: "proxy-beginning"}
}

// noteBeginning notes the first message of a conversation. If that fails, a client that changes its
// system prompt is not recognised, and nothing else is wrong.
func (cv *conversations) noteBeginning(ctx context.Context, beginning, base string) {
	_, _, _ = cv.beginnings.change(ctx, beginning, func(now *[]string) *[]string {
		bases := []string{base}
		if now != nil {
			if slices.Contains(*now, base) {
				return now
			}
			bases = append(bases, *now...)
		}
		bases = bases[:min(len(bases), maxBeginnings)]
		return &bases
	})
}

// keepLookups keeps a log in mind that ends with lookups whose answer did not reach the client, and that no
// request is at work on. Only this process knows it: elsewhere the same request begins again, in a fork.
func (cv *conversations) keepLookups(logID string) { cv.openLookups.Put(logID, true, 1) }

// lineage knows which logs continue others, so that what a client took out of its own history can be
// found in the log where it stood before. It is safe for concurrent use.
type lineage struct {
	origins records[[]string] // by log, the logs that it continues, the latest first
	// calls are the logs that had a tool call last, by a hash of the call and of what a client says of
	// itself beside its session.
	calls *lru.Cache[uint64, string]
	seed  maphash.Seed

	mu       sync.Mutex // guards the values in sessions
	sessions *lru.Cache[string, *clientSession]
}

// clientSession is the latest state of what a client calls a session.
type clientSession struct {
	logs      map[string]string // the last log, by model, system and tools
	stepBytes int               // the size of the last step
	// summarized says that the client has asked for a summary of the history since.
	summarized bool
}

const (
	// maxSessions bounds the sessions, and the origins, that are remembered.
	maxSessions = 1_000
	// maxEarlier bounds how many logs one log continues. That is how often the client has
	// compacted, and recall searches all of them.
	maxEarlier = 16
	// maxCalls bounds the calls that are remembered. A client keeps the newest of a conversation.
	maxCalls = 20_000
)

func lineageIn(documents store.Documents) lineage {
	return lineage{
		origins:  records[[]string]{documents: documents, kind: "proxy-origin", cache: lru.New[string, record[[]string]](maxSessions)},
		calls:    lru.New[uint64, string](maxCalls),
		seed:     maphash.MakeSeed(),
		sessions: lru.New[string, *clientSession](maxSessions),
	}
}

// noteCalls notes that a log has calls. What stands before one of which that is known is known too.
func (l *lineage) noteCalls(kind, log string, messages []thread.Message) {
	for i := range slices.Backward(messages) {
		for _, name := range identify.CallKeys(messages[i : i+1]) {
			key := maphash.Comparable(l.seed, [2]string{kind, name})
			if last, _ := l.calls.Get(key); last == log {
				return
			}
			l.calls.Put(key, log, 1)
		}
	}
}

// keptFrom is the log that had the calls which a history repeats; empty if there is none. At least half
// of them must have been there, and more than in all other logs: ids of calls that a provider counts
// anew in every conversation can be the same in two.
func (l *lineage) keptFrom(kind string, messages []thread.Message) (best string) {
	had, known, keys := map[string]int{}, 0, identify.CallKeys(messages)
	for _, key := range keys {
		if log, ok := l.calls.Get(maphash.Comparable(l.seed, [2]string{kind, key})); ok {
			had[log]++
			known++
			if had[log] > had[best] {
				best = log
			}
		}
	}
	if 2*had[best] < len(keys) || 2*had[best] <= known {
		return ""
	}
	return best
}

func (l *lineage) session(id string) *clientSession {
	return l.sessions.GetOrCreate(id, 1, func() *clientSession { return &clientSession{logs: map[string]string{}} })
}

// noteSideRequest notes a request beside the conversation. One that is nearly as large as the last step
// holds the history, and asks for a summary of it, however the client words that.
func (l *lineage) noteSideRequest(session string, kind identify.Kind, size int) {
	if session == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.session(session)
	if kind == identify.OwnCompaction || kind == identify.SideRequest && s.stepBytes > 0 && size >= s.stepBytes/2 {
		s.summarized = true
	}
}

// noteStep notes that a session continues in a log, and returns the logs that this one continues, the
// latest first: that from which the client has kept calls; else the session's log before, if the client
// had its history summarized, or if the new history says so (shown).
func (l *lineage) noteStep(ctx context.Context, id, kind, log string, size int, kept string, shown bool) ([]string, error) {
	earlier, err := l.origins.getValue(ctx, log)
	if err != nil {
		return nil, err
	}
	last := l.switchLog(id, kind, log, size, shown || earlier != nil)
	if last = cmp.Or(kept, last); last == "" || earlier != nil {
		return earlier, nil
	}
	before, err := l.origins.getValue(ctx, last)
	if err != nil {
		return nil, err
	}
	earlier = append([]string{last}, slices.DeleteFunc(slices.Clone(before), func(e string) bool { return e == log })...)
	earlier = earlier[:min(len(earlier), maxEarlier)]
	_, _, err = l.origins.put(ctx, log, record[[]string]{}, &earlier)
	return earlier, unlessConflict(err) // another request of the same conversation may have written it
}

// switchLog sets a session's log. It returns the one before, if that is another because the client
// made its history shorter; else it is empty.
func (l *lineage) switchLog(id, kind, log string, size int, shown bool) string {
	if id == "" {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.session(id)
	last, summed := s.logs[kind], s.summarized
	s.logs[kind], s.stepBytes = log, size
	if last == log || last == "" || !summed && !shown {
		return ""
	}
	s.summarized = false
	return last
}

// earlierLogs are the logs that the log of a request continues, the latest first.
func (cv *conversations) earlierLogs(ctx context.Context, x *received, r *parsedRequest, at identify.Place) ([]string, error) {
	if r.isSummary {
		return nil, nil
	}
	kind, kept := canonjson.Digest(r.client.API, r.client.Model, r.SystemDigest), ""
	if at.Thread == nil || at.Fork {
		kept = cv.lineage.keptFrom(kind, r.Prompt.Messages[at.Logged:])
	}
	shown := kept != "" || identify.HasRecap(r.Prompt.Messages)
	if kept != "" {
		old, err := cv.log.Load(ctx, kept)
		if err != nil {
			return nil, err
		}
		if !identify.LacksCall(old, r.Prompt.Messages, r.IDs) {
			kept = "" // the client has changed something, and that is all
		}
	}
	cv.lineage.noteCalls(kind, at.Log, r.Prompt.Messages)
	from, err := cv.lineage.noteStep(ctx, r.client.SessionID(), kind, at.Log, r.bytes, kept, shown)
	if err != nil {
		return nil, err
	}
	for i := 0; from == nil && i < len(at.Ancestors); i++ {
		if from, err = cv.lineage.origins.getValue(ctx, at.Ancestors[i]); err != nil {
			return nil, err
		}
	}
	for _, id := range at.Shortened {
		if !slices.Contains(from, id) && id != at.Log {
			from = append(slices.Clip(from), id)
		}
	}
	return from[:min(len(from), maxEarlier)], nil
}
