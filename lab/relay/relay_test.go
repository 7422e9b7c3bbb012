package relay_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/lab/relay"
	"github.com/palimpsest-ai/palimpsest/summarize"
)

// TestStandingSurvives: of what people laid down in six chats, summaries of five compactions hold
// these shares.
func TestStandingSurvives(t *testing.T) {
	chats, err := relay.Read("chats")
	if err != nil {
		t.Fatal(err)
	}
	for budget, least := range map[int]float64{4000: .70, 8000: .88, 16000: .95} {
		var sum relay.Score
		for _, c := range chats {
			messages, err := c.Messages(5, 24_000*4)
			if err != nil {
				t.Fatal(err)
			}
			s, err := relay.Summaries(t.Context(), &summarize.Extractive{}, messages, 5, budget)
			if err != nil {
				t.Fatal(err)
			}
			score := c.Judge(s.Render(), s.Constraints)
			t.Logf("%d %s: missing %q, stale %q, called rules %q", budget, c.Name, score.Missing, score.Stale, score.Wrong)
			sum.Add(score)
		}
		t.Logf("%d: %d of %d known, %d of %d outdated, %d of %d called rules are, %d lapsed", budget, sum.Known, sum.InForce, sum.Outdated, sum.Changed, sum.True, sum.Called, sum.Lapsed)
		if share := float64(sum.Known) / float64(sum.InForce); share < least || sum.Outdated > 5 || 10*sum.True < 7*sum.Called || sum.Lapsed > 3 {
			t.Errorf("%d: %.2f known, want %.2f", budget, share, least)
		}
	}
}
