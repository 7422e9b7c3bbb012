package eval

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// TestValidity: every policy compacts, every API accepts every prompt, and auto
// keeps to its budget.
func TestValidity(t *testing.T) {
	counter := counterOf(t)
	set := &Set{counter: counter, sessions: []*session{worked(t, counter, 16).session}}
	v, err := Validity(t.Context(), set, nil)
	if err != nil {
		t.Fatal(err)
	}
	tight, err := Validity(t.Context(), set, &ValidityOptions{Tight: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range tight.Rows {
		if r.Invalid > 0 || r.Policy == autoName && r.Compactions <= v.Rows[i].Compactions {
			t.Errorf("%+v, with more room %+v", r, v.Rows[i])
		}
	}
	if len(v.Rows) != 24 {
		t.Fatalf("%d rows, want six policies for four APIs", len(v.Rows))
	}
	for _, r := range v.Rows {
		if r.Prompts != 17 || r.Invalid > 0 || r.Policy == autoName && (r.Over > 0 || r.Compactions == 0) {
			t.Errorf("%+v %q", r, v.Problems)
		}
	}
}

// TestRefused: a result without its call is told.
func TestRefused(t *testing.T) {
	orphan := &prompt.Prompt{Model: "m", Messages: []thread.Message{
		{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Go on."}}},
		{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "gone", Tool: "Read", Content: []thread.Part{thread.Text{Text: "x"}}}}},
	}}
	if why := refused(anthropic.Codec{}, orphan); !strings.Contains(why, "messages[") {
		t.Errorf("%q", why)
	}
}
