package htmlreport

import "slices"

// term is a contender and what it does.
type term struct{ name, meaning string }

// meanings are the contenders in the order of the page.
var meanings = []term{
	{"identity", "keeps everything, whatever the budget: the ceiling"},
	{"empty", "keeps the last exchange alone: the floor"},
	{"random", "whole messages by chance, 20 times"},
	{"head+tail", "the oldest and the newest messages, half of the room each"},
	{"sliding window", "the newest messages that fit"},
	{"mask 10, recency", "a placeholder for all but the newest 10 tool results, then the newest that fit"},
	{"clear tool uses keep 3, recency", "the same with 3 tool results, as providers' context editing does by default"},
	{"AI SDK prune 20, recency", "no reasoning, no calls and results before the last 20 messages, then the newest that fit"},
	{"best simple", "all but the newest 10 tool results masked, no reasoning, the newest that fit, larger ones skipped: the best of the simple ways"},
	{"oracle", "knows what will be written and keeps the smallest pieces that hold it: no real way reaches it"},
	{"ladder", "externalizes large results, summarises, clears, drops: rung by rung until the prompt fits"},
	{"session", "all but the newest ten messages become one summary, which each later round goes on with; written by rule here, without a model"},
	{"timeline", "what lies between the last summary and a cut becomes a new summary block; by rule here"},
	{"workstream", "all but the newest six messages become a summary and a typed state: rules, decisions, open points; by rule here"},
	{"loop", "the older 60 % become one summary, by rule here; asked for a small budget it stays above it"},
	{"the agent's own summary", "what the recorded agent itself wrote where it compacted"},
	{"auto", "our default: result lines and messages by their chance to be needed, summaries, state, and tools to read again and to search"},
	{"notes", "a fresh window: the user's words and rules, where the work stands, the newest messages, and no summary of what happened; here without the notes of a model"},
	{"no compaction", "everything is sent, from the provider's cache where that holds it"},
	{"no compaction, no cache", "everything is sent and paid in full at each request"},
	{"the agent as it ran", "compacts where the recorded agent did, to its own summary"},
	{"20k left by the law", "keeps the newest 20,000 tokens when the square-root law of prices and growth says so"},
	{"20k left by the law, and when cold", "the same, and also when the provider's cache has forgotten the prompt"},
	{"20k left, best schedule", "the cheapest times to do so, found with the whole conversation known"},
	{"auto, best schedule", "the cheapest times for auto to compact, found with the whole conversation known"},
	{"lower bound", "each message is sent until its last use and not once longer: nobody reaches it"},
}

// terms are the contenders of the page.
func (d *Data) terms() []term {
	there := map[string]bool{}
	if d.Recall != nil {
		for _, name := range d.Recall.Contenders() {
			there[name] = true
		}
	}
	if d.Cost != nil {
		for _, r := range d.Cost.Rows {
			there[r.Contender] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(meanings), func(t term) bool { return !there[t.name] })
}
