package event_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/golden"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// lifecycle is one event of every type, as a compaction that goes through much
// trouble would emit them.
func lifecycle() []event.Event {
	span := &thread.Span{MessageIDs: []thread.ID{"m1", "m2"}, FirstTurn: 1, LastTurn: 2}
	events := []event.Event{
		{Type: event.PreCompact, TokensBefore: 93_600},
		{Type: event.CheckStarted, TokensBefore: 93_600, BudgetLimit: 85_000, Policy: "ladder"},
		{Type: event.ProposalGenerated, Strategy: "clear", Span: span, TokensFreed: 4_000},
		{Type: event.Externalized, Strategy: "externalize", Span: span, TokensFreed: 9_000, Details: map[string]any{"artifact": "art_0011223344556677"}},
		{Type: event.Summarized, Strategy: "summarize", Span: span, TokensFreed: 8_000, Cache: event.Miss, Duration: 1500 * time.Millisecond, Details: map[string]any{"summary_tokens": 210, "model": "small-1"}},
		{Type: event.Cleared, Strategy: "clear", Span: span, TokensFreed: 4_000},
		{Type: event.Retrieved, Strategy: "retrieve", Span: span, TokensFreed: 400},
		{Type: event.Dropped, Strategy: "drop", Span: span, TokensFreed: 100},
		{Type: event.PlanConflict, Details: map[string]any{"version": 11, "attempt": 1}},
		{Type: event.PlanCommitted, Details: map[string]any{"version": 12, "attempt": 2}},
		{Type: event.Completed, TokensBefore: 93_600, TokensAfter: 72_100, TokensFreed: 21_500, BudgetLimit: 85_000, Duration: 1601 * time.Millisecond},
		{Type: event.Boundary, Details: map[string]any{"trigger": "auto", "first_kept": thread.ID("m3")}},
		{Type: event.SessionStart, Details: map[string]any{"source": "compact"}},
		{Type: event.Rehydrated, Details: map[string]any{"artifact": "art_0011223344556677", "tokens": 900}},
		{Type: event.Blocked, Details: map[string]any{"artifact": "art_8899aabbccddeeff", "sensitivity": "restricted", "reason": "explicit_read_required"}},
		{Type: event.Failed, Err: event.ErrorClass(context.DeadlineExceeded), Duration: 30 * time.Second, Details: map[string]any{"fallback": "passthrough"}},
		{Type: event.OverflowShortened, TokensBefore: 201_000, TokensAfter: 90_000, TokensFreed: 111_000},
		{Type: event.RequestProxied, TokensBefore: 201_000, TokensAfter: 90_000, Duration: 2 * time.Second, Details: map[string]any{"route": "anthropic", "action": "recovered", "status": 200}},
		{Type: event.WindowLearned, Details: map[string]any{"upstream": "api.example", "model": "small-1", "window": 60_000, "instead_of": 128_000}},
		{Type: event.ModelAssumed, Details: map[string]any{"model": "small-3", "window": 128_000, "figures": "those of small-2"}},
		{Type: event.ContextRequested, Details: map[string]any{"message_id": thread.ID("m9"), "class": "asked_again"}},
		{Type: event.QualityAlert, Details: map[string]any{"asks": 3, "turns": 10}},
	}
	for i := range events {
		events[i].Time = noon.Add(time.Duration(i) * time.Second)
		events[i].ThreadID, events[i].TenantID = "ticket-4711", "acme"
	}
	return events
}

// A18: the JSON form is stable; a stored event reads back as it was written.
func TestJSONGolden(t *testing.T) {
	var got bytes.Buffer
	for _, e := range lifecycle() {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(append(line, '\n'))
		var back event.Event
		if err := json.Unmarshal(line, &back); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		again, err := json.Marshal(back)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(line), string(again)); diff != "" {
			t.Errorf("%s changes when it is read back (-first +again):\n%s", e.Type, diff)
		}
	}
	golden.Equal(t, "testdata/lifecycle.jsonl", got.String())
}

