package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/setup"
	"github.com/palimpsest-ai/palimpsest/lab/eval/exam"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/lab/relay"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// figures are in percent, but for the rules.
type figures struct {
	own, sixteen  float64 // words of the keys of exams in prompts of the agent's own size, of 16k
	told          float64 // of other sessions, words of the agent's own summary in prompts of its size
	recall, tenth float64 // identifiers, at 8k and at 10 %
	desk          float64 // of short sessions, at 20 %
	noise         float64 // of the tokens at 8k, lines of output that name nothing of what the agent wrote later
	rules         int     // of what people laid down, at 4k and 8k together, less those out of date
}

// measuring is what all rows are measured on.
type measuring struct {
	exams   []*exam.Session
	moments []*references.Moment
	recaps  []*references.Moment // where agents compacted, in other sessions than those of the exams
	chats   []relay.Chat
	said    [][]thread.Message // in the chats
	counter *token.Counter
}

// measure prints the table.
func measure(ctx context.Context, shared string, names *regexp.Regexp) error {
	m, err := load(ctx, shared)
	if err != nil {
		return err
	}
	base, err := m.figures(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("| off | lines | own words | 16k words | told | recall 8k | 10 %% | desk 20 %% | noise 8k | rules | what it is for |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n")
	fmt.Printf("| nothing | | %.2f | %.2f | %.2f | %.1f | %.1f | %.1f | %.2f | %d | |\n", base.own, base.sixteen, base.told, base.recall, base.tenth, base.desk, base.noise, base.rules)
	for _, r := range rows {
		if !names.MatchString(r.name) {
			continue
		}
		os.Setenv(switched, r.name)
		f, err := m.figures(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		fmt.Printf("| %s | %d | %+.2f | %+.2f | %+.2f | %+.1f | %+.1f | %+.1f | %+.2f | %+d | %s |\n", r.name, r.lines, f.own-base.own, f.sixteen-base.sixteen, f.told-base.told, f.recall-base.recall, f.tenth-base.tenth, f.desk-base.desk, f.noise-base.noise, f.rules-base.rules, r.why)
	}
	return nil
}

func load(ctx context.Context, shared string) (m *measuring, err error) {
	m = &measuring{}
	folders, err := filepath.Glob(filepath.Join(shared, "reader/*/exam.json"))
	if err != nil {
		return nil, err
	}
	for _, f := range folders {
		s, err := exam.Open(filepath.Dir(f))
		if err != nil {
			return nil, err
		}
		m.exams = append(m.exams, s)
	}
	if m.chats, err = relay.Read("relay/chats"); err != nil {
		return nil, err
	}
	for _, c := range m.chats {
		messages, err := c.Messages(5, 24_000*4)
		if err != nil {
			return nil, err
		}
		m.said = append(m.said, messages)
	}
	if m.counter, err = token.New("o200k", nil); err != nil {
		return nil, err
	}
	set, err := references.Load(ctx, []string{filepath.Join(shared, "transcripts")}, m.counter, nil)
	if err != nil {
		return nil, err
	}
	for _, s := range set.OfSplit(references.All, 0) {
		asked := slices.ContainsFunc(m.exams, func(e *exam.Session) bool {
			return strings.HasPrefix(s.Name, e.Name) || strings.HasPrefix(e.Name, s.Name)
		})
		for i := range s.Recaps {
			if step, _ := slices.BinarySearch(s.Steps, s.Recaps[i].At); !asked && 0 < step && step < len(s.Steps) {
				moment := s.Moment(step)
				moment.Recap = &s.Recaps[i]
				m.recaps = append(m.recaps, moment)
			}
		}
	}
	for _, s := range set.OfSplit(references.Test, 0) {
		for _, at := range []int{4} {
			if step := len(s.Steps) * at / 6; step > 0 {
				if moment := s.Moment(step); len(moment.Needs) > 0 {
					m.moments = append(m.moments, moment)
				}
			}
		}
	}
	return m, nil
}

func (m *measuring) figures(ctx context.Context) (f figures, err error) {
	if f.own, f.sixteen, err = m.words(ctx); err != nil {
		return f, err
	}
	if err = m.recall(ctx, &f); err != nil {
		return f, err
	}
	f.rules, err = m.rules(ctx)
	return f, err
}

// words is how many of the words that the keys of the exams want stand in the prompts.
func (m *measuring) words(ctx context.Context) (own, sixteen float64, err error) {
	dir, err := os.MkdirTemp("", "exam")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	profile := render.For("text")
	profile.Reach = render.Command
	auto := exam.Contender{Name: "auto", Make: func(ctx context.Context, s *exam.Session, budget int) (*exam.Made, error) {
		chosen, err := setup.Open("auto", &setup.Options{Summarizer: policyfile.Extractive})
		if err != nil {
			return nil, err
		}
		config := chosen.Config(m.counter)
		config.Now = func() time.Time { return time.Time{} }
		c, err := palimpsest.New(config)
		if err != nil {
			return nil, err
		}
		r, err := c.Compact(ctx, palimpsest.Request{Thread: s.Transcript.Thread, Base: &prompt.Prompt{Model: s.Transcript.Model}, Budget: budget, Profile: profile, Note: render.RemovedNote + "]"})
		if err != nil {
			return nil, err
		}
		return &exam.Made{Prompt: r.Prompt}, nil
	}}
	k, err := exam.Write(ctx, dir, m.exams, &exam.Options{Contenders: []exam.Contender{auto}, Budgets: []string{exam.Own, "16k"}, Counter: m.counter})
	if err != nil {
		return 0, 0, err
	}
	sums, n := map[string]float64{}, map[string]float64{}
	for _, r := range k.Readers {
		text, err := os.ReadFile(filepath.Join(dir, "readers", r.Number, "prompt.txt"))
		if err != nil {
			return 0, 0, err
		}
		in := wordsOf(string(text))
		for _, s := range k.Sessions {
			for _, q := range s.Questions {
				if wanted := wantedWords(q); s.Name == r.Session && len(wanted) > 0 {
					n[r.Budget]++
					sums[r.Budget] += float64(len(slices.DeleteFunc(slices.Clone(wanted), func(w string) bool { return !in[w] }))) / float64(len(wanted))
				}
			}
		}
	}
	return 100 * sums[exam.Own] / n[exam.Own], 100 * sums["16k"] / n["16k"], nil
}

// frameWords say in keys how to grade.
var frameWords = scan.WordSet("the of and or to in on for with that this it is are was were be by as at from not no none full half otherwise one both two either any all each named names name without " +
	"wrong missing anything else only part other must its their which what who when how why than then into out has have had do does did but if so e.g i.e etc user agent naming gives states says mention mentions an")

var word = regexp.MustCompile(`[\w./-]*\w`)

func wordsOf(text string) map[string]bool {
	all := map[string]bool{}
	for _, w := range word.FindAllString(strings.ToLower(text), -1) {
		if len(w) > 1 && !frameWords[w] {
			all[w] = true
		}
	}
	return all
}

// wantedWords are the words of a full answer that the question does not hold.
func wantedWords(q exam.Question) (all []string) {
	full := regexp.MustCompile(`\bHalf\b`).Split(q.Key, 2)[0]
	asked := wordsOf(q.Question)
	for w := range wordsOf(full) {
		if !asked[w] {
			all = append(all, w)
		}
	}
	return all
}

// recall is how many of the identifiers that agents wrote later stand in prompts, with what binds them, and
// how much of the prompts are lines without any of them.
func (m *measuring) recall(ctx context.Context, f *figures) error {
	contenders, err := references.Contenders(ctx, m.counter)
	if err != nil {
		return err
	}
	auto := contenders[slices.IndexFunc(contenders, func(c references.Contender) bool { return c.Name == references.AutoName })]
	f.told = m.recapWords(auto)
	var sums, n [3]float64
	noise, tokens, seen := 0, 0, false
	for _, moment := range m.moments {
		whole := moment.Size + moment.Session.Fixed
		for k, budget := range [...]int{8000, whole / 10, whole / 5} {
			long := moment.Session.Total >= 10_000
			if long == (k == 2) || moment.Rest > budget*3/4 || moment.Size < budget*3/2 {
				continue
			}
			bound, shown := 0, auto.Fit(moment, budget)
			for _, found := range moment.Scan(shown) {
				if found.Bound {
					bound++
				}
			}
			if k == 0 {
				unneeded, section := m.noise(moment, shown)
				noise, tokens, seen = noise+unneeded, tokens+shown.Tokens, seen || section
			}
			sums[k] += float64(bound) / float64(len(moment.Needs))
			n[k]++
		}
	}
	if !seen { // its heading reads otherwise now, or nothing was measured
		return fmt.Errorf("no prompt has a section %q", linesHeading)
	}
	f.recall, f.tenth, f.desk, f.noise = 100*sums[0]/n[0], 100*sums[1]/n[1], 100*sums[2]/n[2], 100*float64(noise)/float64(tokens)
	return nil
}

// recapWords is how many of the words of agents' own summaries, of those that the conversation holds, stand in
// prompts of the same size.
func (m *measuring) recapWords(auto references.Contender) float64 {
	text := func(all []thread.Message) string {
		var b strings.Builder
		for i := range all {
			lines, _ := references.MessageLines(&all[i])
			b.WriteString(lines + "\n")
		}
		return b.String()
	}
	sum := 0.0
	for _, moment := range m.recaps {
		messages := moment.Session.Thread.Messages()
		shown := auto.Fit(moment, moment.Recap.Size+moment.Rest)
		in, held, wanted, found := wordsOf(text(shown.Other)), wordsOf(text(messages[:moment.Tail])), 0, 0
		for _, i := range shown.Kept {
			maps.Copy(in, wordsOf(text(messages[i:i+1])))
		}
		for w := range wordsOf(moment.Recap.Text.Text()) {
			if held[w] {
				wanted++
				if in[w] {
					found++
				}
			}
		}
		sum += float64(found) / float64(max(1, wanted))
	}
	return 100 * sum / float64(len(m.recaps))
}

// linesHeading begins the section of the lines of output.
const linesHeading = "## Lines with names"

// noise counts the tokens of the lines of output in the summaries of a prompt that hold nothing of what the
// agent writes after the moment; seen says whether there is a section of such lines.
func (m *measuring) noise(moment *references.Moment, shown *references.Shown) (tokens int, seen bool) {
	later := map[int32]bool{}
	for _, n := range slices.Concat(moment.ToEnd, moment.Said) {
		later[n.ID] = true
	}
	for i := range shown.Other {
		text, _ := references.MessageLines(&shown.Other[i])
		inside := false
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "## ") {
				inside = strings.HasPrefix(line, linesHeading)
				seen = seen || inside
			}
			if !inside {
				continue
			}
			needed := false
			moment.Find.Find(line, func(id int32, _, _ int) { needed = needed || later[id] })
			if !needed {
				tokens += m.counter.Text(line)
			}
		}
	}
	return tokens, seen
}

// rules is how many of the rules of the relay are known, at 4k and at 8k.
func (m *measuring) rules(ctx context.Context) (known int, err error) {
	var e summarize.Extractive // it keeps what it has read
	for k, c := range m.chats {
		for _, budget := range []int{4000, 8000} {
			s, err := relay.Summaries(ctx, &e, m.said[k], 5, budget)
			if err != nil {
				return 0, err
			}
			score := c.Judge(s.Render(), s.Constraints)
			known += score.Known - score.Outdated
		}
	}
	return known, nil
}
