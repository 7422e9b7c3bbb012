package palimpsest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/notes"
	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// snapshot is what the stores hold of a conversation.
type snapshot struct {
	log *thread.Thread
	// firstNew is the position of the first message of this step.
	firstNew int
	// plan is in force, nil for none. version is its version, and round counts the
	// compactions up to it.
	plan           *plan.Plan
	version, round int
	// usage is what the provider last counted.
	usage calibration
	// book holds the model's notes, with Recall.ContextTools.
	book notes.Book
}

// load reads log, plan and usage.
func load(ctx context.Context, s *Session) (l snapshot, err error) {
	if err = s.c.loadSigningKey(ctx); err != nil {
		return l, err
	}
	if l.log, l.plan, l.version, err = readLogAndPlan(ctx, s); err != nil {
		return l, err
	}
	l.firstNew = l.log.Len()
	l.round = roundOf(l.plan, l.version)
	k := s.state()
	if err := readPlans(ctx, s, l.plan, l.version); err != nil {
		return l, err
	}
	if k.monitor != nil && l.version != k.monitoredPlan {
		if k.monitoredPlan = l.version; !l.plan.Empty() {
			k.monitor.Compacted(l.log, l.plan)
		}
	}
	l.usage = k.calibration.current(ctx, s.conversation)
	if s.c.steers() {
		l.book, _, err = readBook(ctx, s)
	}
	return l, err
}

// readLogAndPlan reads the log, and the plan in force with its version.
func readLogAndPlan(ctx context.Context, s *Session) (log *thread.Thread, p *plan.Plan, version int, err error) {
	if log, err = s.c.config.Store.Log.Load(ctx, s.id); err == nil {
		p, version, err = s.c.config.Store.Plans.Current(ctx, s.id)
	}
	return log, p, version, err
}

// roundOf counts the compactions up to a plan. Plans of earlier versions of this module do
// not say it; each of those was one.
func roundOf(p *plan.Plan, version int) int {
	switch {
	case p == nil:
		return 0
	case p.Round == 0 && !p.Empty() && p.Policy != injected.ByClient:
		return version
	}
	return p.Round
}

// maxAttempts bounds how often a write is repeated after a conflict.
const maxAttempts = 5

// isConflict reports whether another writer was first, so that the write may be repeated.
func isConflict(err error) bool { return errors.Is(err, store.ErrConflict) }

// appendMessages appends messages to the log, after whatever was added meanwhile. Messages that
// are there already are not added again: those with a known id, and, where mayRepeat says
// that a step may be prepared again, those that the log ends with.
func appendMessages(ctx context.Context, s *Session, l snapshot, messages []thread.Message, mayRepeat bool) (snapshot, error) {
	if len(messages) == 0 {
		return l, checkVersion(s.condition.Log, l.log.Version())
	}
	messages = s.c.stampMessages(l.log, messages)
	captureSources(s.c.config.Tools, l.log, messages)
	for range maxAttempts {
		first := s.condition.appendPosition(l.log, messages, mayRepeat)
		if first > l.log.Version() {
			return l, &VersionError{first, l.log.Version()}
		}
		before := l.log.Version()
		next, err := s.c.config.Store.Log.Append(ctx, s.id, first, messages)
		if err == nil {
			l.log, l.firstNew = next, first
			s.state().monitorMessages(ctx, next, before)
			return l, nil
		}
		if !isConflict(err) {
			return l, err
		}
		if l.log, err = s.c.config.Store.Log.Load(ctx, s.id); err != nil {
			return l, err
		}
		if err := checkVersion(s.condition.Log, l.log.Version()); err != nil {
			return l, err
		}
	}
	return l, fmt.Errorf("after %d tries: %w", maxAttempts, store.ErrConflict)
}

// checkVersion compares a version with the one that a condition names; nil accepts any.
func checkVersion(want *int, have int) error {
	if want != nil && *want != have {
		return &VersionError{*want, have}
	}
	return nil
}

// allFromAssistant reports whether all messages are a model's. The same answer twice in a
// row was appended again by mistake; a person may say the same thing twice.
func allFromAssistant(messages []thread.Message) bool {
	return !slices.ContainsFunc(messages, func(m thread.Message) bool { return m.Role != thread.Assistant })
}

