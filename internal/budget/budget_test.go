package budget

import "testing"

func TestParse(t *testing.T) {
	for text, want := range map[string]struct {
		tokens int
		share  float64
	}{"8k": {8000, 0}, "1.5K": {1500, 0}, "16000": {16000, 0}, "1m": {1_000_000, 0}, "0.2M": {200_000, 0}, "20%": {0, 0.2}, "0.5%": {0, 0.005}} {
		tokens, share, err := Parse(text)
		if err != nil || tokens != want.tokens || share != want.share {
			t.Errorf("%s: %d tokens, share %v, %v", text, tokens, share, err)
		}
	}
	for _, text := range []string{"", "k", "0", "0.5", "-8k", "100%", "0%", "NaN", "Inf", "1e13", "8g", "8km", "8k%", "1.5", "own"} {
		if _, _, err := Parse(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestTokens(t *testing.T) {
	for text, want := range map[string]int{
		"0": 0, "32000": 32_000, "32_000": 32_000, "32,000": 32_000, "1,000,000": 1_000_000, "32k": 32_000, "32K": 32_000,
		"1m": 1_000_000, "1M": 1_000_000, "1.5m": 1_500_000, "1.001k": 1_001, "0.5k": 500, "1,000k": 1_000_000,
	} {
		if got, err := Tokens(text); err != nil || got != want {
			t.Errorf("%s: %d tokens, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "k", "m", "mk", "1km", "-1", "+1k", "1.5", "1,5m", "1,0000", "1e5", "0x10", "inf", "NaN", "1..5k", "many", "32 k", "2000000m", "1g"} {
		if got, err := Tokens(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}
