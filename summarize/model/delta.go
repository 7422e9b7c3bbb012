package model

import (
	"bytes"
	_ "embed" // the schema
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// answerSchema is the schema of the answer. Every field is required and nothing else is
// allowed, as strict schemas demand. "outdated" is there only with a previous summary.
//
//go:embed prompts/answer.json
var answerSchema []byte

func schema(onPrevious bool) (*llm.Schema, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, answerSchema); err != nil {
		return nil, fmt.Errorf("the schema of the answer: %w", err)
	}
	shape := compact.String()
	if !onPrevious {
		shape = strings.NewReplacer(`,"outdated":{"type":"array","items":{"type":"string"}}`, "", `,"outdated"]`, "]").Replace(shape)
	}
	return &llm.Schema{Name: "summary_delta", Description: "What the transcript adds to the summary.", JSON: shape}, nil
}

// readDelta reads the answer leniently: lists may be missing, an item may be a bare string, a
// source a number, a text such as "[3]" or a range. It skips what it cannot read. An object
// without any of our lists is Unreadable; lists without an item are Empty.
func readDelta(object string, messages []thread.Message) (summarize.Result, error) {
	root := gjson.Parse(object)
	var out summarize.Result
	known, items := false, 0
	each := func(names []string, keys []string, add func(v gjson.Result, text string, sources []thread.ID)) {
		for _, name := range names {
			list := root.Get(name)
			known = known || list.Exists()
			for _, v := range many(list) {
				text := v.String()
				if v.IsObject() {
					text = first(v, keys...)
				}
				if text = strings.TrimSpace(text); text != "" && v.Type != gjson.Null {
					items++
					add(v, text, sourcesOf(v, messages))
				}
			}
		}
	}
	each([]string{"facts", "tool_outcomes"}, []string{"text", "fact", "finding", "description"}, func(_ gjson.Result, text string, sources []thread.ID) {
		out.Facts = append(out.Facts, summary.Item{Text: oneLine(text), Sources: sources})
	})
	each([]string{"decisions"}, []string{"decision", "text", "description"}, func(v gjson.Result, text string, sources []thread.ID) {
		out.Decisions = append(out.Decisions, summary.Decision{Decision: oneLine(text), Rationale: oneLine(first(v, "rationale", "reason")), Sources: sources})
	})
	each([]string{"plan", "current_plan"}, []string{"text", "step", "description"}, func(v gjson.Result, text string, sources []thread.ID) {
		out.CurrentPlan = append(out.CurrentPlan, summary.Step{Text: oneLine(text), Status: first(v, "status"), Sources: sources})
	})
	each([]string{"open_items"}, []string{"description", "text", "item"}, func(v gjson.Result, text string, sources []thread.ID) {
		out.OpenItems = append(out.OpenItems, summary.OpenItem{
			Description: oneLine(text), Context: oneLine(first(v, "context")), Priority: summary.Priority(first(v, "priority")), Sources: sources})
	})
	each([]string{"failed_attempts"}, []string{"text", "attempt", "description"}, func(_ gjson.Result, text string, sources []thread.ID) {
		out.FailedAttempts = append(out.FailedAttempts, summary.Item{Text: oneLine(text), Sources: sources})
	})
	each([]string{"outdated"}, []string{"text", "description", "decision"}, func(_ gjson.Result, text string, _ []thread.ID) {
		out.Outdated = append(out.Outdated, text)
	})
	switch {
	case !known:
		return out, &summarize.RejectedError{Reason: summarize.Unreadable, Detail: "an object of another shape"}
	case items == 0:
		return out, &summarize.RejectedError{Reason: summarize.Empty, Detail: "no item in any list"}
	}
	return out, nil
}

// many returns the elements of a list; another value is a list of one.
func many(v gjson.Result) []gjson.Result {
	switch {
	case !v.Exists() || v.Type == gjson.Null:
		return nil
	case v.IsArray():
		return v.Array()
	}
	return []gjson.Result{v}
}

// first returns the first of the fields that is a text and not empty.
func first(v gjson.Result, keys ...string) string {
	if !v.IsObject() {
		return ""
	}
	for _, k := range keys {
		if f := v.Get(k); f.Type == gjson.String && f.Str != "" {
			return f.Str
		}
	}
	return ""
}

// maxSources bounds the sources of an item: more would be no source at all.
const maxSources = 24

// sourcesOf maps the numbers of messages back to their ids, each once.
func sourcesOf(v gjson.Result, messages []thread.Message) []thread.ID {
	if !v.IsObject() {
		return nil
	}
	var out []thread.ID
	seen := map[int]bool{}
	add := func(n int) {
		if n >= 1 && n <= len(messages) && !seen[n] && len(out) < maxSources {
			seen[n] = true
			out = append(out, messages[n-1].ID)
		}
	}
	for _, key := range [...]string{"sources", "source", "messages", "message"} {
		for _, s := range many(v.Get(key)) {
			for _, m := range numbers().FindAllStringSubmatch(s.String(), -1) {
				from, to := number(m[1]), number(m[2])
				add(from)
				for n := from + 1; n < min(to, from+maxSources); n++ {
					add(n)
				}
				add(to)
			}
		}
	}
	return out
}

// number is 0 for what is none.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// numbers are those of messages: "3", "[3]", "#3", "3, 4", and ranges such as "3-5".
var numbers = lazyregexp.New(`(\d+)(?: ?- ?#?(\d+))?`)

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// refuses reports whether a text without JSON begins like a refusal.
func refuses(text string) bool {
	low := strings.ToLower(strings.ReplaceAll(text[:min(len(text), 200)], "’", "'"))
	return slices.ContainsFunc([]string{"i can't", "i cannot", "i'm sorry", "i am sorry", "i'm unable", "i am unable", "i won't", "as an ai"},
		func(p string) bool { return strings.Contains(low, p) })
}
