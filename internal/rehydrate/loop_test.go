package rehydrate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// The loop's window: what a request may take is pressure plus the reserve, and
// the agent works for this many turns.
const (
	loopHard, loopTarget = 9_000, 6_000
	loopReserve          = 2_500
	loopTurns            = 20
)

// loop is an agent that reads a large file in each turn, and refers to what was
// externalized.
type loop struct {
	t       *testing.T
	counter *token.Counter
	store   *artifact.Store
	r       *rehydrate.Rehydrator
	// refer chooses the artifacts that the agent's message of a turn names.
	refer func(turn int, aside []string) []string
	// naive appends what comes back to the log, counts it as pressure and uses
	// the whole ladder always: what the rules of A11 are there to prevent.
	naive bool

	whole, gentle *palimpsest.Compactor
	base          *prompt.Prompt
	thread        *thread.Thread
	plan          *plan.Plan

	compactions []int            // the turns that compacted
	shown       map[string][]int // artifact → the turns that showed it
	gently      int              // compactions without the aggressive rungs
	overridden  int              // turns that had to use the whole ladder all the same
	now         int
}

func newAgentLoop(t *testing.T, naive bool, refer func(int, []string) []string) *loop {
	t.Helper()
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	happened := recall.TurnContext{Happened: true}
	gentle := slices.DeleteFunc(policy.Ladder{}.Rungs(), func(s strategy.Strategy) bool { return !happened.Allows(s.Name()) })
	if len(gentle) != 2 {
		t.Fatalf("%d rungs are gentle; externalize and drop are not", len(gentle))
	}
	l := &loop{t: t, counter: counter, refer: refer, naive: naive, thread: thread.New("loop"), shown: map[string][]int{}}
	l.base = &prompt.Prompt{Model: "m", System: []prompt.System{{Text: "You review files.", Role: "system"}}}
	for _, c := range []struct {
		to     **palimpsest.Compactor
		ladder strategy.Ladder
	}{{&l.whole, policy.Ladder{}.Rungs()}, {&l.gentle, gentle}} {
		if *c.to, err = palimpsest.New(palimpsest.Config{Counter: counter, Policy: policy.Custom{Ladder: c.ladder}}); err != nil {
			t.Fatal(err)
		}
	}
	l.store = artifact.NewStore(new(artifact.Memory), nil)
	l.r = rehydrate.New(l.store, counter.Text, &recall.Rehydration{TotalTokens: loopReserve})
	return l
}

func (l *loop) append(messages ...thread.Message) {
	l.t.Helper()
	next, err := l.thread.Append(messages...)
	if err != nil {
		l.t.Fatal(err)
	}
	l.thread = next
}

// file is what the agent reads in a turn: about 1,500 tokens, none like another.
func file(turn int) string {
	var b strings.Builder
	for i := range 85 {
		fmt.Fprintf(&b, "%d: row %d of part %d holds %d and %d\n", i, i, turn, turn*7919+i*31, (i+3)*(turn+11))
	}
	return b.String()
}

// aside are the ids of the plan's artifacts.
func (l *loop) aside() []string {
	var ids []string
	if l.plan != nil {
		for _, e := range l.plan.Externalizations {
			ids = append(ids, e.ArtifactID)
		}
	}
	return ids
}

// run goes through the turns: the agent speaks and reads, the next request is
// made.
func (l *loop) run() {
	l.append(thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Review all parts and tell me which rows differ."}}})
	added := 1
	for turn := 1; turn <= loopTurns; turn++ {
		l.now = turn
		said := fmt.Sprintf("Part %d comes next.", turn)
		for _, id := range l.refer(turn, l.aside()) {
			said += " I compare with " + id + "."
		}
		id := fmt.Sprintf("call_%d", turn)
		l.append(
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: said}, thread.ToolCall{ID: id, Name: "read_part", Arguments: fmt.Sprintf(`{"part":%d}`, turn)}}},
			thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "read_part", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: file(turn)}}}}},
		)
		added += 2
		l.request()
	}
	if !l.naive && l.thread.Len() != added {
		l.t.Errorf("the log has %d messages, the agent and its tools made %d", l.thread.Len(), added)
	}
}

func (l *loop) request() {
	l.t.Helper()
	ctx := l.t.Context()
	q := palimpsest.Request{Thread: l.thread, Base: l.base, Budget: loopHard, Profile: render.For(wire.Anthropic)}
	turn := rehydrate.TurnOf(l.thread, nil)
	turn.Number = l.now // the naive log has more messages of the agent
	contents, given, err := l.r.Rehydrate(ctx, artifact.Requester{}, turn, l.plan)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, c := range contents {
		l.shown[c.ArtifactID] = append(l.shown[c.ArtifactID], turn.Number)
	}
	if l.naive {
		for _, c := range contents {
			l.append(thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: c.Text()}}})
		}
		q.Thread, contents, given = l.thread, nil, recall.TurnContext{}
	}
	now, err := l.whole.Render(l.plan, q)
	if err != nil {
		l.t.Fatal(err)
	}
	pressure := now.After
	if pressure > loopHard {
		pressure = l.compact(q, turn.Number, given)
	}
	out, manifest, err := render.Render(l.thread, l.plan, l.base, &render.Options{Profile: q.Profile})
	if err == nil {
		out, _ = render.Append(out, manifest, contents, render.Profile{})
	}
	if err != nil {
		l.t.Fatal(err)
	}
	const framing = 8 // of a message, at most
	whole := l.counter.Prompt(out)
	if whole > loopHard+loopReserve+framing*len(contents) || whole-pressure > given.Tokens+framing*len(contents) || given.Tokens > loopReserve {
		l.t.Errorf("turn %d: a request of %d tokens, of which %d count as pressure and %d as brought back", turn.Number, whole, pressure, given.Tokens)
	}
	for _, c := range contents {
		if !slices.ContainsFunc(out.Messages, func(m thread.Message) bool {
			r, _ := m.Result()
			return m.Text() == c.Text() || strings.Contains(r.Text(), c.Text())
		}) {
			l.t.Errorf("turn %d: %s is not in the prompt", turn.Number, c.ArtifactID)
		}
	}
}

