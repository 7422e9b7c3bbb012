package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/items"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// itemsForm is how the command names an API, where a request has its list, and how a user and a
// model say something.
var itemsForm = map[string]struct{ from, to, list, user, model string }{
	wire.Anthropic: {"anthropic", "anthropic", "messages", `{"role":"user","content":%q}`, `{"role":"assistant","content":%q}`},
	wire.Responses: {"responses", "responses", "input", `{"role":"user","content":%q}`, `{"role":"assistant","content":%q}`},
	wire.Chat:      {"openai-chat", "openai", "messages", `{"role":"user","content":%q}`, `{"role":"assistant","content":%q}`},
	wire.Gemini:    {"gemini", "gemini", "contents", `{"role":"user","parts":[{"text":%q}]}`, `{"role":"model","parts":[{"text":%q}]}`},
}

// TestItemsCompacted: a request that holds each type of item can be compacted by every policy; what
// comes out is valid, has the items that stand, and what it no longer shows is found by recall.
func TestItemsCompacted(t *testing.T) {
	for api, form := range itemsForm {
		var list []string
		var shown, stand, loaded []string
		add := func(format, text string) { list = append(list, fmt.Sprintf(format, text)) }
		for n, item := range items.All {
			if item.API != api || item.Alone {
				continue
			}
			add(form.user, fmt.Sprintf("Shelf %d, please.", n))
			example := item.At(n)
			if strings.HasPrefix(example, `[{"role":"user"`) {
				add(form.model, "Which one?")
			}
			list = append(list, strings.TrimSuffix(strings.TrimPrefix(example, "["), "]"))
			if !item.Bare {
				shown = append(shown, items.Word(n))
			}
			switch item.Type {
			case "compaction": // Anthropic's can be read
				if api == wire.Responses {
					stand = append(stand, strings.TrimSuffix(strings.TrimPrefix(example, "["), "]"))
				}
			case "tool_addition", "tool_removal", "additional_tools", "configuration_update", "developer", "system":
				stand = append(stand, strings.TrimSuffix(strings.TrimPrefix(example, "["), "]"))
			case "tool_search_tool_result", "tool_reference", "tool_search_output":
				loaded = append(loaded, `name":"`+items.Word(n)+`"`)
			}
			if !strings.Contains(example, `"role":"assistant","content":"`) {
				add(form.model, fmt.Sprintf("Shelf %d has %s.", n, strings.Repeat("boxes and boxes, ", 60)))
			}
		}
		add(form.user, "Go on.")
		file := filepath.Join(t.TempDir(), "body.json")
		if err := os.WriteFile(file, fmt.Appendf(nil, items.Bodies()[api], "["+strings.Join(list, ",")+"]"), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, _, stderr := run(t, "check", file, "--to", form.to); status != 0 {
			t.Errorf("%s: status %d: %s", api, status, stderr)
		}
		for _, policy := range []string{"auto", "notes", "ladder", "session", "timeline", "workstream", "loop"} {
			out, kept := filepath.Join(t.TempDir(), "out.json"), t.TempDir()
			status, _, stderr := run(t, "compact", file, "--from", form.from, "--to", form.to, "--policy", policy, "--budget", "4000", "--store", kept, "-o", out)
			if status == 3 {
				continue // the policy's own rules keep more than the budget
			}
			data, err := os.ReadFile(out)
			if status != 0 || err != nil {
				t.Errorf("%s, %s: status %d: %s", api, policy, status, stderr)
				continue
			}
			if status, _, stderr := run(t, "check", out, "--to", form.to); status != 0 {
				t.Errorf("%s, %s: what came out is refused: %s", api, policy, stderr)
			}
			for _, want := range stand {
				if n := countElements(t, data, form.list, want); n != 1 {
					t.Errorf("%s, %s: %s is there %d times", api, policy, want, n)
				}
			}
			for _, tool := range loaded {
				if n := strings.Count(string(data), tool); n != 1 {
					t.Errorf("%s, %s: a loaded tool, %s, is there %d times", api, policy, tool, n)
				}
			}
			if policy != "auto" {
				continue
			}
			for _, word := range shown {
				if strings.Contains(string(data), word) {
					continue
				}
				if _, found, stderr := run(t, "recall", word, "--store", kept); !strings.Contains(found, word) {
					t.Errorf("%s: %s is neither shown nor found: %s", api, word, stderr)
				}
			}
		}
	}
}

// countElements counts the elements of a list that equal one.
func countElements(t *testing.T, body []byte, list, element string) (n int) {
	t.Helper()
	var all map[string]any
	var want any
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(element), &want); err != nil {
		t.Fatal(err)
	}
	have, _ := all[list].([]any)
	for _, v := range have {
		if reflect.DeepEqual(v, want) {
			n++
		}
	}
	return n
}
