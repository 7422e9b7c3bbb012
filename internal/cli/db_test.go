package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportOfOther: a file that is no export leaves no store behind.
func TestImportOfOther(t *testing.T) {
	dir := alone(t)
	file, store := filepath.Join(dir, "all.jsonl"), filepath.Join(dir, "new.db")
	for _, text := range []string{"", "not an export\n", "{}\n", `{"palimpsest_export":99}` + "\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{file, "-"} {
			var out, report strings.Builder
			status := Run(t.Context(), []string{"db", "import", name, "--store", store}, Streams{In: strings.NewReader(text), Out: &out, Err: &report})
			if status != exitInvalid || !strings.Contains(report.String(), "line 1") {
				t.Errorf("%q as %s: status %d: %s", text, name, status, report.String())
			}
		}
	}
	if left, err := filepath.Glob(store + "*"); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestStatsOfRemoved: what `artifact list` shows is counted, though nothing of it is stored apart.
func TestStatsOfRemoved(t *testing.T) {
	dir := alone(t)
	store := filepath.Join(dir, "p.db")
	logged(t, "text", []string{"--store", store, "--anthropic-upstream", provider(t, 200, wellAnswered), "--window", "30000"}, longTalk(40))
	read := func(into any, args ...string) {
		t.Helper()
		var out, report strings.Builder
		if status := Run(t.Context(), append(args, "--store", store, "--json"), Streams{In: strings.NewReader(""), Out: &out, Err: &report}); status != exitDone {
			t.Fatalf("%v: status %d: %s", args, status, report.String())
		}
		if err := json.Unmarshal([]byte(out.String()), into); err != nil {
			t.Fatal(err)
		}
	}
	var list []struct {
		ArtifactID string `json:"artifact_id"`
	}
	var stats struct {
		Artifacts int `json:"artifacts"`
		Removed   int `json:"removed_messages"`
		Pointers  int `json:"pointers"`
	}
	read(&list, "artifact", "list")
	read(&stats, "db", "stats")
	pointers := 0
	for _, e := range list {
		if e.ArtifactID != "" {
			pointers++
		}
	}
	if len(list) == 0 || stats.Removed != len(list) || stats.Pointers != pointers || stats.Artifacts != 0 {
		t.Errorf("listed are %d messages, %d of them pointers; counted are %+v", len(list), pointers, stats)
	}
	var out strings.Builder
	Run(t.Context(), []string{"db", "stats", "--store", store}, Streams{In: strings.NewReader(""), Out: &out, Err: &out})
	if want := plural(len(list), "message") + " removed from prompts, "; !strings.Contains(out.String(), want) {
		t.Errorf("%q is not in\n%s", want, out.String())
	}
}
