package truth_test

import "github.com/palimpsest-ai/palimpsest/lab/truth"

// sample are the transcripts of a default run.
var sample = []string{"long-4cff", "mid-a4a8", "mid-00c9", "long-38346", "full-session-two", "short-3f0f", "tau-bench"}

// known are the faults of the summarizer in the whole corpus, and knownOfSome
// those in the sample: how many statements of a kind are false, and how many
// unproved. They are to come to nothing; none may rise.
var known = map[truth.Kind]fault{}

var knownOfSome = map[truth.Kind]fault{}
