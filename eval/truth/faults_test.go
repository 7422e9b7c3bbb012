package truth_test

import "github.com/palimpsest-ai/palimpsest/eval/truth"

// sample are the transcripts of a default run.
var sample = []string{"long-4cff", "mid-a4a8", "mid-00c9", "long-38346", "full-session-two", "short-3f0f", "tau-bench"}

// known are the faults of the summarizer in the whole corpus, and knownOfSome
// those in the sample: how many statements of a kind are false, and how many
// unproved. They are to come to nothing; none may rise.
var known = map[truth.Kind]fault{
	"call outcome":                       {148, 0},
	"call outcome: what the output says": {33, 0},
	"call runs":                          {22, 0},
	"change":                             {17, 0},
	"change: how many lines":             {1280, 0},
	"characters left out":                {2, 0},
	"file created":                       {4, 0},
	"file note":                          {183, 0},
	"file turn":                          {26, 0},
	"gap in lines":                       {89, 0},
	"line":                               {10, 0},
	"plan":                               {16, 0},
}

var knownOfSome = map[truth.Kind]fault{
	"call outcome":                       {32, 0},
	"call outcome: what the output says": {7, 0},
	"call runs":                          {8, 0},
	"change: how many lines":             {87, 0},
	"file note":                          {20, 0},
	"gap in lines":                       {10, 0},
	"plan":                               {12, 0},
}
