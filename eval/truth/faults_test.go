package truth_test

import "github.com/palimpsest-ai/palimpsest/eval/truth"

// sample are the transcripts of a default run.
var sample = []string{"long-4cff", "short-3f0f", "tau-bench"}

// known are the faults of the summarizer in the whole corpus, and knownOfSome
// those in the sample. They are to come to nothing; none may rise.
var known = map[truth.Kind]fault{}

var knownOfSome = map[truth.Kind]fault{}
