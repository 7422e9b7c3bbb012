package summarize

import (
	"regexp"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// On real sessions, chained: what code says passes as it is, sentences of the
// assistant are nearly all taken, and hardly one is with a digit changed.
func TestVerifiedOnSessions(t *testing.T) {
	digit := regexp.MustCompile(`[0-9]`)
	var said, kept, altered, through, claims int
	for _, name := range heldOutSessions[:6] {
		messages := session(t, name)
		var e Extractive
		var previous *summary.Summary
		for from := 0; from < len(messages); from += 150 {
			in := Input{Messages: messages[from:min(from+150, len(messages))], Previous: previous, Budget: 4000}
			v := &Verified{Inner: &e, Extractive: &e}
			got, err := v.Summarize(t.Context(), in)
			if err != nil || got.Report.Proposed != 0 {
				t.Fatalf("%s: %v, %+v", name, err, got.Report)
			}
			g := newGrounds(&in)
			for i := range in.Messages {
				m := &in.Messages[i]
				if m.Role != thread.Assistant {
					continue
				}
				text := m.Text()
				sentences(text, func(p span) {
					s := text[p.from:p.to]
					if len(s) < 30 || len(s) > 400 {
						return
					}
					if speaksForPerson(s) {
						claims++
						return
					}
					fault := func(s string) string {
						return g.fault(&claim{section: secFact, text: s, item: summary.Item{Text: s, Sources: []thread.ID{m.ID}}})
					}
					said++
					if fault(s) == "" {
						kept++
					}
					if at := digit.FindStringIndex(s); at != nil {
						other := string('0' + (s[at[0]]-'0'+3)%10)
						if changed := s[:at[0]] + other + s[at[1]:]; !strings.Contains(g.all, changed) {
							altered++
							if fault(changed) == "" {
								through++
							}
						}
					}
				})
			}
			previous = &got.Summary
		}
	}
	t.Logf("%d of %d sentences taken, %d of %d with a changed digit; %d more say what somebody wants", kept, said, through, altered, claims)
	if said < 500 || altered < 100 {
		t.Fatalf("%d sentences, %d with digits: the test shows nothing", said, altered)
	}
	if claims*5 > said || kept*100 < said*95 || through*100 > altered*5 {
		t.Errorf("%d of %d sentences taken, %d of %d with a changed digit", kept, said, through, altered)
	}
}
