package palimpsest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// wordsOnly drops everything up to a position but instructions.
type wordsOnly struct {
	policy.Policy
	to int
}

func (wordsOnly) Name() string { return "words only" }

func (wordsOnly) Due(*policy.Situation) (bool, string) { return true, "always" }

func (w wordsOnly) Plan(_ context.Context, s *policy.Situation) (*policy.Fitted, error) {
	var ids []thread.ID
	for i := range w.to {
		if m := s.Thread.At(i); !m.IsInstruction() && !slices.Contains(s.Keep, i) {
			ids = append(ids, m.ID)
		}
	}
	span, err := thread.NewSpan(s.Thread, ids...)
	if err != nil {
		return nil, err
	}
	p := s.Draft(w.Name())
	p.Drops = []plan.Removal{{Span: span}}
	return s.Render(p)
}

// changed are tools and how a change of each names it: two servers have a tool of the same name, a set holds all
// tools of its server, and one tool is known only since it was defined.
var changed = map[string]string{
	"a":      `{"type":"tool_reference","name":"a"}`,
	"b":      `{"type":"tool_reference","tool_name":"b"}`,
	"s/a":    `{"type":"mcp_tool_reference","server_name":"s","name":"a"}`,
	"t/a":    `{"type":"mcp_tool_reference","server_name":"t","name":"a"}`,
	"s/":     `{"type":"mcp_toolset_reference","server_name":"s"}`,
	"d":      `{"type":"tool_reference","name":"d"}`,
	"d anew": `{"type":"tool_definition","definition":{"name":"d","input_schema":{"type":"object"}}}`,
}

// changeOf is a block that changes a tool.
func changeOf(tool string, adds bool) string {
	kind := "tool_removal"
	if adds {
		kind = "tool_addition"
	}
	return fmt.Sprintf(`{"type":%q,"tool":%s}`, kind, changed[tool])
}

// toolOf undoes changeOf; the tool is empty for another block.
func toolOf(block string) (tool string, adds bool) {
	for tool := range changed {
		if block == changeOf(tool, true) || block == changeOf(tool, false) {
			return tool, block == changeOf(tool, true)
		}
	}
	return "", false
}

// offered are the tools after the changes in a request, of those that were there before; a change of a tool that
// is not defined is an error of the API.
func offered(messages []thread.Message, before map[string]bool) (map[string]bool, error) {
	has, defined := maps.Clone(before), false
	for _, m := range messages {
		for _, part := range m.Parts {
			o, ok := part.(thread.Opaque)
			if !ok {
				continue
			}
			block := struct {
				Changes []json.RawMessage `json:"tool_changes"`
			}{[]json.RawMessage{json.RawMessage(o.Raw)}}
			if o.Kind == "compaction" && json.Unmarshal([]byte(o.Raw), &block) != nil {
				return nil, errors.New("no JSON: " + o.Raw)
			}
			for _, change := range block.Changes {
				tool, adds := toolOf(string(change))
				if tool != "" {
					switch tool {
					case "s/":
						has["s/a"] = adds
					case "d anew":
						has["d"], defined = adds, true
					case "d":
						if !defined {
							return nil, errors.New("d is not defined")
						}
						has["d"] = adds
					default:
						has[tool] = adds
					}
				}
			}
		}
	}
	return has, nil
}

