// Package render makes the prompt: a pure function of a thread, a plan and the profile of
// the provider that will read it. The same input always gives the same bytes.
//
// What no record covers is passed on untouched, with the provider bytes it came from. The
// renderer also keeps to the rules that all providers share: results directly follow their
// calls, each call has exactly one, and reasoning that a provider binds to what came
// before it is removed once that has changed. A thread that is valid by itself comes out
// unchanged under an empty plan.
//
// Content that comes back for a turn alone is part of neither log nor plan: Append adds it
// to a rendered prompt.
//
// The functions are stateless and may be called from anywhere. A Memo remembers the last
// rendering, so that a step costs what it adds.
package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Options tune a rendering; nil and the zero value just render the plan.
type Options struct {
	// Profile is the provider the prompt is for.
	Profile Profile
	// Pairs is the pairing of the thread, if the caller has it already.
	Pairs *thread.Pairing
	// Cache says where cache marks go while no plan does; nil leaves them to the caller.
	Cache *plan.CacheRule
	// Rewritten is like plan.Plan.Rewritten, for changes that no plan knows of: content that
	// was brought back and is gone. The larger one counts.
	Rewritten int
	// Shared leaves out the copies: nobody may change the messages of the prompt (see Owned).
	Shared bool
}

// suited are the options for a thread; nil is the zero value.
func (o *Options) suited(t *thread.Thread) *Options {
	suited := *cmp.Or(o, &Options{})
	suited.Profile = suited.Profile.Suited(t)
	return &suited
}

// Render makes the prompt of a thread under a plan. base gives model, system, tools and
// the other request parameters; its messages are not used. It may be nil. The error is
// that of plan.Validate.
func Render(t *thread.Thread, p *plan.Plan, base *prompt.Prompt, o *Options) (*prompt.Prompt, *Manifest, error) {
	o = o.suited(t)
	r, err := begin(t, p, o)
	if err != nil {
		return nil, nil, err
	}
	r.walk(0)
	return r.finish(base)
}

// begin checks the plan and makes a renderer at the beginning of the thread.
func begin(t *thread.Thread, p *plan.Plan, o *Options) (*renderer, error) {
	if p == nil {
		p = &plan.Plan{ThreadID: t.ID(), ThreadVersion: t.Version()}
	}
	pairs := o.Pairs
	if pairs == nil {
		pairs = thread.Pair(t)
	}
	if err := p.ValidatePairs(t, pairs); err != nil {
		return nil, fmt.Errorf("render.Render: %w", err)
	}
	actions := p.Actions()
	stay := t.Len() + 4 // and a few for those that a plan removes
	for _, ref := range actions {
		if ref.Action.Removes() {
			stay--
		}
	}
	if stay < 64 {
		stay = 0
	}
	r := &renderer{
		thread: t, plan: p, pairs: pairs, profile: o.Profile, shared: o.Shared,
		messages: t.Messages(), actions: actions,
		cache: o.Cache, rewritten: max(p.Rewritten(), o.Rewritten),
		shown: map[plan.Ref]bool{}, room: stay, asLogged: true,
		manifest: &Manifest{Format: formatVersion, Messages: slices.Grow([]Origin(nil), stay)},
		current:  -1,
		mark:     -1,
	}
	r.notesAt = noteRecord(r)
	return r, nil
}

// finish does what depends on the prompt as a whole.
func (r *renderer) finish(base *prompt.Prompt) (*prompt.Prompt, *Manifest, error) {
	out := &prompt.Prompt{}
	if base != nil {
		*out = *base
	}
	r.manifest.Messages = slices.Clip(r.manifest.Messages) // a Memo has what was there by then
	r.wholeLoops()
	r.setOrphansApart()
	r.thinkFirst()
	r.openWithUser()
	r.closeWithUser()
	out.Messages = r.out
	out.CachePoints = r.cachePoints()
	if !r.shared {
		out = Owned(out)
	}
	return out, r.manifest, nil
}

// isLogged reports whether a message is one of the log, unchanged.
func isLogged(a, log *thread.Message) bool {
	return a.ID == log.ID && a.Role == log.Role && a.Kind == log.Kind && a.Turn == log.Turn && a.Frame == log.Frame && a.Index == log.Index &&
		a.Name == log.Name && a.Time == log.Time && len(a.Parts) == len(log.Parts) && (len(a.Parts) == 0 || &a.Parts[0] == &log.Parts[0])
}

