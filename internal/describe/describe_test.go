package describe_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/describe"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func TestCall(t *testing.T) {
	for _, c := range []struct{ name, arguments, want string }{
		{"Read", `{"file_path":"/a/b.go","limit":5}`, "Read /a/b.go"},
		{"NotebookEdit", `{"notebook_path":"/a/b.ipynb","new_source":"x"}`, "NotebookEdit /a/b.ipynb"},
		{"Bash", `{"command":"go test ./...","description":"Run the tests"}`, "Bash go test ./..."},
		{"shell", `{"command":["bash","-lc","ls -la"],"workdir":"/w"}`, "shell bash -lc ls -la"},
		{"Grep", `{"path":"cmd","pattern":"func Run"}`, "Grep func Run in cmd"},
		{"Grep", `{"pattern":"func Run"}`, "Grep func Run"},
		{"WebFetch", `{"url":"https://example.com/x","prompt":"What is it?"}`, "WebFetch https://example.com/x"},
		{"str_replace_editor", `{"command":"view","path":"/a/b.go"}`, "str_replace_editor view /a/b.go"},
		{"find_flight", `{"from":"ATL","to":"PHL","stops":0}`, "find_flight from=ATL to=PHL stops=0"},
		{"submit", `{}`, "submit"},
		{"run", "two\nwords", "run two\nwords"},
		{"cut", `{"file_path": "/a/b`, `cut {"file_path": "/a/b`},
		{"none", ``, "none"},
		{"Bash", `{"command":"cat <<E\n  one\nE"}`, "Bash cat <<E one E"},
	} {
		if got := describe.Call(thread.ToolCall{Name: c.name, Arguments: c.arguments}); got != c.want {
			t.Errorf("brief.Call(%s %s) = %q, want %q", c.name, c.arguments, got, c.want)
		}
	}
}
