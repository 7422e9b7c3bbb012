package summarize

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// by is a summarizer made of a function.
type by func(context.Context, Input) (summary.Summary, error)

func (f by) Summarize(ctx context.Context, in Input) (Result, error) {
	s, err := f(ctx, in)
	return Result{Summary: s}, err
}

// The last step is a note that says what was left out; only a budget that not
// even the note fits is an error.
func TestTruncationNote(t *testing.T) {
	messages := (&talk{}).user(strings.Repeat("Look at the log. ", 40)).says("Yes.").done(t)
	broken := by(func(context.Context, Input) (summary.Summary, error) {
		return summary.Summary{}, &RejectedError{Reason: CutOff}
	})
	// A counter that finds everything too long but what has no task.
	code := &Extractive{Counter: func(s string) int {
		if strings.Contains(s, "Look") {
			return 1000 + len(s)
		}
		return (len(s) + 3) / 4
	}}
	f := &Fallback{Steps: []Step{{"broken", broken}}, Extractive: code}
	got, err := f.Summarize(t.Context(), Input{Messages: messages, Budget: 60})
	if err != nil {
		t.Fatal(err)
	}
	if text := got.Render(); !strings.Contains(text, "2 messages, turn 1, were left out here without a summary") || len(got.Span.MessageIDs) != 2 {
		t.Errorf("note:\n%s", text)
	}
	last := got.Report
	if last.By != "truncation_note" || !errors.Is(last.Err(), CutOff) || !errors.Is(last.Err(), ErrBudget) {
		t.Errorf("report: %+v", last)
	}
	e := last.Event()
	if e.Type != event.Asked || e.Err != "summary_cut_off" || e.Details["fallback"] != "truncation_note" {
		t.Errorf("event: %+v", e)
	}
	_, err = f.Summarize(t.Context(), Input{Messages: messages, Budget: 5})
	if !errors.Is(err, ErrBudget) {
		t.Errorf("nothing fits: %v", err)
	}
	// Who failed before can be read from the error.
	if before := Failures("all", err); len(before) != 3 || before[0].Step != "broken" || !errors.Is(before[0].Err, CutOff) || before[1].Step != "extractive" || before[2].Step != "all" {
		t.Errorf("failures: %+v", before)
	}
}

// A step that breaks the contract is passed over.
func TestFallbackHoldsTheBudget(t *testing.T) {
	messages := (&talk{}).user("Find out why the build is red.").says("The cache is stale.").done(t)
	large := by(func(_ context.Context, in Input) (summary.Summary, error) {
		return summary.Summary{CurrentTask: strings.Repeat("long ", 500)}, nil
	})
	f := &Fallback{Steps: []Step{{"large", large}}}
	if got, err := f.Summarize(t.Context(), Input{Messages: messages, Budget: 100}); err != nil || !errors.Is(got.Report.Err(), OverBudget) {
		t.Errorf("%v, %+v", err, got.Report)
	}
}

// D6: the pieces are the span, in order, each within the bound or one step that
// cannot be cut; every cut is legal.
func TestChunkedPieces(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		th := threadgen.Thread().Draw(rt, "thread")
		messages := th.Messages()
		most := rapid.IntRange(1, 4000).Draw(rt, "most")
		var pieces [][]thread.Message
		c := &Chunked{Characters: most, Inner: by(func(_ context.Context, in Input) (summary.Summary, error) {
			if len(pieces) > 0 && in.Previous == nil {
				rt.Fatal("a piece does not build on those before it")
			}
			pieces = append(pieces, in.Messages)
			return summary.Summary{CurrentTask: fmt.Sprint(len(pieces))}, nil
		})}
		got, err := c.Summarize(context.Background(), Input{Messages: messages})
		if err != nil {
			rt.Fatal(err)
		}
		if got.CurrentTask != fmt.Sprint(len(pieces)) {
			rt.Fatalf("%s of %d pieces", got.CurrentTask, len(pieces))
		}
		at := 0
		points := cut.Legal(th, thread.Pair(th))
		for n, p := range pieces {
			size, first := 0, at
			for i := range p {
				if p[i].ID != messages[at].ID {
					rt.Fatalf("message %d is not in its place", at)
				}
				at++
				size += characters(&p[i])
			}
			for i := first + 1; i < at && size > most; i++ {
				if points.Legal(i) {
					rt.Fatalf("piece %d has %d of %d characters and could be cut at %d", n, size, most, i)
				}
			}
			if n > 0 && !points.Legal(first) {
				rt.Fatalf("piece %d begins at %d, which is no legal cut", n, first)
			}
		}
		if at != len(messages) {
			rt.Fatalf("%d of %d messages", at, len(messages))
		}
	})
}

