package lost

import (
	"context"
	"strings"

	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Quality says how a compaction did.
type Quality struct {
	// Before and After are the sizes of the requests before and right after it, in tokens, as the agent counted them.
	// Where it did not, Messages is set, and they are those of the messages alone, by the counter.
	Before   int  `json:"tokens_before"`
	After    int  `json:"tokens_after"`
	Messages bool `json:"messages_only,omitempty"`
	// Ended reports whether nothing came after it, so that the rest is not known.
	Ended bool `json:"ended,omitempty"`
	// Reread are files that were read before it and soon after it once more, though nobody changed them; Reruns counts
	// commands and searches of which the same holds.
	Reread []string `json:"read_again,omitempty"`
	Reruns int      `json:"run_again"`
	// Repeated are what the person said once more after it, in the same words or as they complain.
	Repeated []string `json:"said_again,omitempty"`
	// Asked reports whether the agent asked, in words, for what it had been told.
	Asked bool `json:"agent_asked_again"`
}

// leastRepeated is how many spaces a message has at least that counts as said again: "continue" is said often.
const leastRepeated = 3

// Judge says how the compaction did. count counts the tokens of a message. Its time is linear in the thread, and it
// ends with ctx.
func Judge(ctx context.Context, t *thread.Thread, b Boundary, count func(*thread.Message) int) Quality {
	q := Quality{Ended: b.End == t.Len(), Before: b.Before, After: b.After, Messages: b.Before == 0}
	before := t.Prefix(b.At)
	hides := &plan.Plan{ThreadID: before.ID(), ThreadVersion: before.Version()}
	if b.From > 0 {
		hides.Add(plan.Removal{Span: before.Range(0, b.From)})
	}
	monitor := quality.New(t.ID(), nil)
	monitor.Compacted(before, hides)
	said, read, last := map[string]bool{}, map[string]bool{}, monitor.Metrics() // what the person said as letters, and files
	for i := 0; i < t.Len() && ctx.Err() == nil; i++ {
		m, words := t.At(i), injected.UserWords(t.At(i))
		if size := 0; q.Messages && i >= b.Previous && i < b.End {
			if size = count(m); i < b.At {
				q.Before += size
			}
			if b.Kept(t, i) {
				q.After += size
			}
		}
		if i < b.At {
			said[lettersOf(words)] = true
			for _, p := range readIn(m) {
				read[p] = true
			}
		}
		if i < b.End {
			continue
		}
		monitor.Message(ctx, *m)
		now := monitor.Metrics()
		for _, p := range readIn(m) {
			if now.Rereads > last.Rereads && read[p] {
				q.Reread = append(q.Reread, p)
				delete(read, p)
			}
		}
		if m.StartsTurn() && (said[lettersOf(words)] || now.UserRepeats > last.UserRepeats) && strings.Count(words, " ") >= leastRepeated {
			q.Repeated = append(q.Repeated, clip.Line(words, mostQuoted))
		}
		q.Reruns, q.Asked, last = now.Reruns, now.AgentAskedForContext, now
	}
	return q
}

// readIn are the files that the calls of a message read.
func readIn(m *thread.Message) (paths []string) {
	for _, c := range m.Calls() {
		if p := toolclass.Path(c); p != "" && toolclass.ClassOf(c.Name) == toolclass.Read {
			paths = append(paths, p)
		}
	}
	return paths
}