// compact makes the next plan, without the aggressive rungs where the turn says
// so, unless nothing else fits.
func (l *loop) compact(q palimpsest.Request, turn int, given recall.TurnContext) int {
	l.t.Helper()
	q.Budget = loopTarget
	c := l.whole
	if given.Happened {
		c = l.gentle
		l.gently++
	}
	res, err := c.Compact(l.t.Context(), q)
	if errors.Is(err, policy.ErrOverBudget) && given.Happened {
		l.overridden++
		res, err = l.whole.Compact(l.t.Context(), q)
	} else if err == nil && given.Happened && len(res.Plan.Externalizations)+len(res.Plan.Drops) > 0 {
		l.t.Errorf("turn %d brought content back, and its plan externalizes %d and drops %d", turn, len(res.Plan.Externalizations), len(res.Plan.Drops))
	}
	if err != nil {
		l.t.Fatalf("turn %d: %v", turn, err)
	}
	l.compactions = append(l.compactions, turn)
	l.plan = res.Plan
	for _, e := range l.plan.Externalizations {
		i, _ := l.thread.Index(e.Span.First())
		text := recall.FullText(l.thread.At(i))
		id, err := l.store.Put(l.t.Context(), artifact.Metadata{ThreadID: l.thread.ID(), Tool: "read_part", Turn: l.thread.At(i).Turn}, text)
		if err != nil || id != e.ArtifactID {
			l.t.Fatalf("stored as %s, the plan says %s: %v", id, e.ArtifactID, err)
		}
	}
	return res.After
}

func (l *loop) inLog() int {
	n := 0
	for _, m := range l.thread.Messages() {
		n += strings.Count(recall.FullText(&m), "[Rehydrated Content")
	}
	return n
}

// TestLoopSettles: an agent that keeps referring to what was externalized compacts
// hardly more often than one that never does, and never in turns running. What comes back is in no log, takes
// its own reserve, and no artifact comes back in two turns running. Done the
// naive way, the same agent compacts ever more. A11
func TestLoopSettles(t *testing.T) {
	quiet := newAgentLoop(t, false, func(int, []string) []string { return nil })
	quiet.run()
	if len(quiet.compactions) < 2 || len(quiet.shown) != 0 {
		t.Fatalf("the quiet agent compacts in turns %v and is shown %v", quiet.compactions, quiet.shown)
	}
	agents := map[string]func(turn int, aside []string) []string{
		"the oldest": func(_ int, aside []string) []string { return aside[:min(1, len(aside))] },
		"the newest": func(_ int, aside []string) []string { return aside[max(0, len(aside)-1):] },
		"in turn": func(turn int, aside []string) []string {
			if len(aside) == 0 {
				return nil
			}
			return []string{aside[turn%len(aside)]}
		},
		"all": func(_ int, aside []string) []string { return aside },
	}
	gently := 0
	for name, refer := range agents {
		t.Run(name, func(t *testing.T) {
			l := newAgentLoop(t, false, refer)
			l.run()
			naive := newAgentLoop(t, true, refer)
			naive.run()
			gently += l.gently
			back := 0
			for id, turns := range l.shown {
				back += len(turns)
				for i := 1; i < len(turns); i++ {
					if turns[i]-turns[i-1] < 2 {
						t.Errorf("%s is shown in turns %v", id, turns)
					}
				}
			}
			t.Logf("quiet: compactions in turns %v; with %d brought back: %v, whole ladder all the same: %d; naive: %v", quiet.compactions, back, l.compactions, l.overridden, naive.compactions)
			if back < 3 {
				t.Errorf("%d artifacts came back, so nothing was tried", back)
			}
			if l.inLog() != 0 {
				t.Errorf("the log holds %d contents that were brought back", l.inLog())
			}
			// The gentle ladder frees a little less in a turn that it is used in.
			if 2*len(l.compactions) > 3*len(quiet.compactions) {
				t.Errorf("compactions in turns %v, without references in %v", l.compactions, quiet.compactions)
			}
			for i := 1; i < len(l.compactions); i++ {
				if l.compactions[i] == l.compactions[i-1]+1 {
					t.Errorf("compactions in turns running: %v", l.compactions)
				}
			}
			if len(naive.compactions) <= len(l.compactions) || naive.inLog() == 0 {
				t.Errorf("the naive loop compacts in turns %v, so this test shows nothing", naive.compactions)
			}
		})
	}
	if gently == 0 {
		t.Error("no turn that brought something back had to compact, so the gentle ladder was not tried")
	}
}
