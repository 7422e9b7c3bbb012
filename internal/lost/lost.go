// Package lost finds what a compaction of an agent lost, and says whether it was good: what it freed, what was
// read again after it, what was asked again.
//
// A loss was said before the compaction, still stands, and is neither in the summary nor in the messages that
// the compaction kept, in any wording: another case or spacing, a file by its name, a sentence by its rare words.
// In doubt a thing counts as told, and where the summary is in another language than the person's, only names tell
// of a sentence. All of it is linear in the conversation, ends with its context, and may be used by many
// goroutines at once.
package lost

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// Most is how many losses are told of a compaction.
const Most = 7

const (
	mostFiles  = 4   // of them are files: a list of files says little of the rest
	mostQuoted = 300 // limits what is quoted, in characters
)

// Kind is what a loss is.
type Kind string

// The kinds of losses.
const (
	Rule     Kind = "rule"     // a sentence of the person that binds what comes
	Decision Kind = "decision" // what the person answered or chose
	File     Kind = "file"     // a file in work
	Value    Kind = "value"    // the branch or the pull request
)

// Loss is something that the model no longer sees and that still stands.
type Loss struct {
	Kind Kind `json:"kind"`
	// Text is a sentence in the person's words, the path of a file, or the value.
	Text string `json:"text"`
	// Why says what the text is, in a few words: the question that an answer belongs to, what was done with a
	// file, where a value comes from. Empty for a rule.
	Why string `json:"why,omitempty"`
	// Turn is the turn in which it was said or done last, from 1.
	Turn int `json:"turn"`
	// Message is the message that it comes from.
	Message thread.ID `json:"message"`
}

// Boundary is a compaction in a thread.
type Boundary struct {
	// Previous is the position behind the compaction before, mostly of its summary; 0 without one. What stands
	// before it was not seen any more.
	Previous int
	// From is the position from which messages before the summary were kept; At if none were. OnlyUser says that
	// of those only the user's were.
	From     int
	OnlyUser bool
	// Verbatim says that the summary tells sentences in their own words: one of which no half stands there is lost.
	Verbatim bool
	// At is the position of the summary. The messages from there to End, which is excluded, are what the
	// model saw of the conversation right after the compaction, beside those from From.
	At, End int
	// Before and After are the sizes of the requests before and right after it in tokens, as the agent counted them; 0
	// if it did not say both.
	Before, After int
}

// keeps are how many tokens of messages before its summary an agent keeps as they are, where its files do not say
// which these are, and whether those are the user's only.
var keeps = map[transcript.Format]struct {
	tokens   int
	onlyUser bool
}{
	"claude-code": {}, // they stand behind the summary
	"codex":       {20_000, true},
	"opencode":    {15_000, false},
	"":            {20_000, false}, // any other: more than is known of one
}

// Last returns the last compaction in a transcript of the format. It is false if there is none, if its summary cannot
// be read, or if the user started afresh after it.
func Last(t *transcript.Transcript, format transcript.Format) (b Boundary, ok bool) {
	n := len(t.Compactions)
	if n == 0 {
		return b, false
	}
	last := t.Compactions[n-1]
	if last.Summary == "" || last.At == 0 { // a session may begin with what another one told
		return b, false
	}
	b.At = last.At
	if n > 1 {
		b.Previous = t.Compactions[n-2].At
	}
	if last.TokensBefore > 0 && last.TokensAfter > 0 {
		b.Before, b.After = last.TokensBefore, last.TokensAfter
	}
	keep, known := keeps[format]
	if !known {
		keep = keeps[""]
	}
	b.OnlyUser = keep.onlyUser
	room := 4 * keep.tokens
	for b.From = b.At; b.From > b.Previous; b.From-- {
		if m := t.Thread.At(b.From - 1); !b.OnlyUser || m.Role == thread.User {
			room -= len(strings.Join(texts(m), ""))
		}
		if room <= 0 {
			break
		}
	}
	recap := t.Thread.At(b.At)
	for b.End = b.At + 1; b.End < t.Thread.Len(); b.End++ {
		m := t.Thread.At(b.End)
		if earlier := !m.Time.IsZero() && m.Time.Before(recap.Time); !earlier && !m.IsAdded() {
			break
		}
	}
	return b, true
}

// Kept reports whether the model still sees the message at a position: the compaction kept it, or it came later.
func (b *Boundary) Kept(t *thread.Thread, i int) bool {
	return i >= b.At || i >= b.From && (!b.OnlyUser || t.At(i).Role == thread.User)
}

// after are the texts that the model saw of the conversation right after the compaction.
func (b *Boundary) after(t *thread.Thread) (all []string) {
	for i := b.From; i < b.End; i++ {
		if b.Kept(t, i) {
			all = append(all, texts(t.At(i))...)
		}
	}
	return all
}
