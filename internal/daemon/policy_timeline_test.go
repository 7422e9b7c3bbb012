package daemon_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// turnsOf are the turns of seed C's pictures, a block in each message.
func turnsOf(names ...string) (all []neutral.Message) {
	for _, name := range names {
		all = append(all, said("user", "TURN "+name+": look at the report."), said("assistant", "I open the report of turn "+name+"."),
			calling("c"+name, "Read", `{"file_path":"report`+name+`.md"}`), resulting("c"+name, "Read", strings.Repeat("a line of the report "+name+"\n", 25)),
			said("assistant", "Turn "+name+" is over, the report of it was read."))
	}
	return all
}

// TestTimelineCutsOverHTTP: over HTTP a timeline compacts when system and blocks take more
// than 0.9 of the maximum, and not at 0.9. The cut is where the document's rules put it,
// for every budget of recent tokens: back from the end until it is reached, then the
// first block that is no result. All before it is in one summary block with its type,
// path, turns and digest, a turn that was split under a heading of its own; the rest is
// shown as it was. C1, C2, C4, C5, C6, C7
func TestTimelineCutsOverHTTP(t *testing.T) {
	counter := o200k(t)
	messages := turnsOf("A", "B", "C", "D")
	sizes := make([]int, len(messages))
	for i := range messages {
		m, err := messages[i].Value("m")
		if err != nil {
			t.Fatal(err)
		}
		sizes[i] = counter.Message(&m)
	}
	begun := func(most, keep int) (*talk, *api.Prepared, *llmtest.Scripted) {
		t.Helper()
		model := llmtest.Script(llmtest.Say("The reports were read."), llmtest.Say("I open the report."))
		k := talking(t, palimpsest.Config{Policy: policy.Timeline{Model: model, MaxTokens: most, KeepRecent: keep, SummaryTokens: 60, PrefixTokens: 40}}, api.Step{Window: 100_000, Output: 1_000})
		k.add(messages...)
		return k, k.ask(), model
	}
	_, whole, _ := begun(100_000, 0)
	if _, p, _ := begun(int(math.Ceil(float64(whole.Tokens)/0.9)), 60); p.PlanVersion != 0 {
		t.Error("a request at 0.9 of the maximum is compacted")
	}
	most := int(float64(whole.Tokens)/0.9) - 2
	cuts := map[string]bool{}
	for keep := 20; keep < 600; keep += 45 {
		k, p, model := begun(most, keep)
		cut, recent := len(messages), 0
		for cut > 0 && recent < keep {
			cut--
			recent += sizes[cut]
		}
		for messages[cut].Role == "tool" { // the first candidate at or after
			cut++
		}
		if p.PlanVersion != 1 {
			t.Fatalf("keep %d: not due with %d tokens of %d", keep, whole.Tokens, most)
		}
		log, _ := k.log()
		record := k.inForce().Summarizations[0]
		if got := record.Span.Len(); got != cut || len(k.inForce().Refs()) != 1 {
			t.Errorf("keep %d: the cut is behind %d messages, want %d", keep, got, cut)
			continue
		}
		cuts[fmt.Sprint(cut%5)] = true
		r, split := record.Range, ""
		var covered []string
		for n := range (cut + 4) / 5 {
			if turn := fmt.Sprint("turn_", n+1); cut >= 5*n+5 {
				covered = append(covered, turn)
			} else {
				split = turn
			}
		}
		turn := fmt.Sprint("turn_", (cut+4)/5) // the newest that the summary stands for
		if !slices.Equal(r.CoveredTurns, covered) || r.SplitTurn != split || r.Type != "conv.range.summary" || r.Path != "su:"+turn+".conv.range.summary" || len(r.Digest.Tools["Read"]) != (cut+1)/5 {
			t.Errorf("cut at %d: %+v; want turns %v, split %q, path of %s", cut, r, covered, split, turn)
		}
		block := textOf(p.Prompt.Messages[0])
		if strings.Contains(block, "Turn Context (split turn)\n") != (split != "") || !strings.HasPrefix(block, "[conv.range.summary "+r.Path+"]\n") {
			t.Errorf("cut at %d: the block is %q", cut, block)
		}
		if asked := len(model.Asked()); (split != "") != (asked == 2 || len(covered) == 0) {
			t.Errorf("cut at %d: the model was asked %d times", cut, asked)
		}
		var shown, want []string
		for _, m := range p.Prompt.Messages[1:] {
			shown = append(shown, m.ID)
		}
		for _, m := range log[cut:] {
			want = append(want, m.ID)
		}
		if !slices.Equal(shown, want) {
			t.Errorf("cut at %d: %d messages are visible, want %d", cut, len(shown), len(want))
		}
	}
	if len(cuts) < 3 {
		t.Errorf("cuts at %v: the test shows little", cuts)
	}
}

