package config_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/config"
)

func TestParseTokens(t *testing.T) {
	for text, want := range map[string]int{
		"0": 0, "32000": 32_000, "32_000": 32_000, "32,000": 32_000, "1,000,000": 1_000_000, "32k": 32_000, "32K": 32_000,
		"1m": 1_000_000, "1M": 1_000_000, "1.5m": 1_500_000, "1.001k": 1_001, "0.5k": 500, "1,000k": 1_000_000,
	} {
		if got, err := config.ParseTokens(text); err != nil || got != want {
			t.Errorf("%s: %d tokens, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "k", "m", "mk", "1km", "-1", "+1k", "1.5", "1,5m", "1,0000", "1e5", "0x10", "inf", "NaN", "1..5k", "many", "32 k", "2000000m", "1g"} {
		if got, err := config.ParseTokens(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}
