package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf16"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/store"
)

// estimated is seed B's estimate of a message, written from the document: two for the
// role, and a quarter of the characters of each text, of each tool's name and arguments,
// and of each result as JSON, rounded up one by one.
func estimated(t *testing.T, m neutral.Message) int {
	t.Helper()
	quarter := func(s string) int { return (len(utf16.Encode([]rune(s))) + 3) / 4 }
	quoted := func(s string) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(s); err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(b.String(), "\n")
	}
	total := 2
	for _, p := range m.Parts {
		switch {
		case p.Type == neutral.TextPart:
			total += quarter(p.Text)
		case p.Type == neutral.ToolCallPart:
			total += quarter(p.Tool) + quarter(p.Arguments)
		case len(p.Structured) > 0:
			total += quarter(string(p.Structured))
		default:
			total += quarter(quoted(p.Content[0].Text))
		}
	}
	return total
}

// TestSessionEstimateOverHTTP: over HTTP too texts, calls and results, as text and as
// data, count as seed B says: the step by which they reach floor((30,000 − 11,000) × 0.80)
// compacts, and none before it. B1, B2
func TestSessionEstimateOverHTTP(t *testing.T) {
	k := talking(t, palimpsest.Config{Policy: policy.Session{ContextLimit: 30_000}}, api.Step{Window: 30_000, Output: 1_000})
	total := estimated(t, said("system", k.step.Base.System[0].Text))
	news := []neutral.Message{said("user", "Zähle die Kisten: \"alle\" <jetzt> 👍.")}
	for n := range 80 {
		for _, m := range news {
			total += estimated(t, m)
		}
		p := k.ask(news...)
		if due := total >= 15_200; due != (p.PlanVersion == 1) {
			t.Fatalf("step %d: %d tokens by the document, plan %d", n, total, p.PlanVersion)
		} else if due {
			return
		}
		id := fmt.Sprint("c", n)
		call := calling(id, "inspect", fmt.Sprintf(`{"shelf":%d,"of":"the hall"}`, n))
		call.Parts = append([]neutral.Part{{Type: neutral.TextPart, Text: fmt.Sprintf("I look at shelf %d.", n)}}, call.Parts...)
		total += estimated(t, call)
		k.answer(call)
		result := resulting(id, "inspect", strings.Repeat(fmt.Sprintf("a \"box\" of <shelf> %d & more\n", n), 30+n))
		if n%3 == 1 {
			result.Parts[0].Structured = json.RawMessage(fmt.Sprintf(`{"boxes":[%s0]}`, strings.Repeat("17,", 200+n)))
		}
		news = []neutral.Message{result}
	}
	t.Error("nothing was compacted")
}

// TestSessionAsksOverHTTP: what the model is asked through the daemon is the seed's
// prompt, with a transcript as the seed writes it: numbered from 0, roles in capitals,
// results cut at 500 characters and messages at 2,000, and no more of a huge one than
// that. B6, B7
func TestSessionAsksOverHTTP(t *testing.T) {
	model := llmtest.Script(llmtest.Say("#### Current State\n- Working on: the shelves"))
	k := talking(t, palimpsest.Config{Policy: policy.Session{Model: model, ContextLimit: 30_000}}, api.Step{Window: 30_000, Output: 1_000})
	long := strings.Repeat("0123456789", 300)
	k.add(said("user", "Count the boxes."), said("assistant", long), calling("c1", "inspect", `{"shelf":1}`), resulting("c1", "inspect", strings.Repeat("abcdefghi\n", 90)),
		calling("c2", "inspect", `{"shelf":2}`), resulting("c2", "inspect", strings.Repeat("klmnopqrs\n", 5_600)))
	for n := range 10 {
		k.add(said([]string{"user", "assistant"}[n%2], fmt.Sprintf("newest %d", n)))
	}
	k.ask()
	asked := model.Asked()
	if len(asked) != 1 {
		t.Fatalf("asked %d times", len(asked))
	}
	text := asked[0].Prompt.Messages[0].Text()
	_, transcript, _ := strings.Cut(text, "## Messages to Summarize\n")
	transcript, _, _ = strings.Cut(transcript, "\n\n## Instructions\n")
	cut := func(line string) string {
		quoted, err := json.Marshal(strings.Repeat(line, 60))
		if err != nil {
			t.Fatal(err)
		}
		return "[Result: " + string(quoted[:500]) + "...]"
	}
	want := strings.Join([]string{"[0] USER:\nCount the boxes.", "[1] ASSISTANT:\n" + long[:2_000] + "\n[...truncated...]", "[2] ASSISTANT:\n[Tool: inspect({\"shelf\":1})]",
		"[3] TOOL:\n" + cut("abcdefghi\n"), "[4] ASSISTANT:\n[Tool: inspect({\"shelf\":2})]", "[5] TOOL:\n" + cut("klmnopqrs\n")}, "\n\n---\n\n")
	if transcript != want {
		t.Errorf("the transcript is\n%s\nwant\n%s", transcript, want)
	}
	for _, part := range []string{"## Previous Summary\nNone - this is the first compaction round.\n", "## Original User Task\nCount the boxes.\n", "### Session Summary (Compaction Round 1)", "#### Original Task\n[Preserve the user's original request verbatim]",
		"#### Completed Work\n| File/Component | Action | Description |", "#### Key Technical Decisions", "#### Current State", "#### Pending Work\n- [ ] ", "#### Errors & Resolutions\n[Only include if errors were encountered.", "INTEGRATE (don't duplicate)"} {
		if !strings.Contains(text, part) {
			t.Errorf("the question does not hold %q", part)
		}
	}
	if system := asked[0].Prompt.System[0].Text; !strings.HasPrefix(system, "You are summarizing a coding agent's conversation history.\n") || !strings.Contains(system, "CRITICAL: Be thorough but concise. Missing information cannot be recovered.") {
		t.Errorf("the system prompt is %q", system)
	}
}

