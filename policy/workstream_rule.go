package policy

import (
	"context"
	"strings"

	"github.com/palimpsest-ai/palimpsest/state"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// byRule makes summary and delta without a model, from the structured summary
// of what may be extracted (D4): the user's and the assistant's words, and the
// allowed tools.
func (w Workstream) byRule(ctx context.Context, model *asker, prev workstreamNotes, fresh, tail []thread.Message) (workstreamNotes, error) {
	s := model.s
	summarizer := s.Summarizer
	if summarizer == nil {
		summarizer = &summarize.Extractive{Counter: s.Counter.Text}
	}
	threshold, _ := w.marks(s)
	limit := min(or0(w.RollupTokens, workstreamRollup), max(threshold/4, workstreamLeastBy))
	in := summarize.Input{Messages: w.extracted(fresh), Context: tail, Budget: limit, Answers: s.Answers, Instructions: s.Instructions}
	if prev.text != "" {
		in.Previous = &prev.summary
	}
	sum, err := model.summarized(summarizer.Summarize(ctx, in))
	if err != nil {
		return workstreamNotes{}, err
	}
	sections := sectionsOf(&sum).within(or0(w.RollupTokens, workstreamRollup))
	next := workstreamNotes{text: sections.text(), summary: sum, state: prev.state.ApplyWithin(deltaOf(&sum), w.Limits)}
	if next.text == "" {
		next.text = "KEY FACTS:\n- Only tool calls came before; nothing was said."
	}
	return next, nil
}

// extracted leaves out reasoning and the tools that are not allowed. Messages
// keep their ids and turns.
func (w Workstream) extracted(messages []thread.Message) []thread.Message {
	tools := map[string]string{}
	var out []thread.Message
	for _, m := range messages {
		var parts []thread.Part
		for _, p := range m.Parts {
			switch p := p.(type) {
			case thread.Text:
				parts = append(parts, p)
			case thread.ToolCall:
				tools[p.ID] = p.Name
				if w.allowed(p.Name) {
					parts = append(parts, p)
				}
			case thread.ToolResult:
				if w.allowed(p.Tool) || p.Tool == "" && w.allowed(tools[p.CallID]) {
					parts = append(parts, p)
				}
			}
		}
		if len(parts) > 0 {
			m.Parts, m.Frame, m.Index = parts, nil, 0
			out = append(out, m)
		}
	}
	return out
}

// sectionsOf puts a structured summary into the seed's three sections.
func sectionsOf(s *summary.Summary) workstreamSections {
	var out workstreamSections
	facts := func(label string, items []summary.Item) {
		for _, it := range items {
			out.KeyFacts = append(out.KeyFacts, label+it.Text)
		}
	}
	if s.CurrentTask != "" {
		out.KeyFacts = append(out.KeyFacts, "Task, in the user's words: "+s.CurrentTask)
	}
	facts("The user's rule: ", s.Constraints)
	for _, d := range s.Decisions {
		text := "Decision: " + d.Decision
		if d.Rationale != "" {
			text += ", because " + d.Rationale
		}
		out.KeyFacts = append(out.KeyFacts, text)
	}
	facts("", s.Facts)
	for _, f := range s.Files {
		out.KeyFacts = append(out.KeyFacts, "File "+f.Path+": "+strings.Join(f.Operations, ", "))
	}
	for _, a := range s.Artifacts {
		out.KeyFacts = append(out.KeyFacts, "Artifact "+a.ArtifactID+": "+a.Description)
	}
	facts("Mentioned: ", s.Identifiers)

	// Requests and conclusions in the order of their turns.
	asked, said := s.Requests, s.Conclusions
	for len(asked)+len(said) > 0 {
		if len(said) == 0 || len(asked) > 0 && asked[0].Turn <= said[0].Turn {
			out.ConversationFlow = append(out.ConversationFlow, "The user: "+asked[0].Text)
			asked = asked[1:]
			continue
		}
		out.ConversationFlow = append(out.ConversationFlow, "The assistant: "+said[0].Text)
		said = said[1:]
	}
	for _, o := range s.ToolOutcomes {
		text := o.Tool + " " + o.Input + ": " + string(o.Outcome)
		if o.Error != "" {
			text += ", " + o.Error
		}
		out.ConversationFlow = append(out.ConversationFlow, text)
	}
	for _, it := range s.FailedAttempts {
		out.ConversationFlow = append(out.ConversationFlow, "Did not work: "+it.Text)
	}
	for _, o := range s.OpenItems {
		out.OpenThreads = append(out.OpenThreads, o.Description)
	}
	for _, step := range s.CurrentPlan {
		if !done(step.Status) {
			out.OpenThreads = append(out.OpenThreads, "Planned: "+step.Text)
		}
	}
	return out
}

func done(status string) bool { return status == "completed" || status == "done" }

// deltaOf reads the state's lists out of a structured summary. Constraints are
// the user's own words there, so they are pinned.
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
	items(&d.ActiveConstraints, "user", true, s.Constraints)
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
