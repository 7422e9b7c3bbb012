package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestThinkingOfTheNamedModel: whether the thinking of what is kept stays is decided by the model that the request
// names, as by one that the user names: some bind it to all that stands before it, others demand it.
func TestThinkingOfTheNamedModel(t *testing.T) {
	for model, kept := range map[string]bool{"claude-opus-5-5": false, "claude-sonnet-4-5": true} {
		list := []string{`{"role":"user","content":"Count."}`}
		for i := range 20 {
			list = append(list, fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":%q}]},{"role":"user","content":"Shelf %d?"}`, strings.Repeat("box; ", 200), i))
		}
		in, out := filepath.Join(t.TempDir(), "in.json"), filepath.Join(t.TempDir(), "out.json")
		body := `{"model":"` + model + `","max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[` + strings.Join(list, ",") + `]}`
		if err := os.WriteFile(in, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, _, stderr := run(t, "compact", in, "--policy", "last-turns:3", "--budget", "4000", "--store", "memory:", "-o", out); status != 0 {
			t.Fatalf("%s: status %d: %s", model, status, stderr)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), `"signature"`) != kept {
			t.Errorf("%s: thinking is kept: %v\n%.1500s", model, !kept, data)
		}
	}
}
