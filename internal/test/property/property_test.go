package property_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
)

// TestDrawn prints what it draws, for the test below.
func TestDrawn(t *testing.T) {
	var drawn []string
	property.Check(t, func(t *rapid.T) { drawn = append(drawn, rapid.StringN(4, 8, -1).Draw(t, "text")) })
	t.Run("sub", property.Test(func(t *rapid.T) { drawn = append(drawn, rapid.StringN(4, 8, -1).Draw(t, "text")) }))
	t.Logf("drawn %d %q", property.Seed(), drawn)
}

// TestSameCases: another process draws the same, and with another seed
// something else.
func TestSameCases(t *testing.T) {
	drawn := func(seed string) string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDrawn$", "-test.v")
		cmd.Env = append(os.Environ(), "RAPID_SEED="+seed)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		_, after, ok := strings.Cut(string(out), "drawn ")
		if !ok {
			t.Fatalf("nothing was drawn:\n%s", out)
		}
		line, _, _ := strings.Cut(after, "\n")
		return line
	}
	first := drawn("0")
	if again := drawn("0"); again != first {
		t.Errorf("drawn first:\n%s\nand then:\n%s", first, again)
	}
	if !strings.HasPrefix(first, "1 ") {
		t.Errorf("the seed is not the fixed one: %s", first)
	}
	other := drawn("12345")
	if !strings.HasPrefix(other, "12345 ") || strings.TrimPrefix(other, "12345") == strings.TrimPrefix(first, "1") {
		t.Errorf("with seed 12345 the same is drawn: %s", other)
	}
}

// TestFew: only so many cases are tried, unless a seed is given, and one that fails
// is made as small as with Check.
func TestFew(t *testing.T) {
	tried := 0
	property.Few(t, 7, func(*rapid.T) { tried++ })
	if given := os.Getenv("RAPID_SEED") != "" || os.Getenv("RAPID_CHECKS") != ""; given != (tried > 7) || tried < 7 {
		t.Errorf("%d cases were tried", tried)
	}
	if os.Getenv("PALIMPSEST_TEST_FAILING") != "" {
		property.Few(t, 50, func(t *rapid.T) {
			if n := rapid.IntRange(0, 1_000_000).Draw(t, "n"); n >= 100 {
				t.Fatalf("found %d", n)
			}
		})
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFew$", "-rapid.nofailfile")
	cmd.Env = append(os.Environ(), "PALIMPSEST_TEST_FAILING=1")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "found 100\n") || strings.Contains(string(out), "flaky") {
		t.Errorf("%v: the smallest case is not found:\n%s", err, out)
	}
}
