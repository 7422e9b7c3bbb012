package policy

import (
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/summarize"
)

// Fallback names who wrote a summary because somebody else could not ("extractive",
// "truncation_note", or another model), and why that one failed: the first of the
// plan's summaries of which that is true. It is empty where there is none.
func (f *Fitted) Fallback() (by string, failure error) {
	for _, r := range f.Summaries {
		if len(r.Failures) > 0 {
			return r.By, r.Failures[0].Err
		}
	}
	return "", nil
}

// Cache says whether all answers of models that the plan took were known: Miss
// when one was asked, empty where none had to be.
func (f *Fitted) Cache() event.Cache {
	var all summarize.Report
	for _, r := range f.Summaries {
		all = all.With(r)
	}
	return all.Cache
}
