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
