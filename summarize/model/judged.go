package model

import (
	"cmp"
	"context"
	_ "embed" // the prompt
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/standing"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Judged asks a model, with one request for each summary, which of the user's sentences stand and which
// of them change which, and then has Inner make the summary. The model answers in numbers. A request takes
// at most 15 % of the tokens of the messages that are summarised, with its answer: what ranks lowest is not
// asked about. Generator must be set. Safe for concurrent use, not to be copied after first use.
type Judged struct {
	Generator llm.Generator
	// Inner makes the summary; nil leaves it to Extractive.
	Inner summarize.Summarizer
	// Extractive finds the sentences and counts tokens. Nil means a new one.
	Extractive *summarize.Extractive
	// Timeout bounds the request, retries included; 0 means two minutes.
	Timeout time.Duration

	own summarize.Extractive
}

var _ summarize.Summarizer = (*Judged)(nil)

//go:embed prompts/rules.txt
var rulesTemplate string

// rulesSchema is the schema of the answer.
const rulesSchema = `{"type":"object","properties":{"stand":{"type":"array","items":{"type":"integer"}},"changes":{"type":"array","items":{"type":"object",` +
	`"properties":{"later":{"type":"integer"},"earlier":{"type":"integer"}},"required":["later","earlier"],"additionalProperties":false}}},"required":["stand","changes"],"additionalProperties":false}`

const (
	// rulesShare is the share of the tokens of the messages that a question may take.
	rulesShare = 0.15
	// numberTokens is about what a sentence takes by its number, in the question and in the answer,
	// frameTokens what the request takes beside sentences, instructions and schema.
	numberTokens, frameTokens = 4, 60
	// maxAsked bounds the assistant's question before a sentence, in bytes.
	maxAsked = 200
	// byTable names in reports who decides where the model fails.
	byTable = "table"
)

// Summarize implements summarize.Summarizer; the error is that of Inner.
func (j *Judged) Summarize(ctx context.Context, in summarize.Input) (summarize.Result, error) {
	var report summarize.Report
	if in.Stands == nil {
		in, report = j.Judge(ctx, in)
	}
	inner := j.Inner
	if inner == nil {
		inner = cmp.Or(j.Extractive, &j.own)
	}
	out, err := inner.Summarize(ctx, in)
	out.Judged = report
	return out, err
}

// Judge returns in with Stands and Changes. Where the model fails they are empty, and the report says why;
// where there is nothing new to ask about, the report is zero.
func (j *Judged) Judge(ctx context.Context, in summarize.Input) (summarize.Input, summarize.Report) {
	generator := in.Answers.GeneratorFor(j.Generator)
	in.Stands, in.Changes = map[string]bool{}, map[string]string{}
	failed := func(err error) (summarize.Input, summarize.Report) {
		return in, summarize.Report{By: byTable, Failures: summarize.Failures(generator.Model(), err)}
	}
	code := cmp.Or(j.Extractive, &j.own)
	all, err := code.Sentences(ctx, in)
	if err != nil {
		return failed(err)
	}
	p, asked := rulesQuestion(&in, all, counter(code))
	if p == nil {
		return in, summarize.Report{}
	}
	o := &llm.Options{MaxOutput: defaultOutput, Timeout: cmp.Or(j.Timeout, defaultTimeout),
		Schema: &llm.Schema{Name: "standing", Description: "Which sentences stand, by their numbers (ranked by " + standing.Version + ").", JSON: rulesSchema}}
	reply, err := in.Answers.AskWith(ctx, generator, p, o, func(ctx context.Context) (*llm.Reply, error) { return send(ctx, generator, p, o) })
	if err != nil {
		return failed(err)
	}
	object, err := answer(reply)
	if err != nil {
		return failed(err)
	}
	if !gjson.Get(object, "stand").IsArray() {
		return failed(&summarize.RejectedError{Reason: summarize.Unreadable, Detail: "no list of numbers"})
	}
	ignored := takeNumbers(&in, gjson.Parse(object), asked)
	report := summarize.Replied(generator.Model(), reply)
	if ignored > 0 {
		report.Dropped = map[string]int{"source": ignored}
	}
	return in, report
}

// rulesQuestion asks about the sentences that stand so far, in half of the room, and about the new ones
// with the highest scores, as far as they fit, in order. It is nil where none of them is new.
func rulesQuestion(in *summarize.Input, all []summary.Item, count func(string) int) (p *prompt.Prompt, asked []summary.Item) {
	soFar, before, seen := map[string]bool{}, questionsBefore(in), map[string]bool{}
	if in.Previous != nil {
		for _, it := range in.Previous.Constraints {
			soFar[it.Text] = true
		}
	}
	inSpan, room := map[thread.ID]bool{}, 0
	for i := range in.Messages {
		inSpan[in.Messages[i].ID] = true
		room += count(flat(&in.Messages[i]))
	}
	isNew := func(i int) bool { return len(all[i].Sources) > 0 && inSpan[all[i].Sources[0]] }
	room = int(rulesShare*float64(room)) - count(rulesTemplate+rulesSchema) - frameTokens
	carried := room / 2
	questions, lines := make([]string, len(all)), make([]string, len(all))
	var order, taken []int
	for i, it := range all {
		if seen[it.Text] {
			continue
		}
		seen[it.Text], order = true, append(order, i)
		if lines[i] = ": " + oneLine(it.Text) + "\n"; soFar[it.Text] {
			lines[i] = " so far" + lines[i]
		}
		if len(it.Sources) > 0 && it.Asked == "" {
			it.Asked = before[it.Sources[0]]
			delete(before, it.Sources[0]) // the first sentence answers it
		}
		if it.Asked != "" {
			questions[i] = "asked: " + clip.Brief(oneLine(it.Asked), maxAsked) + "\n"
		}
	}
	again := func(i int) int { // what was weighed before and not found to stand comes last
		if isNew(i) || soFar[all[i].Text] {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(again(a), again(b)), cmp.Compare(all[b].Score, all[a].Score))
	})
	for _, i := range order {
		cost := count(questions[i]+lines[i]) + numberTokens
		if cost > room || soFar[all[i].Text] && cost > carried {
			continue
		}
		if room -= cost; soFar[all[i].Text] {
			carried -= cost
		}
		taken = append(taken, i)
	}
	if !slices.ContainsFunc(taken, isNew) {
		return nil, nil
	}
	slices.Sort(taken)
	mark := markFor(append(slices.Clone(lines), questions...))
	var b strings.Builder
	b.WriteString(mark + " begins\n")
	for n, i := range taken {
		asked = append(asked, all[i])
		b.WriteString(questions[i] + strconv.Itoa(n+1) + lines[i])
	}
	b.WriteString(mark + " ends\n\nAnswer with the JSON object.")
	return &prompt.Prompt{
		System:   []prompt.System{{Text: strings.ReplaceAll(strings.TrimSpace(rulesTemplate), "{{MARK}}", mark)}},
		Messages: []thread.Message{thread.NewMessage(thread.User, b.String())},
	}, asked
}

