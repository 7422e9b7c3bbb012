package policy

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// stateOf is a state without a plan, as the loop's account needs it.
func stateOf(t *testing.T, system string, messages ...thread.Message) *Situation {
	t.Helper()
	th, err := thread.New("t").Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	base := &prompt.Prompt{}
	if system != "" {
		base.System = []prompt.System{{Text: system}}
	}
	return &Situation{Thread: th, Base: base, Profile: render.Profile{}}
}

// TestBudget holds the seed's account, line by line. E3
func TestBudget(t *testing.T) {
	long := strings.Repeat("x", 4_003)
	for _, test := range []struct {
		name string
		l    Loop
		edit func(*Situation)
		want loopBudget
	}{
		{"the seed's figures", Loop{}, nil, loopBudget{200_000, 100, 1_013, 16_384, 182_503, 1_013.0 / 183_516}},
		{"long context", Loop{LongContext: true}, func(s *Situation) { s.Base.Model = "claude-sonnet-4-5" }, loopBudget{1_000_000, 100, 1_013, 16_384, 982_503, 1_013.0 / 983_516}},
		{"long context on a model that has none", Loop{LongContext: true}, func(s *Situation) { s.Base.Model = "gpt-4o" }, loopBudget{200_000, 100, 1_013, 16_384, 182_503, 1_013.0 / 183_516}},
		{"the flag goes before the table", Loop{LongContext: true}, func(s *Situation) { s.Base.Model, s.Window = "claude-sonnet-4-5", 200_000 }, loopBudget{1_000_000, 100, 1_013, 16_384, 982_503, 1_013.0 / 983_516}},
		{"the table where the model cannot", Loop{LongContext: true}, func(s *Situation) { s.Base.Model, s.Window = "gpt-4o", 128_000 }, loopBudget{128_000, 100, 1_013, 16_384, 110_503, 1_013.0 / 111_516}},
		{"a limit goes before the flag", Loop{LongContext: true, ContextLimit: 300_000}, func(s *Situation) { s.Base.Model = "claude-sonnet-4-5" }, loopBudget{300_000, 100, 1_013, 16_384, 282_503, 1_013.0 / 283_516}},
		{"window and output of the step", Loop{}, func(s *Situation) { s.Window, s.Output = 10_000, 1_000 }, loopBudget{10_000, 100, 1_013, 1_000, 7_887, 1_013.0 / 8_900}},
		{"budget of the step", Loop{}, func(s *Situation) { s.Budget, s.Output = 5_000, 1_000 }, loopBudget{6_000, 100, 1_013, 1_000, 3_887, 1_013.0 / 4_900}},
		{"negative", Loop{ContextLimit: 2_000, MaxOutput: 1_000}, nil, loopBudget{2_000, 100, 1_013, 1_000, -113, 1_013.0 / 900}},
		{"no room at all", Loop{ContextLimit: 1_000, MaxOutput: 1_000}, nil, loopBudget{1_000, 100, 1_013, 1_000, -1_113, math.Inf(1)}},
	} {
		// 4,003 bytes are 1,000 tokens, "Read" and {} are 1; 4 for each of three.
		s := stateOf(t, strings.Repeat("s", 403), said(thread.User, long), message(thread.Assistant, thread.ToolCall{ID: "c", Name: "Read", Arguments: "{}"}),
			message(thread.Tool, thread.ToolResult{CallID: "c", Tool: "Read"}))
		if test.edit != nil {
			test.edit(s)
		}
		entries, err := s.visibleEntries()
		if err != nil {
			t.Fatal(err)
		}
		if got := test.l.budget(s, entries); got != test.want {
			t.Errorf("%s: %+v; want %+v", test.name, got, test.want)
		}
	}
}

// TestUtilization: exactly 80 % is not over it. E1
func TestUtilization(t *testing.T) {
	// 800 tokens: 3,184 bytes are 796, and 4.
	s := stateOf(t, "", said(thread.User, strings.Repeat("x", 3_184)))
	for limit, want := range map[int]bool{2_000: false, 1_999: true} {
		if due, why := (Loop{ContextLimit: limit, MaxOutput: 1_000}).Due(s); due != want || due == (why == "") {
			t.Errorf("limit %d: due %v, %q", limit, due, why)
		}
	}
}

// TestAfterLength: where a compaction is due the loop goes on, else it ends for
// a reason of its own. E2
func TestAfterLength(t *testing.T) {
	s := stateOf(t, "", said(thread.User, strings.Repeat("x", 4_000)))
	if err := CheckCutOff(Loop{ContextLimit: 2_000, MaxOutput: 1_000}, s); err != nil {
		t.Errorf("a compaction is due: %v", err)
	}
	if err := CheckCutOff(Loop{}, s); !errors.Is(err, ErrMaxTokens) {
		t.Errorf("nothing is due: %v", err)
	}
}