// TestToolChangesFold: whatever a plan hides, the changes of tools that stay give the same tools as all of
// them, whatever was there before, those behind the hidden part stay, and few of those before. G3
func TestToolChangesFold(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		had := map[string]bool{}
		for tool := range strings.FieldsSeq("a b s/a t/a") {
			had[tool] = rapid.Bool().Draw(rt, "had "+tool)
		}
		said := func(role thread.Role, n int) string {
			return fmt.Sprintf(`{"role":%q,"content":"Number %d."}`, role, n)
		}
		tools := rapid.SampledFrom([]string{"a b", "a", "s/a t/a", "s/a s/ a", "d a"}).Draw(rt, "tools")
		body, of, compacted := []string{said(thread.User, 0)}, map[int]bool{}, map[int]bool{} // where changes stand, and compactions of the provider's that bring some
		many, defined := strings.ContainsAny(tools, " d"), false
		for n := range rapid.IntRange(2, 12).Draw(rt, "turns") {
			body = append(body, said(thread.Assistant, n), said(thread.User, n+1))
			var blocks []string
			for tool := range strings.FieldsSeq(tools) {
				if !rapid.Bool().Draw(rt, tool+" changes") {
					continue
				}
				adds := rapid.Bool().Draw(rt, "added")
				if tool == "d" && (!defined || adds && rapid.Bool().Draw(rt, "defined anew")) {
					tool, adds, defined = "d anew", true, true
				}
				blocks = append(blocks, changeOf(tool, adds))
			}
			if len(blocks) > 0 && rapid.IntRange(0, 3).Draw(rt, "compacted") == 0 {
				many, compacted[len(body)+1] = true, true
				body = append(body, said(thread.User, n), fmt.Sprintf(`{"role":"assistant","content":[{"type":"compaction","content":"So far.","tool_changes":[%s]}]}`, strings.Join(blocks, ",")), said(thread.User, n))
			} else if len(blocks) > 0 {
				of[len(body)] = true
				body = append(body, fmt.Sprintf(`{"role":"system","content":[%s]}`, strings.Join(blocks, ",")))
			}
		}
		to := rapid.IntRange(1, len(body)-1).Draw(rt, "to")
		c, err := palimpsest.New(palimpsest.Config{Policy: wordsOnly{to: to}})
		if err != nil {
			rt.Fatal(err)
		}
		whole, err := apicodec.For(wire.Anthropic).Decode(`{"model":"m","max_tokens":9,"messages":[` + strings.Join(body, ",") + `]}`)
		if err != nil {
			rt.Fatal(err)
		}
		p, err := c.Session("t").PrepareStep(t.Context(), palimpsest.Step{Base: picturedBase, Profile: render.For(wire.Anthropic), Messages: whole.Messages})
		if err != nil || p.Failed != nil {
			rt.Fatal(err, p.Failed)
		}
		log, err := thread.New("t").Append(whole.Messages...)
		if err != nil {
			rt.Fatal(err)
		}
		actions := p.Compacted.Actions()
		for to = log.Len() - 1; log.At(to).IsInstruction() || actions[log.At(to).ID].Action != plan.Drop; { // the cut may have moved
			to--
		}
		changesAfter, changesBefore := 0, 0
		for i := range of {
			if i < to {
				changesBefore++
			} else {
				changesAfter++
			}
		}
		shown := 0
		for i := range compacted { // what those brought along that are hidden
			if actions[log.At(i).ID].Action == plan.Drop {
				shown--
			}
		}
		for _, m := range p.Messages {
			if m.Role == thread.System {
				shown++
			}
		}
		want, err := offered(whole.Messages, had)
		if err != nil {
			rt.Fatal(err)
		}
		if got, err := offered(p.Messages, had); err != nil || !maps.Equal(got, want) {
			rt.Errorf("%v in the prompt, %v in the conversation; %v", got, want, err)
		}
		if shown < changesAfter || shown > changesAfter+changesBefore || !many && shown > changesAfter+1 {
			rt.Errorf("%d changes are shown of %d before and %d behind the cut", shown, changesBefore, changesAfter)
		}
	})
}

// TestLoadingsByBytes: where a request is too large in bytes, a result that loads tools is not cleared. G3, G5
func TestLoadingsByBytes(t *testing.T) {
	list := []string{`{"role":"user","content":"Begin."}`}
	for n := range 12 {
		content := fmt.Sprintf(`{"type":"text","text":%q}`, strings.Repeat("kelp ", 20<<10))
		if n == 0 {
			content += `,{"type":"tool_reference","tool_name":"weigh"}`
		}
		list = append(list, fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":"find","input":{}}]}`, n),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":[%s]}]}`, n, content))
	}
	p, err := apicodec.For(wire.Anthropic).Decode(`{"model":"m","max_tokens":9,"messages":[` + strings.Join(list, ",") + `]}`)
	if err != nil {
		t.Fatal(err)
	}
	c, err := palimpsest.New(palimpsest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Session("t")
	made, err := s.PrepareStep(t.Context(), palimpsest.Step{Base: picturedBase, Profile: render.For(wire.Anthropic), Window: 10_000_000, Messages: p.Messages})
	if err != nil {
		t.Fatal(err)
	}
	if made, err = s.Overflowed(t.Context(), made, llm.ErrBytes); err != nil || len(made.Compacted.Clearings) == 0 {
		t.Fatalf("%v, %v", made, err)
	}
	if m, _ := made.Messages[2].Result(); len(m.Content) != 2 {
		t.Errorf("the result that loads a tool became %.80q", m.Text())
	}
}
