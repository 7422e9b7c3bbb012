package palimpsest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// reach is what is known of all plans of a thread, so that whatever one of them
// pointed to can be read: an agent may have noted a pointer long ago.
type reach struct {
	mu       sync.Mutex
	looked   int  // the plans up to this version were read
	removed  bool // one of them removed something
	pointers map[string]plan.Externalization
	digests  map[string]*plan.Range // of timelines, by path
	index    *recall.Index          // of what the plan of a version removed
	indexed  int
	injected injection
	earlier  []string // the threads that this one goes on from, the latest first
}

func (r *reach) offers() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.removed || len(r.earlier) > 0
}

// look reads the plans up to a version that were not read yet.
func (t *Thread) look(ctx context.Context, version int) error {
	if t.c.config.Recall == nil {
		return nil
	}
	r := &t.reach
	r.mu.Lock()
	defer r.mu.Unlock()
	if version < r.looked { // the thread was deleted, and begun anew
		r.looked, r.removed, r.pointers, r.digests, r.index = 0, false, nil, nil, nil
	}
	for r.looked < version {
		p, err := t.c.config.Plans.Plan(ctx, t.id, r.looked+1)
		if err != nil {
			return err
		}
		r.add(p)
		r.looked++
	}
	return nil
}

func (r *reach) add(p *plan.Plan) {
	if r.pointers == nil {
		r.pointers, r.digests = map[string]plan.Externalization{}, map[string]*plan.Range{}
	}
	r.removed = r.removed || !p.Empty()
	for _, x := range p.Externalizations {
		r.pointers[x.ArtifactID] = x
	}
	for i := range p.Summarizations {
		if s := p.Summarizations[i].Range; s != nil {
			r.digests[s.Path] = s
		}
	}
}

// Tools returns the tools that reach what plans removed, for callers who make
// the request around the prompts themselves: PrepareStep puts them into its
// prompts already. There are none without Config.Recall and before the first
// plan that removes something; from then on they stay and never change.
func (t *Thread) Tools(ctx context.Context) ([]prompt.Tool, error) {
	_, version, err := t.c.config.Plans.Current(ctx, t.id)
	if err == nil {
		err = t.look(ctx, version)
	}
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Tools(%s): %w", t.id, err)
	}
	if !t.reach.offers() {
		return nil, nil
	}
	return t.handler().Tools(), nil
}

// withTools adds the tools that the caller has none of the same name of.
func (t *Thread) withTools(tools []prompt.Tool) []prompt.Tool {
	if t.c.config.Recall == nil {
		return tools
	}
	out := slices.Clone(tools)
	for _, tool := range t.handler().Tools() {
		if !slices.ContainsFunc(tools, func(x prompt.Tool) bool { return x.Name == tool.Name }) {
			out = append(out, tool)
		}
	}
	return out
}

// Answer answers a call of the tools read_artifact and recall from the thread's
// own log: the result is a message for the next Step. For a call of any other
// tool, or without Config.Recall, it is false. read_artifact takes the id of any
// pointer that a plan of the thread ever showed, the id of a message (of both the
// beginning will do where it means one alone), and the path of a timeline's
// summary, for which it gives the digest of what was compacted (C10). What cannot be
// found or read is said in the result; the error is that of ctx.
func (t *Thread) Answer(ctx context.Context, call thread.ToolCall) (result thread.Message, ok bool, err error) {
	if t.c.config.Recall == nil {
		return thread.Message{}, false, nil
	}
	r, err := t.handler().Answer(ctx, call)
	switch {
	case errors.Is(err, rehydrate.ErrUnknownTool):
		return thread.Message{}, false, nil
	case err != nil:
		return thread.Message{}, true, fmt.Errorf("palimpsest.Answer(%s): %w", t.id, err)
	}
	return thread.Message{Role: thread.Tool, Parts: []thread.Part{r}}, true, nil
}

func (t *Thread) handler() *rehydrate.Handler {
	from := fromLog{t}
	return &rehydrate.Handler{Artifacts: from, Recaller: from, MaxBytes: t.c.config.Recall.MaxBytes}
}

// fromLog reads and searches what the plans of a thread removed.
type fromLog struct{ t *Thread }

