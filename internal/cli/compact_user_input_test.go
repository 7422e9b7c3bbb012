package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestAnsweredCases: what the user answered through a tool that asks stands in a prompt of any size, as it
// would if the user had written it.
func TestAnsweredCases(t *testing.T) {
	dir := corpus.Dir(t, "cases/agents/answers-in-results")
	for _, name := range []string{"session2.jsonl.gz", "session3.codex.jsonl.gz"} {
		file, err := transcript.Open(filepath.Join(dir, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		var answers []string
		for _, m := range file.Transcripts[0].Thread.All() {
			if said := m.Said(); said != "" {
				answers = append(answers, strings.Split(said, "\n")...)
			}
		}
		if len(answers) < 12 {
			t.Fatalf("%s: only %d answers: %q", name, len(answers), answers)
		}
		for _, budget := range []string{"16000", "8000", "6000", "3000", "2000", "1500", "1200", "1000", "800"} {
			for _, policy := range []string{"auto", "ladder"} {
				status, out, stderr := run(t, "compact", filepath.Join(dir, name), "--policy", policy, "--budget", budget, "--to", "text")
				for _, a := range answers {
					if status != 0 || !strings.Contains(out, a) {
						t.Errorf("%s, %s, %s: status %d, no %q; %s", name, policy, budget, status, a, stderr)
					}
				}
			}
		}
	}
}

// TestSmallBudgetKeepsAttachments: at budgets far below the size of a session, outputs go before what the user attached.
func TestSmallBudgetKeepsAttachments(t *testing.T) {
	line := func(n int, kind, rest string) string {
		return fmt.Sprintf(`{"type":%q,"uuid":"u%d","parentUuid":"u%d","timestamp":"2026-05-12T10:00:00Z","cwd":"/r","sessionId":"s","version":"2.1.332",%s}`+"\n", kind, n, n-1, rest)
	}
	doc := line(1, "user", `"message":{"role":"user","content":"Weigh @crates.txt"}`) +
		line(2, "attachment", `"attachment":{"type":"file"},"rendered":[{"content":"<system-reminder>\nResult of calling the Read tool:\n1\tit is the usual weight, a dozen\n</system-reminder>"}]`)
	n := 3
	for i := range 20 {
		doc += line(n, "assistant", fmt.Sprintf(`"message":{"role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"Shelf %d."},{"type":"tool_use","id":"t%d","name":"Bash","input":{"command":"weigh %d"}}]}`, i, i, i)) +
			line(n+1, "user", fmt.Sprintf(`"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":%q}]}`, i, shelfRows(i)))
		n += 2
	}
	session := filepath.Join(t.TempDir(), "s.jsonl")
	if err := os.WriteFile(session, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, budget := range []string{"4000", "2000", "1000", "700"} {
		status, out, stderr := run(t, "compact", session, "--budget", budget, "--to", "text")
		if status != 0 || !strings.Contains(out, "the usual weight, a dozen") {
			t.Errorf("%s: status %d, the attached file is shortened; %s", budget, status, stderr)
		}
	}
}

// TestIntoKeepsAttachments: a file that the user attached is in the session that the agent resumes; what
// the agent adds to each session is not.
func TestIntoKeepsAttachments(t *testing.T) {
	line := func(n int, kind, rest string) string {
		return fmt.Sprintf(`{"type":%q,"uuid":"u%d","parentUuid":"u%d","timestamp":"2026-05-12T10:00:0%dZ","cwd":"/r","sessionId":"s","version":"2.1.332",%s}`+"\n", kind, n, n-1, n, rest)
	}
	reminder := func(of, text string) string {
		return fmt.Sprintf(`"attachment":{"type":%q},"rendered":[{"content":%q}]`, of, "<system-reminder>\n"+text+"\n</system-reminder>")
	}
	session := filepath.Join(t.TempDir(), "s.jsonl")
	doc := line(1, "user", `"message":{"role":"user","content":"Weigh @crates.txt"}`) +
		line(2, "attachment", reminder("file", "Result of calling the Read tool:\n1\tcrates are 12 kg")) +
		line(3, "attachment", reminder("date", "Today's date is 2026-05-12.")) +
		line(4, "assistant", `"message":{"role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"Noted."}]}`)
	if err := os.WriteFile(session, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.jsonl")
	if status, _, stderr := run(t, "compact", session, "--into", "claude-code", "--budget", "4000", "-o", out); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	made, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(made), "crates are 12 kg") || strings.Contains(string(made), "Today's date") {
		t.Errorf("the session is\n%s", made)
	}
}
