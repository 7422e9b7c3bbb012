package palimpsest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestRequestKeepsBudget: what a provider reads from the body, system and tools
// included, is no larger than the budget, but for what a codec adds to a conversation
// of another API, and what does not fit is refused with
// the parts named. With what a refusal says is needed, the request fits. A12, A13, A21
func TestRequestKeepsBudget(t *testing.T) {
	counter := o200k(t)
	fitted, refused := 0, 0
	defer func() {
		if t.Logf("%d requests fitted, %d did with what a refusal said was needed", fitted, refused); fitted == 0 || refused == 0 {
			t.Error("one of the two ways was not taken")
		}
	}()
	property.Check(t, func(rt *rapid.T) {
		codec := rapid.SampledFrom(codecs).Draw(rt, "codec")
		base := &prompt.Prompt{Model: "any-model"}
		for n := range rapid.IntRange(0, 3).Draw(rt, "system blocks") {
			base.System = append(base.System, prompt.System{Role: "system", Text: fmt.Sprintf("Rule %d. ", n) + strings.Repeat("Answer in short sentences, and say what you did. ", rapid.IntRange(0, 60).Draw(rt, "sentences"))})
		}
		for n := range rapid.IntRange(0, 12).Draw(rt, "tools") {
			base.Tools = append(base.Tools, prompt.Tool{
				Name: fmt.Sprintf("tool_%d", n), Description: strings.Repeat("Reads a file and gives its lines. ", rapid.IntRange(0, 20).Draw(rt, "description")),
				Schema: fmt.Sprintf(`{"type":"object","properties":{%s},"required":[]}`, strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`"field_%d":{"type":"string","description":"what to read"},`, n), 1), ",")),
			})
		}
		c, err := palimpsest.New(palimpsest.Config{Counter: counter})
		if err != nil {
			rt.Fatal(err)
		}
		q := palimpsest.Request{
			Thread: threadgen.Thread().Draw(rt, "thread"), Base: base,
			Budget: rapid.IntRange(200, 9_000).Draw(rt, "budget"), Profile: render.For(codec.API()),
		}
		res, err := c.Compact(t.Context(), q)
		var over *palimpsest.BudgetError
		if errors.As(err, &over) {
			if over.Need <= q.Budget || len(over.Parts) == 0 {
				rt.Fatalf("a refusal names nothing that is too large: %v", over)
			}
			q.Budget = over.Need
			if _, err = c.Compact(t.Context(), q); err != nil {
				rt.Fatalf("what a refusal said was needed does not do: %v, then %v", over, err)
			}
			refused++
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		body, err := codec.Encode(res.Prompt)
		if err != nil {
			rt.Fatal(err)
		}
		read, err := codec.Decode(string(body))
		if err != nil {
			rt.Fatal(err)
		}
		fitted++
		if n := counter.Prompt(read); n > q.Budget+translated(read) {
			rt.Fatalf("%s: the body takes %d tokens, counted as %d before it was written, the budget is %d", codec.API(), n, res.After, q.Budget)
		}
	})
}

// translated is what a codec may add to a conversation of another API, in
// tokens: a seal or a separator, one for each call and each result.
func translated(p *prompt.Prompt) int {
	n := 0
	for _, m := range p.Messages {
		n += len(m.Calls())
		if m.Role == thread.Tool {
			n++
		}
	}
	return n
}

// TestRecordedRequestsKeepBudget is the same over recorded conversations with
// their own system prompts and tools, written for every API. A12, A21
func TestRecordedRequestsKeepBudget(t *testing.T) {
	counter := o200k(t)
	tried := 0
	for n, tr := range corpus.EveryNth(conversations(t), 2) {
		base := baseOf(&tr)
		whole := *base
		whole.Messages = tr.Thread.Messages()
		size := counter.Prompt(&whole)
		if size < 2_000 {
			continue
		}
		codec := codecs[n%len(codecs)]
		c, err := palimpsest.New(palimpsest.Config{Counter: counter})
		if err != nil {
			t.Fatal(err)
		}
		for _, budget := range []int{size / 3, size * 3 / 4, min(size/2, 24_000)} {
			res, err := c.Compact(t.Context(), palimpsest.Request{Thread: tr.Thread, Base: base, Budget: budget, Profile: render.For(codec.API())})
			var over *palimpsest.BudgetError
			if errors.As(err, &over) && over.Need > budget*9/10 {
				continue // system, tools and what must stay are too large
			}
			if err != nil {
				t.Errorf("%s %s: %v", tr.Title, tr.Name, err)
				continue
			}
			body, err := codec.Encode(res.Prompt)
			if err != nil {
				t.Errorf("%s %s: %v", tr.Title, tr.Name, err)
				continue
			}
			read, err := codec.Decode(string(body))
			if err != nil {
				t.Errorf("%s %s: %v", tr.Title, tr.Name, err)
				continue
			}
			tried++
			if got := counter.Prompt(read); got > budget+translated(res.Prompt) {
				t.Errorf("%s %s, %s: the body takes %d tokens, counted as %d before it was written, the budget is %d", tr.Title, tr.Name, codec.API(), got, res.After, budget)
			}
		}
	}
	least := 20
	if corpus.Long() {
		least = 40
	}
	if t.Logf("%d requests", tried); tried < least {
		t.Errorf("only %d requests were tried", tried)
	}
}
