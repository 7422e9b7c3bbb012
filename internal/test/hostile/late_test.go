//go:build unix

package hostile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestLateResultsAreLinear: rendering takes a time that grows with the log where a message of very many hosted
// calls is hidden, and their results come one by one behind it.
func TestLateResultsAreLinear(t *testing.T) {
	linear(t, 512<<10, 512<<10, func(n int) func() {
		var calls, results strings.Builder
		for i := 0; calls.Len()+results.Len() < n; i++ {
			fmt.Fprintf(&calls, `,{"type":"server_tool_use","id":"srvtoolu_%d","name":"web_search","input":{"query":"a"}}`, i)
			fmt.Fprintf(&results, `,{"role":"user","content":"b"},{"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"srvtoolu_%d","content":[]}]}`, i)
		}
		p, err := codecs[wire.Anthropic].Decode(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[` + calls.String()[1:] + `]}` + results.String() + `]}`)
		if err != nil {
			t.Fatal(err)
		}
		th, err := thread.New("t").Append(p.Messages...)
		if err != nil {
			t.Fatal(err)
		}
		hides := &plan.Plan{ThreadID: "t", ThreadVersion: th.Len(), Drops: []plan.Removal{{Span: th.Range(0, 2)}}}
		return func() {
			if _, _, err := render.Render(th, hides, p, &render.Options{Profile: render.For(wire.Anthropic)}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
