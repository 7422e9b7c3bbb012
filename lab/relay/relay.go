// Package relay measures what of what a person laid down is still known after several
// compactions: chats whose standing sentences are marked, each summary made from what came since
// the one before.
package relay

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Chat is a conversation with marked sentences.
type Chat struct {
	Name, Field string
	Turns       []Turn
	Rules       []Rule
}

// Turn is a message of the person and the gist of the answer.
type Turn struct{ Said, Answer string }

// Rule is a sentence of the person that stands until another changes it or takes it back.
type Rule struct {
	Number       int
	Text, Change string // Change is empty where it stands to the end
}

var marked = regexp.MustCompile(`(?s)\[\[([RV])(\d+): (.*?)\]\]`)

// Read reads the chats of a folder, by name.
func Read(dir string) ([]Chat, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	var all []Chat
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		c := Chat{Name: strings.TrimSuffix(filepath.Base(file), ".txt")}
		first, rest, _ := strings.Cut(string(text), "\n")
		c.Field = strings.TrimPrefix(first, "# ")
		for _, m := range marked.FindAllStringSubmatch(rest, -1) {
			n := 0
			fmt.Sscan(m[2], &n)
			at := slices.IndexFunc(c.Rules, func(r Rule) bool { return r.Number == n })
			switch {
			case m[1] == "R" && at < 0:
				c.Rules = append(c.Rules, Rule{Number: n, Text: m[3]})
			case m[1] == "V" && at >= 0 && c.Rules[at].Change == "":
				c.Rules[at].Change = m[3]
			default:
				return nil, fmt.Errorf("%s: %s%d: an R stands once, before its V", file, m[1], n)
			}
		}
		rest = marked.ReplaceAllString(rest, "$3")
		for _, part := range strings.Split("\n"+rest, "\n> ")[1:] {
			said, answer, ok := strings.Cut(part, "\n< ")
			if !ok {
				return nil, fmt.Errorf("%s: no answer to %.40q", file, said)
			}
			c.Turns = append(c.Turns, Turn{strings.TrimSpace(said), strings.TrimSpace(answer)})
		}
		all = append(all, c)
	}
	return all, nil
}

// fillers make up the rest of an answer, so that a chat is as long as real ones.
var fillers = strings.Fields("the draft list table option step part result value order week month place side file group number reason note line page version cost time team " +
	"shows takes keeps moves reads gives leaves holds counts needs compares sorts covers adds with under before after between along beside without through " +
	"first second small large open early late full short plain usual separate current possible common")

// padded is a gist with filler sentences behind it, about so many characters in all.
func padded(rng *rand.Rand, gist string, characters int) string {
	var b strings.Builder
	b.WriteString(gist)
	for b.Len() < characters {
		b.WriteString("\n\n")
		for range 4 + rng.IntN(4) {
			for n := range 8 + rng.IntN(12) {
				w := fillers[rng.IntN(len(fillers))]
				if n == 0 {
					w = strings.ToUpper(w[:1]) + w[1:]
				} else {
					b.WriteByte(' ')
				}
				b.WriteString(w)
			}
			b.WriteString(". ")
		}
	}
	return strings.TrimSpace(b.String())
}

// Messages are the messages of a chat, so that rounds spans of it take about so many characters
// each.
func (c *Chat) Messages(rounds, characters int) ([]thread.Message, error) {
	sum := fnv.New64a()
	sum.Write([]byte(c.Name))
	rng := rand.New(rand.NewPCG(sum.Sum64(), 1))
	said := 0
	for _, t := range c.Turns {
		said += len(t.Said)
	}
	each := max(0, rounds*characters-said) / len(c.Turns)
	text := func(role thread.Role, s string) thread.Message {
		return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: s}}}
	}
	var all []thread.Message
	for _, t := range c.Turns {
		all = append(all, text(thread.User, t.Said), text(thread.Assistant, padded(rng, t.Answer, each)))
	}
	th, err := thread.New(c.Name).Append(all...)
	if err != nil {
		return nil, err
	}
	return th.Messages(), nil
}

// Score is what is known at the end.
type Score struct {
	InForce, Known int
	// Outdated is how many sentences stand whose change or withdrawal does not, of Changed.
	Outdated, Changed int
	// Called is how many sentences are called rules of the user, True how many of them are marked, and Lapsed how
	// many of those have been changed.
	Called, True, Lapsed  int
	Missing, Stale, Wrong []string
}

// Add adds the figures of another score.
func (s *Score) Add(o Score) {
	s.InForce, s.Known, s.Outdated, s.Changed = s.InForce+o.InForce, s.Known+o.Known, s.Outdated+o.Outdated, s.Changed+o.Changed
	s.Called, s.True, s.Lapsed = s.Called+o.Called, s.True+o.True, s.Lapsed+o.Lapsed
}

// Summaries are the summaries of a chat: rounds of them, each of what came since the one before
// and that one, of at most budget tokens.
func Summaries(ctx context.Context, s summarize.Summarizer, messages []thread.Message, rounds, budget int) (summary.Summary, error) {
	var last *summary.Summary
	for n := range rounds {
		from, to := len(messages)/2*n/rounds*2, len(messages)/2*(n+1)/rounds*2
		in := summarize.Input{Messages: messages[from:to], Log: messages[:to], Previous: last, Budget: budget}
		r, err := s.Summarize(ctx, in)
		if err != nil {
			return summary.Summary{}, err
		}
		last = &r.Summary
	}
	return *last, nil
}

func folded(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, `\`, "")), " ")
}

// Judge compares a prompt with what was laid down.
func (c *Chat) Judge(prompt string, rules []summary.Item) (s Score) {
	prompt = folded(prompt)
	stands := func(text string) bool { // whole, or each clause of it
		for clause := range strings.SplitSeq(strings.TrimRight(folded(text), "."), "; ") {
			if !strings.Contains(prompt, clause) {
				return false
			}
		}
		return true
	}
	for _, r := range c.Rules {
		now := r.Text
		if r.Change != "" {
			now = r.Change
			s.Changed++
			if stands(r.Text) && !stands(r.Change) {
				s.Outdated++
				s.Stale = append(s.Stale, r.Text+" / "+r.Change)
			}
		}
		s.InForce++
		if stands(now) {
			s.Known++
		} else {
			s.Missing = append(s.Missing, now)
		}
	}
	for _, it := range rules {
		s.Called++
		text := folded(it.Text)
		says := func(rule string) bool {
			return rule != "" && strings.Contains(text, strings.TrimRight(folded(rule), "."))
		}
		is := slices.IndexFunc(c.Rules, func(r Rule) bool { return says(r.Text) || says(r.Change) })
		if is < 0 {
			s.Wrong = append(s.Wrong, it.Text)
			continue
		}
		s.True++
		if r := c.Rules[is]; r.Change != "" && !says(r.Change) {
			s.Lapsed++
		}
	}
	return s
}
