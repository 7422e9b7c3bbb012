package model

import (
	"cmp"
	"time"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/summarize"
)

// Options are for New; the zero value is the default.
type Options struct {
	// Extractive makes what code can say, and its counter counts for budgets. Nil means a
	// new one.
	Extractive *summarize.Extractive
	// MaxOutput is that of Model.
	MaxOutput int
	// Characters bounds a piece of the span; 0 means 120,000.
	Characters int
	// Trusted takes answers without the checks of summarize.Verified.
	Trusted bool
	// Timeout bounds each model, all pieces together; 0 means two minutes.
	Timeout time.Duration
}

// New returns the summarizer for production. It asks each generator in turn, with long spans in
// pieces and every answer verified unless Trusted; then it summarises without a model, then
// writes a note. See summarize.Fallback for its errors.
func New(o *Options, generators ...llm.Generator) *summarize.Fallback {
	if o == nil {
		o = &Options{}
	}
	code := cmp.Or(o.Extractive, &summarize.Extractive{})
	timeout := cmp.Or(o.Timeout, defaultTimeout)
	f := &summarize.Fallback{Extractive: code, Timeout: timeout}
	for _, g := range generators {
		var s summarize.Summarizer = &Model{Generator: g, Extractive: code, MaxOutput: o.MaxOutput, Timeout: timeout}
		if !o.Trusted {
			s = &summarize.Verified{Inner: s, Extractive: code}
		}
		s = &summarize.Chunked{Inner: s, Characters: o.Characters, Size: characters}
		f.Steps = append(f.Steps, summarize.Step{Name: g.Model(), Summarizer: s})
	}
	return f
}
