package policy

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
)

// workstreamSections are the seed's three sections.
type workstreamSections struct {
	KeyFacts         []string `json:"key_facts"`
	ConversationFlow []string `json:"conversation_flow"`
	OpenThreads      []string `json:"open_threads"`
}

// workstreamHeadings are the headings of the sections, in their order.
var workstreamHeadings = []string{"KEY FACTS", "CONVERSATION FLOW", "OPEN THREADS"}

const workstreamUserHeading = "THE USER'S WORDS:"

// lists are the entries of the sections, in their order.
func (s *workstreamSections) lists() []*[]string {
	return []*[]string{&s.KeyFacts, &s.ConversationFlow, &s.OpenThreads}
}

// text writes the sections under the seed's headings, without empty ones.
func (s workstreamSections) text() string {
	var blocks []string
	for n, list := range s.lists() {
		if entries := neutralEntries(*list); len(entries) > 0 {
			blocks = append(blocks, workstreamHeadings[n]+":\n"+strings.Join(entries, "\n"))
		}
	}
	return strings.Join(blocks, "\n\n")
}

// parseSections reads what text wrote; it skips other blocks.
func parseSections(text string) (s workstreamSections) {
	var list *[]string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		entry, begins := strings.CutPrefix(line, "- ")
		n := slices.Index(workstreamHeadings, strings.TrimSuffix(line, ":"))
		switch {
		case line == "":
			list = nil
		case n >= 0 && strings.HasSuffix(line, ":"):
			list = s.lists()[n]
		case list == nil:
		case begins:
			*list = append(*list, entry)
		case len(*list) > 0:
			(*list)[len(*list)-1] += "\n" + strings.TrimPrefix(line, "  ")
		}
	}
	return s
}

// trimTo removes entries until the text takes at most limit tokens: first the oldest of
// the flow, then the oldest open threads and facts.
func (s workstreamSections) trimTo(limit int) workstreamSections {
	for _, list := range []*[]string{&s.ConversationFlow, &s.OpenThreads, &s.KeyFacts} {
		for len(*list) > 0 && tokensOf(utf8.RuneCountInString(s.text())) > limit {
			*list = (*list)[max(1, len(*list)/8):]
		}
	}
	return s
}

func (s workstreamSections) toSummary() summary.Summary {
	var out summary.Summary
	for _, t := range s.KeyFacts {
		out.Facts = append(out.Facts, summary.Item{Text: t})
	}
	for _, t := range s.ConversationFlow {
		out.Conclusions = append(out.Conclusions, summary.Item{Text: t})
	}
	for _, t := range s.OpenThreads {
		out.OpenItems = append(out.OpenItems, summary.OpenItem{Description: t})
	}
	return out
}

// boundWithUser puts what the user said above a text, within the rollup bound. Where that
// is too much, the most important of it, items, takes a third, and the sections lose their
// oldest entries.
func (w Workstream) boundWithUser(text string, said, items []summary.Item) string {
	whole := joinBlocks(userBlock(workstreamUserHeading, text, said), text)
	if tokensOf(utf8.RuneCountInString(whole)) <= w.RollupTokens {
		return whole
	}
	third := w.RollupTokens / 3
	text = parseSections(text).trimTo(w.RollupTokens - third - 1).text()
	return joinBlocks(userEntriesWithin(text, items, third*charsPerToken), text)
}

// minRequestBytes is how short a user message is cut before others are left out, in bytes.
const minRequestBytes = 60

// userEntriesWithin is the block of the user's words in at most room characters. The first
// two items, which are the user's requests, are cut in the middle if necessary; of the
// others as many follow as fit.
func userEntriesWithin(text string, items []summary.Item, room int) string {
	most := room
	entries := func(n int) string {
		short := make([]summary.Item, n)
		for i := range short {
			short[i] = summary.Item{Text: clip.Middle(items[i].Text, most)}
		}
		return userBlock(workstreamUserHeading, text, short)
	}
	n := min(2, len(items))
	for most > minRequestBytes && utf8.RuneCountInString(entries(n)) > room {
		most = most * 3 / 4
	}
	for n < len(items) && utf8.RuneCountInString(entries(n+1)) <= room {
		n++
	}
	return entries(n)
}