// A18: the words of the seed.
func TestSeedWords(t *testing.T) {
	want := "compaction_check_started compaction_proposal_generated compaction_externalized compaction_summarized compaction_cleared compaction_retrieved compaction_dropped compaction_rehydrated compaction_completed"
	got := fmt.Sprint(event.CheckStarted, " ", event.ProposalGenerated, " ", event.Externalized, " ", event.Summarized, " ", event.Cleared, " ", event.Retrieved, " ", event.Dropped, " ", event.Rehydrated, " ", event.Completed)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// canary is what a conversation said; no sink may ever see it.
const canary = "CANARY-7e1 the user's budget is 4,200 euros"

// A18: ids, counts and names only. A caller that puts content wherever the type
// lets it finds none of it written.
func TestNoContent(t *testing.T) {
	e := event.Event{
		Type: canary, Time: noon, ThreadID: canary, TenantID: canary, Policy: canary, Strategy: canary, Cache: canary,
		Err: event.ErrorClass(fmt.Errorf("model said: %w", errors.New(canary))),
		Details: map[string]any{
			"text": canary, "list": []string{canary}, "ids": []thread.ID{canary}, "any": []any{canary, []any{canary}}, canary: 1,
			"message": thread.Message{Parts: []thread.Part{thread.Text{Text: canary}}}, "error": errors.New(canary),
			"bytes": []byte(canary), "raw": json.RawMessage(`"` + canary + `"`), "map": map[string]any{"x": canary},
			"long": "CANARY-7e1" + strings.Repeat("x", 200), "stringer": bytes.NewBufferString(canary),
			"tab": "CANARY-7e1\tbudget", "space": "CANARY-7e1\u00a0budget\u2003is\u30004200",
			"id": "kept",
		},
	}
	line, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	written := string(line) + fmt.Sprint(e.Attrs())
	if strings.Contains(written, "CANARY") || strings.Contains(written, "budget is") {
		t.Errorf("content was written: %s", written)
	}
	if !strings.Contains(string(line), `"id":"kept"`) {
		t.Errorf("an id was not written: %s", line)
	}
}

// What OfRecord takes from a record has no word of its summary, reason, hint
// or preserved fields.
func TestOfRecord(t *testing.T) {
	span := thread.Span{MessageIDs: []thread.ID{"a", "b"}, FirstTurn: 1, LastTurn: 1}
	made := plan.Origin{Strategy: "some", Reason: canary, TokensBefore: 100, TokensAfter: 30}
	s := summary.Summary{CurrentTask: canary}
	records := []struct {
		record  plan.Record
		typ     event.Type
		details map[string]any
	}{
		{plan.Externalization{Span: span, ArtifactID: "art_1", Summary: s, RehydrateHint: canary, Origin: made}, event.Externalized, map[string]any{"artifact": "art_1"}},
		{plan.Summarization{Span: span, Summary: s, SummaryTokens: 30, Origin: made}, event.Summarized, map[string]any{"summary_tokens": 30}},
		{plan.Clearing{Span: span, PreservedFields: thread.Fields{"x": canary}, Origin: made}, event.Cleared, nil},
		{plan.Removal{Span: span, Origin: made}, event.Dropped, nil},
	}
	for _, r := range records {
		got := event.OfRecord(r.record)
		want := event.Event{Type: r.typ, Strategy: "some", Span: &span, TokensBefore: 100, TokensAfter: 30, TokensFreed: 70, Details: r.details}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.typ, diff)
		}
		if line, err := json.Marshal(got); err != nil || strings.Contains(string(line), "CANARY") {
			t.Errorf("%s: %s, %v", r.typ, line, err)
		}
	}
}

type refused struct{ class string }

func (r refused) Error() string { return canary }
func (r refused) Class() string { return r.class }

