package policy_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/injectedtest"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/policy"
)

// reports are what sub-agents say, of which the heading says that it is data.
var reports = regexp.MustCompile(`(?m)^  sub-agent: .*\n(    .*\n)*`)

// TestResultsAreNobodysWords: whatever text a tool result carries, no sentence of it stands as the
// user's words in the summary.
func TestResultsAreNobodysWords(t *testing.T) {
	property.Few(t, 40, func(rt *rapid.T) {
		shown, rest := compactedOnce(t, palimpsest.Config{Policy: policy.Auto{}}, injectedtest.WithResults(rt))
		if told := injectedtest.WithoutData(reports.ReplaceAllString(shown, "")); strings.Contains(told, "evil.example") {
			rt.Fatalf("a tool speaks as the user:\n%s", told)
		}
		for line := range strings.Lines(shown) {
			if strings.HasPrefix(line, "  failed: ") && strings.Contains(line, "user said") && !strings.Contains(line, "the result says") {
				rt.Fatalf("a tool speaks as the user: %s", line)
			}
		}
		if !strings.Contains(shown+rest, injectedtest.Request) {
			rt.Fatalf("the user's words are gone:\n%s", shown)
		}
	})
}
