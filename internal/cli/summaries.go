package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// summaries reports how the summaries of a plan were made. Safe for concurrent use.
type summaries struct {
	// Use are the models to ask, in order; empty if no model writes summaries.
	Use []string `json:"use"`
	// By counts the summaries by who wrote them: a model, "extractive" or
	// "truncation_note". Planning makes more than the plan holds in the end.
	By map[string]int `json:"by"`
	// Proposed counts the sentences and items that models wrote, Kept those that passed
	// verification.
	Proposed int `json:"items_proposed"`
	Kept     int `json:"items_kept"`
	// Dropped counts the others by cause; LeftOut holds the first of them.
	Dropped map[string]int   `json:"items_dropped"`
	LeftOut []summarize.Left `json:"left_out"`
	// Failures holds each failure once, however often it happened.
	Failures []summaryFailure `json:"failures"`
	Requests int              `json:"requests"`
	Input    int              `json:"input_tokens"`
	Output   int              `json:"output_tokens"`

	mu sync.Mutex
}

type summaryFailure struct {
	Model    string `json:"model"`
	Error    string `json:"error"`
	Class    string `json:"class"`
	Fallback string `json:"fallback"`
}

func (s *summaries) addAll(all []summarize.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range all {
		s.add(r)
	}
}

func (s *summaries) add(r summarize.Report) {
	if r.By != "" {
		s.By[r.By]++
	}
	s.Proposed += r.Proposed
	s.Kept += r.Kept
	for cause, n := range r.Dropped {
		if s.Dropped == nil {
			s.Dropped = map[string]int{}
		}
		s.Dropped[cause] += n
	}
	for _, l := range r.Left {
		if len(s.LeftOut) < maxLeftOut && !slices.Contains(s.LeftOut, l) {
			s.LeftOut = append(s.LeftOut, l)
		}
	}
	for _, f := range r.Failures {
		failure := summaryFailure{Model: f.Step, Error: "no reason given", Class: event.ErrorClass(f.Err), Fallback: r.By}
		if f.Err != nil {
			failure.Error = ErrorText(f.Err)
		}
		// Each attempt at a plan fails in the same way: report it once.
		_, repeated := errors.AsType[*llm.RepeatedError](f.Err) // the model was skipped because it had just failed
		known := slices.ContainsFunc(s.Failures, func(g summaryFailure) bool {
			return g == failure || g.Model == f.Step && g.Fallback == r.By && repeated
		})
		if !known {
			s.Failures = append(s.Failures, failure)
		}
	}
}

func (s *summaries) addUsage(_ string, u wire.Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Requests++
	s.Input += u.Input
	s.Output += u.Output
}

// maxLeftOut bounds the sentences that a report shows.
const maxLeftOut = 200

// leftOutLine says how many sentences of the models' summaries were left out and why, the
// most frequent cause first. It is empty if none was.
func leftOutLine(of int, dropped map[string]int) string {
	var left int
	for _, n := range dropped {
		left += n
	}
	if left == 0 {
		return ""
	}
	were := map[bool]string{true: "was", false: "were"}[left == 1]
	return fmt.Sprintf("%d of %s of the model's summary %s left out: %s", left, plural(of, "sentence"), were, countsByFrequency(dropped, causeWords))
}

// countsByFrequency lists names with their counts, the most frequent first. words replaces
// names by plainer words.
func countsByFrequency(count map[string]int, words map[string]string) string {
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	return joinEach(names, func(name string) string { return fmt.Sprintf("%s (%d)", cmp.Or(words[name], name), count[name]) })
}

// causeWords explain the causes in summarize.Report.Dropped.
var causeWords = map[string]string{
	"identifier": "a name that is not in the conversation", "number": "a number that is not in it", "quotation": "a quotation that nobody said",
	"user": "words put into the user's mouth", "tool": "a task that only a tool result names", "words": "words that nobody used",
	"source": "no source", "placeholder": "nothing said", "limit": "too long", "cut": "cut off at the limit",
}

// print says who wrote the summaries, what was left out, and what failed.
func (s *summaries) print(p *printer) {
	if s == nil {
		return
	}
	if len(s.By) == 0 {
		p.text("summaries: none was needed, %s was not asked", strings.Join(s.Use, ", "))
		return
	}
	line := "summaries by " + countsByFrequency(s.By, nil)
	if s.Requests > 0 {
		line += fmt.Sprintf(" · %s, %s tokens in, %s out", plural(s.Requests, "answer"), number(s.Input), number(s.Output))
	}
	p.text("%s", line)
	if left := leftOutLine(s.Proposed, s.Dropped); left != "" {
		p.text("note: %s", left)
	}
	for n, f := range s.Failures {
		if n == maxListLines {
			p.line("and %s (--json lists all)", plural(len(s.Failures)-n, "more failure"))
			break
		}
		p.text("note: %s failed, %s took its place: %s", f.Model, f.Fallback, f.Error)
	}
}
