package relay_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/lab/relay"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summarize/model"
)

// knows is a model that knows which sentences of a chat were marked.
type knows struct{ chat *relay.Chat }

func (knows) Model() string { return "knows" }

var numbered = regexp.MustCompile(`(?m)^(\d+)(?: so far)?: (.*)$`)

// Generate answers with the numbers of marked sentences.
func (k knows) Generate(_ context.Context, p *prompt.Prompt, _ *llm.Options) (*llm.Reply, error) {
	type change struct {
		Later   int `json:"later"`
		Earlier int `json:"earlier"`
	}
	answer := struct {
		Stand   []int    `json:"stand"`
		Changes []change `json:"changes"`
	}{Stand: []int{}, Changes: []change{}}
	lines := numbered.FindAllStringSubmatch(p.Messages[0].Text(), -1)
	part := func(clause, of string) bool {
		flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
		return of != "" && (strings.Contains(flat(of), flat(clause)) || strings.Contains(flat(clause), strings.TrimRight(flat(of), ".")))
	}
	for _, r := range k.chat.Rules {
		var first, later []int
		for _, line := range lines {
			n, err := strconv.Atoi(line[1])
			if err != nil {
				return nil, err
			}
			switch {
			case part(line[2], r.Change):
				later = append(later, n)
			case part(line[2], r.Text):
				first = append(first, n)
			}
		}
		if answer.Stand = append(answer.Stand, later...); len(later) == 0 {
			answer.Stand = append(answer.Stand, first...)
			continue
		}
		for i, earlier := range first {
			answer.Changes = append(answer.Changes, change{later[min(i, len(later)-1)], earlier})
		}
	}
	doc, err := json.Marshal(answer)
	return &llm.Reply{Text: string(doc)}, err
}

// errs is a model that errs: it leaves out every tenth of the numbers that another says, invents some, and
// answers every tenth question in words.
type errs struct {
	llm.Generator
	asked, said int
}

func (e *errs) Generate(ctx context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	reply, err := e.Generator.Generate(ctx, p, o)
	if err != nil {
		return nil, err
	}
	if e.asked++; e.asked%10 == 0 {
		return &llm.Reply{Text: "All of them still stand, as far as I can see."}, nil
	}
	drop := func(s string) string {
		if e.said++; e.said%10 == 0 {
			return ""
		}
		return s
	}
	text := anAnswer.ReplaceAllStringFunc(reply.Text, drop)
	text = strings.NewReplacer(",,", ",", "[,", "[", ",]", "]").Replace(text)
	text = strings.Replace(text, `"stand":[`, `"stand":[-3,100000,"7b",`, 1)
	text = strings.Replace(text, `"changes":[`, `"changes":[{"later":1,"earlier":2},{"later":100000,"earlier":1},`, 1)
	return &llm.Reply{Text: strings.NewReplacer(",]", "]", ",,", ",").Replace(text)}, nil
}

// anAnswer is a number of a sentence that stands, or a change.
var anAnswer = regexp.MustCompile(`\{[^{}]*\}|\b\d+\b`)

// TestJudgedStandingSurvives: with a model that judges without fault, all of what people laid down survives
// five compactions, and nothing outlives its change; with one that errs, nearly as much does.
func TestJudgedStandingSurvives(t *testing.T) {
	chats, err := relay.Read("chats")
	if err != nil {
		t.Fatal(err)
	}
	mistaken := &errs{}
	for _, test := range []struct {
		name     string
		of       func(*relay.Chat) llm.Generator
		known    float64
		outdated int
	}{
		{"without fault", func(c *relay.Chat) llm.Generator { return knows{c} }, .97, 0},
		{"errs", func(c *relay.Chat) llm.Generator { mistaken.Generator = knows{c}; return mistaken }, .96, 2},
	} {
		for _, budget := range []int{4000, 8000, 16000} {
			var sum relay.Score
			stated := 0
			for _, c := range chats {
				messages, err := c.Messages(5, 24_000*4)
				if err != nil {
					t.Fatal(err)
				}
				s, err := relay.Summaries(t.Context(), &model.Judged{Generator: test.of(&c)}, messages, 5, budget)
				if err != nil {
					t.Fatal(err)
				}
				score := c.Judge(s.Render(), s.Constraints)
				t.Logf("%s, %d %s: missing %q, stale %q, wrong %q", test.name, budget, c.Name, score.Missing, score.Stale, score.Wrong)
				stated += len(s.Stated)
				sum.Add(score)
			}
			t.Logf("%s, %d: %d of %d known, %d of %d outdated, %d of %d called rules are; %d others", test.name, budget, sum.Known, sum.InForce, sum.Outdated, sum.Changed, sum.True, sum.Called, stated)
			if float64(sum.Known) < test.known*float64(sum.InForce) || sum.Outdated > test.outdated {
				t.Errorf("%s, %d tokens: %d of %d known, %d outdated", test.name, budget, sum.Known, sum.InForce, sum.Outdated)
			}
		}
	}
}
