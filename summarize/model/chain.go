package model

import (
	"cmp"
	"context"
	"time"

	"github.com/palimpsest-ai/palimpsest/cost"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/summarize"
)

// Options are for New; the zero value is the default.
type Options struct {
	// Extractive makes what code can say; its counter is the one that budgets
	// are meant in. Nil stands for a new one.
	Extractive *summarize.Extractive
	// MaxOutput, Temperature and Replied are those of Model.
	MaxOutput   int
	Temperature float64
	Replied     func(context.Context, *llm.Reply)
	// Rates are those of Model: nil takes the prices of token.Models.
	Rates *cost.Rates
	// Characters is the most of a span that is sent at once; 0 stands for
	// 120,000 (D6).
	Characters int
	// Trusted takes what a model says without the tests of summarize.Verified.
	Trusted bool
	// Timeout bounds each model, all pieces together; 0 stands for two minutes.
	Timeout time.Duration
}

// New puts together the summarizer for production: each generator in turn, every
// answer verified unless the models are trusted, long spans in pieces; then without a model, then a note. Answers
// are kept where Input.Answers says. See summarize.Fallback for when it fails.
func New(o *Options, generators ...llm.Generator) *summarize.Fallback {
	if o == nil {
		o = &Options{}
	}
	code := cmp.Or(o.Extractive, &summarize.Extractive{})
	timeout := cmp.Or(o.Timeout, defaultTimeout)
	f := &summarize.Fallback{Extractive: code, Timeout: timeout}
	for _, g := range generators {
		var s summarize.Summarizer = &Model{
			Generator: g, Extractive: code, MaxOutput: o.MaxOutput, Temperature: o.Temperature, Timeout: timeout, Rates: o.Rates, Replied: o.Replied,
		}
		if !o.Trusted {
			s = &summarize.Verified{Inner: s, Extractive: code}
		}
		s = &summarize.Chunked{Inner: s, Characters: o.Characters, Size: characters, Counter: code.Counter}
		f.Steps = append(f.Steps, summarize.Step{Name: g.Model(), Summarizer: s})
	}
	return f
}