// sectionsOf puts a structured summary into the seed's three sections.
func sectionsOf(s *summary.Summary) workstreamSections {
	var out workstreamSections
	fact := func(text string) { out.KeyFacts = append(out.KeyFacts, text) }
	flow := func(text string) { out.ConversationFlow = append(out.ConversationFlow, text) }
	facts := func(label string, items []summary.Item) {
		for _, it := range items {
			fact(label + it.Text)
		}
	}
	if s.CurrentTask != "" {
		fact("Task, in the user's words: " + s.CurrentTask)
	}
	facts("The user laid down: ", likelyConstraints(s))
	for _, d := range s.Decisions {
		text := "Decision: " + d.Decision
		if d.Rationale != "" {
			text += ", because " + d.Rationale
		}
		fact(text)
	}
	facts("", s.Facts)
	for _, f := range s.Files {
		fact("File " + f.Path + ": " + strings.Join(f.Operations, ", "))
	}
	for _, a := range s.Artifacts {
		fact("Artifact " + a.ArtifactID + ": " + a.Description)
	}
	facts("Mentioned: ", s.Identifiers)

	// Requests and conclusions in the order of their turns.
	asked, said := s.Requests, s.Conclusions
	for len(asked)+len(said) > 0 {
		if len(said) == 0 || len(asked) > 0 && asked[0].Turn <= said[0].Turn {
			flow("The user: " + asked[0].Text)
			asked = asked[1:]
			continue
		}
		flow("The assistant: " + said[0].Text)
		said = said[1:]
	}
	for _, o := range s.ToolOutcomes {
		text := o.Tool + " " + o.Input + ": " + string(o.Outcome)
		if o.Error != "" {
			text += ", " + o.Error
		}
		flow(text)
	}
	for _, it := range s.FailedAttempts {
		flow("Did not work: " + it.Text)
	}
	for _, o := range s.OpenItems {
		out.OpenThreads = append(out.OpenThreads, o.Description)
	}
	for _, step := range s.CurrentPlan {
		if step.Status != "completed" && step.Status != "done" {
			out.OpenThreads = append(out.OpenThreads, "Planned: "+step.Text)
		}
	}
	return out
}

// likelyStanding is the score from which what the user said goes into the state, which holds a few
// constraints only: where half of the clauses stand, it is more likely than not.
const likelyStanding = 0

// likelyConstraints is what the user most likely laid down.
func likelyConstraints(s *summary.Summary) []summary.Item {
	return slices.DeleteFunc(s.Standing(), func(it summary.Item) bool { return it.Score < likelyStanding })
}

// deltaOf makes the state's delta from a structured summary. Constraints there are the
// user's own words, so they are pinned.
func deltaOf(s *summary.Summary) state.Delta {
	var d state.Delta
	items := func(c *state.Change, by string, pinned bool, items []summary.Item) {
		for _, it := range items {
			c.Set = append(c.Set, state.Item{Text: it.Text, By: by, Pinned: pinned})
		}
	}
	for _, x := range s.Decisions {
		d.KeyDecisions.Set = append(d.KeyDecisions.Set, state.Item{Text: x.Decision, By: "assistant"})
	}
	items(&d.ActiveConstraints, "user", true, likelyConstraints(s))
	for _, step := range s.CurrentPlan {
		d.Tasks.Set = append(d.Tasks.Set, state.Item{Text: step.Text, Status: step.Status})
	}
	for _, o := range s.OpenItems {
		d.OpenQuestions.Set = append(d.OpenQuestions.Set, state.Item{Text: o.Description})
	}
	items(&d.Risks, "", false, s.FailedAttempts)
	for _, f := range s.Files {
		d.Artifacts.Set = append(d.Artifacts.Set, state.Item{ID: f.Path, Text: f.Path, Status: strings.Join(f.Operations, ", ")})
	}
	for _, a := range s.Artifacts {
		d.Artifacts.Set = append(d.Artifacts.Set, state.Item{ID: a.ArtifactID, Text: a.Description})
	}
	items(&d.AgentContributions, "assistant", false, s.Conclusions)
	return d
}