// D6: where the model's window is smaller than the pieces they are halved until
// it takes them, every message once and in order; only a step that cannot be cut
// is beyond it. What the user asked for is told with each piece.
func TestChunkedOverflow(t *testing.T) {
	smaller := 0
	property.Check(t, func(rt *rapid.T) {
		messages := threadgen.Thread().Draw(rt, "thread").Messages()
		window, at, asked := 0, 0, 0
		for i := range messages {
			window += characters(&messages[i])
		}
		window = window * rapid.IntRange(30, 95).Draw(rt, "share") / 100
		c := &Chunked{Inner: by(func(_ context.Context, in Input) (summary.Summary, error) {
			asked++
			size := 0
			for i := range in.Messages {
				size += characters(&in.Messages[i])
			}
			if size > window {
				return summary.Summary{}, fmt.Errorf("asking: %w", &llm.APIError{Kind: llm.ErrOverflow})
			}
			if in.Instructions != "the tariff" {
				rt.Fatalf("a piece is asked for with instructions %q", in.Instructions)
			}
			if at > 0 && in.Previous == nil {
				rt.Fatal("a piece does not build on those before it")
			}
			for i := range in.Messages {
				if in.Messages[i].ID != messages[at].ID {
					rt.Fatalf("message %d is not in its place", at)
				}
				at++
			}
			return summary.Summary{CurrentTask: "on"}, nil
		})}
		_, err := c.Summarize(context.Background(), Input{Messages: messages, Instructions: "the tariff"})
		switch {
		case err == nil && at != len(messages):
			rt.Fatalf("%d of %d messages", at, len(messages))
		case err == nil && asked > 1:
			smaller++
		case err != nil && !llm.IsOverflow(err):
			rt.Fatal(err)
		}
	})
	if smaller < 10 && !testing.Short() { // few are drawn then
		t.Errorf("only %d threads were halved: the test shows nothing", smaller)
	}
}

// What code says itself passes Verified as it is, on any thread.
func TestVerifiedLeavesExtractive(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		messages := threadgen.Thread().Draw(rt, "thread").Messages()
		in := Input{Messages: messages, Budget: rapid.SampledFrom([]int{0, 150, 600}).Draw(rt, "budget")}
		var e Extractive
		want, wantErr := e.Summarize(context.Background(), in)
		got, err := (&Verified{Inner: &e, Extractive: &e}).Summarize(context.Background(), in)
		r := got.Report
		if errors.Is(err, Empty) {
			return // nothing that code could say
		}
		if (wantErr == nil) != (err == nil) || got.Render() != want.Render() || r.Proposed != 0 {
			rt.Fatalf("%v, %v, %+v\nwant:\n%s\ngot:\n%s", wantErr, err, r, want.Render(), got.Render())
		}
	})
}

// Who is named as the user, and who is not.
func TestMentionsUser(t *testing.T) {
	for s, want := range map[string]bool{
		"The user wants tabs": true, "Users prefer tabs": true, "It is the user's rule": true, "asked by the user.": true,
		"internal/user/user.go holds the model": false, "user_name is empty": false, "the multi-user mode": false, "superuser": false, "It builds.": false,
	} {
		if got := mentionsUser(s) >= 0; got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

// evidenceIn is that of a text by the assistant.
func evidenceIn(t testing.TB, text string) *evidence {
	return newEvidence(t.Context(), []thread.Message{{ID: "a", Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: text}}}}, earlier{})
}

func TestOccurs(t *testing.T) {
	const text = "see src/main.go:12, build-123, v1.2.3 and commit 0a1b2c3d4e5f; x=foo.bar."
	for word, want := range map[string]bool{
		"src/main.go": true, "main.go": true, "build-12": false, "build-123": true, "v1.2": false, "v1.2.3": true, "0a1b2c3": true, "a1b2c3d": false,
		"foo.bar": true, "rc/main.go": false, "main.g": false,
	} {
		if got := evidenceIn(t, text).has(word, byAnybody); got != want {
			t.Errorf("%s: %v", word, got)
		}
	}
}

