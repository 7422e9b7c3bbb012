package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/internal/glyph"
)

// TestNamesAreShown: names of tools, files and threads that steer a terminal, turn the order of what is shown
// or look like others come out of every report as escapes, and so in the page.
func TestNamesAreShown(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	const tool, path = "Re\u0430d\u202e", "docs/\x1b]0;owned\x07\u2066plan.md"
	const threadName = "t\x1b[2J\u202e\u0430b"
	var messages []map[string]any
	messages = append(messages, map[string]any{"role": "user", "content": "Read all of it. \x1b[31m\u202e"})
	for i := range 12 {
		arguments, err := json.Marshal(map[string]any{"file_path": fmt.Sprint(path, i)})
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("call_", i)
		messages = append(messages,
			map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": id, "type": "function", "function": map[string]any{"name": tool, "arguments": string(arguments)}}}},
			map[string]any{"role": "tool", "tool_call_id": id, "content": strings.Repeat(fmt.Sprintf("%d \x1b[2J\u202e words of the plan\n", i), 120)})
	}
	messages = append(messages, map[string]any{"role": "user", "content": "Go on."})
	body, err := json.Marshal(map[string]any{"model": "gpt-5.1", "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, page, store := filepath.Join(dir, threadName+".json"), filepath.Join(dir, "page.html"), filepath.Join(dir, "store.db")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	told := false
	for _, args := range [][]string{
		{"inspect", file}, {"plan", file, "--budget", "3000"}, {"check", file, "--to", "anthropic"},
		{"compact", file, "--budget", "3000", "--policy", "ladder", "--store", store, "-o", filepath.Join(dir, "out.json"), "--plan-out", filepath.Join(dir, "plan.json")},
		{"diff", filepath.Join(dir, "plan.json"), filepath.Join(dir, "plan.json")},
		{"threads", "--store", store}, {"artifact", "list", "--store", store}, {"recall", "plan", "--store", store}, {"db", "check", "--store", store},
		{"explain", file, "--budget", "3000", "-o", page}, {"inspect", filepath.Join(dir, "no\x1b[2J\u202e.json")},
	} {
		var out bytes.Buffer
		status := cli.Run(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
		if status == 2 {
			t.Errorf("%s: status %d: %s", args[0], status, out.String())
		}
		for line := range strings.Lines(out.String()) {
			if strings.ContainsFunc(strings.TrimRight(line, "\n"), glyph.Hidden) || strings.Contains(line, "Re\u0430d") {
				t.Errorf("%q: %q", args[0], line)
			}
		}
		told = told || strings.Contains(out.String(), `Re\u0430d\u202e`)
	}
	if !told {
		t.Error("no report names the tool")
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, data, _ := strings.Cut(string(html), `id="data">`)
	data, _, _ = strings.Cut(data, "</script>")
	var v struct {
		Title, Model string
		Messages     []struct{ Tool, Label string }
		Prompt       []struct{ Label string }
	}
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		t.Fatal(err)
	}
	names := []string{v.Title, v.Model}
	for _, m := range v.Messages {
		names = append(names, m.Tool, m.Label)
	}
	for _, p := range v.Prompt {
		names = append(names, p.Label)
	}
	for _, name := range names {
		if glyph.Visible(name) != name {
			t.Errorf("the page shows %q", name)
		}
	}
}
