package rehydrate_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestRealConversations: in conversations of agents that knew of no artifacts,
// almost nothing comes back by itself. Each is compacted in its middle, and what
// was said later is looked at turn by turn. A10
func TestRealConversations(t *testing.T) {
	counter, err := token.New("chars/4", nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := palimpsest.New(palimpsest.Config{Counter: counter, Policy: policy.Ladder{}})
	if err != nil {
		t.Fatal(err)
	}
	turns, plans, reasons := 0, 0, map[rehydrate.Reason]int{}
	least, files := 150, 0
	if corpus.Long() {
		least = 500
	}
	err = filepath.WalkDir(corpus.Dir(t, "transcripts"), func(path string, d os.DirEntry, err error) error {
		if name := d.Name(); err != nil || d.IsDir() || name == "README.md" || name == "LICENSE" || name == "index.json" {
			return err
		}
		if files++; files%3 > 0 && !corpus.Long() {
			return nil
		}
		f, err := transcript.Open(path, nil)
		if errors.Is(err, transcript.ErrEmpty) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, tr := range f.Transcripts {
			half := tr.Thread.Len() / 2
			if half < 8 {
				continue
			}
			early := tr.Thread.Prefix(half)
			size := counter.Prompt(&prompt.Prompt{Messages: early.Messages()})
			res, err := c.Compact(t.Context(), palimpsest.Request{Thread: early, Budget: max(size/2, 2000)})
			if errors.Is(err, policy.ErrOverBudget) {
				continue
			}
			if err != nil {
				return err
			}
			if len(res.Plan.Externalizations) == 0 {
				continue
			}
			plans++
			r := rehydrate.New(nowhere{}, counter.Text, nil)
			for i := half + 1; i < tr.Thread.Len(); i++ {
				if tr.Thread.At(i).Role != thread.Assistant {
					continue // the model is not asked here
				}
				turns++
				turn := rehydrate.TurnOf(tr.Thread.Prefix(i), tr.Tools)
				for _, q := range r.Needed(turn, res.Plan) {
					reasons[q.Reason]++
					if testing.Verbose() {
						t.Logf("%s, %s: agent %.300q, user %.300q", path, q.Reason, turn.Agent, turn.User)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d turns after %d plans: %v", turns, plans, reasons)
	if turns < least {
		t.Errorf("only %d turns were looked at", turns)
	}
	if n := reasons[rehydrate.Question]; n*100 > turns {
		t.Errorf("%d questions in %d turns bring something back; at most one in a hundred may", n, turns)
	}
	if n := reasons[rehydrate.Mention] + reasons[rehydrate.Argument] + reasons[rehydrate.Schema]; n > 0 {
		t.Errorf("%v, and nobody knew of any artifact", reasons)
	}
}

// nowhere is a source that nothing is read from.
type nowhere struct{ rehydrate.Source }