func TestErrorClass(t *testing.T) {
	tests := []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New(canary), "error"},
		{fmt.Errorf("x: %w", context.Canceled), "canceled"},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), "deadline_exceeded"},
		{fmt.Errorf("x: %w", refused{"rate_limited"}), "rate_limited"},
		{refused{canary}, "event_test.refused"}, // a class that is a sentence is none
		{fmt.Errorf("x: %w", &fs.PathError{Op: "open", Path: canary, Err: fs.ErrNotExist}), "fs.PathError"},
		{errors.Join(errors.New("a"), &json.SyntaxError{}), "json.SyntaxError"},
		{fmt.Errorf("%w, %w", errors.New("a"), errors.New("b")), "error"},
	}
	for _, test := range tests {
		if got := event.ErrorClass(test.err); got != test.want {
			t.Errorf("ErrorClass(%T) = %q, want %q", test.err, got, test.want)
		}
	}
}

// quoting is an error with the words of somebody else, as llm.APIError is one.
type quoting struct{ error }

func (quoting) Quoted() string  { return canary }
func (q quoting) Unwrap() error { return q.error }

// The text of an error is for the log alone, without what it quotes.
func TestCauseText(t *testing.T) {
	disk := errors.New("the disk is full")
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{fmt.Errorf("append to t: %w", disk), "append to t: the disk is full"},
		{fmt.Errorf("message %q: %w", canary, disk), `message "…": the disk is full`},
		{fmt.Errorf("at `%s", canary), `at "…"`},
		{fmt.Errorf("a: %w", errors.Join(disk, quoting{fmt.Errorf("status 400: %s", canary)})), "a: the disk is full\nstatus 400: …"},
		{errors.New(strings.Repeat("long ", 100)), strings.TrimSpace(strings.Repeat("long ", 60)) + "…"},
	} {
		if got := event.CauseText(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	e := event.Event{Type: event.Failed}.Failing(disk)
	line, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if written := string(line) + fmt.Sprint(e.Attrs()); e.Err != "error" || strings.Contains(written, "disk") {
		t.Errorf("class %q, written %s", e.Err, written)
	}
}

// Every field of an event is written by both forms, so that a new field cannot
// be forgotten in one of them.
func TestEveryFieldIsWritten(t *testing.T) {
	full := event.Event{
		Cause: errors.New("x"), Type: "t", Time: noon, ThreadID: "th", TenantID: "te", Policy: "p", TokensBefore: 3, TokensAfter: 2, BudgetLimit: 9, Strategy: "s",
		Span: &thread.Span{MessageIDs: []thread.ID{"m"}}, TokensFreed: 1, Duration: time.Millisecond, Cache: event.Hit, Err: "e", Details: map[string]any{"k": true},
	}
	v := reflect.ValueOf(full)
	whole, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	for i := range v.NumField() {
		field := v.Type().Field(i).Name
		if field == "Cause" {
			continue // see TestCauseText
		}
		if v.Field(i).IsZero() {
			t.Fatalf("the test leaves %s empty", field)
		}
		less := full
		reflect.ValueOf(&less).Elem().Field(i).SetZero()
		line, err := json.Marshal(less)
		if err != nil {
			t.Fatal(err)
		}
		if string(line) == string(whole) {
			t.Errorf("%s is not in the JSON form", field)
		}
		if field != "Type" && field != "Time" && len(less.Attrs()) == len(full.Attrs()) {
			t.Errorf("%s is not among the attributes", field)
		}
	}
	var _ []slog.Attr = full.Attrs()
}

func FuzzUnmarshal(f *testing.F) {
	for _, e := range lifecycle() {
		line, err := json.Marshal(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Add([]byte(`{"duration_us":9223372036854775807}`))
	f.Add([]byte(`{"details":{"a b":[1,"x y",{}]},"span":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var e event.Event
		if json.Unmarshal(data, &e) != nil {
			return
		}
		e.Attrs()
		first, err := json.Marshal(e)
		if err != nil {
			if y := e.Time.UTC().Year(); y < 0 || y > 9999 {
				return // a time that JSON cannot hold in UTC
			}
			t.Fatalf("%q was read and cannot be written: %v", data, err)
		}
		var back event.Event
		if err := json.Unmarshal(first, &back); err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		second, err := json.Marshal(back)
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("not stable:\n%s\n%s\n%v", first, second, err)
		}
	})
}

func BenchmarkMarshal(b *testing.B) {
	e := lifecycle()[4]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.Marshal(e); err != nil {
			b.Fatal(err)
		}
	}
}
