package integrations_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/integrations"
)

// request is what one of Hermes' requests holds.
type request struct {
	Own, Same bool
	Messages  []struct {
		Role, Text, Answers string
		Calls               []string
	}
}

// fits reports what is wrong with a request for a window of 20,000 tokens.
func (r request) fits(t *testing.T, when string) {
	t.Helper()
	size := 0
	var calls, answers []string
	for _, m := range r.Messages {
		size += len(m.Text)
		calls = append(calls, m.Calls...)
		if m.Answers != "" {
			answers = append(answers, m.Answers)
		}
	}
	if !slices.Equal(calls, answers) {
		t.Errorf("%s: calls %q have the results %q", when, calls, answers)
	}
	if !r.Own || size > 20_000*4 {
		t.Errorf("%s: Hermes' messages are unchanged: %t, %d bytes are left", when, r.Own, size)
	}
}

// selected is what testdata/hermes.py writes.
type selected struct {
	Name            string
	Steps           []request
	Full            bool
	Recalled, Later struct{ Result, Error string }
	Compressed      struct {
		request
		Count int
	}
	After  request
	Focus  string // that the daemon was told
	Tools  []string
	Logged []string
}

// TestHermes plays 30 requests through a window of 20,000 tokens to the engine, beside a
// real daemon, and then a compression that Hermes keeps.
func TestHermes(t *testing.T) {
	var got selected
	play(t, "hermes.py", integrations.Plugin("hermes"), "plugins/palimpsest/__init__.py", started(t), 30, &got)
	if len(got.Logged) > 0 || len(got.Steps) != 31 || got.Name != "palimpsest" || !slices.Equal(got.Tools, []string{"recall", "read_artifact"}) {
		t.Fatalf("%s has %q; %d steps, logged %q", got.Name, got.Tools, len(got.Steps), got.Logged)
	}
	for i, s := range got.Steps {
		s.fits(t, fmt.Sprint("step ", i))
		if i < 4 && !s.Same {
			t.Errorf("step %d: it was edited without a plan", i)
		}
		if first := s.Messages; first[0].Role != "system" || first[1].Text != "Read all parts. Never change a file." {
			t.Errorf("step %d: it begins with %.300v", i, first)
		}
	}
	if got.Steps[30].Same || !got.Full {
		t.Errorf("at last it is edited: %t; without that it would be too full: %t", !got.Steps[30].Same, got.Full)
	}
	for _, said := range []string{got.Recalled.Result, got.Later.Result} {
		if !strings.Contains(said, "the code is K7919") {
			t.Errorf("recall gave %+v, then %+v", got.Recalled, got.Later)
		}
	}
	c := got.Compressed
	if c.Own || c.Count != 1 || len(c.Messages) >= 30 {
		t.Errorf("the compression left %d messages: %+v", len(c.Messages), c.Count)
	}
	if got.Focus != "the codes" {
		t.Errorf("the daemon was asked to look at %q", got.Focus)
	}
	got.After.fits(t, "after the compression")
	seen := map[string]bool{}
	for _, m := range got.After.Messages {
		if seen[m.Text] && m.Role == "user" {
			t.Errorf("it is there twice: %.300s", m.Text)
		}
		seen[m.Text] = true
	}
	if last := got.After.Messages[len(got.After.Messages)-1]; !strings.HasPrefix(last.Text, "part 31: the code is") {
		t.Errorf("the newest message is %.300s", last.Text)
	}
}

// TestHermesWithoutDaemon: whatever is wrong with the daemon, requests and history are as
// they were, and one line each time says why.
func TestHermesWithoutDaemon(t *testing.T) {
	for name, program := range absent(t, 0) {
		t.Run(name, func(t *testing.T) {
			var got selected
			play(t, "hermes.py", integrations.Plugin("hermes"), "plugins/palimpsest/__init__.py", program, 3, &got)
			for i, s := range append(got.Steps, got.After) {
				if !s.Same || !s.Own {
					t.Errorf("step %d: %+v", i, s)
				}
			}
			if c := got.Compressed; !c.Own || c.Count != 0 {
				t.Errorf("the compression: %+v", c)
			}
			if len(got.Logged) != 6 || !strings.Contains(got.Logged[0], why[name]) || got.Recalled.Error == "" {
				t.Errorf("logged %q, recall gave %+v", got.Logged, got.Recalled)
			}
		})
	}
}
