package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCP: an agent that starts the command asks for sessions of this machine and gets
// their place, reads what a compaction removed, and keeps a plan only with --write.
func TestMCP(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE"} {
		t.Setenv(name, home)
	}
	t.Setenv("XDG_DATA_HOME", filepath.Join(home, "data"))
	for _, name := range []string{"CODEX_HOME", "CLAUDE_CONFIG_DIR", "PI_CODING_AGENT_DIR"} {
		t.Setenv(name, "")
	}
	const id = "91bfefb2-9533-4bcc-8bfc-f00dd138f269"
	data, err := os.ReadFile("../../testdata/sessions/fix-retry.claude-code.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, ".claude", "projects", "-src-shipq", id+".jsonl")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}

	connect := func(args ...string) *sdk.ClientSession {
		t.Helper()
		toServer, fromClient := io.Pipe()
		toClient, fromServer := io.Pipe()
		ended := make(chan int, 1)
		var report strings.Builder
		go func() {
			ended <- Run(context.Background(), append([]string{"mcp"}, args...), Streams{In: toServer, Out: fromServer, Err: &report})
		}()
		c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.IOTransport{Reader: toClient, Writer: fromClient}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			c.Close()
			fromClient.Close()
			if status := <-ended; status != exitDone || report.Len() > 0 {
				t.Errorf("status %d: %s", status, report.String())
			}
		})
		return c
	}
	call := func(c *sdk.ClientSession, tool string, arguments map[string]any, wants ...string) {
		t.Helper()
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		text := r.Content[0].(*sdk.TextContent).Text
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s %v: %q is not in:\n%s", tool, arguments, want, text)
			}
		}
	}

	c := connect()
	call(c, "sessions", nil, "1 session", id+" · claude-code · -src-shipq", `"We had a bad night`)
	call(c, "recall", map[string]any{"query": "never touch the public API of package store", "role": "user"}, "turn 2, user", "session "+id+" (claude-code, -src-shipq", "never touch")
	call(c, "explain", map[string]any{"session": "91bfef"}, "239 messages", "No plan is in force")
	call(c, "compact", map[string]any{"session": id}, "Nothing was changed. For a budget of 50,000", "\nsummarize · turns 1 to 7 · 116 messages, the first is ")
	call(c, "compact", map[string]any{"session": id, "budget": 9000}, "Nothing was changed. For a budget of 9,000", "\nsummarize · ", "palimpsest compact "+id+" --budget 9000")
	call(c, "compact", map[string]any{"session": "latest"}, id+" · claude-code", "Nothing was changed")
	call(c, "compact", map[string]any{"session": id, "budget": 9000, "keep": true}, "keep")
	if _, err := os.Stat(filepath.Join(home, "data", "palimpsest", "palimpsest.db")); err == nil {
		t.Error("a store was made by a command that only reads")
	}
	// The store comes later, and is found by the server that runs.
	call(connect("--write"), "compact", map[string]any{"session": id, "budget": 9000, "keep": true}, "in force and kept in ")
	call(c, "explain", map[string]any{"session": id}, "Plan 1 is in force, made by the policy auto", "older than what stays whole", "read_artifact art_")
	call(c, "sessions", nil, "1 session,", "1 plan")

	// An agent that is off gets no tools.
	if status, _, errs := run(t, "off", "cursor"); status != exitDone {
		t.Fatal(errs)
	}
	for agent, want := range map[string]int{"cursor": 0, "droid": 5} {
		tools, err := connect("--agent", agent).ListTools(t.Context(), nil)
		if want == 0 && err == nil && len(tools.Tools) > 0 || want > 0 && (err != nil || len(tools.Tools) != want) {
			t.Errorf("%s: %v: %+v", agent, err, tools)
		}
	}
}
