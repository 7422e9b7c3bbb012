package integrations_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/integrations"
)

// turned is what testdata/pi.mjs writes.
type turned struct {
	Turns []struct {
		Own, Others bool
		Edits       int
		Seen        []struct {
			Role, First, Text, Answers string
			Calls                      []string
		}
	}
	Recalled, Later string
	Compaction      struct{ Summary, FirstKeptEntryID string }
	Logged          []string
}

// TestPi plays a conversation of 30 turns through a window of 20,000 tokens to the
// extension, beside a real daemon. The context edits are applied as pi applies them.
func TestPi(t *testing.T) {
	var got turned
	play(t, "pi", integrations.Plugin("pi"), "extensions/palimpsest.js", started(t), 30, &got)
	if len(got.Logged) > 0 || len(got.Turns) != 30 {
		t.Fatalf("%d turns, logged %q", len(got.Turns), got.Logged)
	}
	quiet := 0
	for i, turn := range got.Turns {
		size := 0
		var calls, answers []string
		for n, m := range turn.Seen {
			size += len(m.Text)
			calls = append(calls, m.Calls...)
			if m.Answers != "" {
				answers = append(answers, m.Answers)
			}
			if m.Role == "assistant" && m.First != "thinking" {
				t.Errorf("turn %d, message %d: its reasoning is gone: %+v", i+1, n, m)
			}
		}
		if !slices.Equal(calls, answers) {
			t.Errorf("turn %d: calls %q have the results %q", i+1, calls, answers)
		}
		if !turn.Own || !turn.Others {
			t.Errorf("turn %d: pi's entries are as they were: %t, what others add stays: %t", i+1, turn.Own, turn.Others)
		}
		if size > 20_000*4 || i < 3 && turn.Edits > 0 {
			t.Errorf("turn %d: %d bytes are left after %d edits", i+1, size, turn.Edits)
		}
		if turn.Edits == 0 {
			quiet++
		}
		if first := turn.Seen[0]; first.Role != "user" || !strings.HasPrefix(first.Text, "Read all parts. Never change a file.") {
			t.Errorf("turn %d: the task is gone: %.300s", i+1, first.Text)
		}
	}
	// What was edited is not edited again.
	if quiet < 15 || quiet > 28 {
		t.Errorf("%d turns of 30 were not edited", quiet)
	}
	if last := got.Turns[29].Seen; !strings.Contains(last[0].Text, "Context Summary") || last[len(last)-1].Text != "exit 1" {
		t.Errorf("at last: %.3000v", last)
	}
	if !strings.Contains(got.Recalled, "the code is K7919") {
		t.Errorf("recall gave %.300s", got.Recalled)
	}
	c := got.Compaction
	if !strings.HasPrefix(c.Summary, "[user] Read all parts. Never change a file.") || !strings.Contains(c.Summary, "K7919") || len(c.Summary) > 40_000 || c.FirstKeptEntryID == "" {
		t.Errorf("the compaction from %q on is %.500s", c.FirstKeptEntryID, c.Summary)
	}
	if !strings.Contains(got.Later, "the code is K7919") {
		t.Errorf("after it recall gave %.300s", got.Later)
	}
}

// TestPiWithoutDaemon: whatever is wrong with the daemon, nothing is edited, and one line
// each time says why.
func TestPiWithoutDaemon(t *testing.T) {
	for name, program := range absent(t, 3) {
		t.Run(name, func(t *testing.T) {
			var got turned
			play(t, "pi", integrations.Plugin("pi"), "extensions/palimpsest.js", program, 3, &got)
			for i, turn := range got.Turns {
				if !turn.Own || turn.Edits > 0 {
					t.Errorf("turn %d: %+v", i+1, turn)
				}
			}
			if got.Compaction.Summary != "" || len(got.Logged) != 4 || !strings.Contains(got.Logged[0], why[name]) || !strings.HasPrefix(got.Recalled, "error: ") {
				t.Errorf("logged %q, recall gave %q", got.Logged, got.Recalled)
			}
		})
	}
}

// TestPiDeclarations: what the extension relies on stands in what pi ships. PALIMPSEST_PI
// names the folder of @earendil-works/pi-coding-agent.
func TestPiDeclarations(t *testing.T) {
	declared(t, "PALIMPSEST_PI", "dist/core/extensions/types.d.ts", `type: "turn_end"`, `type: "session_before_compact"`, `type: "context_edit"`, "contextEntries: ProjectedSessionEntry[]", "preparation: CompactionPreparation", "getActiveTools(): string[]", "getAllTools(): ToolInfo[]", "getSystemPrompt(): string")
	declared(t, "PALIMPSEST_PI", "dist/core/session-manager.d.ts", "sourceEntry: SessionEntry", `"buildSessionProjection"`, `"getBranch"`, "replacement: {", "firstKeptEntryId: string")
}