// Owned returns a Shared prompt with copies of its messages, which the caller may change.
func Owned(p *prompt.Prompt) *prompt.Prompt {
	out := *p
	out.Messages = slices.Clone(p.Messages)
	thread.Own(out.Messages)
	return &out
}

type renderer struct {
	thread   *thread.Thread
	plan     *plan.Plan
	pairs    *thread.Pairing
	profile  Profile
	messages []thread.Message
	actions  plan.Actions
	cache    *plan.CacheRule // without a plan
	shared   bool
	// rewritten is how many messages hold reasoning that is no longer valid.
	rewritten int

	shown    map[plan.Ref]bool // records whose text stands in the prompt
	notesAt  plan.Ref          // the record behind whose text the plan's notes stand; zero for none
	out      []thread.Message
	asLogged bool // out is the beginning of the log's own list, which nobody writes to
	room     int  // about how many messages out will have
	manifest *Manifest
	current  int // where the current turn begins in out, or -1

	mark   int // the position at which walk notes in marked what is written by then
	marked written
}

func (r *renderer) push(m thread.Message, o Origin) {
	r.manifest.Messages = append(r.manifest.Messages, o)
	if n := len(r.out); r.asLogged && n < len(r.messages) && isLogged(&m, &r.messages[n]) {
		r.out = r.messages[: n+1 : n+1]
		return
	}
	if r.asLogged {
		r.out, r.asLogged = slices.Grow(slices.Clip(r.out), max(1, r.room-len(r.out))), false
	}
	r.out = append(r.out, m)
}

func (r *renderer) repair(id thread.ID, what string) {
	r.manifest.Repairs = append(r.manifest.Repairs, Repair{id, what})
}

// walk goes through the log once, from a position on. Results are written with their
// calls, so a tool message found here is late, a duplicate or without a call.
func (r *renderer) walk(from int) {
	for i := from; i < len(r.messages); i++ {
		if i == r.mark {
			r.marked = r.written()
		}
		m := &r.messages[i]
		ref := r.actions[m.ID]
		if ref.Action != plan.Include {
			r.manifest.Hidden = append(r.manifest.Hidden, Hidden{m.ID, ref})
		}
		cutOff := hiddenCalls(r, i)
		hosted := r.pairs.Hosted(i) && m.Frame != nil && m.Frame.API() == r.profile.API && len(cutOff) == 0 // its call is sent as it was
		if m.Role == thread.Tool && !ref.Action.Removes() && !hosted {
			if _, paired := r.pairs.Call(i); !paired || len(cutOff) > 0 {
				r.orphan(i, ref)
			}
			continue
		}
		if call, paired := r.pairs.Call(i); paired && r.stays(call) {
			continue // its text stands in its own place, behind the call
		}
		switch {
		case ref.Action == plan.Drop:
		case ref.Action.Removes():
			r.span(m, ref)
		default:
			r.message(i, ref)
		}
		compactedTools(r, m, ref)
	}
	if r.mark == len(r.messages) {
		r.marked = r.written()
	}
}

// stays reports whether the prompt shows the message at i itself.
func (r *renderer) stays(i int) bool { return !r.actions[r.messages[i].ID].Action.Removes() }

// span writes the replacement of a removed span, once, at the first message that is left
// of it.
func (r *renderer) span(m *thread.Message, ref plan.Ref) {
	if r.shown[ref] {
		return
	}
	r.shown[ref] = true
	stand := r.profile.Replacement(*m, r.plan.Record(ref), false)
	if ref == r.notesAt && ref.Action != plan.Include {
		stand = r.profile.withNotes(*m, stand, r.plan.NotesText())
	}
	for _, stand := range stand {
		r.push(r.profile.Translate(stand, true), Origin{ID: m.ID, Record: ref, Synthetic: true})
	}
}

// compactedTools writes the changes of the tools that a hidden compaction of the provider's brought along.
func compactedTools(r *renderer, m *thread.Message, ref plan.Ref) {
	hides := ref.Action.Removes() || ref.Action == plan.Clear && r.plan.Clearings[ref.Index].PreservedFields[plan.ReplacementField] != nil
	if changes := hosted.CompactedTools(m); hides && len(changes) > 0 {
		tools := thread.Message{ID: m.ID, Role: thread.System, Turn: m.Turn, Parts: changes}
		if tools = r.profile.Translate(tools, true); len(tools.Parts) > 0 {
			r.push(tools, Origin{ID: m.ID, Record: ref, Synthetic: true})
		}
	}
}

