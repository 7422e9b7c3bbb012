package property_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/property"
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
