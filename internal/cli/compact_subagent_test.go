package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSubagentKeepsItsTask: the file of a sub-agent is compacted with its task as it was written, which is another
// agent's and nothing that the user laid down, at any budget. G1
func TestSubagentKeepsItsTask(t *testing.T) {
	const task = "Find every caller of parseZone. Never edit a file."
	var b strings.Builder
	line := func(n int, kind, content string) {
		fmt.Fprintf(&b, `{"parentUuid":"u%d","uuid":"u%d","isSidechain":true,"agentId":"a1","sessionId":"s","type":%q,"message":{"role":%q,"content":%s}}`+"\n", n-1, n, kind, kind, content)
	}
	line(1, "user", fmt.Sprintf("%q", task))
	for n := range 30 {
		line(2*n+2, "assistant", fmt.Sprintf(`[{"type":"tool_use","id":"toolu_%d","name":"Grep","input":{"pattern":"parseZone%d"}}]`, n, n))
		line(2*n+3, "user", fmt.Sprintf(`[{"type":"tool_result","tool_use_id":"toolu_%d","content":%q}]`, n, strings.Repeat(fmt.Sprintf("src/a%d.go: parseZone()\n", n), 60)))
	}
	file := filepath.Join(t.TempDir(), "agent-a1.jsonl")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, budget := range []string{"3500", "1500", "900"} {
		status, out, stderr := run(t, "compact", file, "--budget", budget, "--store", "memory:", "--to", "anthropic")
		if status != 0 || !strings.Contains(out, `"`+task+`"`) {
			t.Errorf("%s: status %d: %s%.600s", budget, status, stderr, out)
		}
		if _, rules, found := strings.Cut(out, "## Constraints"); found && strings.Contains(rules, "Never edit") {
			t.Errorf("%s: another agent's words are a rule: %.600s", budget, rules)
		}
	}
}