// TestSessionFormOverHTTP: however a model orders its sections, the summary has those of
// the seed in the seed's order, with the task word for word. The system prompt stays, and
// the newest ten messages behind it, or eleven where the first of them is a result. The
// answer is taken up to 1,000 tokens, in whole sentences, though the server let the model
// write on; nothing is asked twice. B4, B5, B6
func TestSessionFormOverHTTP(t *testing.T) {
	counter := o200k(t)
	var all []string
	for n := range 160 {
		all = append(all, fmt.Sprintf("| hall/shelf_%d.md | Counted | holds %d boxes of tin |", n, n*7))
	}
	for name, rows := range map[string]int{"short": 5, "too long": 160} {
		t.Run(name, func(t *testing.T) {
			answer := "#### Key Technical Decisions\n- The boxes are counted twice.\n#### Current State\n- Working on: shelf 160\n#### Original Task\nSomething else.\n#### Errors & Resolutions\n- The lamp was broken → replaced\n" +
				"#### Pending Work\n- [ ] count the cellar\n#### Completed Work\n| File/Component | Action | Description |\n|---|---|---|\n" + strings.Join(all[:rows], "\n")
			model := llmtest.Script(llmtest.Say(answer))
			k := talking(t, palimpsest.Config{Policy: policy.Session{Model: model, ContextLimit: 12_500}}, api.Step{Window: 100_000, Output: 1_000})
			k.add(said("user", "Count the boxes.\nNever open a sealed one."), said("assistant", "The boxes are counted twice. The lamp was broken, and replaced. Next I count the cellar, after shelf 160."),
				calling("c0", "inspect", `{}`), resulting("c0", "inspect", strings.Join(all, "\n")), said("user", "Go on."))
			k.add(calling("c1", "inspect", `{}`), resulting("c1", "inspect", "tin")) // a result at the boundary
			for n := range 9 {
				k.add(said([]string{"user", "assistant"}[n%2], fmt.Sprintf("newest %d", n)))
			}
			p := k.ask()
			if len(model.Asked()) != 1 {
				t.Fatalf("asked %d times", len(model.Asked()))
			}
			shown := p.Prompt.Messages
			if p.Prompt.System[0].Text != "You look after a shop." || len(shown) != 1+11 || shown[1].Parts[0].CallID != "c1" || shown[0].Role != "assistant" {
				t.Fatalf("system %q, %d messages:\n%.900s", p.Prompt.System[0].Text, len(shown), textsOf(shown))
			}
			text := textOf(shown[0])
			if want := "## Session Summary (Compaction Round 1)\n\n### Original Task\nCount the boxes.\nNever open a sealed one.\n\n### Completed Work\n"; rows == 5 && !strings.HasPrefix(text, want) {
				t.Errorf("the summary begins %.300q", text)
			}
			var sections []string
			for _, m := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(text, -1) {
				sections = append(sections, m[1])
			}
			if want := []string{"Original Task", "Completed Work", "Key Technical Decisions", "Current State", "Pending Work", "Errors & Resolutions"}; !slices.Equal(sections, want) {
				t.Errorf("sections %q", sections)
			}
			if strings.Contains(text, "Something else") || !strings.Contains(text, "- [ ] count the cellar") || !strings.Contains(text, "The lamp was broken → replaced") {
				t.Errorf("the summary is\n%s", text)
			}
			taken := 0
			for _, row := range all {
				if strings.Contains(text, row) {
					taken++
				} else if half := row[:len(row)-12]; strings.Contains(text, half) {
					t.Errorf("half of a row is there: %q", half)
				}
			}
			if size := counter.Text(text); rows == 5 && taken != 5 || rows > 5 && (taken < 20 || size > 1_100 || size < 700) {
				t.Errorf("%d rows in %d tokens", taken, size)
			}
			told := k.told.of(event.Asked)
			if len(told) != 1 || (told[0].Details["dropped_cut"] == 1) != (rows > 5) {
				t.Errorf("told: %+v", told)
			}
			if again := k.ask(said("user", "Well?")); len(model.Asked()) != 1 || again.PlanVersion != 1 {
				t.Errorf("asked %d times, plan %d", len(model.Asked()), again.PlanVersion)
			}
		})
	}
}