// message writes a message that stays and, after an assistant message, the results of its
// calls.
func (r *renderer) message(i int, ref plan.Ref) {
	m := r.messages[i]
	if ref.Action == plan.Clear {
		m = r.profile.Replacement(m, r.plan.Record(ref), true)[0]
	}
	m = r.translate(lateResults(r, m, i), i)
	if len(m.Parts) == 0 {
		if ref.Action == plan.Include {
			r.repair(m.ID, unsendable)
		}
		return
	}
	if m.StartsTurn() {
		r.current = len(r.out)
	}
	r.push(m, Origin{ID: m.ID, Record: ref})
	if m.Role != thread.Assistant {
		return
	}
	r.results(i)
}

// results writes the answers to the calls of message i: each result once, and a note for
// calls without any.
func (r *renderer) results(i int) {
	found, missing := r.pairs.Results(i), r.pairs.Missing(i)
	var place map[string]int
	if r.profile.ResultsInCallOrder {
		place = places(&r.messages[i])
		found = r.inCallOrder(place, found)
	}
	expected := i + 1
	for _, at := range found {
		m := r.messages[at]
		result, _ := m.Result()
		for len(missing) > 0 && place[missing[0].ID] < place[result.CallID] {
			r.unanswered(i, missing[0])
			missing = missing[1:]
		}
		if r.pairs.Duplicate(at) {
			r.repair(m.ID, "a second result for one call is left out")
			continue
		}
		if at != expected && !r.profile.ResultsInCallOrder {
			r.repair(m.ID, "a late result is moved behind its call")
		}
		expected = at + 1
		ref := r.actions[m.ID]
		origin := Origin{ID: m.ID, Record: ref}
		switch {
		case ref.Action == plan.Include:
		case ref.Action.Removes() && r.shown[ref]:
			m, origin.Synthetic = withResult(m, r.again(ref)), true
		default:
			m = r.profile.Replacement(m, r.plan.Record(ref), true)[0]
			r.shown[ref], origin.Synthetic = true, ref.Action.Removes()
		}
		r.push(r.translate(m, at), origin)
	}
	for _, c := range missing {
		r.unanswered(i, c)
	}
}

// unanswered writes a note in place of a missing result for a call of message i.
func (r *renderer) unanswered(i int, c thread.ToolCall) {
	at := r.messages[i]
	r.repair(at.ID, "call "+c.ID+" has no result; a note stands in its place")
	note := thread.NewResult(c, thread.Failure, unanswered)
	note.Turn = at.Turn
	r.push(note, Origin{Synthetic: true})
}

// again is the text at the second and later results of one span whose calls stay: every
// call needs an answer, but the span's text is shown once.
func (r *renderer) again(ref plan.Ref) string {
	if ref.Action == plan.Externalize {
		return fmt.Sprintf("[Externalized Content - artifact:%s, as above]", r.plan.Externalizations[ref.Index].ArtifactID)
	}
	return "[Summarized above]"
}

// places gives the position of each call in its message, by id.
func places(m *thread.Message) map[string]int {
	place := map[string]int{}
	for n, c := range m.Calls() {
		place[c.ID] = n
	}
	return place
}

func (r *renderer) inCallOrder(place map[string]int, found []int) []int {
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b int) int {
		x, _ := r.messages[a].Result()
		y, _ := r.messages[b].Result()
		return place[x.CallID] - place[y.CallID]
	})
	return found
}

// orphan keeps a result that answers no call as quoted text in the model's role: no provider
// accepts it as a result, and it is not what the user said. A call of our own in front of it would
// not do: a turn of a model that thinks must begin with its reasoning.
func (r *renderer) orphan(i int, ref plan.Ref) {
	m := r.messages[i]
	result, _ := m.Result()
	text := result.Text()
	if ref.Action == plan.Clear {
		m := r.profile.cleared(m, r.plan.Clearings[ref.Index].PreservedFields)
		result, _ := m.Result()
		text = result.Text()
	}
	r.repair(m.ID, "a result without a call is kept as text")
	r.push(synthetic(&m, thread.Assistant, ownformat.ResultText(result.Tool, text)), Origin{ID: m.ID, Record: ref, Synthetic: true})
}