// stampMessages returns new messages as the log stores them: those without a time get the
// time of arrival, and those in the user's name that a program wrote are marked.
func (c *Compactor) stampMessages(log *thread.Thread, messages []thread.Message) []thread.Message {
	now := c.config.Now().UTC()
	out := slices.Clone(messages)
	for i := range out {
		if out[i].Time.IsZero() {
			out[i].Time = now
		}
	}
	return c.signing.markInjected(out, lastMessage(log))
}

// lastMessage is the last message of a log, nil where it is empty.
func lastMessage(log *thread.Thread) *thread.Message {
	if log.Len() == 0 {
		return nil
	}
	return log.At(log.Len() - 1)
}

// appendPosition is where messages go in the log: at the version that the condition names,
// where the log has them already, or at the end.
func (c Condition) appendPosition(log *thread.Thread, messages []thread.Message, mayRepeat bool) int {
	if c.Log != nil {
		return *c.Log
	}
	if at, known := log.Index(messages[0].ID); known && messages[0].ID != "" {
		return at
	}
	at := log.Len() - len(messages)
	if at < 0 || messages[0].ID != "" || !mayRepeat {
		return log.Len()
	}
	parent := log.Prefix(at).Last()
	for i := range messages {
		if parent = thread.ChainID(parent, &messages[i]); log.At(at+i).ID != parent {
			return log.Len()
		}
	}
	return at
}

// newMessages are those of the messages that appendMessages would add to the log.
func (c Condition) newMessages(log *thread.Thread, messages []thread.Message) []thread.Message {
	if len(messages) == 0 {
		return nil
	}
	known := log.Len() - c.appendPosition(log, messages, true)
	return messages[min(max(known, 0), len(messages)):]
}

// monitorMessages passes the messages from a position on to the quality monitor.
func (k *sessionState) monitorMessages(ctx context.Context, log *thread.Thread, from int) {
	if k.monitor == nil {
		return
	}
	for i := from; i < log.Len(); i++ {
		k.monitor.Message(ctx, *log.At(i))
	}
}

// reload loads again after a conflict. firstNew stays.
func reload(ctx context.Context, s *Session, l snapshot) (snapshot, error) {
	next, err := load(ctx, s)
	next.firstNew = l.firstNew
	return next, err
}

// notesKind is the kind of the documents that hold the notes of models, by conversation.
const notesKind = "notes"

// readBook reads the book of notes, and its version. A conversation that continues another one has
// that one's notes until it writes its own.
func readBook(ctx context.Context, s *Session) (book notes.Book, version int, err error) {
	for i, id := range append([]string{s.id}, s.earlier...) {
		found, err := s.c.books.Document(ctx, notesKind, id)
		if i == 0 {
			version = found.Version
		}
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case err != nil:
			return book, 0, err
		}
		if err := json.Unmarshal(found.Body, &book); err != nil {
			return notes.Book{}, 0, fmt.Errorf("the notes of thread %s: %w", id, err)
		}
		if i > 0 { // what was asked for there is over
			book = notes.Book{Notes: book.Notes, Last: book.Last}
		}
		return book, version, nil
	}
	book, err = foldBook(ctx, s)
	return book, version, err
}

// foldBook is the book of a conversation that has none in the store, since it is a branch of another
// one: the notes of its plan, and those whose calls are in its log.
func foldBook(ctx context.Context, s *Session) (book notes.Book, err error) {
	k := s.state()
	if k.hasNoNotes.Load() {
		return book, nil
	}
	log, current, _, err := readLogAndPlan(ctx, s)
	if err != nil {
		return book, err
	}
	if current != nil {
		book.Notes = current.Notes
	}
	book = notes.FoldOnto(book, log.Messages())
	k.hasNoNotes.Store(len(book.Notes) == 0)
	return book, nil
}

// changeBook changes the book and stores it, unless change returns an error, which is returned. Where
// somebody else was faster it is called again with what is stored now.
func changeBook(ctx context.Context, s *Session, change func(*notes.Book) error) error {
	for range maxAttempts {
		book, version, err := readBook(ctx, s)
		if err == nil {
			err = change(&book)
		}
		if err != nil {
			return err
		}
		body, err := json.Marshal(book)
		if err != nil {
			return err
		}
		if _, err = s.c.books.Put(ctx, store.Document{Kind: notesKind, ID: s.id, Version: version, Body: body}); !isConflict(err) {
			return err
		}
	}
	return fmt.Errorf("after %d tries: %w", maxAttempts, store.ErrConflict)
}

