package policy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestDigestKnows: searches of a memory by whatever name, and the types of source
// files. C10
func TestDigestKnows(t *testing.T) {
	var messages []thread.Message
	tools := []string{"memsearch", "memory_search", "search_memory", "mcp__memory__search_nodes", "MemorySearch"}
	for n, tool := range tools {
		id := fmt.Sprint("m", n)
		messages = append(messages, speak(thread.User, "What do we know?"), callTool(id, tool, fmt.Sprintf(`{"query":"q%d"}`, n), ""), answerTool(id, tool, `[{"path":"mem/a.md"},{"file_path":"mem/b.md"}]`))
	}
	types := map[string]string{"a.go": "text/x-go", "b/c.py": "text/x-python", "d.ts": "text/x-typescript", "e.rs": "text/x-rust", "Makefile": "text/plain", "g.jsx": "text/javascript", "go.mod": "text/plain"}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		messages = append(messages, callTool(name, "Write", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, name), ""), answerTool(name, "Write", "File created successfully at: "+name))
	}
	messages = append(messages, speak(thread.User, strings.Repeat("And now all of it again, please. ", 200)))
	s := stateOf(t, threadOf(t, messages...), nil)
	s.Forced = true
	f, err := policy.Timeline{MaxTokens: 100_000, KeepRecent: 1}.Plan(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	d := f.Plan.Summarizations[0].Range.Digest
	if len(d.Searches) != len(tools) {
		t.Errorf("%d searches of %d: %+v", len(d.Searches), len(tools), d.Searches)
	}
	for n, search := range d.Searches {
		if search.Query != fmt.Sprint("q", n) || search.Hits != 2 || len(search.Paths) != 2 {
			t.Errorf("%+v", search)
		}
	}
	for _, a := range d.Artifacts {
		if a.MIME != types[a.Path] {
			t.Errorf("%s is %s, want %s", a.Path, a.MIME, types[a.Path])
		}
		delete(types, a.Path)
	}
	if len(types) > 0 {
		t.Errorf("not in the digest: %v", types)
	}
}
