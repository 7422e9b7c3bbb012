package summarize

import (
	"regexp"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// On real sessions, chained: what code says passes as it is, sentences of the
// assistant are nearly all taken, and none is whose number the span does not hold.
func TestVerifiedOnSessions(t *testing.T) {
	number := regexp.MustCompile(`\b[0-9]+\b`)
	var said, kept, altered, through int
	for _, name := range corpus.EveryNth(heldOutSessions[:6], 2) {
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
			g := evidenceOf(t.Context(), &in)
			for i := range in.Messages {
				m := &in.Messages[i]
				if m.Role != thread.Assistant {
					continue
				}
				text := m.Text()
				for p := range scan.Sentences(text) {
					s := text[p.From:p.To]
					if len(s) < 30 || len(s) > 400 {
						continue
					}
					said++
					if g.fault(statement{text: s}) == "" {
						kept++
					}
					if at := number.FindStringIndex(s); at != nil {
						other := s[at[0]:at[1]] + "7"
						if g.words["#"+other] == nil {
							altered++
							if g.fault(statement{text: s[:at[0]] + other + s[at[1]:]}) == "" {
								through++
							}
						}
					}
				}
			}
			previous = &got.Summary
		}
	}
	t.Logf("%d of %d sentences taken, %d of %d with a number altered", kept, said, through, altered)
	least := 50
	if corpus.Long() {
		least = 100
	}
	if said < 5*least || altered < least {
		t.Fatalf("%d sentences, %d with numbers: the test shows nothing", said, altered)
	}
	if kept*100 < said*95 || through*100 > altered {
		t.Errorf("%d of %d sentences taken, %d of %d with a number altered", kept, said, through, altered)
	}
}
