package dir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// minPrefix is how many characters of an id are enough to ask for it, where
// they mean one alone.
const minPrefix = 6

// AmbiguousError says which ids an id that was asked for may mean.
type AmbiguousError struct {
	ID string
	// Candidates are whole ids, with their thread where it tells them apart.
	Candidates []string
}

// shownCandidates is how many candidates an error writes.
const shownCandidates = 10

// Error lists the candidates.
func (e *AmbiguousError) Error() string {
	shown := e.Candidates[:min(shownCandidates, len(e.Candidates))]
	text := fmt.Sprintf("%q means several: %s", e.ID, strings.Join(shown, ", "))
	if more := len(e.Candidates) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Content is what was removed, in full.
type Content struct {
	// ID is the whole id of the artifact or message that was asked for.
	ID       string `json:"id"`
	ThreadID string `json:"thread_id"`
	// MessageIDs are the messages that the text is of, in thread order.
	MessageIDs []thread.ID `json:"message_ids"`
	Turn       int         `json:"turn"`
	Tool       string      `json:"tool,omitempty"`
	Text       string      `json:"text"`
}

// Artifact returns what is behind an id: the content of an artifact, or all that
// a removed message said. A prefix of at least 6 characters that means one alone
// will do. threadID keeps the search to one thread; "" searches all.
//
// The error wraps artifact.ErrNotFound (and then names what of the store is
// damaged, since what was asked for may be there), artifact.ErrExpired or
// artifact.ErrCorrupt, or is an *AmbiguousError.
func (s *Store) Artifact(ctx context.Context, id, threadID string) (c *Content, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("dir.Artifact(%s): %w", s.path, err)
		}
	}()
	m, text, err := s.artifacts.Get(ctx, artifact.Requester{}, id)
	switch {
	case err == nil && (threadID == "" || m.ThreadID == threadID):
		return &Content{ID: id, ThreadID: m.ThreadID, MessageIDs: m.MessageIDs, Turn: m.Turn, Tool: m.Tool, Text: text}, nil
	case err != nil && !errors.Is(err, artifact.ErrNotFound):
		return nil, err
	}
	entries, damage, err := s.read(ctx, threadID)
	if err != nil {
		return nil, err
	}
	groups := group(entries, func(e *recall.Entry) (string, bool) {
		return string(e.MessageID), string(e.MessageID) == id
	}, func(e *recall.Entry) (string, bool) {
		return e.ArtifactID, e.ArtifactID == id
	})
	if len(groups) == 0 && len(id) >= minPrefix {
		begins := func(s string) (string, bool) { return s, strings.HasPrefix(s, id) }
		groups = group(entries, func(e *recall.Entry) (string, bool) {
			return begins(string(e.MessageID))
		}, func(e *recall.Entry) (string, bool) {
			return begins(e.ArtifactID)
		})
	}
	switch len(groups) {
	case 1:
		return s.content(ctx, groups[0])
	case 0:
		return nil, notFound(id, damage)
	}
	ambiguous := &AmbiguousError{ID: id}
	for _, g := range groups {
		name := g.id
		if slices.ContainsFunc(groups, func(other found) bool { return other.id == g.id && other.thread != g.thread }) {
			name += fmt.Sprintf(" (thread %s)", g.thread)
		}
		ambiguous.Candidates = append(ambiguous.Candidates, name)
	}
	return nil, ambiguous
}

func notFound(id string, damage []Damage) error {
	hint := ""
	if len(id) < minPrefix {
		hint = fmt.Sprintf("; a part of an id needs at least %d characters", minPrefix)
	}
	if len(damage) > 0 {
		hint += fmt.Sprintf("; it may be among what cannot be read: %s", damage[0])
		if len(damage) > 1 {
			hint += fmt.Sprintf(" and %d more", len(damage)-1)
		}
	}
	return fmt.Errorf("%q: %w%s", id, artifact.ErrNotFound, hint)
}

// found are the entries of one thread that one id means.
type found struct {
	id, thread string
	entries    []kept
}

// group sorts the entries that one of the selectors names by id and thread.
// Where two threads hold the same message, saying the same, it is one.
func group(entries []kept, selectors ...func(*recall.Entry) (string, bool)) []found {
	var groups []found
	at := map[[2]string]int{}
	for _, k := range entries {
		for _, selects := range selectors {
			id, ok := selects(&k.Entry)
			if !ok || id == "" {
				continue
			}
			name := [2]string{id, k.ThreadID}
			n, known := at[name]
			if !known {
				n = len(groups)
				at[name] = n
				groups = append(groups, found{id: id, thread: k.ThreadID})
			}
			groups[n].entries = append(groups[n].entries, k)
		}
	}
	slices.SortStableFunc(groups, func(a, b found) int {
		return cmp.Or(strings.Compare(a.id, b.id), strings.Compare(a.thread, b.thread))
	})
	return slices.CompactFunc(groups, func(a, b found) bool {
		return a.id == b.id && a.text() == b.text()
	})
}

