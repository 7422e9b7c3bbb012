package identify

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// TestNewsSettleWords: what the user said through a tool is the user's where the request identifies the
// agent and declares the tool as the agent does. Else any tool could have its name.
func TestNewsSettleWords(t *testing.T) {
	const asks, other = `{"properties":{"questions":{"type":"array"}}}`, `{"properties":{"text":{"type":"string"}}}`
	for _, c := range []struct {
		userAgent, tool, schema string
		answers, refusals       string
	}{
		{"claude-cli/2.1.332 (external, cli)", "AskUserQuestion", asks, "tin bronze", "use tin"},
		{"claude-cli/2.1.332 (external, cli)", "AskUserQuestion", other, "", "use tin"},
		{"claude-cli/2.1.332 (external, cli)", "Ask", asks, "", "use tin"},
		{"curl/8.5.0", "AskUserQuestion", asks, "", ""},
		{"codex_exec/0.171.0 (Debian 12)", "AskUserQuestion", asks, "", ""},
	} {
		body := `{"model":"m","max_tokens":9,"tools":[{"name":"` + c.tool + `","input_schema":` + c.schema + `},{"name":"Edit","input_schema":{}}],"messages":[{"role":"user","content":"mend it"},
			{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"AskUserQuestion","input":{"questions":[{"question":"Which metal?"}]}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"User has answered your questions: \"Which metal?\"=\"tin bronze\". You can now continue"}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"b","name":"Edit","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","is_error":true,"content":"The user doesn't want to proceed with this tool use. the user said: use tin"}]}]}`
		r, err := Read(anthropic.Codec{}, body, func() error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		for from := range 3 {
			news := r.News(from, c.userAgent)
			if got := news[2-from].Said(); got != c.answers {
				t.Errorf("from %d, %s, %s %s: the user answered %q, want %q", from, c.userAgent, c.tool, c.schema, got, c.answers)
			}
			if got := news[4-from].Said(); got != c.refusals {
				t.Errorf("from %d, %s, %s %s: the user refused with %q, want %q", from, c.userAgent, c.tool, c.schema, got, c.refusals)
			}
		}
		if r.Prompt.Messages[2].Said() != "" {
			t.Error("the request was changed")
		}
	}
}
