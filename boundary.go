package palimpsest

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// boundary is the details of event.Boundary: what set the compaction off, and
// the first message after the last that stands for others. A result that is
// short in its place stands for nothing but itself.
func boundary(f *policy.Fitted, trigger string) map[string]any {
	details := map[string]any{"trigger": trigger}
	for n, o := range slices.Backward(f.Manifest.Messages) {
		if o.Synthetic && o.Record.Action != plan.Include && f.Prompt.Messages[n].Role != thread.Tool {
			break
		}
		if o.ID != "" {
			details["first_kept"] = o.ID
		}
	}
	return details
}
