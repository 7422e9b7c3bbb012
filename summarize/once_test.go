package summarize

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestOnce: whatever spans a summary is made of, a message is asked about once; what was told of it
// stays, until it is called outdated.
func TestOnce(t *testing.T) {
	k := &talk{}
	for n := range 6 {
		k.user(fmt.Sprintf("Please open gate %d now. ", n) + strings.Repeat("It is late, and we have far to go. ", 8)).says(fmt.Sprintf("Gate %d has a brass hinge.", n))
	}
	messages := k.done(t)
	var asked []thread.ID
	var outdated []string
	inner := &Verified{Inner: &teller{func(in Input) (out Result) {
		for i := range in.Messages {
			m := &in.Messages[i]
			asked = append(asked, m.ID)
			if m.Role == thread.Assistant {
				out.Facts = append(out.Facts, summary.Item{Text: "It was seen that " + m.Text(), Sources: []thread.ID{m.ID}})
			}
		}
		out.Outdated = outdated
		return out
	}}}
	once := &Once{Inner: inner}
	gates := func(messages []thread.Message) (told []int) {
		t.Helper()
		out, err := once.Summarize(t.Context(), Input{Messages: messages})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 6 {
			if strings.Contains(out.Render(), fmt.Sprintf("It was seen that Gate %d", n)) {
				told = append(told, n)
			}
		}
		return told
	}
	for _, step := range []struct {
		of       []thread.Message
		outdated []string
		asked    []thread.ID
		told     []int
	}{
		{messages[:4], nil, ids(messages[:4]), []int{0, 1}},
		{messages[:8], nil, ids(messages[4:8]), []int{0, 1, 2, 3}},
		{messages[2:6], nil, nil, []int{1, 2}},
		{messages[:8], nil, nil, []int{0, 1, 2, 3}},
		{messages, []string{"It was seen that Gate 1 has a brass hinge."}, ids(messages[8:]), []int{0, 2, 3, 4, 5}},
		{messages[:8], nil, nil, []int{0, 2, 3}},
	} {
		asked, outdated = nil, step.outdated
		if told := gates(step.of); !slices.Equal(asked, step.asked) || !slices.Equal(told, step.told) {
			t.Errorf("asked about %v, want %v; told of %v, want %v", asked, step.asked, told, step.told)
		}
	}
	once.Inner = &Extractive{} // as where the model fails: what it told stays
	if told := gates(messages[:6]); !slices.Equal(told, []int{0, 2}) {
		t.Errorf("without the model, told of %v", told)
	}
}

// TestToldIsBounded: what is kept of what was told does not grow without end.
func TestToldIsBounded(t *testing.T) {
	var told summary.Summary
	for n := range 2_000 {
		told.Facts = append(told.Facts, summary.Item{Text: fmt.Sprintf("Crate %d stands in the long hall beside the window.", n)})
	}
	told.Decisions = []summary.Decision{{Decision: "The hall stays."}}
	got := (&Input{Told: told}).with(summary.Summary{})
	size := 0
	for _, it := range got.Facts {
		size += len(it.Text)
	}
	if size > maxTold || size < maxTold*8/10 || len(got.Decisions) != 1 || !strings.Contains(got.Facts[len(got.Facts)-1].Text, "1999") {
		t.Errorf("%d facts of %d bytes, %d decisions", len(got.Facts), size, len(got.Decisions))
	}
}

func ids(messages []thread.Message) (all []thread.ID) {
	for i := range messages {
		all = append(all, messages[i].ID)
	}
	return all
}

// teller is a summarizer that says what a function says.
type teller struct{ say func(Input) Result }

func (s *teller) Summarize(_ context.Context, in Input) (Result, error) { return s.say(in), nil }
