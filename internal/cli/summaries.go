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
)

// summaries is what a report tells of the models that wrote summaries. It is
// nil where none was to be asked.
type summaries struct {
	Use []string `json:"use"`
	// By counts the summaries made while planning, by model, or "extractive" or
	// "truncation_note". More are made than end up in the plan.
	By map[string]int `json:"by"`
	// Proposed and Kept count the sentences of models' texts, or items beyond what
	// code finds, and those that stood the test.
	Proposed int `json:"items_proposed"`
	Kept     int `json:"items_kept"`
	// Dropped counts the others by cause, LeftOut shows the first of them.
	Dropped map[string]int   `json:"items_dropped"`
	LeftOut []summarize.Left `json:"left_out"`
	// Failures are told once each, however often they happened.
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

// addAll adds the reports of a plan.
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
			failure.Error = errorText(f.Err)
		}
		// The tries of one plan fail in the same way: that is told once.
		told := slices.ContainsFunc(s.Failures, func(g summaryFailure) bool {
			return g == failure || g.Model == f.Step && g.Fallback == r.By && isRepeated(f.Err)
		})
		if !told {
			s.Failures = append(s.Failures, failure)
		}
	}
}

// isRepeated reports whether a model was not asked because it had failed before.
func isRepeated(err error) bool {
	_, ok := errors.AsType[*llm.RepeatedError](err)
	return ok
}

// addUsage counts the tokens of an answer.
func (s *summaries) addUsage(_ string, u llm.Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Requests++
	s.Input += u.Input
	s.Output += u.Output
}

// maxLeftOut bounds the sentences that a report shows.
const maxLeftOut = 200

// leftOutLine says how many sentences of models' summaries were left out and why, the
// most frequent cause first; empty where none was.
func leftOutLine[N int | int64](of N, dropped map[string]N) string {
	var left N
	for _, n := range dropped {
		left += n
	}
	if left == 0 {
		return ""
	}
	were := "were"
	if left == 1 {
		were = "was"
	}
	return fmt.Sprintf("%d of %s of the model's summary %s left out: %s", left, plural(int(of), "sentence"), were, countsByFrequency(dropped, causeWords))
}

// countsByFrequency are names, or the words that say them, with how often each was met, the
// most frequent first.
func countsByFrequency[N int | int64](count map[string]N, words map[string]string) string {
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	return joinEach(names, func(name string) string { return fmt.Sprintf("%s (%d)", cmp.Or(words[name], name), count[name]) })
}

// causeWords are what summarize.Report.Dropped counts.
var causeWords = map[string]string{
	"identifier": "a name that the conversation does not hold", "number": "a number that it does not hold", "quotation": "a quotation that nobody said",
	"user": "words put into the user's mouth", "tool": "something to do that only a tool spoke of", "words": "words that nobody used",
	"source": "no source", "placeholder": "nothing said", "limit": "too long", "cut": "cut off at the limit",
}

// print says who wrote, what was left out, and what failed.
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

// note tells in a line who wrote the summaries, and what became of answers that
// could not be used.
func (s *summaries) note() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.By) == 0 {
		return "no summary was needed"
	}
	note := "summaries by " + countsByFrequency(s.By, nil)
	if s.Proposed > 0 {
		note += fmt.Sprintf("; %d of %d items kept", s.Kept, s.Proposed)
	}
	if len(s.Dropped) > 0 {
		note += ", left out: " + countsByFrequency(s.Dropped, causeWords)
	}
	for _, f := range s.Failures {
		note += fmt.Sprintf("; %s failed: %s", f.Model, f.Error)
	}
	return note
}
