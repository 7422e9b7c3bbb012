package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestIntoAgain: a session that was written for an agent is compacted again, for the agent and as a request: the note
// about what was removed stands there once, and our summary is not taken for the agent's. F10
func TestIntoAgain(t *testing.T) {
	for _, agent := range transcript.Writers() {
		dir := alone(t)
		t.Setenv("HOME", dir)
		first := filepath.Join(dir, "first")
		texts := []string{"compact", "../../testdata/sessions/fix-retry.claude-code.jsonl", "--into", string(agent), "--budget", "16000", "-o", first}
		if status, _, told := run(t, texts...); status != exitDone {
			t.Fatalf("%s: %s", agent, told)
		}
		for _, as := range []string{"--into", "--to"} {
			second, form := filepath.Join(dir, as), string(agent)
			if as == "--to" {
				form = "anthropic"
			}
			if status, _, told := run(t, "compact", first, as, form, "--budget", "9000", "-o", second); status != exitDone {
				t.Fatalf("%s %s: %s", as, form, told)
			}
			again, err := os.ReadFile(second)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(again), render.RemovedNote); n != 1 {
				t.Errorf("%s %s: the note stands %d times", agent, as, n)
			}
			if strings.Contains(string(again), "the agent's earlier summary") || !strings.Contains(string(again), "assistant: "+ownformat.EarlierSummary) {
				t.Errorf("%s %s: a summary of ours is not told as one", agent, as)
			}
		}
	}
}
