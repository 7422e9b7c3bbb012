package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Limits of one search. It reads no further session once it has read maxSearchedBytes of text.
const (
	maxSearched      = 20 // sessions
	maxSearchedBytes = 64 << 20
	maxQuery         = 1_000 // bytes
	maxHits          = 60    // on all pages
	hitTokens        = 200   // of a hit, about
)

// recall searches the newest sessions, or those after the cursor.
func (s *Server) recall(ctx context.Context, in recallArgs, tokens int) (string, error) {
	if in.Query = strings.TrimSpace(in.Query); in.Query == "" || len(in.Query) > maxQuery {
		return "", fmt.Errorf("query: want words that occur in what you look for, at most %d bytes", maxQuery)
	}
	if err := new(recall.Options).Check(in.Query); err != nil {
		return "", fmt.Errorf("query: %w", err)
	}
	role := thread.Role(in.Role)
	if role != "" && !slices.Contains([]thread.Role{thread.System, thread.User, thread.Assistant, thread.Tool}, role) {
		return "", errors.New("role: want user, assistant, tool or system")
	}
	every, err := s.sessions.List(ctx)
	if err != nil {
		return "", err
	}
	found, err := matching(every, in.Session, in.Agent, in.Project)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return noSessions, nil
	}
	done, shown, err := readRecallCursor(in.Cursor, len(found))
	if err != nil {
		return "", err
	}
	index, searched, err := s.buildIndex(ctx, found[done:], every[0].ID)
	if err != nil {
		return "", err
	}
	search := func(limit, each int) []recall.Hit {
		hits := index.Search(in.Query, &recall.Options{Limit: limit, Tokens: limit * each, Role: role})
		return hits[min(shown, len(hits)):]
	}
	all := search(maxHits, hitTokens)
	text := s.fitTokens(tokens, func(bytes int) string {
		// The fewer hits a page has, the longer their excerpts can be.
		n := min(20, max(1, bytes/(4*hitTokens)))
		hits := search(shown+n, bytes/4/n)
		if len(hits) == 0 {
			hits = all[:min(1, len(all))]
		}
		page := firstHits(hits, bytes)
		// They are written as the tool recall of a session writes them.
		h := rehydrate.Handler{Recaller: fixedHits(page), DescribeThread: searched.describe, MaxBytes: 4 * bytes}
		arguments, _ := json.Marshal(map[string]any{"query": in.Query, "limit": max(1, len(page))})        // texts and numbers can be encoded
		answer, _ := h.Answer(ctx, thread.ToolCall{Name: recall.RecallTool, Arguments: string(arguments)}) // the error is that of ctx, told below
		text := answer.Text() + "\n\n" + searched.summary(done, len(found))
		next := done + searched.count
		switch {
		case len(page) < len(all):
			text += fmt.Sprintf(" More hits: cursor=%q.", fmt.Sprintf("%d:%d", done, shown+len(page)))
		case next < len(found):
			text += fmt.Sprintf(" To search older sessions: cursor=%q.", fmt.Sprintf("%d:0", next))
		}
		return text
	})
	return text, ctx.Err()
}

// readRecallCursor reads "A:B": A sessions are done, and B hits in the next ones were shown.
func readRecallCursor(cursor string, sessions int) (done, shown int, err error) {
	if cursor == "" {
		return 0, 0, nil
	}
	a, b, ok := strings.Cut(cursor, ":")
	if done, err = readCursor(a, sessions-1); err == nil && ok {
		shown, err = readCursor(b, 1<<20)
	}
	if err != nil || !ok {
		return 0, 0, errCursor
	}
	return done, shown, nil
}

// fixedHits is a rehydrate.Recaller that returns these hits.
type fixedHits []recall.Hit

// Recall implements rehydrate.Recaller.
func (p fixedHits) Recall(context.Context, string, int) ([]recall.Hit, error) { return p, nil }

