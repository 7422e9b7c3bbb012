package token

import (
	"errors"
	"strings"
	"testing"
)

// TestLike: a model that the table does not know has the figures of the nearest of its family.
func TestLike(t *testing.T) {
	for name, want := range map[string]string{
		"gpt-6.2-sol":                 "gpt-6.2-sol", // known
		"gpt-6.3-sol":                 "gpt-6.2-sol",
		"openai/gpt-9.1-sol":          "gpt-6.2-sol",
		"gpt-5.7-luna":                "gpt-5.6-luna",
		"gpt-4.1-max":                 "gpt-4.1",
		"claude-opus-6":               "claude-opus-5-5",
		"claude-haiku-7-20270101":     "claude-haiku-5-5",
		"gemini-9-flash":              "gemini-3.8-flash",
		"kimi-k9":                     "kimi-k3.1-pro",
		"deepseek-v9-pro":             "deepseek-v4-pro",
		"anthropic/claude-sonnet-6.1": "claude-sonnet-5-5",
	} {
		m, err := Models().Like(name)
		if err != nil {
			t.Errorf("Like(%q): %v", name, err)
			continue
		}
		row, _ := Models().Find(want)
		if m.Window != row.Window || m.MaxOutput != row.MaxOutput || m.Counter != row.Counter || name != want && (m.Name != name || m.Source != "those of "+want || !m.Estimated) {
			t.Errorf("Like(%q): %+v, want the figures of %s", name, m, want)
		}
	}
	for _, name := range []string{"", "gpt", "claude", "stub-model", "house-1", "-20250101", "xgpt-6", strings.Repeat("gpt-", 100_000)} {
		if m, err := Models().Like(name); !errors.Is(err, ErrUnknownModel) {
			t.Errorf("Like(%.40q) is %q, %q (%v)", name, m.Name, m.Source, err)
		}
	}
	if _, err := (ModelSet{}).Like("gpt-6.3-sol"); !errors.Is(err, ErrUnknownModel) {
		t.Errorf("an empty set: %v", err)
	}
	if m, _ := Models().Like("claude-opus-3-9"); !m.BindsThinking {
		t.Error("thinking of an unknown model of Anthropic is kept where it may be refused")
	}
}

// TestNewestModels: the models that agents offered at the date of the table are known.
func TestNewestModels(t *testing.T) {
	for _, name := range []string{"gpt-6.2-sol", "gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-sol", "gpt-6-luna"} {
		if m, err := Models().Find(name); err != nil || m.Window < 272_000 || m.MaxOutput == 0 || len(m.Prices) == 0 || m.Counter != "o200k" {
			t.Errorf("%s: %+v (%v)", name, m, err)
		}
	}
}