// questionsBefore is what the assistant asked right before messages of the user: the last line of its
// words, if that asks something.
func questionsBefore(in *summarize.Input) map[thread.ID]string {
	log := in.Log
	if log == nil {
		log = in.Messages
	}
	all, last := map[thread.ID]string{}, ""
	for i := range log {
		m := &log[i]
		switch text := strings.TrimSpace(m.Text()); {
		case m.Role == thread.Assistant && text != "":
			last = text[strings.LastIndexByte(text, '\n')+1:]
		case m.StartsTurn():
			if strings.ContainsAny(last, "?？") {
				all[m.ID] = last
			}
			last = ""
		}
	}
	return all
}

// takeNumbers takes what the answer says into the input. Numbers of no sentence, and changes that do not go
// from a later sentence to an earlier one or come a second time, are ignored and counted.
func takeNumbers(in *summarize.Input, object gjson.Result, asked []summary.Item) (ignored int) {
	number := func(v gjson.Result) int {
		if n := number(v.String()); n > 0 && n <= len(asked) {
			return n
		}
		return 0
	}
	for i := range asked {
		in.Stands[asked[i].Text] = false
	}
	for _, v := range object.Get("stand").Array() {
		if n := number(v); n > 0 {
			in.Stands[asked[n-1].Text] = true
		} else {
			ignored++
		}
	}
	changed := map[string]bool{}
	for _, v := range object.Get("changes").Array() {
		later, earlier := number(v.Get("later")), number(v.Get("earlier"))
		if earlier == 0 || later <= earlier || in.Changes[asked[later-1].Text] != "" {
			ignored++
			continue
		}
		in.Changes[asked[later-1].Text] = asked[earlier-1].Text
		changed[asked[earlier-1].Text] = true
	}
	for later := range in.Changes {
		in.Stands[later] = in.Stands[later] || !changed[later]
	}
	return ignored
}