// TestSplit: about 40 % stay, and no call is parted from its result. E5
func TestSplit(t *testing.T) {
	ask := func(id string) thread.Message {
		return message(thread.Assistant, thread.ToolCall{ID: id, Name: "Read", Arguments: "{}"})
	}
	answer := func(id string) thread.Message {
		return message(thread.Tool, thread.ToolResult{CallID: id, Tool: "Read", Content: []thread.Part{thread.Text{Text: "x"}}})
	}
	u, a := said(thread.User, "u"), said(thread.Assistant, "a")
	batch := message(thread.Assistant)
	var results []thread.Message
	for id := range strings.SplitSeq("abcdefghij", "") {
		batch.Parts = append(batch.Parts, thread.ToolCall{ID: id, Name: "Read", Arguments: "{}"})
		results = append(results, answer(id))
	}
	for _, test := range []struct {
		name   string
		log    []thread.Message
		harder int
		want   int
	}{
		{"the seed's list of nine", []thread.Message{u, ask("1"), answer("1"), u, a, u, ask("2"), answer("2"), a}, 0, 6},
		{"the walk ends between call and result", []thread.Message{u, a, u, ask("1"), answer("1"), u, a}, 1, 5 + 1},
		{"back to the call", []thread.Message{u, a, u, ask("1"), answer("1"), a}, 0, 3},
		{"the nearest place", append(append([]thread.Message{u, batch}, results...), a), 0, 12},
		{"two messages", []thread.Message{u, a}, 0, 1},
		{"one message", []thread.Message{u}, 0, 0},
		{"nothing but one exchange", []thread.Message{ask("1"), answer("1")}, 0, 0},
		{"twenty", []thread.Message{u, a, u, a, u, a, u, a, u, a, u, a, u, a, u, a, u, a, u, a}, 0, 12},
		{"twenty, refused once", []thread.Message{u, a, u, a, u, a, u, a, u, a, u, a, u, a, u, a, u, a, u, a}, 1, 16},
		{"twenty, refused often", []thread.Message{u, a, u, a, u, a, u, a, u, a, u, a, u, a, u, a, u, a, u, a}, 9, 19},
	} {
		s := stateOf(t, "", test.log...)
		s.Refusals = test.harder
		entries, err := s.visibleEntries()
		if err != nil {
			t.Fatal(err)
		}
		if got := (Loop{}).split(s, entries); got != test.want {
			t.Errorf("%s: split before %d, want %d", test.name, got, test.want)
		}
	}
}

// TestTruncationNote: the count is of all that is hidden, the words are the
// user's, few and on one line. E6
func TestTruncationNote(t *testing.T) {
	var log []thread.Message
	for _, text := range append([]string{"Help me refactor\nthe queue"}, strings.Split(strings.Repeat("go on;", 9)+"x "+strings.Repeat("é", 90), ";")...) {
		log = append(log, said(thread.User, text), said(thread.Assistant, "ok"))
	}
	log = append(log, thread.Message{Role: thread.User, Kind: thread.Injected, Parts: []thread.Part{thread.Text{Text: "a reminder"}}})
	s := stateOf(t, "", log...)
	o := &oldPart{span: s.Thread.Range(0, s.Thread.Len()), end: s.Thread.Len()}
	got := truncationNote(s.Thread, o)
	want := "[Context truncated. Earlier conversation contained 23 messages about: Help me refactor; …; " +
		strings.Repeat("go on; ", 6) + "x " + strings.Repeat("é", 39) + "…]"
	if got != want {
		t.Errorf("note:\n%s\nwant:\n%s", got, want)
	}
	s = stateOf(t, "", said(thread.Assistant, "alone"))
	got = truncationNote(s.Thread, &oldPart{span: s.Thread.Range(0, 1), end: 1})
	if want := "[Context truncated. Earlier conversation contained 1 messages about: work without a word of the user]"; got != want {
		t.Errorf("note: %s", got)
	}
}

// TestVisible: messages in the system's role are not of the list, whatever role
// the provider is given them in. B5
func TestVisible(t *testing.T) {
	for _, api := range []string{wire.Anthropic, wire.Chat, wire.Responses, wire.Gemini} {
		s := stateOf(t, "", said(thread.System, "Be brief."), said(thread.User, "u"), said(thread.System, "It is late."), said(thread.Assistant, "a"))
		s.Profile = render.For(api)
		entries, err := s.visibleEntries()
		if err != nil || len(entries) != 2 || entries[0].Text() != "u" || entries[1].position != 3 {
			t.Errorf("%s: %+v, %v", api, entries, err)
		}
		o, err := newHistory(s).oldPartBefore(entries, 3)
		if err != nil || o.span.Len() != 1 || len(o.entries) != 1 {
			t.Errorf("%s: %+v, %v", api, o, err)
		}
	}
}

// around wraps a policy, as a decorator does.
type around struct{ Policy }

func (a around) Unwrap() Policy { return a.Policy }

// TestAfterLengthInside: a policy that is wrapped still decides itself, and is
// found; one of another kind is not.
func TestAfterLengthInside(t *testing.T) {
	s := stateOf(t, "", said(thread.User, strings.Repeat("x", 4_000)))
	if err := CheckCutOff(around{around{Loop{ContextLimit: 2_000, MaxOutput: 1_000}}}, s); err != nil {
		t.Errorf("a compaction is due: %v", err)
	}
	if l, ok := As[Loop](around{Loop{ContextLimit: 7}}); !ok || l.ContextLimit != 7 {
		t.Errorf("%+v, %v", l, ok)
	}
	if _, ok := As[Workstream](around{Loop{}}); ok {
		t.Error("a Loop is no Workstream")
	}
	if _, ok := As[Loop](nil); ok {
		t.Error("nothing is no Loop")
	}
}
