package integrations_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/integrations"
)

// compacted is what testdata/claude-code.mjs writes.
type compacted struct {
	Registered  []string
	Own, Itself bool
	Messages    []struct {
		Role, Text string
		ToolUses   []struct {
			ID string `json:"tool_use_id"`
		}
		ToolResults []struct {
			ID   string `json:"tool_use_id"`
			Text string
		}
	}
	Recalled struct{ Result, Deny string }
	// End is what is left where Claude Code has lost all but the last messages.
	End string
	// Ahead are compactions after one that was made ahead of time, and used or not.
	Ahead []struct {
		Name            string
		Anew            bool // another summary than before is shown
		Summaries, Told int  // those that are shown, and those of them that the daemon was told
	}
	Logged []string
}

// playClaude plays a compaction to the plugin. Claude Code takes TypeScript, as Node does
// from 22.18 on.
func playClaude(t *testing.T, script string, parts int) compacted {
	t.Helper()
	if out, err := exec.Command("node", "-p", "process.features.typescript ?? ''").Output(); err == nil && strings.TrimSpace(string(out)) == "" {
		t.Skip("this Node reads no TypeScript")
	}
	const module = "hooks/register.ts"
	files := map[string]string{module: integrations.Plugin("claude-code")[module]}
	var got compacted
	play(t, "claude-code", files, module, script, parts, &got)
	if !got.Own || !slices.Equal(got.Registered, []string{"recall", "read_artifact"}) {
		t.Errorf("Claude Code's messages are unchanged: %t, it has the tools %q", got.Own, got.Registered)
	}
	return got
}

// TestClaudeCode plays a compaction of 30 parts to the plugin, beside a real daemon.
func TestClaudeCode(t *testing.T) {
	got := playClaude(t, started(t), 30)
	if got.Itself || len(got.Logged) > 0 {
		t.Fatalf("Claude Code compacted by itself: %q", got.Logged)
	}
	size := 0
	var all strings.Builder
	var calls, answers []string
	for _, m := range got.Messages {
		all.WriteString(m.Text)
		for _, u := range m.ToolUses {
			calls = append(calls, u.ID)
		}
		for _, r := range m.ToolResults {
			answers = append(answers, r.ID)
			size += len(r.Text)
		}
	}
	size += all.Len()
	if !slices.Equal(calls, answers) || len(calls) == 0 || size > 20_000*4 {
		t.Errorf("calls %q have the results %q; %d bytes are left", calls, answers, size)
	}
	if !strings.Contains(got.End, "Context Summary") {
		t.Errorf("of the end alone is left %.2000s", got.End)
	}
	if len(got.Ahead) != 3 {
		t.Errorf("compactions ahead of time: %+v", got.Ahead)
	}
	for _, a := range got.Ahead {
		if a.Summaries == 0 || a.Told > 0 || a.Anew != (a.Name == "used") {
			t.Errorf("a compaction after one that was made ahead of time: %+v", a)
		}
	}
	if !strings.Contains(all.String(), "Never change a file") || !strings.Contains(got.Recalled.Result, "the code is K7919") {
		t.Errorf("left is %.2000s; recall gave %+v", all.String(), got.Recalled)
	}
}

// TestClaudeCodeWithoutDaemon: whatever is wrong with the daemon, Claude Code compacts by
// itself, and one line says why.
func TestClaudeCodeWithoutDaemon(t *testing.T) {
	for name, program := range absent(t, 0) {
		t.Run(name, func(t *testing.T) {
			got := playClaude(t, program, 3)
			if !got.Itself || len(got.Logged) != 1 || !strings.Contains(got.Logged[0], why[name]) || got.Recalled.Deny == "" {
				t.Errorf("by itself: %t, logged %q, recall gave %+v", got.Itself, got.Logged, got.Recalled)
			}
		})
	}
}
