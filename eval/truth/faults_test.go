package truth_test

import "github.com/palimpsest-ai/palimpsest/eval/truth"

// sample are the transcripts of a default run.
var sample = []string{"long-4cff", "mid-a4a8", "mid-00c9", "long-38346", "full-session-two", "short-3f0f", "tau-bench"}

// known are the faults of the summarizer in the whole corpus, and knownOfSome
// those in the sample: how many statements of a kind are false, and how many
// unproved. They are to come to nothing; none may rise.
var known = map[truth.Kind]fault{
	"call outcome":                       {4, 0},
	"call outcome: what the output says": {35, 0},
	"change":                             {10, 0},
	"characters left out":                {2, 0},
	"file created":                       {4, 0},
	"file turn":                          {26, 0},
	"gap in lines":                       {85, 0},
	"line":                               {9, 0},
	"plan":                               {16, 0},
	"work: branch":                       {4, 0},
	"work: changed since a check":        {28, 0},
	"work: check":                        {60, 4},
	"work: directory":                    {28, 0},
	"work: edited":                       {12, 0},
	"work: operation":                    {8, 0},
}

var knownOfSome = map[truth.Kind]fault{
	"call outcome: what the output says": {7, 0},
	"gap in lines":                       {10, 0},
	"plan":                               {12, 0},
	"work: directory":                    {4, 0},
}
