package palimpsest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestHostedResultsAreReached: what came out of a call that ran at the provider can be searched and read when it is
// hidden, on each API, as the result of any call.
func TestHostedResultsAreReached(t *testing.T) {
	for api, form := range map[string]struct{ body, user, turn string }{
		wire.Anthropic: {
			`{"model":"claude-opus-5","max_tokens":100,"tools":[{"type":"code_execution_20260120","name":"code_execution"}],"messages":[%s]}`, `{"role":"user","content":"Shelf %d."}`,
			`{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_%[1]d","name":"code_execution","input":{"code":"count(%[1]d)"}},{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_%[1]d","content":{"type":"code_execution_result","stdout":"%[2]s","stderr":"","return_code":0,"content":[]}},{"type":"text","text":"Counted."}]}`,
		},
		wire.Responses: {
			`{"model":"gpt-5.5","tools":[{"type":"mcp","server_label":"notes","server_url":"https://n.example"}],"input":[%s]}`, `{"role":"user","content":"Shelf %d."}`,
			`{"type":"mcp_call","id":"mcp_%[1]d","name":"find","server_label":"notes","arguments":"{}","output":"%[2]s"},{"type":"message","id":"msg_%[1]d","role":"assistant","content":[{"type":"output_text","text":"Counted."}]}`,
		},
		wire.Gemini: {
			`{"tools":[{"googleSearch":{}}],"contents":[%s]}`, `{"role":"user","parts":[{"text":"Shelf %d."}]}`,
			`{"role":"model","parts":[{"toolCall":{"id":"t%[1]d","toolType":"GOOGLE_SEARCH_WEB","args":{}}},{"toolResponse":{"id":"t%[1]d","toolType":"GOOGLE_SEARCH_WEB","response":{"answer":"%[2]s"}}},{"text":"Counted."}]}`,
		},
	} {
		var list []string
		for n := range 12 {
			list = append(list, fmt.Sprintf(form.user, n), fmt.Sprintf(form.turn, n, strings.Repeat(fmt.Sprintf("row of shelf %d; ", n), 80)+fmt.Sprintf("wombat%dx is behind it", 700+n)))
		}
		log, err := apicodec.For(api).Decode(fmt.Sprintf(form.body, strings.Join(append(list, fmt.Sprintf(form.user, 99)), ",")))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []policy.Policy{policy.Auto{}, policy.Notes{}, policy.Ladder{}} {
			c, err := palimpsest.New(palimpsest.Config{Policy: p, Recall: &palimpsest.Recall{}, Artifacts: artifact.NewStore(new(artifact.Memory), nil), Requester: artifact.Requester{TenantID: "acme"}})
			if err != nil {
				t.Fatal(err)
			}
			s := c.Session("hosted")
			made, err := s.Compact(t.Context(), palimpsest.Step{Base: log, Messages: log.Messages, Profile: render.For(api), Budget: 1500}, "")
			if err != nil {
				t.Fatal(err)
			}
			if found, outcome := answer(t, s, "recall", map[string]any{"query": `"wombat703x"`}); outcome != thread.Success || !strings.Contains(found, "wombat703x") {
				t.Errorf("%s, %s: the search finds %s: %s", api, p.Name(), outcome, found)
			}
			read := ""
			for id := range made.Actions() {
				text, _ := answer(t, s, "read_artifact", map[string]any{"id": id})
				read += text
			}
			for _, e := range made.Externalized() {
				text, _ := answer(t, s, "read_artifact", map[string]any{"id": e.ArtifactID})
				read += text
			}
			if !strings.Contains(read, "wombat703x is behind it") {
				t.Errorf("%s, %s: nothing that is read has it:\n%.500s", api, p.Name(), read)
			}
		}
	}
}