// steers reports whether the model sees and steers its context.
func (c *Compactor) steers() bool { return c.config.Recall != nil && c.config.Recall.ContextTools }

// takeAsked is the compaction that the model asked for, which is asked for no longer: one that fails
// is not tried again with each request. It is nil if there is none.
func takeAsked(ctx context.Context, s *Session, l snapshot) (asked *notes.Asked, err error) {
	if l.book.Asked == nil {
		return nil, nil
	}
	err = changeBook(ctx, s, func(b *notes.Book) error {
		asked, b.Asked = b.Asked, nil
		return nil
	})
	return asked, err
}

// The document that holds the signing key.
const (
	signingKind = "signing"
	signingID   = "summary-key"
)

// signingKey is the key of signatures, once it was read.
type signingKey struct {
	mu  sync.Mutex
	key string
}

func (s *signingKey) get() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// loadSigningKey reads the key, or makes it when it is first needed. Where there is none
// and none can be written, nothing was signed yet: sessions continue without a key, and
// the next load tries again.
func (c *Compactor) loadSigningKey(ctx context.Context) error {
	if !c.config.Sign || c.signing.get() != "" {
		return nil
	}
	key, err := store.Secret(ctx, c.config.Store.Documents, signingKind, signingID)
	if err != nil {
		if _, missing := c.config.Store.Documents.Document(ctx, signingKind, signingID); errors.Is(missing, store.ErrNotFound) {
			return nil
		}
		return fmt.Errorf("read the signing key: %w", err)
	}
	c.signing.mu.Lock()
	defer c.signing.mu.Unlock()
	c.signing.key = string(key)
	return nil
}

// markInjected marks messages in the user's name that no person wrote and, where there is
// a key, messages that only look like our summaries: a tool may have told the model to
// repeat one. System messages are left alone, since they come from whoever makes the
// request.
func (s *signingKey) markInjected(messages []thread.Message, before *thread.Message) []thread.Message {
	messages = injected.MarkInjected(messages, before)
	key := s.get()
	if key == "" {
		return messages
	}
	out := slices.Clone(messages)
	for i := range out {
		m := &out[i]
		if m.Role == thread.System || m.Kind == thread.Injected || m.IsAdded() || !ownformat.IsSummary(m) {
			continue
		}
		if m.Kind = thread.Injected; ownformat.IsAuthentic(m, key) {
			m.Kind = thread.Recap
		}
	}
	return out
}

// captureSources fills in what the source of a result looks like now, where its tool can
// tell and the caller has not.
func captureSources(tools *toolpolicy.Registry, log *thread.Thread, messages []thread.Message) {
	var calls map[string]thread.ToolCall
	for i := range messages {
		r, ok := messages[i].Result()
		if !ok || r.Determinism != nil {
			continue
		}
		if calls == nil {
			calls = callsOf(log, messages)
		}
		call, known := calls[r.CallID]
		capture := tools.Policy(call.Name).Capture
		if !known || capture == nil {
			continue
		}
		if now, err := capture(call); err == nil {
			r.Determinism = &now
			messages[i].Parts = slices.Clone(messages[i].Parts)
			for n, part := range messages[i].Parts {
				if _, ok := part.(thread.ToolResult); ok {
					messages[i].Parts[n] = r
					break
				}
			}
		}
	}
}

// callsOf are the calls that messages may answer, by id: those of the last step of the
// log, and their own.
func callsOf(log *thread.Thread, messages []thread.Message) map[string]thread.ToolCall {
	calls := map[string]thread.ToolCall{}
	add := func(m *thread.Message) {
		for _, call := range m.Calls() {
			calls[call.ID] = call
		}
	}
	for i := log.Len() - 1; i >= 0; i-- {
		if m := log.At(i); m.Role == thread.Assistant {
			add(m)
			break
		}
	}
	for i := range messages {
		add(&messages[i])
	}
	return calls
}
