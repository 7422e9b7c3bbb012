package rehydrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/suggest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Lookup finds what ids mean in one conversation, by its log alone.
type Lookup struct {
	Thread *thread.Thread
	// Pointers are the messages that hold what plans externalized, by artifact (see the
	// function Pointers).
	Pointers map[string][]thread.ID
	// Names reports whether an id is that of a content; nil knows the ids of
	// artifact.IDOf. See artifact.Store.Names.
	Names func(id, scope, content string) bool
}

// Pointers are the messages that hold what the plans externalized, by artifact. Plans may
// be nil.
func Pointers(plans ...*plan.Plan) map[string][]thread.ID {
	all := map[string][]thread.ID{}
	for _, p := range plans {
		if p == nil {
			continue
		}
		for _, x := range p.Externalized() {
			all[x.ArtifactID] = x.Messages
		}
	}
	return all
}

// Find returns the message or artifact with that id, or what was said in the turns that it names
// ("turn 7", "turns 3-9", as summaries write them), else all whose ids begin with it, artifacts
// first.
func (l *Lookup) Find(id string) []Content {
	if c := l.findTurns(id); c != nil {
		return []Content{*c}
	}
	if c := l.findExact(id); c != nil {
		return []Content{*c}
	}
	ids := slices.Sorted(maps.Keys(l.Pointers))
	for _, m := range l.Thread.All() {
		ids = append(ids, string(m.ID))
	}
	var found []Content
	for _, whole := range suggest.ByID(ids, id, func(id string) string { return id }) {
		if c := l.findExact(whole); c != nil {
			found = append(found, *c)
		}
	}
	return found
}

// turnsForm is how turns are named.
var turnsForm = lazyregexp.New(`^(?i:turns?) (\d{1,9})(?:-(\d{1,9}))?$`)

func (l *Lookup) findTurns(id string) *Content {
	named := turnsForm().FindStringSubmatch(id)
	if named == nil {
		return nil
	}
	first, _ := strconv.Atoi(named[1]) // nine digits at most
	last, _ := strconv.Atoi(cmp.Or(named[2], named[1]))
	var messages []*thread.Message
	for _, m := range l.Thread.All() {
		if m.Turn >= max(first, 1) && m.Turn <= last {
			messages = append(messages, m)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	return l.wholeContent(strings.ToLower(id), messages)
}

// findExact is what has an id: the text that the id was made of, else everything in the
// messages that it stands for. A summary may name an artifact that no known plan points
// to, so all texts of the conversation are tried then.
func (l *Lookup) findExact(id string) *Content {
	ids, pointed := l.Pointers[id]
	if !pointed {
		ids = []thread.ID{thread.ID(id)}
	}
	var messages []*thread.Message
	for _, id := range ids {
		if i, ok := l.Thread.Index(id); ok {
			messages = append(messages, l.Thread.At(i))
		}
	}
	among := messages
	if !pointed && artifact.IsID(id) {
		for _, m := range l.Thread.All() {
			among = append(among, m)
		}
	}
	named := func(text string) bool { return artifact.IDOf(l.Thread.ID(), text) == id }
	if l.Names != nil {
		named = func(text string) bool { return l.Names(id, l.Thread.ID(), text) }
	}
	for _, m := range among {
		if text, ok := recall.FindContent(m, named); ok {
			return l.newContent(id, text, m)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	return l.wholeContent(id, messages)
}

// wholeContent is everything in messages.
func (l *Lookup) wholeContent(id string, messages []*thread.Message) *Content {
	var texts []string
	for _, m := range messages {
		texts = append(texts, recall.FullText(m))
	}
	return l.newContent(id, strings.Join(texts, "\n"), messages...)
}

func (l *Lookup) newContent(id, text string, messages ...*thread.Message) *Content {
	r, _ := messages[0].Result()
	c := &Content{ID: id, ThreadID: l.Thread.ID(), Tool: r.Tool, Turn: messages[0].Turn, Text: text}
	for _, m := range messages {
		c.MessageIDs = append(c.MessageIDs, m.ID)
	}
	return c
}

// Pick returns the one content that an id means of those that were found, also in several
// conversations: a whole id comes before ids that begin with it, and the same text under
// the same id counts once. The error wraps artifact.ErrNotFound, or is an *AmbiguousError.
func Pick(id string, found []Content) (Content, error) {
	if whole := slices.DeleteFunc(slices.Clone(found), func(c Content) bool { return c.ID != id }); len(whole) > 0 {
		found = whole
	}
	found = slices.SortedStableFunc(slices.Values(found), func(a, b Content) int { return cmp.Compare(a.ID, b.ID) })
	found = slices.CompactFunc(found, func(a, b Content) bool { return a.ID == b.ID && a.Text == b.Text })
	switch len(found) {
	case 0:
		return Content{}, fmt.Errorf("%q: %w", id, artifact.ErrNotFound)
	case 1:
		return found[0], nil
	}
	several := &AmbiguousError{ID: id}
	for _, c := range found {
		name := c.ID
		if slices.ContainsFunc(found, func(other Content) bool { return other.ID == c.ID && other.ThreadID != c.ThreadID }) {
			name += fmt.Sprintf(" (thread %s)", c.ThreadID)
		}
		several.Candidates = append(several.Candidates, name)
	}
	return Content{}, several
}
