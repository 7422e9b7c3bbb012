package plan

import "github.com/palimpsest-ai/palimpsest/thread"

// Range is what a summary block of a timeline carries beside its text (seed C,
// "What Compaction Produces").
type Range struct {
	// Type is "conv.range.summary", Path su:<turn>.conv.range.summary.
	Type string `json:"type"`
	Path string `json:"path"`
	// CoveredTurns are the turns that are compacted in the summary, in order;
	// SplitTurn is the one that the cut went through, of which only the beginning
	// is compacted. It is empty when the cut lies between turns.
	CoveredTurns []string `json:"covered_turn_ids"`
	SplitTurn    string   `json:"split_turn_id,omitempty"`
	// Text and TurnContext are the two summaries that the block's text is made
	// of: of whole turns, and of the beginning of the split turn.
	Text        string `json:"text,omitempty"`
	TurnContext string `json:"turn_context,omitempty"`
	Digest      Digest `json:"compaction_digest"`
}

// Digest lists what was compacted, so that an agent can ask for it (C10).
type Digest struct {
	Artifacts []DigestArtifact          `json:"artifacts,omitempty"`
	Tools     map[string][]DigestOutput `json:"tools,omitempty"`
	Searches  []DigestSearch            `json:"memory_searches,omitempty"`
	Hidden    []DigestHidden            `json:"hidden,omitempty"`
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

// DigestSearch is a search in the agent's memory and what it found.
type DigestSearch struct {
	Query string   `json:"query"`
	Hits  int      `json:"hits"`
	Paths []string `json:"paths,omitempty"`
}

// DigestHidden is a block that was hidden before, and what stood in its place.
type DigestHidden struct {
	Path        string    `json:"path"`
	MessageID   thread.ID `json:"message_id"`
	Replacement string    `json:"replacement_text"`
}

// CacheRule says where a prompt's cached prefixes end, by turns and rounds
// instead of by what compaction froze (C9): behind the turn before the current
// one, behind the round that Offset rounds follow, and at the end. A round is an
// answer of the model with what led to it and the results of its calls.
type CacheRule struct {
	// Offset is how many rounds stand behind the second point; MinRounds is the
	// fewest visible rounds with which there is one. It takes at least Offset+1.
	Offset    int `json:"offset_rounds"`
	MinRounds int `json:"min_rounds"`
}
