package policy_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// recorded answers as the agent of a recorded session did: of the summary that its
// model really wrote it says what has happened by then, under the headings that it
// was asked for, and no more than it is allowed.
type recorded struct {
	own   string
	most  int      // bytes of one answer
	plain bool     // no headings are asked for
	last  []string // what it said in this round of decisions and completed work
	tells []tells
	asked int
}

// tells is what it said of some messages.
type tells struct {
	of   []thread.ID
	said []string
}

func (*recorded) Model() string { return "writer" }

// The parts of a summary in the agents' own forms, by the headings of seed B.
var ownHeadings = []struct{ section, words string }{
	{"Completed Work", "files|completed|accomplish|done|changes|progress"},
	{"Key Technical Decisions", "concept|decision|technical|constraint|preference"},
	{"Errors & Resolutions", "error|fix|problem"},
	{"Pending Work", "pending|next|remaining|to.?do"},
	{"Current State", "current"},
}

var (
	specific = regexp.MustCompile("[A-Za-z0-9_./-]*[0-9_./][A-Za-z0-9_./-]*")
	longWord = regexp.MustCompile(`[A-Za-z]{6,}`)
)

// happened reports whether a line speaks of what a text holds.
func happened(line, text string) bool {
	for _, name := range specific.FindAllString(line, -1) {
		if name = strings.Trim(name, "./-_"); len(name) > 2 && !strings.Contains(text, name) {
			return false
		}
	}
	words := longWord.FindAllString(line, -1)
	known := 0
	for _, w := range words {
		if strings.Contains(text, w) {
			known++
		}
	}
	return len(words) > 2 && known*10 >= len(words)*8
}

// sections are the lines of the agent's summary that have happened, by heading.
func (w *recorded) sections(text string) map[string][]string {
	out := map[string][]string{}
	section, code := "", false
	for line := range strings.Lines(w.own) {
		title := strings.ToLower(line)
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
			continue
		}
		if heading := strings.HasPrefix(title, "#") || strings.HasSuffix(strings.TrimSpace(title), ":") && regexp.MustCompile(`^\d+\. `).MatchString(title); heading && !code {
			section = ""
			for _, h := range ownHeadings {
				if section == "" && regexp.MustCompile(h.words).MatchString(title) {
					section = h.section
				}
			}
			continue
		}
		line = evened(line)
		if section == "" || code || len(line) < 30 || len(line) > 400 || !happened(line, text) {
			continue
		}
		out[section] = append(out[section], line)
	}
	return out
}

func (w *recorded) Generate(_ context.Context, p *prompt.Prompt, _ *llm.Options) (*llm.Reply, error) {
	w.asked++
	sections := w.sections(p.Messages[len(p.Messages)-1].Text())
	share := w.most / len(ownHeadings)
	var b strings.Builder
	b.WriteString("### Session Summary (Compaction Round 1)\n")
	for n, h := range ownHeadings {
		room := share
		if n < 2 {
			room += share / 2
		}
		if !w.plain {
			b.WriteString("\n#### " + h.section + "\n")
		}
		for _, line := range sections[h.section] {
			if room -= len(line) + 7; room < 0 {
				break
			}
			mark := "- "
			if h.section == "Pending Work" && !w.plain {
				mark = "- [ ] "
			}
			b.WriteString(mark + line + "\n")
			if n < 2 {
				w.last = append(w.last, line)
			}
		}
	}
	text := b.String()
	if w.plain {
		_, text, _ = strings.Cut(text, "\n")
	}
	return &llm.Reply{Text: text, Stop: wire.StopEnd, Message: speak(thread.Assistant, text)}, nil
}

// Summarize says the same as a list of items, for the policies that are given a
// summarizer.
func (w *recorded) Summarize(_ context.Context, in summarize.Input) (summarize.Result, error) {
	w.asked++
	var all []string
	for i := range in.Messages {
		m := &in.Messages[i]
		r, _ := m.Result()
		all = append(all, m.Text(), r.Text())
		for _, c := range m.Calls() {
			all = append(all, c.Arguments)
		}
	}
	sections := w.sections(strings.Join(all, "\n"))
	var sources []thread.ID
	for i := range in.Messages {
		sources = append(sources, in.Messages[i].ID)
	}
	var out summary.Summary
	var told []string
	for _, h := range ownHeadings {
		room := w.most / 15
		for _, line := range sections[h.section] {
			if room -= len(line) + 10; room < 0 {
				break
			}
			switch h.section {
			case "Key Technical Decisions":
				out.Decisions, told = append(out.Decisions, summary.Decision{Decision: line, Sources: sources}), append(told, line)
			case "Pending Work":
				out.OpenItems = append(out.OpenItems, summary.OpenItem{Description: line, Sources: sources})
			case "Completed Work":
				told = append(told, line)
				fallthrough
			default:
				out.Facts = append(out.Facts, summary.Item{Text: line, Sources: sources})
			}
		}
	}
	w.tells = append(w.tells, tells{sources, told})
	return summarize.Result{Summary: out}, nil
}

