package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
)

// TestInstructionsStand: what system and developer lay down in mid conversation is in every prompt,
// under every policy, as it was given.
func TestInstructionsStand(t *testing.T) {
	body := filepath.Join(t.TempDir(), "chat.json")
	list := []string{`{"role":"system","content":"You keep the stock."}`}
	for i := range 10 {
		if i > 0 && i < 9 {
			list = append(list, `{"role":"developer","content":"Weights are in grams from here on."}`)
		}
		list = append(list, fmt.Sprintf(`{"role":"user","content":"Shelf %d?"}`, i), fmt.Sprintf(`{"role":"assistant","content":"%s."}`, strings.Repeat(fmt.Sprintf("kelp%d ", i), 100)))
	}
	if err := os.WriteFile(body, []byte(`{"model":"gpt-5.5","messages":[`+strings.Join(append(list, `{"role":"user","content":"Go on."}`), ",")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, budget := range []int{1500, 800} {
		instructionsStand(t, body, "openai", budget, []string{"Weights are in grams from here on."})
	}
}

// TestToolChangesStand: of a tool that is added, removed and added again the last change stays, under every policy,
// and all of them where nothing is hidden.
func TestToolChangesStand(t *testing.T) {
	body := filepath.Join(t.TempDir(), "messages.json")
	list := []string{`{"role":"user","content":"Begin."}`}
	for i := range 12 {
		list = append(list, fmt.Sprintf(`{"role":"assistant","content":"%s."}`, strings.Repeat(fmt.Sprintf("kelp%d ", i), 100)), fmt.Sprintf(`{"role":"user","content":"Shelf %d?"}`, i))
		if kind := []string{"addition", "removal"}[i%2]; i < 5 {
			list = append(list, fmt.Sprintf(`{"role":"system","content":[{"type":"tool_%s","tool":{"type":"tool_reference","tool_name":"weigh"}}]}`, kind))
		}
	}
	if err := os.WriteFile(body, []byte(`{"model":"claude-opus-5","max_tokens":9,"tools":[{"name":"weigh","defer_loading":true,"input_schema":{"type":"object"}}],"messages":[`+strings.Join(list, ",")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, policy := range []string{"auto", "notes", "ladder", "session", "timeline", "workstream", "last-turns:3"} {
		out := filepath.Join(t.TempDir(), "out.json")
		if status, _, stderr := run(t, "compact", body, "--to", "anthropic", "--policy", policy, "--budget", "1500", "--store", t.TempDir(), "-o", out); status == 3 {
			continue
		} else if status != 0 {
			t.Fatalf("%s: %s", policy, stderr)
		}
		var changes []string
		for _, m := range elements(t, out, "messages") {
			if m, _ := m.(map[string]any); m["role"] == "system" {
				for _, block := range m["content"].([]any) {
					changes = append(changes, block.(map[string]any)["type"].(string))
				}
			}
		}
		if got := strings.Join(changes, " "); got != "tool_addition" {
			t.Errorf("%s: the changes are %s", policy, got)
		}
	}
}

// TestCompactedTools: the changes of tools that a compaction of the provider's brought along stand where it
// goes, and so do the tools that were loaded beside it, under every policy.
func TestCompactedTools(t *testing.T) {
	body := filepath.Join(t.TempDir(), "messages.json")
	list := []string{`{"role":"user","content":"Begin."}`, `{"role":"assistant","content":[{"type":"compaction","content":"The shelves were counted.","tool_changes":[` +
		`{"type":"tool_removal","tool":{"type":"tool_reference","tool_name":"weigh"}}]},{"type":"server_tool_use","id":"srvtoolu_1","name":"tool_search_tool_bm25","input":{"query":"box"}},` +
		`{"type":"tool_search_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"box"}]}},{"type":"text","text":"Going on."}]}`}
	for i := range 12 {
		list = append(list, fmt.Sprintf(`{"role":"user","content":"Shelf %d?"}`, i), fmt.Sprintf(`{"role":"assistant","content":"%s."}`, strings.Repeat(fmt.Sprintf("kelp%d ", i), 100)))
	}
	list = append(list, `{"role":"user","content":"Go on."}`)
	if err := os.WriteFile(body, []byte(`{"model":"claude-opus-5","max_tokens":9,"tools":[{"name":"weigh","input_schema":{"type":"object"}},{"name":"box","defer_loading":true,"input_schema":{"type":"object"}},`+
		`{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}],"messages":[`+strings.Join(list, ",")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	instructionsStand(t, body, "anthropic", 1500, []string{`"type":"tool_removal"`, `"tool_references":[{"type":"tool_reference","tool_name":"box"}]`})
	// A signed one is the first of all.
	data, err := os.ReadFile(body)
	if err != nil {
		t.Fatal(err)
	}
	signed := strings.NewReplacer(list[0]+",", "", `"content":"The shelves were counted."`, `"content":"The shelves were counted.","signature":"c2ln"`).Replace(string(data))
	if err := os.WriteFile(body, []byte(signed), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, budget := range []int{4000, 1500} {
		instructionsStand(t, body, "anthropic", budget, []string{`"type":"tool_removal"`})
	}
}

// TestLoadedBeforeCalls: a call of a tool that was loaded stands behind a loading of it, also where the last loading of
// it is among the newest messages, under every policy.
func TestLoadedBeforeCalls(t *testing.T) {
	body := filepath.Join(t.TempDir(), "messages.json")
	load := func(n int) string {
		return fmt.Sprintf(`{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_%d","name":"tool_search_tool_bm25","input":{"query":"box"}},`+
			`{"type":"tool_search_tool_result","tool_use_id":"srvtoolu_%d","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"box"}]}}]}`, n, n)
	}
	list := []string{`{"role":"user","content":"Begin."}`, load(1)}
	for i := range 24 {
		list = append(list, fmt.Sprintf(`{"role":"user","content":"Shelf %d?"}`, i),
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"I look at %d."},{"type":"tool_use","id":"toolu_%d","name":"box","input":{"n":%d}}]}`, i, i, i),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"%s"}]}`, i, strings.Repeat(fmt.Sprintf("kelp%d ", i), 60)),
			fmt.Sprintf(`{"role":"assistant","content":"%s."}`, strings.Repeat(fmt.Sprintf("wrack%d ", i), 30)))
	}
	list = append(list, `{"role":"user","content":"Again."}`, load(2), `{"role":"user","content":"Go on."}`)
	if err := os.WriteFile(body, []byte(`{"model":"claude-opus-5","max_tokens":9,"tools":[{"name":"box","defer_loading":true,"input_schema":{"type":"object"}},`+
		`{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}],"messages":[`+strings.Join(list, ",")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, policy := range []string{"auto", "notes", "ladder", "session", "timeline", "workstream", "loop", "last-turns:3"} {
		out := filepath.Join(t.TempDir(), "out.json")
		status, _, stderr := run(t, "compact", body, "--to", "anthropic", "--policy", policy, "--budget", "3000", "--store", t.TempDir(), "-o", out)
		data, err := os.ReadFile(out)
		if status == 3 {
			t.Logf("%s: %s", policy, stderr)
			continue
		}
		if status != 0 || err != nil {
			t.Fatalf("%s: status %d: %s", policy, status, stderr)
		}
		call, loading := strings.Index(string(data), `"name":"box","input"`), strings.Index(string(data), `"tool_references"`)
		if n := strings.Count(string(data), `"tool_references"`); call >= 0 && (loading < 0 || loading > call) {
			t.Errorf("%s: the first of %d loadings is at %d, the first call at %d", policy, n, loading, call)
		}
	}
}

// TestInstructionCases: the same over requests that were written elsewhere, with changes of the tools.
func TestInstructionCases(t *testing.T) {
	dir := corpus.Dir(t, "cases/providers")
	for _, c := range []struct {
		file, api string
		want      []string
	}{
		{"mid-system-chat-responses/chat.json", "openai", []string{"never name the client Vexmoor"}},
		{"mid-system-anthropic/request.json", "anthropic", []string{"Reports must be in metric units.", "tool_addition", "tool_removal"}},
		{"additional-tools/request.json", "responses", []string{"Reports must be in metric units.", "additional_tools"}},
	} {
		instructionsStand(t, filepath.Join(dir, c.file), c.api, 6000, c.want)
	}
}

func instructionsStand(t *testing.T, file, api string, budget int, want []string) {
	t.Helper()
	for _, policy := range []string{"auto", "notes", "ladder", "session", "timeline", "workstream", "loop", "last-turns:3"} {
		out := filepath.Join(t.TempDir(), "out.json")
		status, _, stderr := run(t, "compact", file, "--to", api, "--policy", policy, "--budget", fmt.Sprint(budget), "--store", t.TempDir(), "-o", out)
		if status == 3 {
			continue // the policy's own rules keep more than the budget
		}
		data, err := os.ReadFile(out)
		if status != 0 || err != nil {
			t.Errorf("%s, %s: status %d: %s", file, policy, status, stderr)
			continue
		}
		if status, _, stderr := run(t, "check", out, "--to", api); status != 0 {
			t.Errorf("%s, %s: what came out is refused: %s", file, policy, stderr)
		}
		for _, w := range want {
			if n := strings.Count(string(data), w); n != 1 && (n == 0 || policy != "notes") { // it keeps more whole
				t.Errorf("%s, %s: %q is there %d times", file, policy, w, n)
			}
		}
	}
}

// TestInstructionsDoNotFit: instructions in mid conversation that leave no room are named, and the budget cannot be met. G3
func TestInstructionsDoNotFit(t *testing.T) {
	body := filepath.Join(t.TempDir(), "chat.json")
	list := []string{`{"role":"user","content":"Count the shelves."}`}
	for i := range 10 {
		list = append(list, fmt.Sprintf(`{"role":"developer","content":"On shelf %d %s."}`, i, strings.Repeat(fmt.Sprintf("weights %d are in grams, ", i), 20)),
			fmt.Sprintf(`{"role":"user","content":"Shelf %d?"}`, i), fmt.Sprintf(`{"role":"assistant","content":"%s."}`, strings.Repeat(fmt.Sprintf("kelp%d ", i), 100)))
	}
	if err := os.WriteFile(body, []byte(`{"model":"gpt-5.5","messages":[`+strings.Join(append(list, `{"role":"user","content":"Go on."}`), ",")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, policy := range []string{"auto", "ladder", "last-turns:3"} {
		status, _, stderr := run(t, "compact", body, "--to", "openai", "--policy", policy, "--budget", "900", "--store", "memory:", "-o", filepath.Join(t.TempDir(), "out.json"))
		if status != exitOverBudget || !strings.Contains(stderr, "instructions in the conversation") {
			t.Errorf("%s: status %d: %s", policy, status, stderr)
		}
	}
}
