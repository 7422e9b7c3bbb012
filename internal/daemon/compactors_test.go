package daemon_test

import (
	"context"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/token"
)

// measured is a provider that counts requests.
type measured struct{ asked int }

// CountTokens implements llm.TokenCounter.
func (m *measured) CountTokens(_ context.Context, p *prompt.Prompt) (int, error) {
	m.asked++
	return 7_000, nil
}

// TestThreadsCountAsTheirModel: a thread is counted as the model of its step counts, unless the daemon was given a
// counter, and a size that is only estimated is asked of the provider where the daemon may. A13
func TestThreadsCountAsTheirModel(t *testing.T) {
	for _, tt := range []struct {
		model, counter string // of the daemon
		want           string
		asks           bool
	}{
		{model: "gpt-4o", want: "o200k"},
		{model: "claude-sonnet-4-5", want: "claude", asks: true},
		{model: "gemini-2.5-pro", want: "gemini", asks: true},
		{model: "unheard-of", want: "o200k"},
		{model: "claude-sonnet-4-5", counter: "o200k", want: "o200k"},
	} {
		provider := &measured{}
		c := palimpsest.Config{Measure: provider}
		if tt.counter != "" {
			c.Counter = counterNamed(t, tt.counter)
		}
		base := &neutral.Prompt{Model: tt.model, System: []neutral.System{{Text: "You look after a shop."}}}
		k := talking(t, c, api.Step{Base: base, Window: 10_000, Output: 1_000})
		value, err := base.Value("base")
		if err != nil {
			t.Fatal(err)
		}
		question := said("user", "Zähle die Kisten: \"alle\" <jetzt> 👍 in der Halle.")
		m, err := question.Value("m")
		if err != nil {
			t.Fatal(err)
		}
		value.Messages = append(value.Messages, m)
		if p := k.ask(question); p.Tokens != counterNamed(t, tt.want).Prompt(value) {
			t.Errorf("%+v: %d tokens, want %d", tt, p.Tokens, counterNamed(t, tt.want).Prompt(value))
		}
		k.answer(said("assistant", "There are 12."))
		for n := 0; n < 20 && provider.asked == 0; n++ {
			k.ask(said("user", "And those? "+output(n)))
			k.answer(said("assistant", "There are 12."))
		}
		if (provider.asked > 0) != tt.asks {
			t.Errorf("%+v: the provider was asked %d times", tt, provider.asked)
		}
	}
}

func counterNamed(t *testing.T, name string) *token.Counter {
	t.Helper()
	c, err := token.New(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