// hiddenCalls are the ids of the calls that the plan hides while the message at i has a late result of them.
func hiddenCalls(r *renderer, i int) map[string]bool {
	var hidden map[string]bool
	for _, late := range r.pairs.Late(i) {
		if r.stays(late.At) {
			continue
		}
		if hidden == nil {
			hidden = map[string]bool{}
		}
		hidden[late.ID] = true
	}
	return hidden
}

// lateResults makes the hosted results in a message of the model whose calls are hidden a text each,
// quoted as in orphan: no provider accepts them as results.
func lateResults(r *renderer, m thread.Message, i int) thread.Message {
	hidden := hiddenCalls(r, i)
	if hidden == nil || m.Role != thread.Assistant {
		return m
	}
	parts := slices.Clone(m.Parts)
	for n, part := range parts {
		if o, ok := part.(thread.Opaque); ok && o.Answers && hidden[o.Call] {
			parts[n] = thread.Text{Text: ownformat.ResultText(cmp.Or(o.Tool, o.Kind), o.Text)}
		}
	}
	r.repair(m.ID, "a result without a call is kept as text")
	return edited(m, parts)
}

// setOrphansApart puts the user's turn around results without a call where a summary in their place
// would get the user's role: before the first message, at the end, and before the reasoning that
// must begin a turn of the model.
func (r *renderer) setOrphansApart() {
	orphan := func(n int) bool { return r.manifest.Messages[n].Synthetic && ownformat.ShowsContent(&r.out[n]) }
	for n := 0; n < len(r.out); n++ {
		if !orphan(n) {
			continue
		}
		if n+1 == len(r.out) || !orphan(n+1) && r.out[n+1].Role == thread.Assistant && (reasons(&r.out[n+1]) || r.manifest.Messages[n+1].Synthetic) {
			r.insert(n+1, synthetic(&r.out[n], thread.User, continues))
		}
		if r.profile.FirstUser && !slices.ContainsFunc(r.out[:n], func(m thread.Message) bool { return m.Role != thread.System }) {
			r.insert(n, synthetic(&r.out[n], thread.User, continues))
		}
	}
}

// translate adapts the message at i to the profile. What no request of the API can hold, and has no text, is told.
func (r *renderer) translate(m thread.Message, i int) thread.Message {
	left := func(parts []thread.Part) {
		for _, part := range parts {
			if o, ok := part.(thread.Opaque); ok && r.profile.API != "" && strings.TrimSpace(o.Text) == "" && !r.profile.admits(o) {
				r.repair(m.ID, "a block of type "+o.Kind+" cannot be sent to this provider; it is left out")
			}
		}
	}
	left(m.Parts)
	if result, ok := m.Result(); ok {
		left(result.Content)
	}
	return r.profile.Translate(m, i < r.rewritten)
}

// openWithUser makes the first message the user's, where the provider requires it.
func (r *renderer) openWithUser() {
	if !r.profile.FirstUser {
		return
	}
	// Anthropic has the leading instructions beside the messages: one among them needs a user before it too.
	first := slices.IndexFunc(r.out, func(m thread.Message) bool { return m.Role != thread.System || r.profile.API == wire.Anthropic })
	compacted := func(p thread.Part) bool { return hosted.Author(p) == thread.ByCompaction } // by the provider: nothing stands before it
	if first < 0 || r.out[first].Role == thread.User || slices.ContainsFunc(r.out[first].Parts, compacted) {
		return
	}
	if r.manifest.Messages[first].Synthetic && r.out[first].Role == thread.Assistant {
		r.out[first].Role = thread.User
		return
	}
	r.insert(first, synthetic(&r.out[first], thread.User, continues))
}

// closeWithUser makes a replacement at the end of the conversation the user's, where the
// provider requires it.
func (r *renderer) closeWithUser() {
	last := len(r.out) - 1
	if r.profile.LastUser && last >= 0 && r.manifest.Messages[last].Synthetic && r.out[last].Role == thread.Assistant {
		r.out[last].Role = thread.User
	}
}

func (r *renderer) insert(i int, m thread.Message) {
	r.out = slices.Insert(r.out, i, m)
	r.manifest.Messages = slices.Insert(r.manifest.Messages, i, Origin{Synthetic: true})
	if r.current >= i {
		r.current++
	}
}
