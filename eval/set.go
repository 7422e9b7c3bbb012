package eval

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/internal/references"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Set is what is measured on: conversations, read and searched once. It is safe
// for concurrent use by several runs.
type Set = references.Set

// Load reads the files and, below folders, all files that are transcripts. What
// cannot be read is named in Skipped; it is an error only when nothing is left.
// A nil counter counts o200k tokens, progress may be nil.
//
// Conversations below one folder are a family; whether an identifier is common
// is asked of the family, or, for one of few conversations, of all small
// families together.
func Load(ctx context.Context, paths []string, counter *token.Counter, progress Progress) (*Set, error) {
	return references.Load(ctx, paths, counter, progress)
}

// Progress is told how far a long work is. It is called from one goroutine at a
// time.
type Progress = references.Progress

// Split is a half of the sessions: policies are tuned on one and judged on the
// other.
type Split = references.Split

// The splits. The empty one is All.
const (
	All  = references.All
	Dev  = references.Dev
	Test = references.Test
)
