package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api/view"
	"github.com/palimpsest-ai/palimpsest/store"
)

// TestCompactSaysWhatIsStored: compact says which plan is in force after it and which was
// before. A copy of the session that ends earlier takes nothing from the stored one: the
// report says how much more that holds, and the plan shows it. explain counts a stored
// conversation like the plan in force, and names the counter of plans that were counted
// otherwise.
func TestCompactSaysWhatIsStored(t *testing.T) {
	whole, err := os.ReadFile("../../testdata/sessions/fix-retry.claude-code.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for name, data := range map[string][]byte{"whole.jsonl": whole, "cut.jsonl": bytes.Join(lines[:len(lines)*3/4], nil)} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const id = "91bfefb2-9533-4bcc-8bfc-f00dd138f269"
	compact := func(args ...string) string {
		t.Helper()
		status, _, report := run(t, append([]string{"compact", "--store", "kept.db", "-o", os.DevNull}, args...)...)
		if status != exitDone {
			t.Fatalf("exit status %d: %s", status, report)
		}
		readable(t, report)
		return report
	}
	explain := func() (v view.View, said string) {
		t.Helper()
		status, page, said := run(t, "explain", id, "--store", "kept.db")
		_, data, _ := strings.Cut(page, `<script type="application/json" id="data">`)
		data, _, _ = strings.Cut(data, "</script>")
		if err := json.Unmarshal([]byte(data), &v); status != exitDone || err != nil {
			t.Fatalf("exit status %d: %v: %s", status, err, said)
		}
		return v, said
	}
	for _, tt := range []struct {
		name string
		args []string
		want string
		see  bool
	}{
		{"first", []string{"whole.jsonl", "--budget", "16000"}, "\nstored as " + id + ": plan 1 in force\n", false},
		{"the same again", []string{"whole.jsonl", "--budget", "16000"}, "\nstored as " + id + ": plan 1 in force\n", false},
		{"a trial", []string{"whole.jsonl", "--budget", "4000"}, ": plan 2 in force (before it plan 1: 15,", true},
		{"a copy that ends earlier", []string{"cut.jsonl", "--budget", "16000"}, " messages more of this session; under this plan they stay as they are\n", true},
	} {
		report := compact(tt.args...)
		if !strings.Contains(report, tt.want) || strings.Contains(report, "\nsee: palimpsest explain "+id+" --store kept.db\n") != tt.see {
			t.Errorf("%s: the report has no %q, or is wrong about what to see:\n%s", tt.name, tt.want, report[max(0, len(report)-500):])
		}
	}
	v, _ := explain()
	if len(v.Messages) != 239 || v.PlanVersion != 3 || v.Counter != "claude" {
		t.Errorf("kept are %d messages with plan %d, counted with %s", len(v.Messages), v.PlanVersion, v.Counter)
	}
	for i, m := range v.Messages[v.Plans[2].ThreadVersion:] {
		if m.Record >= 0 {
			t.Errorf("message %d after the end of the copy is hidden", i)
		}
	}
	if p := v.Plans[0]; p.Counter != "" || p.Before-v.Before > 100 || v.Before > p.Before {
		t.Errorf("the page counts %d tokens, the plan counted %d with %s", v.Before, p.Before, p.Counter)
	}

	if report := compact("whole.jsonl", "--budget", "16000", "--counter", "o200k"); !strings.Contains(strings.Join(strings.Fields(report), " "), " tokens, counted with claude)") {
		t.Errorf("two counters and no word of it:\n%s", report[max(0, len(report)-500):])
	}
	v, _ = explain()
	if v.Counter != "o200k" || v.Plans[3].Counter != "" || v.Plans[0].Counter != "claude" || v.Plans[0].After < 15_000 || v.Plans[0].After > 16_000 {
		t.Errorf("counted with %s: %+v", v.Counter, v.Plans)
	}

	err = (&storeFlag{name: "kept.db"}).withTenant(t.Context(), func(k *tenantStore) error {
		c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: k.Log, Plans: k.Plans}})
		if err != nil {
			return err
		}
		return c.Session(id).Pin(t.Context(), v.Messages[3].ID, true)
	})
	if v, _ = explain(); err != nil || !v.Messages[3].Pinned || v.Messages[4].Pinned {
		t.Errorf("a message that was pinned is not marked (%v)", err)
	}
}

// TestExplainNothing: a name that nothing has is refused with the commands that list what
// there is.
func TestExplainNothing(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_DATA_HOME", "")
	for _, name := range []string{"nope-thread", filepath.Join("nowhere", "session.jsonl")} {
		status, _, said := run(t, "explain", name)
		if status != exitFailed || !strings.Contains(said, "no file, no session and no stored conversation "+name) || !strings.Contains(said, "`palimpsest sessions` and `palimpsest threads`") {
			t.Errorf("exit status %d: %s", status, said)
		}
	}
}