// firstHits returns the first hits that take about that many bytes: at least one, and at most
// as many as rehydrate shows.
func firstHits(hits []recall.Hit, bytes int) []recall.Hit {
	const most, around = 20, 250 // around: bytes that are written with each excerpt
	n, used := 0, 0
	for n < min(most, len(hits)) {
		h := &hits[n]
		used += around + len(h.Excerpt) + len(h.Call) + len(strings.Join(h.Near, ", "))
		for _, beside := range []*recall.Neighbor{h.Before, h.After} {
			if beside != nil {
				used += len(beside.Text)
			}
		}
		if used > bytes && n > 0 {
			break
		}
		n++
	}
	out := slices.Clone(hits[:n])
	for i := range out {
		out[i].Others = nil // they would be most of the answer
	}
	return out
}

// searchedSessions are the sessions of one search.
type searchedSessions struct {
	byID   map[string]Session
	count  int // including those that could not be read
	unread int
}

func (p *searchedSessions) describe(threadID string) string {
	one := p.byID[threadID]
	text := "session " + clip.Line(threadID, 200) + " (" + one.Agent
	if one.Project != "" {
		text += ", " + clip.Line(one.Project, 60)
	}
	return text + ", " + one.Changed.UTC().Format(time.DateOnly) + ")"
}

// summary says which sessions were searched; done ones were searched before.
func (p *searchedSessions) summary(done, all int) string {
	text := fmt.Sprintf("Searched %d of %s", done+p.count, clip.Count(all, "session"))
	if done > 0 {
		text = fmt.Sprintf("Searched sessions %d to %d of %d", done+1, done+p.count, all)
	}
	text += ", the newest first."
	if p.unread > 0 {
		text += fmt.Sprintf(" %s could not be read.", clip.Count(p.unread, "session"))
	}
	return text
}

// buildIndex indexes the first of the sessions, and skips those that cannot be read. newest is the
// id of the newest of all, which need not be among them.
func (s *Server) buildIndex(ctx context.Context, list []Session, newest string) (*recall.Index, *searchedSessions, error) {
	of := &searchedSessions{byID: map[string]Session{}}
	var all []recall.Entry
	bytes := 0
	for i, one := range list {
		if i == maxSearched || bytes > maxSearchedBytes || ctx.Err() != nil {
			break
		}
		of.count++
		entries, err := s.searchEntries(ctx, one, one.ID == newest)
		if err != nil {
			of.unread++
			continue
		}
		for n := range entries {
			bytes += len(entries[n].Text)
		}
		of.byID[one.ID] = one
		all = append(all, entries...)
	}
	index, err := recall.NewIndexContext(ctx, all)
	return index, of, err
}

// searchEntries returns what can be found in a session. The newest session may be the one that
// asks: there it leaves out the question itself.
func (s *Server) searchEntries(ctx context.Context, one Session, newest bool) ([]recall.Entry, error) {
	key := entryKey(s.options.Scope, one.ID, one.Version, strconv.FormatBool(newest))
	if held, ok := s.options.Memory.entries.Get(key); ok {
		return held, nil
	}
	c, err := s.sessions.Open(ctx, one.ID)
	if err != nil {
		return nil, err
	}
	asking := thread.ID("")
	if n := c.Log.Len(); newest && n > 0 {
		if last := c.Log.At(n - 1); last.Role != thread.Assistant || len(last.Calls()) > 0 {
			asking = lastTurnStart(c.Log)
		}
	}
	aside := map[thread.ID]string{}
	if c.Plan != nil {
		for _, x := range c.Plan.Externalized() {
			for _, id := range x.Messages {
				aside[id] = x.ArtifactID
			}
		}
	}
	own := recallMessages(c.Log)
	entries := slices.DeleteFunc(recall.All(c.Log), func(e recall.Entry) bool { return e.MessageID == asking || own[e.MessageID] })
	bytes := 0
	for i := range entries {
		entries[i].ThreadID, entries[i].ArtifactID = one.ID, aside[entries[i].MessageID]
		bytes += len(entries[i].Text)
	}
	s.options.Memory.entries.Put(key, entries, bytes)
	return entries, nil
}

