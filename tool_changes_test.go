package palimpsest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
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

// changeOf is the JSON of a message that changes the given tools.
func changeOf(tools []string, adds func(string) bool) string {
	var blocks []string
	for _, tool := range tools {
		kind := "tool_removal"
		if adds(tool) {
			kind = "tool_addition"
		}
		blocks = append(blocks, fmt.Sprintf(`{"type":%q,"tool":{"type":"tool_reference","tool_name":%q}}`, kind, tool))
	}
	return fmt.Sprintf(`{"role":"system","content":[%s]}`, strings.Join(blocks, ","))
}

// TestToolChangesFold: whatever a plan hides, the changes of tools that stay give the same tools as all of
// them, each holds where it stands, those behind the hidden part stay, and none that could go stays. G3
func TestToolChangesFold(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		const tools = "abc"
		had, has := map[string]bool{}, map[string]bool{}
		for _, tool := range strings.Split(tools, "") {
			had[tool] = rapid.Bool().Draw(rt, "had "+tool)
			has[tool] = had[tool]
		}
		said := func(role thread.Role, n int) string {
			return fmt.Sprintf(`{"role":%q,"content":"Number %d."}`, role, n)
		}
		body, of, many := []string{said(thread.User, 0)}, map[int][]string{}, false
		for n := range rapid.IntRange(2, 12).Draw(rt, "turns") {
			body = append(body, said(thread.Assistant, n), said(thread.User, n+1))
			changed := rapid.SampledFrom([][]string{nil, {"a"}, {"b"}, {"c"}, {"a"}, {"b", "c"}}).Draw(rt, "changed")
			if len(changed) > 0 {
				of[len(body)], many = changed, many || len(changed) > 1
				body = append(body, changeOf(changed, func(tool string) bool { return !has[tool] }))
			}
			for _, tool := range changed {
				has[tool] = !has[tool]
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
		for _, m := range p.Messages {
			if m.Role != thread.System {
				continue
			}
			shown++
			for _, part := range m.Parts {
				o := part.(thread.Opaque)
				tool := o.Raw[strings.Index(o.Raw, `name":"`)+len(`name":"`):][:1]
				if adds := o.Kind == "tool_addition"; adds == had[tool] {
					rt.Errorf("%s of %q, which it changes nothing about", o.Kind, tool)
				} else {
					had[tool] = adds
				}
			}
		}
		for tool, is := range has {
			if had[tool] != is {
				rt.Errorf("%q: %t in the prompt, %t in the conversation", tool, had[tool], is)
			}
		}
		if shown < changesAfter || shown > changesAfter+changesBefore || !many && shown > changesAfter+len(tools) {
			rt.Errorf("%d changes are shown of %d before and %d behind the cut", shown, changesBefore, changesAfter)
		}
	})
}