func (g found) text() string {
	var texts []string
	for _, k := range g.entries {
		texts = append(texts, k.Text)
	}
	return strings.Join(texts, "\n")
}

// content is what a group says: an artifact of the store as it is, one message
// in its last version, or the messages of one pointer together.
func (s *Store) content(ctx context.Context, g found) (*Content, error) {
	if artifact.IsID(g.id) {
		m, text, err := s.artifacts.Get(ctx, artifact.Requester{}, g.id)
		if err == nil {
			return &Content{ID: g.id, ThreadID: m.ThreadID, MessageIDs: m.MessageIDs, Turn: m.Turn, Tool: m.Tool, Text: text}, nil
		}
		if !errors.Is(err, artifact.ErrNotFound) {
			return nil, err
		}
	}
	last := map[thread.ID]int{}
	for i, k := range g.entries {
		last[k.MessageID] = i
	}
	c := &Content{ID: g.id, ThreadID: g.thread, Turn: g.entries[0].Turn, Tool: g.entries[0].Tool}
	var texts []string
	for i, k := range g.entries {
		if last[k.MessageID] != i {
			continue
		}
		if k.missing != nil {
			return nil, k.missing
		}
		c.MessageIDs = append(c.MessageIDs, k.MessageID)
		texts = append(texts, k.Text)
	}
	c.Text = strings.Join(texts, "\n")
	return c, nil
}

// List returns every removed message, by thread and in thread order, and what of
// the store could not be read. threadID keeps it to one thread; "" lists all. A
// message whose artifact has expired has no text.
func (s *Store) List(ctx context.Context, threadID string) ([]recall.Entry, []Damage, error) {
	entries, damage, err := s.read(ctx, threadID)
	if err != nil {
		return nil, nil, fmt.Errorf("dir.List(%s): %w", s.path, err)
	}
	out := make([]recall.Entry, len(entries))
	for i := range entries {
		out[i] = entries[i].Entry
	}
	return out, damage, nil
}

// Recall searches every removed message; see recall.Index. It also returns what
// of the store could not be read and was not searched.
func (s *Store) Recall(ctx context.Context, query string, o *recall.Options) ([]recall.Hit, []Damage, error) {
	threadID := ""
	if o != nil {
		threadID = o.ThreadID
	}
	entries, damage, err := s.List(ctx, threadID)
	if err != nil {
		return nil, nil, err
	}
	return recall.NewIndex(entries).Search(query, o), damage, nil
}

// Plans returns the plans of a thread, the first one first, and those that could
// not be read. What Save kept last stands last.
func (s *Store) Plans(ctx context.Context, threadID string) ([]*plan.Plan, []Damage, error) {
	folder := threadDir(threadID)
	numbers, err := s.planNumbers(folder)
	if err != nil {
		return nil, nil, fmt.Errorf("dir.Plans(%s): %w", s.path, err)
	}
	var plans []*plan.Plan
	var damage []Damage
	for _, n := range numbers {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		name := planPath(folder, n)
		data, err := s.files.Root.ReadFile(name)
		var p *plan.Plan
		if err == nil {
			p, err = plan.Parse(data)
		}
		if err != nil {
			damage = append(damage, Damage{Path: name, Reason: err.Error()})
			continue
		}
		if p.ThreadID == threadID {
			plans = append(plans, p)
		}
	}
	return plans, damage, nil
}

// read reads the removed messages of one thread, or of all.
func (s *Store) read(ctx context.Context, threadID string) ([]kept, []Damage, error) {
	folders := []string{threadDir(threadID)}
	if threadID == "" {
		var err error
		if folders, err = s.threadDirs(); err != nil {
			return nil, nil, err
		}
	}
	var all []kept
	var damage []Damage
	for _, folder := range folders {
		entries, broken, err := s.removed(ctx, folder)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, latest(entries)...)
		damage = append(damage, broken...)
	}
	if threadID != "" {
		all = slices.DeleteFunc(all, func(k kept) bool { return k.ThreadID != threadID })
	}
	slices.SortStableFunc(all, func(a, b kept) int {
		return cmp.Or(strings.Compare(a.ThreadID, b.ThreadID), cmp.Compare(a.Position, b.Position))
	})
	return all, damage, nil
}

func (s *Store) threadDirs() ([]string, error) {
	entries, err := s.files.List(threadsDir)
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, path.Join(threadsDir, e.Name()))
		}
	}
	return folders, nil
}
