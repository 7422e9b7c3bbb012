package recall_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/recall"
)

// TestAllows: a turn that brought something back externalizes nothing and drops
// nothing. A11
func TestAllows(t *testing.T) {
	quiet, busy := recall.TurnContext{}, recall.TurnContext{Happened: true}
	for name, want := range map[string]bool{"externalize": false, "drop": false, "summarize": true, "clear": true, "own": true} {
		if !quiet.Allows(name) || busy.Allows(name) != want {
			t.Errorf("%s: %v without, %v with content", name, quiet.Allows(name), busy.Allows(name))
		}
	}
}
