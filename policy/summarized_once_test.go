package policy_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/summarize/model"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// clerk tells of each shelf that it is sent, in the way of its mode.
type clerk struct {
	mode string
	sent string // the transcripts, since it was emptied
}

var (
	entry = regexp.MustCompile(`(?m)^\S+ (\d+) assistant.*\n.*?(Shelf \d+ holds \d+ crates of ware number \S+)`)
	known = regexp.MustCompile(`It was counted that Shelf[^"\\]*`)
)

func (*clerk) Model() string { return "clerk" }

func (c *clerk) Generate(_ context.Context, p *prompt.Prompt, _ *llm.Options) (*llm.Reply, error) {
	text := p.Messages[0].Text()
	previous, transcript, _ := strings.Cut(text, "transcript begins")
	c.sent += transcript
	type fact struct {
		Text    string `json:"text"`
		Sources []int  `json:"sources,omitempty"`
	}
	facts := []fact{}
	for _, m := range entry.FindAllStringSubmatch(transcript, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return nil, err
		}
		facts = append(facts, fact{"It was counted that " + m[2], []int{n}})
	}
	switch c.mode {
	case "fails":
		return nil, errors.New("no connection")
	case "says nothing":
		facts = facts[:0]
	case "invents":
		for i := range facts {
			facts[i].Text = fmt.Sprintf("The pilot %d of zeppelin LZ-%d flew home.", i, 9000+i)
		}
	case "repeats":
		facts = facts[:0]
		for _, text := range known.FindAllString(previous, -1) {
			facts = append(facts, fact{text, []int{1}})
		}
	case "names no sources":
		for i := range facts {
			facts[i].Sources = nil
		}
	}
	doc, err := json.Marshal(map[string]any{"facts": facts})
	return &llm.Reply{Stop: wire.StopEnd, Text: string(doc), JSON: string(doc), Message: speak(thread.Assistant, "")}, err
}

// TestOnceLosesNothing: whatever happens between two compactions, what a plan says was told of stands in
// it, and all else is sent to a model when it is summarised again.
func TestOnceLosesNothing(t *testing.T) {
	undo := func(version int) func(*palimpsest.Session, store.Plans) error {
		return func(s *palimpsest.Session, _ store.Plans) error { return s.Undo(t.Context(), version) }
	}
	older := func(_ *palimpsest.Session, plans store.Plans) error { // as a build wrote it that kept nothing
		p, version, err := plans.Current(t.Context(), "store")
		if err != nil {
			return err
		}
		p = p.Clone()
		for i := range p.Summarizations {
			p.Summarizations[i].Summary.Told = nil
		}
		_, err = plans.Commit(t.Context(), "store", version, store.Commit{Plan: p})
		return err
	}
	expand := func(s *palimpsest.Session, plans store.Plans) error {
		p, _, err := plans.Current(t.Context(), "store")
		if err != nil {
			return err
		}
		return s.Expand(t.Context(), p.Summarizations[0].Span.First())
	}
	for _, row := range []struct {
		name         string
		first        string // the mode of the first compaction
		second       string // and of the second
		trusted      bool
		policy       policy.Policy // of the first compaction; nil is auto
		between      func(*palimpsest.Session, store.Plans) error
		instructions string
		again        bool // the first part is sent again in the second
		third        bool // the second part is sent again in the third
	}{
		{name: "all is well"},
		{name: "the first plan is undone", between: undo(0), again: true},
		{name: "the first plan is chosen again", between: undo(1)},
		{name: "a message is shown again", between: expand},
		{name: "a plan of an older build", between: older, again: true},
		{name: "a summary of another policy", policy: policy.Loop{Preserve: 0.1}, again: true},
		{name: "a summary without a model", policy: policy.Ladder{MaxInputTokens: 40_000}, first: "fails", again: true},
		{name: "the user asks for something", instructions: "Keep the rows of the wares.", again: true},
		{name: "the first call fails", first: "fails", again: true},
		{name: "the second call fails", second: "fails", third: true},
		{name: "the second answer is empty", second: "says nothing", third: true},
		{name: "the second answer is invented", second: "invents", third: true},
		{name: "the second answer repeats the first", second: "repeats", third: true},
		{name: "nothing is checked, and no source is named", first: "names no sources", second: "names no sources", trusted: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, db := &clerk{}, &store.Memory{}
			session := func(p policy.Policy) *palimpsest.Session {
				compactor, err := palimpsest.New(palimpsest.Config{Policy: p, Store: store.Tenant{Log: db, Plans: db}, Summarizer: model.New(&model.Options{Trusted: row.trusted}, c)})
				if err != nil {
					t.Fatal(err)
				}
				return compactor.Session("store")
			}
			// compact adds a part and compacts, and returns which parts were sent.
			compact := func(s *palimpsest.Session, part int, mode, instructions string) (sent [4]bool) {
				t.Helper()
				c.mode, c.sent = mode, ""
				step := palimpsest.Step{Profile: render.For(wire.Chat), Window: 1_000_000, Messages: inventory(part)}
				if _, err := s.PrepareStep(t.Context(), step); err != nil {
					t.Fatal(err)
				}
				step.Messages, step.Budget = nil, 8_000
				p, err := s.Compact(t.Context(), step, instructions)
				if err != nil {
					t.Fatal(err)
				}
				log, err := db.Load(t.Context(), "store")
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range p.Summarizations {
					checkTold(t, log, &r)
				}
				for part := range sent {
					sent[part] = strings.Contains(c.sent, fmt.Sprintf("Shelf %d holds", 100*part+1))
				}
				return sent
			}
			auto := session(policy.Auto{})
			compact(session(cmp.Or[policy.Policy](row.policy, policy.Auto{})), 1, row.first, "")
			if row.between != nil {
				if err := row.between(auto, db); err != nil {
					t.Fatal(err)
				}
			}
			if sent := compact(auto, 2, row.second, row.instructions); sent[1] != row.again || !sent[2] {
				t.Errorf("in the second compaction were sent %v", sent)
			}
			if sent := compact(auto, 3, "", ""); sent[1] || sent[2] != row.third || !sent[3] {
				t.Errorf("in the third compaction were sent %v", sent)
			}
		})
	}
}

// checkTold reports a message of which a model is said to have told while nothing of it is kept.
func checkTold(t *testing.T, log *thread.Thread, r *plan.Summarization) {
	t.Helper()
	told := r.Summary.Told
	if told == nil {
		return
	}
	for _, id := range told.Span.MessageIDs {
		i, ok := log.Index(id)
		if !ok || !slices.Contains(r.Span.MessageIDs, id) {
			t.Errorf("message %s is not in the summary", id)
			continue
		}
		if words := strings.Join(strings.Fields(log.At(i).Text())[:3], " "); strings.HasPrefix(words, "Shelf") &&
			!strings.Contains(told.Render(), "counted that "+words) {
			t.Errorf("of %q nothing is kept", words)
		}
	}
}
