package proxy

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// lineage knows which logs continue others, so that what a client took out of its own history can be
// found in the log where it stood before. It is safe for concurrent use.
type lineage struct {
	origins records[[]string] // by log, the logs that it continues, the latest first
	// calls are the logs that had a tool call last, by the call and what a client says of itself
	// beside its session.
	calls *lru.Cache[string, string]

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
		calls:    lru.New[string, string](maxCalls),
		sessions: lru.New[string, *clientSession](maxSessions),
	}
}

// noteCalls notes that a log has calls. What stands before one of which that is known is known too.
func (l *lineage) noteCalls(kind, log string, messages []thread.Message) {
	for i := range slices.Backward(messages) {
		for _, key := range identify.CallKeys(messages[i : i+1]) {
			if last, _ := l.calls.Get(kind + key); last == log {
				return
			}
			l.calls.Put(kind+key, log, 1)
		}
	}
}

// keptFrom is the log that had the calls which a history repeats; empty if there is none. At least half
// of them must have been there, and more than in all other logs: ids of calls that a provider counts
// anew in every conversation can be the same in two.
func (l *lineage) keptFrom(kind string, messages []thread.Message) (best string) {
	had, known, keys := map[string]int{}, 0, identify.CallKeys(messages)
	for _, key := range keys {
		if log, ok := l.calls.Get(kind + key); ok {
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
	earlier, err := l.origin(ctx, log)
	if err != nil {
		return nil, err
	}
	last := l.switchLog(id, kind, log, size, shown || earlier != nil)
	if last = cmp.Or(kept, last); last == "" || earlier != nil {
		return earlier, nil
	}
	before, err := l.origin(ctx, last)
	if err != nil {
		return nil, err
	}
	earlier = append([]string{last}, slices.DeleteFunc(slices.Clone(before), func(e string) bool { return e == log })...)
	earlier = earlier[:min(len(earlier), maxEarlier)]
	if _, _, err = l.origins.put(ctx, log, record[[]string]{}, &earlier); errors.Is(err, store.ErrConflict) {
		err = nil // another request of the same conversation has written it
	}
	return earlier, err
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

// origin returns the logs that a log continues; nil if that is not known.
func (l *lineage) origin(ctx context.Context, log string) ([]string, error) {
	found, err := l.origins.get(ctx, log)
	if err != nil || found.value == nil {
		return nil, err
	}
	return *found.value, nil
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
		if from, err = cv.lineage.origin(ctx, at.Ancestors[i]); err != nil {
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
