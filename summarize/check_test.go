package summarize

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestRules: each rule lets its true example pass, and finds its false one false, for that reason.
func TestRules(t *testing.T) {
	for i := range rules {
		r := &rules[i]
		t.Run(r.fault, func(t *testing.T) {
			k := &talk{}
			k.user("Good morning, there is something to be done. " + r.asked)
			messages := k.calls("Read", args{"path": "a"}, r.shown, thread.Success).says("I have a look at it.").done(t)
			e := newEvidence(t.Context(), messages, earlier{})
			for text, want := range map[string]string{r.holds: "", r.breaks: r.fault} {
				if got := e.fault(statement{text: text, todo: r.fault == faultTool}); got != want {
					t.Errorf("%q: %q, want %q", text, got, want)
				}
			}
		})
	}
}