// own is what the thread itself has of that id.
func (f fromLog) own(ctx context.Context, id string) (rehydrate.Content, error) {
	t := f.t
	_, version, err := t.c.config.Plans.Current(ctx, t.id)
	if err == nil {
		err = t.look(ctx, version)
	}
	if err != nil {
		return rehydrate.Content{}, err
	}
	id, digest, err := t.reach.find(id)
	if err != nil {
		return rehydrate.Content{}, err
	}
	if digest != nil {
		return rehydrate.Content{ID: digest.Path, Text: digest.Digest.Render()}, nil
	}
	if store := t.c.config.Artifacts; store != nil && artifact.IsID(id) {
		return rehydrate.Stored{Source: store, Requester: t.c.config.Requester, ThreadID: t.id}.Artifact(ctx, id)
	}
	if id, err = f.message(ctx, id); err != nil {
		return rehydrate.Content{}, err
	}
	m, content, err := f.Get(ctx, t.c.config.Requester, id)
	if err != nil {
		return rehydrate.Content{}, err
	}
	return rehydrate.Content{ID: id, Tool: m.Tool, Turn: m.Turn, Text: content}, nil
}

// find completes an id that is the beginning of one pointer alone.
func (r *reach) find(id string) (whole string, digest *plan.Range, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.digests[id]; d != nil {
		return id, d, nil
	}
	if _, ok := r.pointers[id]; ok {
		return id, nil, nil
	}
	var candidates []string
	for known := range r.pointers {
		if strings.HasPrefix(known, id) {
			candidates = append(candidates, known)
		}
	}
	slices.Sort(candidates)
	switch len(candidates) {
	case 0:
		return id, nil, nil
	case 1:
		return candidates[0], nil, nil
	}
	return "", nil, &rehydrate.AmbiguousError{ID: id, Candidates: candidates}
}

// leastID is how many characters of a message's id are enough to ask for it.
const leastID = 6

// message completes an id that is the beginning of the id of one message alone.
func (f fromLog) message(ctx context.Context, id string) (string, error) {
	if len(id) < leastID {
		return id, nil
	}
	log, err := f.t.c.config.Log.Load(ctx, f.t.id)
	if err != nil {
		return "", err
	}
	var candidates []string
	for _, m := range log.All() {
		switch {
		case string(m.ID) == id:
			return id, nil
		case strings.HasPrefix(string(m.ID), id):
			candidates = append(candidates, string(m.ID))
		}
	}
	switch len(candidates) {
	case 0:
		return id, nil
	case 1:
		return candidates[0], nil
	}
	return "", &rehydrate.AmbiguousError{ID: id, Candidates: candidates}
}

// Metadata implements rehydrate.Source.
func (f fromLog) Metadata(ctx context.Context, who artifact.Requester, id string) (artifact.Metadata, error) {
	m, _, err := f.Get(ctx, who, id)
	return m, err
}

// Get implements rehydrate.Source: what a pointer of a plan, or the id of a
// message, stands for.
func (f fromLog) Get(ctx context.Context, who artifact.Requester, id string) (artifact.Metadata, string, error) {
	t := f.t
	log, err := t.c.config.Log.Load(ctx, t.id)
	if err != nil {
		return artifact.Metadata{}, "", err
	}
	t.reach.mu.Lock()
	x, ok := t.reach.pointers[id]
	t.reach.mu.Unlock()
	ids := x.Span.MessageIDs
	if !ok {
		ids = []thread.ID{thread.ID(id)}
	}
	meta := artifact.Metadata{ID: id, ThreadID: t.id, TenantID: who.TenantID, Sensitivity: t.c.config.Sensitivity}
	names := func(id, scope, content string) bool { return id == artifact.IDOf(scope, content) }
	if t.c.config.Artifacts != nil {
		if names, err = t.c.config.Artifacts.Names(ctx, who.TenantID); err != nil {
			return artifact.Metadata{}, "", err
		}
	}
	var texts []string
	for _, messageID := range ids {
		i, ok := log.Index(messageID)
		if !ok {
			continue
		}
		m := log.At(i)
		meta.MessageIDs, meta.Turn = append(meta.MessageIDs, m.ID), m.Turn
		if r, ok := m.Result(); ok {
			meta.Tool = r.Tool
		}
		if content, ok := recall.Content(m, func(content string) bool { return names(id, t.id, content) }); ok {
			texts = []string{content}
			break
		}
		texts = append(texts, recall.FullText(m))
	}
	if texts == nil {
		return artifact.Metadata{}, "", fmt.Errorf("thread %s has no %s: %w", t.id, id, artifact.ErrNotFound)
	}
	content := strings.Join(texts, "\n\n")
	meta.Bytes = len(content)
	return meta, content, nil
}