// TestTenRealRounds: recorded sessions go on for ten compactions, and a model writes
// as the agent's own did. In the tenth prompt the task and the latest request stand,
// and of the decisions and the completed work that the model told of last at least nine
// sentences in ten, as they were said; three in four with a ladder, which gives a summary a
// quarter of its span at most. F1, F2, B9, A21
func TestTenRealRounds(t *testing.T) {
	names := []string{"long-720c20f08988-0.jsonl.gz", "long-897eb280e769-12.jsonl.gz", "before-compaction.jsonl.gz", "long-cc90f6622c5b-1.jsonl.gz"}
	all := ownSummaries(t, corpus.EveryNth(names, len(names))...)
	for _, name := range []string{"session", "timeline", "ladder", "auto"} {
		t.Run(name, func(t *testing.T) {
			there, total := 0, 0
			for _, own := range all {
				n, lost := tenRounds(t, own, name)
				there, total = there+n, total+n+len(lost)
				if len(lost) > 0 {
					t.Logf("%s: lost are %q", own.name, lost)
				}
			}
			t.Logf("%d of %d sentences of decisions and completed work are there", there, total)
			percent := 90
			if name == "ladder" {
				percent = 75
			}
			if total == 0 || there*100 < total*percent {
				t.Error("too few")
			}
		})
	}
}

// tenRounds is one session under one policy: how many of the sentences are there, and
// those that are not.
func tenRounds(t *testing.T, own ownSummary, name string) (there int, lost []string) {
	w := &recorded{own: own.text, most: 3_000}
	tokens := partsSize(own.messages) / 4
	window := tokens / 6
	config := palimpsest.Config{}
	switch name {
	case "session":
		config.Policy = policy.Session{Model: w, ContextLimit: 11_000 + window, Keep: 4}
	case "timeline":
		w.plain = true
		config.Policy = policy.Timeline{Model: w, MaxTokens: window}
	case "ladder":
		config.Policy = policy.Ladder{MaxInputTokens: window + 4_000}
	default:
		config.Policy = policy.Auto{}
	}
	if name == "ladder" || name == "auto" {
		config.Summarizer = &summarize.Verified{Inner: w}
	}
	c, err := palimpsest.New(config)
	if err != nil {
		t.Fatal(err)
	}
	s := c.Session("t")
	step := palimpsest.Step{Base: &prompt.Prompt{System: []prompt.System{{Text: "You are a coding agent."}}}, Profile: render.For(wire.Anthropic)}
	if name == "auto" {
		step.Budget = window
	}
	var first, latest string
	var shown *palimpsest.Prepared
	rounds := 0
	for again := 0; rounds < 10 && again < 2; again++ { // a short one is gone through twice
		for _, m := range own.messages {
			m.ID = ""
			if m.StartsTurn() && strings.TrimSpace(m.Text()) != "" {
				if latest = strings.TrimSpace(m.Text()); first == "" {
					first = latest
				}
			}
			if m.Role != thread.Assistant {
				step.Messages = append(step.Messages, m)
				continue
			}
			w.last = nil
			if shown, err = s.PrepareStep(t.Context(), step); err != nil {
				t.Fatal(err)
			}
			step.Messages = nil
			if shown.Compacted != nil {
				if rounds++; rounds == 10 {
					break
				}
			}
			if err := s.FinishStep(t.Context(), nil, wire.Usage{}, m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if rounds < 10 || w.asked == 0 {
		t.Fatalf("%s: %d rounds, %d questions", own.name, rounds, w.asked)
	}
	all := evened(everything(shown.Prompt))
	if task := evened(first[:min(len(first), 150)]); !strings.Contains(all, task) {
		t.Errorf("%s: the task is not there: %q", own.name, task)
	}
	if request := evened(latest[:min(len(latest), 150)]); !strings.Contains(all, request) {
		t.Errorf("%s: the latest request is not there: %q", own.name, request)
	}
	for _, r := range shown.Compacted.Summarizations {
		for _, last := range slices.Backward(w.tells) { // it is asked about new messages alone
			if len(last.said) > 0 && !slices.ContainsFunc(last.of, func(id thread.ID) bool { return !slices.Contains(r.Span.MessageIDs, id) }) {
				w.last = append(w.last, last.said...)
				break
			}
		}
	}
	var lines []string
	for _, line := range w.last {
		for _, sentence := range statements(line) {
			if !slices.Contains(lines, sentence) {
				lines = append(lines, sentence)
			}
		}
	}
	return inPlace(lines, everything(shown.Prompt))
}
