package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/render"
)

// TestPromptSaysHowToRead: a compacted prompt names the command that reads what was
// removed, once, with the store; the command does; compacting it again leaves one
// such line. A prompt that fits says nothing, and `render`, which keeps nothing,
// points nowhere. F9
func TestPromptSaysHowToRead(t *testing.T) {
	dir := alone(t)
	store, planFile, prompt := filepath.Join(dir, "a store"), filepath.Join(dir, "plan.json"), filepath.Join(dir, "prompt.json")
	args := []string{"compact", smallSession, "--budget", "3000", "--policy", "ladder", "--store", store, "--plan-out", planFile}
	text := func(args ...string) string {
		t.Helper()
		status, out, report := run(t, args...)
		if status != exitDone {
			t.Fatal(report)
		}
		return out
	}
	out := text(append(args, "--to", "text")...)
	line := `To read one in full, run: palimpsest artifact get ID --store '` + store + `'; to search them: palimpsest recall "WORDS" --store '` + store + `'`
	if strings.Count(out, line) != 1 || strings.Contains(out, "read_artifact") {
		t.Errorf("the prompt does not say how what was removed is read:\n%s", out)
	}
	pointer := "run: palimpsest artifact get art_"
	if _, rest, ok := strings.Cut(out, pointer); ok {
		id, _, _ := strings.Cut(rest, "\n")
		if content := text("artifact", "get", "art_"+strings.TrimSpace(id), "--store", store); content == "" {
			t.Error("the command that the pointer names reads nothing")
		}
	} else {
		t.Errorf("no pointer names the command:\n%s", out)
	}
	text(append(args, "--to", "anthropic", "-o", prompt)...)
	if again := text("compact", prompt, "--budget", "2600", "--to", "text", "--store", store); strings.Count(again, render.RemovedNote) != 1 {
		t.Errorf("compacted again, the line stands %d times", strings.Count(again, render.RemovedNote))
	}
	if whole := text("compact", smallSession, "--budget", "1000000", "--to", "text", "--store", store); strings.Contains(whole, render.RemovedNote) {
		t.Error("a prompt that fits says how to read what was removed")
	}
	if shown := text("render", smallSession, "--plan", planFile, "--to", "text"); strings.Contains(shown, "read_artifact") || strings.Contains(shown, "palimpsest artifact get") {
		t.Errorf("render points to what it has not kept:\n%s", shown)
	}
}

// TestPlanOutput: the output of plan is the plan.
func TestPlanOutput(t *testing.T) {
	out := filepath.Join(t.TempDir(), "plan.json")
	if status, _, told := run(t, "plan", smallSession, "--budget", "3000", "-o", out); status != exitDone {
		t.Fatal(told)
	}
	if p, err := readPlan(out); err != nil || p.Empty() {
		t.Errorf("%+v, %v", p, err)
	}
}