// TestSessionEdgesOverHTTP are the edge cases of the seed's table. B4, B5, B7, B10
func TestSessionEdgesOverHTTP(t *testing.T) {
	huge := strings.Repeat("A very long line of a very long result. ", 3_000)
	var talk []neutral.Message
	for n := range 12 {
		talk = append(talk, said([]string{"user", "assistant"}[n%2], fmt.Sprintf("Word %d.", n)))
	}
	for _, tt := range []struct {
		name     string
		messages []neutral.Message
		plans    int
		shown    int
	}{
		{"nothing was said", nil, 0, 0},
		{"one message", []neutral.Message{said("user", huge)}, 0, 1},
		{"a short conversation, however large", append(talk[:9:9], said("assistant", huge)), 0, 10},
		{"one message more", append(talk[:10:10], said("user", huge)), 1, 11},
		{"a huge result", slices.Concat(talk[:1], []neutral.Message{calling("c", "inspect", "{}"), resulting("c", "inspect", huge)}, talk[1:11]), 1, 11},
		{"a result without its call", slices.Concat(talk[:2], []neutral.Message{resulting("x", "inspect", huge)}, talk[:10]), 1, 11},
		{"all recent, with one call of many results", slices.Concat(
			[]neutral.Message{{Role: "assistant", Parts: func() (calls []neutral.Part) {
				for n := range 12 {
					calls = append(calls, calling(fmt.Sprint("c", n), "inspect", "{}").Parts...)
				}
				return calls
			}()}},
			func() (results []neutral.Message) {
				for n := range 12 {
					results = append(results, resulting(fmt.Sprint("c", n), "inspect", huge[:6_000]))
				}
				return results
			}()), 0, 13},
	} {
		model := llmtest.Script(llmtest.Say("#### Current State\n- Word 1."))
		k := talking(t, palimpsest.Config{Policy: policy.Session{Model: model, ContextLimit: 20_000}}, api.Step{Window: 200_000, Output: 1_000})
		if len(tt.messages) > 0 {
			k.add(tt.messages...)
		}
		step := k.step
		p, err := k.Prepare(t.Context(), "t", api.Any, step)
		if tt.shown == 0 && err == nil && len(p.Prompt.Messages) == 0 {
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if p.PlanVersion != tt.plans || len(p.Prompt.Messages) != tt.shown || len(model.Asked()) != tt.plans {
			t.Errorf("%s: plan %d, %d messages, %d questions\n%.600s", tt.name, p.PlanVersion, len(p.Prompt.Messages), len(model.Asked()), textsOf(p.Prompt.Messages))
		}
	}
}

// unwritable is a store that fails to commit plans for a while.
type unwritable struct {
	store.DB
	broken *atomic.Bool
}

type unwritablePlans struct {
	store.Plans
	broken *atomic.Bool
}

func (u unwritable) Tenant(id string) store.Tenant {
	t := u.DB.Tenant(id)
	t.Plans = unwritablePlans{t.Plans, u.broken}
	return t
}

func (u unwritablePlans) Commit(ctx context.Context, id string, expected int, c store.Commit) (int, error) {
	if u.broken.Load() {
		return 0, errors.New("disk full")
	}
	return u.Plans.Commit(ctx, id, expected, c)
}

// TestSessionCommitsOnceOverHTTP: the plan, its marks and its event come together: where
// the store cannot write them none of them is there, the agent goes on with its messages
// as they are, and the next step makes the same round. B8, B10, B11
func TestSessionCommitsOnceOverHTTP(t *testing.T) {
	config := palimpsest.Config{Policy: policy.Session{ContextLimit: 20_000}}
	k := talking(t, config, api.Step{Window: 200_000, Output: 1_000})
	broken := &atomic.Bool{}
	k.db = unwritable{k.db, broken}
	config.Events = k.told
	k.connect(config)
	k.add(talkOf(40, "queue")...)
	broken.Store(true)
	log, _ := k.log()
	if p := k.ask(); p.PlanVersion != 0 || len(p.Prompt.Messages) != len(log) || len(k.told.of(event.Completed)) != 0 || len(k.told.of(event.Failed)) == 0 {
		t.Errorf("plan %d, %d of %d messages, %d compactions told", p.PlanVersion, len(p.Prompt.Messages), len(log), len(k.told.of(event.Completed)))
	}
	broken.Store(false)
	p := k.ask()
	marks, err := k.db.Tenant("").Plans.Compacted(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	made := k.inForce()
	done := k.told.of(event.Completed)
	if p.PlanVersion != 1 || made.Round != 1 || len(marks) != len(log)-10 || made.Summarizations[0].Span.Len() != len(marks) || len(done) != 1 || done[0].Details["round"] != 1 || done[0].TokensAfter >= done[0].TokensBefore {
		t.Errorf("plan %d, round %d, %d of %d messages marked, told %+v", p.PlanVersion, made.Round, len(marks), len(log), done)
	}
}
