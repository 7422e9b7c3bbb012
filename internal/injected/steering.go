package injected

import "strings"

// Agents that are at work get what a person writes meanwhile in a reminder of its own: opencode
// under the first heading, Claude Code under the second. A note of the harness follows.
var (
	steeringHeadings = []string{"The user sent the following message:\n", "The user sent a new message while you were working:\n"}
	steeringNotes    = []string{"\n\nPlease address this message and continue", "\n\nIMPORTANT: After completing your current task", "\n\nThis is how Claude Code surfaces"}
)

// steering returns where in a text stands what a person wrote while the agent worked, if the whole text is
// a reminder that gives it. Beside anything else, or with another tag inside, it may be the text of a file
// that a reminder quotes.
func steering(text string) (from, to int) {
	const opening, closing = "<system-reminder>\n", "</system-reminder>"
	body, opens := strings.CutPrefix(text, opening)
	body, closes := strings.CutSuffix(body, closing)
	if !opens || !closes || strings.Contains(body, "system-reminder>") {
		return 0, 0
	}
	for _, heading := range steeringHeadings {
		rest, is := strings.CutPrefix(body, heading)
		if !is {
			continue
		}
		for _, note := range steeringNotes {
			if at := strings.LastIndex(rest, note); at >= 0 {
				rest = rest[:at]
			}
		}
		words := strings.TrimSpace(rest)
		if words == "" {
			break
		}
		from = len(opening) + len(heading) + strings.Index(rest, words)
		return from, from + len(words)
	}
	return 0, 0
}
