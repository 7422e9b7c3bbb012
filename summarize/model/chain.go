package model

import (
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
	// Cache keeps summaries; nil stands for an LRU of its own.
	Cache summarize.Cache
	// Policy is the version of the compaction policy, for the cache (A15).
	Policy string
	// MaxOutput, Temperature and Replied are those of Model.
	MaxOutput   int
	Temperature float64
	Replied     func(context.Context, *llm.Reply)
	// Rates are those of Model: nil takes the prices of token.Models.
	Rates *cost.Rates
	// Characters is the most of a span that is sent at once; 0 stands for
	// 120,000 (D6).
	Characters int
	// Timeout bounds each model, all pieces together; 0 stands for two minutes.
	Timeout time.Duration
	// Report is told of cache answers, dropped items, and failures. May be nil.
	Report summarize.Reporter
}

// New puts together the summarizer for production: each generator in turn, every
// answer verified, long spans in pieces, results cached; then without a model,
// then a note. See summarize.Fallback for when it fails.
func New(o *Options, generators ...llm.Generator) *summarize.Fallback {
	if o == nil {
		o = &Options{}
	}
	code := o.Extractive
	if code == nil {
		code = &summarize.Extractive{}
	}
	cache := o.Cache
	if cache == nil {
		cache = &summarize.LRU{}
	}
	timeout := o.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	f := &summarize.Fallback{Extractive: code, Timeout: timeout, Report: o.Report}
	for _, g := range generators {
		var s summarize.Summarizer = &Model{
			Generator: g, Extractive: code, MaxOutput: o.MaxOutput, Temperature: o.Temperature, Timeout: timeout, Rates: o.Rates, Replied: o.Replied,
		}
		s = &summarize.Verified{Inner: s, Extractive: code, Report: o.Report}
		s = &summarize.Chunked{Inner: s, Characters: o.Characters, Size: characters, Counter: code.Counter}
		s = &summarize.Cached{Inner: s, Cache: cache, Policy: o.Policy, Model: g.Model(), Prompt: PromptVersion(), Report: o.Report}
		f.Steps = append(f.Steps, summarize.Step{Name: g.Model(), Summarizer: s})
	}
	return f
}
