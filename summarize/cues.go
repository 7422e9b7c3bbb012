package summarize

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// reasons are words of English, German, French and Spanish before a reason, or that something is undone.
var reasons = []string{"because ", "since ", "so that ", "due to ", "as it ", "weil ", "parce que", "porque ", "revert", "undo ", "roll back", "rolling back", "back out", "start over"}

// tellsWhy reports whether a piece of the assistant's words gives a reason.
func (p *piece) tellsWhy() bool {
	low := strings.ToLower(p.text)
	return !p.code && slices.ContainsFunc(reasons, func(w string) bool { return strings.Contains(low, w) })
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