func TestNumbers(t *testing.T) {
	for s, want := range map[string]string{
		"1,234 tokens in 5s":        "1,234 tokens|5 s",
		"at 10:30, 2.5 GB, -3 or 7": "10:30 |2.5 gb|3 |7 ",
		"1,5 and 12,34":             "1,5 |12,34 ",
		"range 3-5":                 "3 |5 ",
		"99% of 0,123":              "99 %|0,123 ",
	} {
		var got []string
		numbers(s, func(n number) { got = append(got, n.value+" "+n.unit) })
		if strings.Join(got, "|") != want {
			t.Errorf("%q: %q, want %q", s, strings.Join(got, "|"), want)
		}
	}
}

// A quotation is looked up as words, also where something is left out of it.
func TestQuotes(t *testing.T) {
	e := evidenceIn(t, "Oh, please don't amend commits - it messes with the entire workflows. And what are you doing...??")
	for quoted, want := range map[string]bool{
		"don’t amend commits": true, "Please don't amend commits - it messes with the entire workflows.": true, "what are you doing...": true,
		"please don't ... the entire workflows": true, "please don't amend [all of my] commits": false, "please amend commits": false, "amend [...] messes with the": false,
		"don't amend... the entire workflow": false, "": true,
	} {
		if got := e.said(quoted, byPeople); got != want {
			t.Errorf("%q: %v", quoted, got)
		}
	}
}

// Reading a sentence never fails, whatever bytes it is made of: it stands or has one
// of the known faults. That real sentences stand is measured in package policy.
func FuzzFault(f *testing.F) {
	for _, s := range []string{"The user said “x", "`a` „b“ 12:", "1,,2 -", "\xff\xfe99%", "ユーザーは", "five-s 0x1f #", "«»「", "⁘A##0£", "A000ё00!0", `user: "a" "b`, "user…[", "İuser İ"} {
		f.Add(s)
	}
	known := map[string]bool{
		"": true, faultIdentifier: true, faultNumber: true, faultQuotation: true, faultUser: true, faultTool: true, faultWords: true,
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := evidenceIn(t, s)
		for _, kind := range []statement{{text: s}, {text: s, todo: true}, {text: s, user: true}, {text: s, code: true}} {
			if cause := e.fault(kind); !known[cause] {
				t.Fatalf("an unknown fault: %q", cause)
			}
		}
	})
}

// A summarizer that forgets constraints, files and key fields, or alters them,
// changes nothing: code says them (A5, A21).
func TestVerifiedCovers(t *testing.T) {
	k := (&talk{}).user("Refund the order. Never refund more than 40 euros.")
	k.calls("get_order", args{"id": "A-77"}, "order found", thread.Success)
	r, _ := k.messages[2].Result()
	r.KeyFields = thread.Fields{"order_id": "A-77", "total": 35.5}
	k.messages[2].Parts = []thread.Part{r}
	messages := k.says("The order can be refunded.").done(t)
	forgets := by(func(context.Context, Input) (summary.Summary, error) {
		return summary.Summary{
			CurrentTask: "Refund everything", Constraints: []summary.Item{{Text: "Refund up to 400 euros", Sources: []thread.ID{messages[0].ID}}},
			ToolOutcomes: []summary.ToolOutcome{{Tool: "get_order", Outcome: thread.Failure, KeyFields: thread.Fields{"order_id": "A-78"}, Sources: []thread.ID{messages[2].ID}}},
			Facts:        []summary.Item{{Text: "The order can be refunded with total 35.5", Sources: []thread.ID{messages[2].ID, messages[3].ID}}},
		}, nil
	})
	got, err := (&Verified{Inner: forgets}).Summarize(t.Context(), Input{Messages: messages, Budget: 400})
	if err != nil {
		t.Fatal(err)
	}
	text := got.Render()
	for _, want := range []string{"Never refund more than 40 euros.", "order_id=A-77", "total=35.5", "with total 35.5"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, bad := range []string{"everything", "400", "A-78", "failure"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q in\n%s", bad, text)
		}
	}
}
