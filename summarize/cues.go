package summarize

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// cue says what a phrase in a sentence hints at.
type cue uint8

const (
	reasonCue cue = 1 << iota // a reason follows, or something is undone
	choiceCue                 // the assistant says that it chose
)

// phrases are the cues of English, German, French and Spanish, in lower case, by their first two bytes. They
// match from the start of a word; a trailing space matches the end of a word. The list is short
// on purpose: a missed rule still stands in the user's message, a false one takes room.
var phrases = func() map[[2]byte][]phrase {
	all := map[[2]byte][]phrase{}
	for c, list := range map[cue]string{
		choiceCue: "i'll use|i will use|i'll go with|we'll go with|i went with|we'll use|going with|let's use|let's go with|decided |decision:|i chose|i've chosen|" +
			"we chose|we decided|i opted|opted for|opting for|i'm choosing|i picked|settled on|entschieden|ich nehme|wir nehmen|j'ai choisi|j'ai décidé|" +
			"decidí|elegí|he decidido",
		reasonCue: "because |since |so that |due to |as it |weil |parce que|porque |revert|undo |roll back|rolling back|back out|start over",
	} {
		for text := range strings.SplitSeq(list, "|") {
			key := [2]byte{text[0], text[1]}
			all[key] = append(all[key], phrase{text, c})
		}
	}
	return all
}()

type phrase struct {
	text string
	cue  cue
}

// cuesOf returns the cues of a sentence.
func cuesOf(s string) (found cue) {
	start := true
	for i := 0; i+1 < len(s); i++ {
		c := scan.Lower(s[i])
		if start {
			for _, p := range phrases[[2]byte{c, scan.Lower(s[i+1])}] {
				if scan.MatchPhrase(s[i:], p.text) {
					found |= p.cue
				}
			}
		}
		start = !(c >= 0x80 || scan.IsLetter(c) || scan.IsDigit(c) || c == '\'' || c == '_')
	}
	return found
}

// lastAnnouncement is the last sentence of a message if it says what the assistant will do.
func lastAnnouncement(said []piece) string {
	for i := len(said) - 1; i >= max(0, len(said)-2); i-- {
		text, last := said[i].text, ""
		for p := range scan.Sentences(text) {
			last = text[p.From:p.To]
		}
		if !said[i].code && announces(last) {
			return clip.Brief(last, maxSentence)
		}
	}
	return ""
}

// Phrases that make a sentence a question to the user, words that may open an announcement,
// and how an announcement goes on.
var (
	conditions = []string{" if you", "would you", "let me know", "unless you", "when you", "once you", "after you", " if that", "should i", "shall i"}
	openings   = []string{"now, ", "now ", "next, ", "next ", "then ", "first, ", "first ", "okay, ", "ok, ", "great, ", "good, ", "great! ", "good. ", "so "}
	intentions = []string{"let me ", "i'll ", "i’ll ", "i will ", "i'm going to ", "i am going to ", "let's "}
)

// announces reports whether a sentence says what the speaker will do next.
func announces(s string) bool {
	low := strings.ToLower(s)
	if strings.HasSuffix(low, "?") || len(low) > maxSentence || slices.ContainsFunc(conditions, func(w string) bool { return strings.Contains(low, w) }) {
		return false
	}
	for _, w := range openings {
		low = strings.TrimPrefix(low, w)
	}
	return slices.ContainsFunc(intentions, func(w string) bool { return strings.HasPrefix(low, w) })
}

// announcing is announces that also takes "Now …".
func announcing(s string) bool { return announces(s) || strings.HasPrefix(s, "Now ") }

// narration reports whether a line only leads to what follows.
func narration(s string) bool {
	return announcing(s) || s[0] == '#' || strings.HasSuffix(strings.TrimRight(s, "*"), ":") && !listItem(s) || strings.HasPrefix(s, "**") && strings.HasSuffix(s, "**")
}

// leadsOn reports whether a piece ends in a colon and is nothing else.
func leadsOn(s string) bool {
	return s[0] != '#' && strings.HasSuffix(s, ":") && !listItem(s) && !strings.Contains(s, "\n")
}