func lastTurnStart(t *thread.Thread) thread.ID {
	for i := t.Len() - 1; i >= 0; i-- {
		if m := t.At(i); m.StartsTurn() {
			return m.ID
		}
	}
	return ""
}

// maxPreamble is how much text before a tool call is not worth finding, in bytes.
const maxPreamble = 200

// recallMessages returns the calls of recall and read_artifact and their results, which only
// repeat other messages.
func recallMessages(t *thread.Thread) map[thread.ID]bool {
	out := map[thread.ID]bool{}
	for _, m := range t.All() {
		if r, ok := m.Result(); ok {
			out[m.ID] = isOurs(r.Tool)
		}
		if calls := m.Calls(); len(calls) > 0 && len(m.Text()) <= maxPreamble {
			out[m.ID] = !slices.ContainsFunc(calls, func(c thread.ToolCall) bool { return !isOurs(c.Name) })
		}
	}
	return out
}

// isOurs reports whether a tool is one of ours, by whatever server's name in front.
func isOurs(tool string) bool {
	class := toolclass.ClassOf(tool)
	return class == toolclass.Recall || class == toolclass.Notes
}

func (s *Server) readArtifact(ctx context.Context, in readArgs, tokens int) (string, error) {
	content := contentFinder{s: s, session: in.Session}
	arguments := map[string]any{"artifact_id": in.ArtifactID}
	for key, n := range map[string]int{"offset": in.Offset, "limit": in.Limit, "column": in.Column} {
		if n != 0 {
			arguments[key] = n
		}
	}
	call, _ := json.Marshal(arguments) // texts and numbers can be encoded
	failed := false
	text := s.fitTokens(tokens, func(bytes int) string {
		h := rehydrate.Handler{Artifacts: &content, MaxBytes: bytes}
		answer, _ := h.Answer(ctx, thread.ToolCall{Name: recall.ReadArtifactTool, Arguments: string(call)}) // empty if ctx is done
		failed = answer.Outcome == thread.Failure
		return answer.Text()
	})
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if content.err != nil { // more precise than the handler's error
		return "", content.err
	}
	if failed {
		return "", errors.New(strings.TrimPrefix(text, "Error: "))
	}
	return text, nil
}

// contentFinder finds content by its id, in one session or in the newest ones, and keeps the last.
type contentFinder struct {
	s       *Server
	session string

	asked   string // the id of content
	content *rehydrate.Content
	err     error
}

// Artifact implements rehydrate.Artifacts.
func (f *contentFinder) Artifact(ctx context.Context, id string) (rehydrate.Content, error) {
	if f.content == nil || f.asked != id {
		c, err := f.find(ctx, id)
		if err != nil {
			return c, err
		}
		f.content, f.asked = &c, id
	}
	return *f.content, nil
}

func (f *contentFinder) find(ctx context.Context, id string) (rehydrate.Content, error) {
	session := f.session
	list, err := f.s.filterSessions(ctx, session, "", "")
	if err != nil {
		f.err = err
		return rehydrate.Content{}, err
	}
	if session != "" {
		session = list[0].ID
	}
	if artifact.IsID(id) {
		c, err := f.s.sessions.Artifact(ctx, id)
		if err == nil && (session == "" || session == c.ThreadID) {
			return c, nil
		}
		if err != nil && !errors.Is(err, artifact.ErrNotFound) {
			return c, err
		}
	}
	var all []rehydrate.Content
	for i, s := range list {
		if i == maxSearched || ctx.Err() != nil {
			break
		}
		c, err := f.s.sessions.Open(ctx, s.ID)
		if err != nil {
			if session != "" {
				f.err = err
				return rehydrate.Content{}, err
			}
			continue
		}
		l := rehydrate.Lookup{Thread: c.Log, Pointers: rehydrate.Pointers(c.Plan)}
		all = append(all, l.Find(id)...)
	}
	return rehydrate.Pick(id, all)
}