// Recall implements rehydrate.Recaller: it searches what the plan in force
// removed.
func (f fromLog) Recall(ctx context.Context, query string, limit int) ([]recall.Hit, error) {
	t := f.t
	log, err := t.c.config.Log.Load(ctx, t.id)
	if err != nil {
		return nil, err
	}
	current, version, err := t.c.config.Plans.Current(ctx, t.id)
	if err != nil {
		return nil, err
	}
	return t.search(ctx, log, current, version, query, recall.Options{Limit: limit, Tokens: t.answerTokens()})
}

// indexOf is the index over what a plan removed, and over what earlier threads
// hold. It is made once for each plan.
func (t *Thread) indexOf(ctx context.Context, log *thread.Thread, p *plan.Plan, version int) (*recall.Index, error) {
	t.reach.mu.Lock()
	index, indexed, earlier := t.reach.index, t.reach.indexed, t.reach.earlier
	t.reach.mu.Unlock()
	if index != nil && indexed == version {
		return index, nil
	}
	lost, err := t.lost(ctx, log, p)
	if err != nil {
		return nil, err
	}
	index = recall.NewIndex(append(lost, recall.Removed(log, p)...))
	t.reach.mu.Lock()
	defer t.reach.mu.Unlock()
	if slices.Equal(t.reach.earlier, earlier) {
		t.reach.index, t.reach.indexed = index, version
	}
	return index, nil
}

// answerTokens is how much one search may bring, in tokens: less than usual where
// the window is so small that a few answers would fill it.
func (t *Thread) answerTokens() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	room := t.step.Budget
	if room == 0 {
		room = t.step.Window - t.step.Output
	}
	if room <= 0 {
		return recall.DefaultTokens
	}
	return min(recall.DefaultTokens, max(room/answerShare, leastAnswer))
}

const (
	answerShare = 30  // of the room: one answer's part
	leastAnswer = 400 // tokens
)

// search finds removed messages by words, and by meaning where there is an
// Embedder. One that fails leaves the words.
func (t *Thread) search(ctx context.Context, log *thread.Thread, p *plan.Plan, version int, query string, o recall.Options) ([]recall.Hit, error) {
	index, err := t.indexOf(ctx, log, p, version)
	if err != nil {
		return nil, err
	}
	if t.c.search != nil {
		hits, err := t.c.search.Search(ctx, index, query, &o)
		if err == nil || ctx.Err() != nil {
			return hits, ctx.Err()
		}
	}
	return index.Search(query, &o), nil
}

func (t *Thread) newRehydrator(o rehydrate.Options) *rehydrate.Rehydrator {
	if o.Disabled {
		return nil
	}
	if o.Events == nil {
		o.Events = t.c.config.Events
	}
	var source rehydrate.Source = fromLog{t}
	if t.c.config.Artifacts != nil {
		source = t.c.config.Artifacts
	}
	return rehydrate.New(source, t.c.config.Counter.Text, &o)
}

// rehydrate reads stored content that the agent plainly means. What cannot be
// read is passed over; the sink of the rehydrator was told.
func (t *Thread) rehydrate(ctx context.Context, s *policy.State) ([]render.Rehydrated, rehydrate.TurnContext, error) {
	if t.rehydrator == nil || s.Current.Empty() {
		return nil, rehydrate.TurnContext{}, nil
	}
	turn := rehydrate.TurnOf(s.Thread, s.Base.Tools)
	if limit := max(s.Budget, s.Window-s.Output); limit > 0 {
		turn.Room = max(limit-s.Prompt, 1)
	}
	shown, what, err := t.rehydrator.Rehydrate(ctx, t.c.config.Requester, turn, s.Current)
	if err != nil && ctx.Err() != nil {
		return nil, what, ctx.Err()
	}
	return shown, what, nil
}
