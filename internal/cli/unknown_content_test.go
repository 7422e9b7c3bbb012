package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
)

// strange is a session of Claude Code with a line, an attachment and a block that nobody knows.
const strange = `{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","version":"2.1.332","message":{"role":"user","content":"Look."}}
{"type":"attachment","uuid":"u2","parentUuid":"u1","sessionId":"s","attachment":{"type":"nested_memory","path":"/w/CLAUDE.md","content":{"path":"/w/CLAUDE.md","content":"Weights in grams."}}}
{"type":"attachment","uuid":"u3","parentUuid":"u2","sessionId":"s","attachment":{"type":"mcp_resource","content":{"contents":[{"text":"The port is 5544."}]}}}
{"type":"attachment","uuid":"u4","parentUuid":"u3","sessionId":"s","attachment":{"type":"file","content":{"saw":"JVBERi0="}}}
{"type":"time-travel","uuid":"u5","parentUuid":"u4","sessionId":"s","to":"u1"}
{"type":"assistant","uuid":"a1","parentUuid":"u5","sessionId":"s","message":{"role":"assistant","id":"m1","model":"claude-opus-5-5","content":[{"type":"text","text":"Ok."},{"type":"hologram","x":1},{"type":"tool_use","id":"c1","name":"Read","input":{}}]}}
{"type":"user","uuid":"u6","parentUuid":"a1","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"Read."},{"type":"mirage","x":1}]}]}}
`

// TestNothingIsSilent: each command names what it does not know of a session, and what its output cannot hold.
func TestNothingIsSilent(t *testing.T) {
	t.Setenv("CODEX_HOME", t.TempDir())
	dir := t.TempDir()
	file := filepath.Join(dir, "strange.jsonl")
	if err := os.WriteFile(file, []byte(strange), 0o644); err != nil {
		t.Fatal(err)
	}
	const left, block = "not known and left out: attachment/file (1), time-travel (1)", "a block of type hologram cannot be sent"
	const kept = "blocks of types that are not known stay as they are: hologram (1), mirage (1)"
	for _, tt := range []struct {
		name, says string
		args       []string
	}{
		{"inspect", left, []string{"inspect", file}},
		{"plan", left, []string{"plan", file, "--budget", "4000"}},
		{"explain", left, []string{"explain", file, "-o", filepath.Join(dir, "page.html")}},
		{"explain for another API", block, []string{"explain", file, "--to", "openai", "-o", filepath.Join(dir, "other.html")}},
		{"compact", left, []string{"compact", file, "--budget", "4000", "-o", filepath.Join(dir, "anthropic.json")}},
		{"compact for another API", block, []string{"compact", file, "--budget", "4000", "--to", "openai", "-o", filepath.Join(dir, "openai.json")}},
		{"compact a result for another API", "a block of type mirage cannot be sent", []string{"compact", file, "--budget", "4000", "--to", "openai", "-o", filepath.Join(dir, "result.json")}},
		{"compact into another agent", "not carried over: block of type hologram (1)", []string{"compact", file, "--budget", "4000", "--into", "codex"}},
	} {
		status, out, errs := run(t, tt.args...)
		if said := strings.Join(strings.Fields(out+errs), " "); status != exitDone || !strings.Contains(said, tt.says) || !strings.Contains(said, left) || !strings.Contains(said, kept) {
			t.Errorf("%s: status %d, does not say %q: %s", tt.name, status, tt.says, said)
		}
	}
	request, err := os.ReadFile(filepath.Join(dir, "anthropic.json"))
	if err != nil || !strings.Contains(string(request), "Weights in grams.") || !strings.Contains(string(request), "The port is 5544.") || !strings.Contains(string(request), "hologram") {
		t.Errorf("%v: %s", err, request)
	}
}

// TestAttachedFilesStay: what the user attached is in the session that is written.
func TestAttachedFilesStay(t *testing.T) {
	out := filepath.Join(t.TempDir(), "session.jsonl")
	if status, _, errs := run(t, "compact", filepath.Join(corpus.Dir(t, "cases/agents/attached-files"), "session.jsonl"), "--into", "claude-code", "--budget", "32000", "-o", out); status != exitDone {
		t.Fatal(errs)
	}
	session, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(session), "the port is 5544") || !strings.Contains(string(session), "Weights are in grams.") || !strings.Contains(string(session), "x=1") {
		t.Errorf("%v: %s", err, session)
	}
}