// TestTimelineGoesOnOverHTTP: with a cold cache and over its mark at once, a timeline
// hides first, then compacts, and shows what is hidden and visible behind its replacement
// text; the digest tells of what was hidden before it was compacted. The next
// compaction begins where the last one ended, and hands the summary before to the model;
// both keep to 800 and 400 tokens. A daemon that is started anew on what was kept shows
// the same. C3, C5, C7, C8, C10, C12
func TestTimelineGoesOnOverHTTP(t *testing.T) {
	counter := o200k(t)
	long := "The reports were read. " + strings.Repeat("I open the report of turn A. ", 400)
	model := llmtest.Script(slices.Repeat([]llmtest.Turn{llmtest.Say(long)}, 8)...)
	config := palimpsest.Config{Policy: policy.Timeline{Model: model, Trust: policy.TrustModel, MaxTokens: 5_500, KeepRecent: 1_500}}
	k := talking(t, config, api.Step{Base: &neutral.Prompt{Model: "claude-sonnet-4-5", System: []neutral.System{{Text: "You look after a shop."}}}, Window: 100_000, Output: 1_000})
	rounds := func(from, n int) {
		t.Helper()
		for i := range n {
			k.add(turnsOf(fmt.Sprint(from + i))...)
			k.at = k.at.Add(time.Second)
		}
	}
	rounds(0, 70)
	k.at = k.at.Add(6 * time.Minute) // the provider keeps a prompt for five
	p := k.ask(said("user", "And now the next one."))
	made := k.inForce()
	if p.PlanVersion != 1 || len(made.Summarizations) != 1 || len(made.Clearings) == 0 || len(made.Summarizations[0].Range.Digest.Hidden) == 0 {
		t.Fatalf("plan %d: %d summaries, %d hidden beside, %d in the digest", p.PlanVersion, len(made.Summarizations), len(made.Clearings), len(made.Summarizations[0].Range.Digest.Hidden))
	}
	shown := p.Prompt.Messages
	if !strings.HasPrefix(textOf(shown[0]), "[conv.range.summary su:turn_") || strings.Count(textsOf(shown), "older than the cache") != len(made.Clearings) {
		t.Errorf("%d of %d placeholders are visible behind %.100q", strings.Count(textsOf(shown), "older than the cache"), len(made.Clearings), textOf(shown[0]))
	}
	first := made.Summarizations[0]
	limits := func(text, context string) {
		t.Helper()
		if a, b := counter.Text(text), counter.Text(context); a > 800 || b > 400 || a < 300 {
			t.Errorf("the summaries take %d and %d tokens", a, b)
		}
	}
	limits(first.Range.Text, first.Range.TurnContext)
	config.Events = k.told
	k.connect(config)
	if again := k.ask(); textsOf(again.Prompt.Messages) != textsOf(shown) || again.PlanVersion != 1 {
		t.Error("a daemon that was started anew shows something else")
	}

	asked := len(model.Asked())
	rounds(100, 24)
	p = k.ask(said("user", "Go on."))
	second := k.inForce().Summarizations[0]
	if p.PlanVersion != 2 || second.Span.First() != first.Span.First() || second.Span.Len() <= first.Span.Len() || strings.Count(textsOf(p.Prompt.Messages), "[conv.range.summary ") != 1 {
		t.Fatalf("plan %d stands for %d messages, the one before for %d", p.PlanVersion, second.Span.Len(), first.Span.Len())
	}
	limits(second.Range.Text, second.Range.TurnContext)
	question := model.Asked()[asked].Prompt.Messages[0].Text()
	before, blocks, _ := strings.Cut(question, "<blocks>")
	if !strings.Contains(before, "The reports were read.") || strings.Contains(blocks, "The reports were read.") || strings.Contains(blocks, "TURN 2:") || !strings.Contains(blocks, "TURN 100:") {
		t.Errorf("the second compaction asks\n%.1500s", question)
	}
	log, at := k.log()
	for _, id := range []thread.ID{second.Span.First(), second.Span.MessageIDs[second.Span.Len()-1]} {
		if _, ok := at[id]; !ok {
			t.Errorf("%s is not in the log of %d", id, len(log))
		}
	}
}

// TestCachePointsOverHTTP: the points that the document's picture has, in the body that
// goes to the provider: the end of turn A, of turn D and of the tail; and behind a summary
// the end of the turn before and the tail, while fewer rounds than five are visible. C9
func TestCachePointsOverHTTP(t *testing.T) {
	k := talking(t, palimpsest.Config{Policy: policy.Timeline{KeepRecent: 80}}, api.Step{API: wire.Anthropic, Window: 100_000, Output: 1_000})
	turn := func(name string) (marked []string) {
		t.Helper()
		body := string(k.ask(said("user", "TURN "+name+"?")).Body)
		k.answer(said("assistant", "Turn "+name+" is over. "+strings.Repeat("The hall is bright. ", 20)))
		for _, message := range strings.Split(body, `"role":`)[1:] {
			if strings.Contains(message, "cache_control") {
				_, text, _ := strings.Cut(message, `"text":"`)
				text, _, _ = strings.Cut(text, ".")
				text, _, _ = strings.Cut(text, `"`)
				marked = append(marked, text)
			}
		}
		return marked
	}
	for _, name := range []string{"A", "B", "C", "D"} {
		turn(name)
	}
	if got, want := turn("E"), []string{"Turn A is over", "Turn D is over", "TURN E?"}; !slices.Equal(got, want) {
		t.Errorf("cache points behind %q, want %q", got, want)
	}
	if _, err := k.Compact(t.Context(), "t", api.Any, api.Compact{}); err != nil {
		t.Fatal(err)
	}
	if got, want := turn("F"), []string{"Turn E is over", "TURN F?"}; !slices.Equal(got, want) {
		t.Errorf("cache points after a compaction behind %q, want %q", got, want)
	}
}
