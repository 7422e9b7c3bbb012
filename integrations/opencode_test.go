package integrations_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/integrations"
)

// played is what testdata/opencode.mjs writes.
type played struct {
	Steps []struct {
		Own, Auto, Same bool
		Messages        []struct {
			ID, Role, Text string
			Reasoning      bool
			Results        []string
		}
	}
	Recalled string
	Logged   []string
	Asked    int // for the limits of models
}

// TestOpencode plays a conversation of 30 steps through a window of 20,000 tokens to the
// module, beside a real daemon.
func TestOpencode(t *testing.T) {
	var got played
	play(t, "opencode", integrations.Plugin("opencode"), "plugins/palimpsest.js", started(t), 30, &got)
	if len(got.Logged) > 0 || len(got.Steps) != 30 {
		t.Fatalf("%d steps, logged %q", len(got.Steps), got.Logged)
	}
	for i, s := range got.Steps {
		size := 0
		for n, m := range s.Messages {
			size += len(m.Text)
			for _, r := range m.Results {
				size += len(r)
			}
			if m.Role == "assistant" && strings.HasPrefix(m.ID, "msg_0") && (len(m.Results) != 1 || !m.Reasoning) {
				t.Errorf("step %d, message %d: its call or its reasoning is gone: %+v", i+1, n, m)
			}
		}
		if !s.Own || s.Auto {
			t.Errorf("step %d: opencode's messages are unchanged: %t, its own compaction is on: %t", i+1, s.Own, s.Auto)
		}
		if i < 3 && !s.Same {
			t.Errorf("step %d: it was edited without a plan", i+1)
		}
		if size > 20_000*4 {
			t.Errorf("step %d: %d bytes are left", i+1, size)
		}
	}
	last := got.Steps[len(got.Steps)-1]
	if last.Same || !strings.Contains(last.Messages[len(last.Messages)-1].Results[0], "exit 1") {
		t.Errorf("at last: %+v", last)
	}
	var all strings.Builder
	for _, m := range last.Messages {
		all.WriteString(m.Text)
	}
	if !strings.Contains(all.String(), "Never change a file") {
		t.Errorf("the task is gone: %.2000s", all.String())
	}
	if got.Asked != 2 {
		t.Errorf("opencode was asked %d times for the limits of a model that it did not know at first", got.Asked)
	}
	if !strings.Contains(got.Recalled, "the code is K7919") {
		t.Errorf("recall gave %.300s", got.Recalled)
	}
}

// TestOpencodeWithoutDaemon: whatever is wrong with the daemon, opencode's messages and its
// own compaction are as they were, and one line says why.
func TestOpencodeWithoutDaemon(t *testing.T) {
	for name, program := range absent(t, 2) {
		t.Run(name, func(t *testing.T) {
			var got played
			play(t, "opencode", integrations.Plugin("opencode"), "plugins/palimpsest.js", program, 3, &got)
			for i, s := range got.Steps {
				if !s.Same || !s.Own || !s.Auto {
					t.Errorf("step %d: %+v", i+1, s)
				}
			}
			if len(got.Logged) != 3 || !strings.Contains(got.Logged[0], why[name]) || !strings.HasPrefix(got.Recalled, "error: ") {
				t.Errorf("logged %q, recall gave %q", got.Logged, got.Recalled)
			}
		})
	}
}

// TestOpencodeLosesDaemon: opencode's own compaction is off only as long as the daemon
// answers.
func TestOpencodeLosesDaemon(t *testing.T) {
	var got played
	play(t, "opencode", integrations.Plugin("opencode"), "plugins/palimpsest.js", serving(t, 12), 14, &got)
	if first := got.Steps[9]; first.Auto || first.Same {
		t.Errorf("while it answers: own compaction on: %t, not edited: %t", first.Auto, first.Same)
	}
	if last := got.Steps[13]; !last.Auto || !last.Same || len(got.Logged) == 0 {
		t.Errorf("after that: own compaction on: %t, not edited: %t, logged %q", last.Auto, last.Same, got.Logged)
	}
}

// TestOpencodeDeclarations: what the module relies on stands in what opencode ships.
// PALIMPSEST_OPENCODE names the folder of @opencode-ai/plugin.
func TestOpencodeDeclarations(t *testing.T) {
	declared(t, "PALIMPSEST_OPENCODE", "dist/index.d.ts", `"experimental.chat.messages.transform"`, `"experimental.chat.system.transform"`, `"tool.definition"`, "config?: (input: Config)", "toolID: string", "sessionID?: string", "server: Plugin")
}
