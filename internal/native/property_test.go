package native_test

import (
	"fmt"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// TestEditsKeepRequestsValid: whatever edits say, a request that the API takes is
// one that it takes afterwards, each call keeps its result, and what is told to be
// cleared is not more than what is gone.
func TestEditsKeepRequestsValid(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		th := threadgen.Thread().Draw(t, "thread")
		base := &prompt.Prompt{Model: "claude-opus-4-5", MaxOutput: 4000}
		p, _, err := render.Render(th, nil, base, &render.Options{Profile: render.For(wire.Anthropic)})
		if err != nil || len(p.Messages) == 0 {
			t.Skip("there is nothing to send")
		}
		raw, err := anthropic.Codec{}.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		before := string(raw)
		if !takes(before) {
			t.Skip("not a request that the API takes")
		}
		m, err := native.ReadMessages(before)
		if err != nil {
			t.Fatal(err)
		}
		thinking := native.Edit{Type: native.ClearThinking, Keep: rapid.IntRange(1, 4).Draw(t, "turns")}
		clearing := native.Edit{
			Type: native.ClearTools, Keep: rapid.IntRange(0, 4).Draw(t, "uses"), ByUses: true,
			AtLeast: rapid.IntRange(0, 300).Draw(t, "at least"), Inputs: rapid.Bool().Draw(t, "inputs"),
		}
		freed := 0
		if rapid.Bool().Draw(t, "thinking") {
			done, _ := m.ClearThinking(thinking, inBytes)
			freed += done.Tokens
		}
		done, ok := m.ClearToolUses(clearing, 0, inBytes)
		freed += done.Tokens
		if ok && done.Tokens < clearing.AtLeast {
			t.Errorf("%d tokens were cleared, at least %d had to be", done.Tokens, clearing.AtLeast)
		}
		if rapid.Bool().Draw(t, "unbind") {
			m.ClearBoundThinking()
		}
		after := m.Body()
		if !takes(after) {
			t.Errorf("%s\nbecame\n%s", before, after)
		}
		if freed > len(before)-len(after) {
			t.Errorf("%d bytes are told, %d are gone", freed, len(before)-len(after))
		}
		if calls(before) != calls(after) {
			t.Errorf("calls were %s and are %s", calls(before), calls(after))
		}
		if !m.Edited() && after != before {
			t.Error("the bytes changed for nothing")
		}
	})
}

// inBytes counts bytes, which can be compared.
func inBytes(raw string) int { return len(raw) }

func takes(body string) bool {
	for _, p := range (anthropic.Codec{}).Validate([]byte(body)) {
		if !p.Advice {
			return false
		}
	}
	return true
}

// calls are the ids of calls and results, in order.
func calls(body string) string {
	return fmt.Sprint(gjson.Get(body, "messages.#.content.#.id").Raw, gjson.Get(body, "messages.#.content.#.tool_use_id").Raw)
}
