package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// Range is what a summary block of policy.Timeline carries beside its text (seed C, "What
// Compaction Produces").
type Range struct {
	// Type is "conv.range.summary", Path su:<turn>.conv.range.summary.
	Type string `json:"type"`
	Path string `json:"path"`
	// CoveredTurns are the turns that the summary covers, in order. SplitTurn is the turn
	// that the cut went through, of which only the beginning is covered; empty when the
	// cut lies between turns.
	CoveredTurns []string `json:"covered_turn_ids"`
	SplitTurn    string   `json:"split_turn_id,omitempty"`
	// Text summarizes whole turns, TurnContext the beginning of the split turn.
	Text        string `json:"text,omitempty"`
	TurnContext string `json:"turn_context,omitempty"`
	Digest      Digest `json:"compaction_digest"`
}

// Digest lists what was compacted, so that an agent can ask for it.
type Digest struct {
	Artifacts []DigestArtifact          `json:"artifacts,omitempty"`
	Tools     map[string][]DigestOutput `json:"tools,omitempty"`
	Searches  []DigestSearch            `json:"memory_searches,omitempty"`
	Hidden    []DigestHidden            `json:"hidden,omitempty"`
}

// Render writes the digest as text, a line for each entry. Whatever comes from a tool is
// quoted, so that no path or query can pass for a line of the digest.
func (d Digest) Render() string {
	var b strings.Builder
	heading := func(name string, n int) {
		if n > 0 {
			fmt.Fprintf(&b, "%s (%d):\n", name, n)
		}
	}
	heading("Produced", len(d.Artifacts))
	for _, a := range d.Artifacts {
		fmt.Fprintf(&b, "- %q, %s, %s", a.Path, a.MIME, a.Visibility)
		if len(a.Sources) > 0 {
			fmt.Fprintf(&b, ", from %q", a.Sources)
		}
		b.WriteByte('\n')
	}
	for _, tool := range slices.Sorted(maps.Keys(d.Tools)) {
		heading(fmt.Sprintf("Results of %q", tool), len(d.Tools[tool]))
		for _, o := range d.Tools[tool] {
			fmt.Fprintf(&b, "- message %s, %q, %s, %d bytes\n", o.MessageID, o.Path, o.Outcome, o.Bytes)
		}
	}
	heading("Searches in memory", len(d.Searches))
	for _, s := range d.Searches {
		fmt.Fprintf(&b, "- %q: %d hits %q\n", s.Query, s.Hits, s.Paths)
	}
	heading("Hidden before", len(d.Hidden))
	for _, h := range d.Hidden {
		fmt.Fprintf(&b, "- message %s, %q: %q\n", h.MessageID, h.Path, h.Replacement)
	}
	if b.Len() == 0 {
		return "Nothing was produced, called or hidden."
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// DigestArtifact is something that was produced.
type DigestArtifact struct {
	Path       string   `json:"path"`
	MIME       string   `json:"mime"`
	Visibility string   `json:"visibility"`
	Sources    []string `json:"sources_used,omitempty"`
}

// DigestOutput is the result of a call.
type DigestOutput struct {
	Path      string         `json:"path"`
	MessageID thread.ID      `json:"message_id"`
	Outcome   thread.Outcome `json:"outcome"`
	Bytes     int            `json:"bytes"` // of its text
}

// DigestSearch is a search in the agent's memory and its hits.
type DigestSearch struct {
	Query string   `json:"query"`
	Hits  int      `json:"hits"`
	Paths []string `json:"paths,omitempty"`
}

// DigestHidden is a block that was hidden before, and the text shown instead.
type DigestHidden struct {
	Path        string    `json:"path"`
	MessageID   thread.ID `json:"message_id"`
	Replacement string    `json:"replacement_text"`
}

// CacheRule says where a prompt's cached prefixes end: after the turn before the current
// one, after the round that Offset rounds follow, and at the end. A round is an answer of
// the model with what led to it and the results of its calls.
type CacheRule struct {
	// Offset is how many rounds follow the second point. MinRounds is the fewest visible
	// rounds with which there is a second point; it takes at least Offset+1.
	Offset    int `json:"offset_rounds"`
	MinRounds int `json:"min_rounds"`
}