// compacting is what testdata/picompactions.mjs writes of a session.
type compacting struct {
	Name     string
	Requests []struct {
		Part        int
		First, Text string
	}
	Compactions []struct {
		Own     bool
		Summary string
	}
	Recalled string
	Logged   []string
}

// TestPiCompactions: over five compactions and more, of ours and of pi's own, the model
// sees the task and what was done in each request, once, and no summary is empty or of an
// earlier compaction.
func TestPiCompactions(t *testing.T) {
	var got []compacting
	play(t, "picompactions", integrations.Plugin("pi"), "extensions/palimpsest.js", started(t), 31, &got)
	if len(got) != 4 {
		t.Fatalf("%d sessions", len(got))
	}
	for _, s := range got {
		if len(s.Logged) > 0 || len(s.Requests) != 31 || len(s.Compactions) < 5 {
			t.Errorf("%s: %d requests, %d compactions, logged %q", s.Name, len(s.Requests), len(s.Compactions), s.Logged)
		}
		for i, c := range s.Compactions {
			if c.Own == strings.HasPrefix(c.Summary, "pi's words") || s.Name != "mixed" && !c.Own || strings.TrimSpace(c.Summary) == "" {
				t.Errorf("%s, compaction %d: ours: %t, says %q", s.Name, i+1, c.Own, c.Summary)
			}
		}
		for _, r := range s.Requests {
			if !strings.Contains(r.Text, "Never change a file.") || strings.TrimSpace(r.First) == "" {
				t.Errorf("%s: after part %d the task is gone: %.300q", s.Name, r.Part, r.First)
			}
			words, since := 0, 1 // the newest of pi's own words, which stand for what was before
			for _, own := range []int{9, 20} {
				if s.Name == "mixed" && r.Part >= own {
					words, since = own, own
				}
			}
			if found := strings.Count(r.Text, "pi's words"); found != min(words, 1) || !strings.Contains(r.Text, fmt.Sprintf("pi's words up to part %d:", words)) && words > 0 {
				t.Errorf("%s: after part %d, words of pi's up to part %d are wanted, and there are %d", s.Name, r.Part, words, found)
			}
			for n := since; n <= r.Part; n++ {
				code := fmt.Sprintf("part %d: the code is K%d\n", n, n*7919)
				if n%5 == 0 {
					code = fmt.Sprintf("./part %d => failure", n)
				}
				if found := strings.Count(r.Text+"\n", code); found > 1 || found == 0 && n%5 != 0 {
					t.Errorf("%s: after part %d the model sees %q %d times", s.Name, r.Part, code, found)
				}
			}
		}
		if !strings.Contains(s.Recalled, "the code is K7919") {
			t.Errorf("%s: recall gave %.300s", s.Name, s.Recalled)
		}
	}
}

// TestPiTakenBack: what the user or another extension took out of a conversation does not
// come back, neither in what the model sees nor by recall, and what pi lets nobody edit
// hinders no compaction.
func TestPiTakenBack(t *testing.T) {
	var got []struct {
		Name, Text, Recalled string
		Logged               []string
	}
	play(t, "pitaken", integrations.Plugin("pi"), "extensions/palimpsest.js", started(t), 20, &got)
	stays := map[string]string{"edited": "The password is not yours.", "went back": "Leave the tables.", "ran": "On the other branch the tests failed."}
	for _, s := range got {
		if len(s.Logged) > 0 || !strings.Contains(s.Text, "Never change a file.") || !strings.Contains(s.Text, "Context Summary") || len(s.Text) > 80_000 {
			t.Errorf("%s: logged %q, the model sees %.2000s", s.Name, s.Logged, s.Text)
		}
		if strings.Contains(s.Text, "9911") || strings.Contains(s.Recalled, "code is 9911") || strings.Contains(s.Recalled, "table 9911") {
			t.Errorf("%s: what was taken back is there: %.2000s\nrecall gave %s", s.Name, s.Text, s.Recalled)
		}
		if want := stays[s.Name]; want == "" || !strings.Contains(s.Text, want) {
			t.Errorf("%s: %q is gone: %.2000s", s.Name, want, s.Text)
		}
	}
	if len(got) != len(stays) {
		t.Errorf("%d sessions", len(got))
	}
}
