// Package state is the structured state of a workstream: what was decided, which
// constraints hold, what is to be done. It is kept beside the summary of a compaction, so
// that it survives the messages it came from (seed D, "Workstream State Updates").
//
// Values only; nothing here is changed in place.
package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Item is one entry of a list.
type Item struct {
	// ID identifies the item across updates; without one the text does, ignoring case and
	// white space.
	ID   string `json:"id,omitempty"`
	Text string `json:"text"`
	// Status is how far a task is ("open", "in progress", "done"); empty elsewhere.
	Status string `json:"status,omitempty"`
	// By is who contributed or decided.
	By string `json:"by,omitempty"`
	// Pinned items are the user's own words or were pinned by the program. They are the
	// last to go when a list is full, and no delta removes them. A model cannot pin: see
	// Delta.
	Pinned bool `json:"pinned,omitempty"`
}

// key identifies an item.
func (it Item) key() string {
	if it.ID != "" {
		return "id " + it.ID
	}
	return textKey(it.Text)
}

func textKey(text string) string {
	return "text " + strings.Join(strings.Fields(strings.ToLower(text)), " ")
}

// State is the state of a workstream. Each list holds its items oldest first. The zero
// value is empty.
type State struct {
	KeyDecisions       []Item `json:"key_decisions,omitempty"`
	ActiveConstraints  []Item `json:"active_constraints,omitempty"`
	Tasks              []Item `json:"tasks,omitempty"`
	OpenQuestions      []Item `json:"open_questions,omitempty"`
	Risks              []Item `json:"risks,omitempty"`
	Artifacts          []Item `json:"artifacts,omitempty"`
	AgentContributions []Item `json:"agent_contributions,omitempty"`
}

// Change is what a delta does to one list.
type Change struct {
	// Set adds items, or updates existing ones.
	Set []Item `json:"set,omitempty"`
	// Remove removes items by id or by text. Pinned ones stay.
	Remove []string `json:"remove,omitempty"`
}

// Delta is what a compaction changes in the state, with one change for each list. Use
// Unpinned on a delta that a model wrote.
type Delta struct {
	KeyDecisions       Change `json:"key_decisions,omitzero"`
	ActiveConstraints  Change `json:"active_constraints,omitzero"`
	Tasks              Change `json:"tasks,omitzero"`
	OpenQuestions      Change `json:"open_questions,omitzero"`
	Risks              Change `json:"risks,omitzero"`
	Artifacts          Change `json:"artifacts,omitzero"`
	AgentContributions Change `json:"agent_contributions,omitzero"`
}

// Limits are how many items each list may hold; 0 is the default, a negative number none
// at all.
type Limits struct {
	KeyDecisions       int `file:"state.key_decisions" unit:"items" range:"0.." about:"how many decisions are kept"`
	ActiveConstraints  int `file:"state.active_constraints" unit:"items" range:"0.." about:"how many constraints are kept"`
	Tasks              int `file:"state.tasks" unit:"items" range:"0.." about:"how many tasks are kept"`
	OpenQuestions      int `file:"state.open_questions" unit:"items" range:"0.." about:"how many open questions are kept"`
	Risks              int `file:"state.risks" unit:"items" range:"0.." about:"how many risks are kept"`
	Artifacts          int `file:"state.artifacts" unit:"items" range:"0.." about:"how many artifacts are kept"`
	AgentContributions int `file:"state.agent_contributions" unit:"items" range:"0.." about:"how many contributions of agents are kept"`
}

// list describes one of the seven lists.
type list struct {
	heading string
	limit   int
	items   *[]Item
	change  *Change
}

// Defaults returns the limits with the defaults filled in, the table of seed D.
func (l Limits) Defaults() Limits {
	return Limits{
		KeyDecisions: cmp.Or(l.KeyDecisions, 8), ActiveConstraints: cmp.Or(l.ActiveConstraints, 6), Tasks: cmp.Or(l.Tasks, 10), OpenQuestions: cmp.Or(l.OpenQuestions, 5),
		Risks: cmp.Or(l.Risks, 5), Artifacts: cmp.Or(l.Artifacts, 10), AgentContributions: cmp.Or(l.AgentContributions, 6),
	}
}

// lists pairs the fields of state, delta and limits.
func lists(s *State, d *Delta, l Limits) []list {
	l = l.Defaults()
	return []list{
		{"Key decisions", l.KeyDecisions, &s.KeyDecisions, &d.KeyDecisions},
		{"Active constraints", l.ActiveConstraints, &s.ActiveConstraints, &d.ActiveConstraints},
		{"Tasks", l.Tasks, &s.Tasks, &d.Tasks},
		{"Open questions", l.OpenQuestions, &s.OpenQuestions, &d.OpenQuestions},
		{"Risks", l.Risks, &s.Risks, &d.Risks},
		{"Artifacts", l.Artifacts, &s.Artifacts, &d.Artifacts},
		{"Agent contributions", l.AgentContributions, &s.AgentContributions, &d.AgentContributions},
	}
}

// Apply merges a delta within limits. In each list, removals come first, unless
// the delta also sets the item; then what it sets is appended as the newest. Then the
// limit applies: the oldest items that are not pinned go first, and pinned ones only when
// they alone are too many. Items without text are skipped. Applying the same delta again
// changes nothing.
func (s State) Apply(d Delta, l Limits) State {
	for _, each := range lists(&s, &d, l) {
		*each.items = merge(*each.items, *each.change, each.limit)
	}
	return s
}

func merge(items []Item, c Change, limit int) []Item {
	gone := map[string]bool{}
	for _, name := range c.Remove {
		gone["id "+name], gone[textKey(name)] = true, true
	}
	set := map[string]bool{}
	for _, it := range c.Set {
		if strings.TrimSpace(it.Text) != "" {
			set[it.key()] = true
		}
	}
	var out []Item
	put := func(it Item) {
		if strings.TrimSpace(it.Text) == "" {
			return
		}
		if i := slices.IndexFunc(out, func(held Item) bool { return held.key() == it.key() }); i >= 0 {
			it = update(out[i], it)
			out = slices.Delete(out, i, i+1)
		}
		out = append(out, it)
	}
	for _, it := range items {
		if it.Pinned || set[it.key()] || !gone[it.key()] && !gone[textKey(it.Text)] {
			put(it)
		}
	}
	for _, it := range c.Set {
		put(it)
	}
	return clamp(out, limit)
}

// update keeps what the newer form of an item does not say. A pin stays, with the words
// that were pinned.
func update(held, it Item) Item {
	if held.Pinned {
		it.Text, it.Pinned = held.Text, true
	}
	it.Status, it.By = cmp.Or(it.Status, held.Status), cmp.Or(it.By, held.By)
	return it
}

// clamp keeps limit items in their order: pinned before others, newer before older.
func clamp(items []Item, limit int) []Item {
	over := len(items) - max(limit, 0)
	for _, pinned := range []bool{false, true} {
		var kept []Item
		for _, it := range items {
			if over > 0 && it.Pinned == pinned {
				over--
				continue
			}
			kept = append(kept, it)
		}
		items = kept
	}
	return items
}

// Unpinned returns the delta with no item pinned. Use it on a delta that a model wrote:
// what it read may have told it to pin.
func (d Delta) Unpinned() Delta {
	for _, each := range lists(&State{}, &d, Limits{}) {
		each.change.Set = slices.Clone(each.change.Set)
		for i := range each.change.Set {
			each.change.Set[i].Pinned = false
		}
	}
	return d
}

// Empty reports whether the state holds nothing.
func (s State) Empty() bool {
	return !slices.ContainsFunc(lists(&s, &Delta{}, Limits{}), func(l list) bool { return len(*l.items) > 0 })
}

// Render writes the state as text: a heading for each list that holds something and one
// line for each item, inner line breaks as spaces. It ends with a newline, and is empty
// for an empty state.
func (s State) Render() string {
	var b strings.Builder
	for _, each := range lists(&s, &Delta{}, Limits{}) {
		if len(*each.items) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s:\n", each.heading)
		for _, it := range *each.items {
			b.WriteString("- ")
			if it.Status != "" {
				fmt.Fprintf(&b, "[%s] ", oneLine(it.Status))
			}
			b.WriteString(oneLine(it.Text))
			if it.By != "" {
				fmt.Fprintf(&b, " (%s)", oneLine(it.By))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
