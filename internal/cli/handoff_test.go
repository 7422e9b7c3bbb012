package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/golden"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// handingOff runs handoff on a sample session.
func handingOff(t *testing.T, args ...string) (made handedOff, told string) {
	t.Helper()
	status, out, errs := run(t, append([]string{"handoff", "session.jsonl", "--json"}, args...)...)
	if status == exitDone {
		if err := json.Unmarshal([]byte(out), &made); err != nil {
			t.Fatal(err)
		}
	}
	return made, errs
}

// sampleFolder is a folder with a sample session, and a home without any.
func sampleFolder(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE", "XDG_DATA_HOME"} {
		t.Setenv(name, home)
	}
	for _, name := range []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "VISUAL", "EDITOR"} {
		t.Setenv(name, "")
	}
	sample, err := os.ReadFile("../../testdata/sessions/fix-retry.claude-code.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("session.jsonl", sample, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestHandoff: the fresh session of each agent holds the text and what comes next, and nothing else.
func TestHandoff(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	sampleFolder(t)
	const next = "Now make the rate limiter burst configurable."
	for _, agent := range transcript.Writers() {
		made, told := handingOff(t, next, "--into", string(agent))
		if made.Session == nil {
			t.Fatal(told)
		}
		f, err := transcript.Open(made.Session.Path, nil)
		if err != nil {
			t.Fatal(err)
		}
		messages := f.Transcripts[0].Thread.Messages()
		if f.Format != agent || len(messages) != 2 || strings.TrimSpace(messages[0].Text()) != strings.TrimSpace(made.Text) || messages[1].Text() != next || messages[1].Kind != thread.Plain {
			t.Errorf("%s: %d messages of %s", agent, len(messages), f.Format)
		}
		if made.Tokens > handoffTokens || !strings.Contains(made.Text, "never touch the public API of package store") || !strings.Contains(made.Text, "session.jsonl") {
			t.Errorf("%s: %d tokens: %s", agent, made.Tokens, made.Text)
		}
	}
	made, told := handingOff(t, next, "--budget", "1500", "-o", "fresh.jsonl")
	if made.Session == nil || made.Session.Agent != "claude-code" || made.Tokens > 1500 {
		t.Fatalf("%+v, %s", made, told)
	}
	dir := filepath.Dir(absolute("session.jsonl"))
	t.Chdir(here)
	golden.Equal(t, "testdata/golden/fix-retry.handoff.txt", strings.ReplaceAll(made.Text, dir+string(filepath.Separator), ""))
}

// TestHandoffNext: what comes next decides what the text has room for.
func TestHandoffNext(t *testing.T) {
	sampleFolder(t)
	about := func(next string) string {
		made, told := handingOff(t, next, "--budget", "1500")
		if made.Session == nil {
			t.Fatal(told)
		}
		return made.Text
	}
	limiter, key := about("Make the burst of the rate limiter in ratelimit/bucket.go configurable."), about("Change the idempotency key in carrier/client.go: hash of the request body.")
	count := strings.Count
	if count(limiter, "bucket")+count(limiter, "imiter") <= count(key, "bucket")+count(key, "imiter") || count(key, "key")+count(key, "carrier") <= count(limiter, "key")+count(limiter, "carrier") {
		t.Errorf("for the limiter:\n%s\nfor the key:\n%s", limiter, key)
	}
}

// TestHandoffEdit: the text is what the editor leaves, and an empty one writes nothing.
func TestHandoffEdit(t *testing.T) {
	sampleFolder(t)
	editor := func(script string) {
		t.Helper()
		path := absolute("editor")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("EDITOR", path)
	}
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no shell here")
	}
	editor(`echo "Only this." > "$1"`)
	if made, told := handingOff(t, "--edit", "-o", "one.jsonl"); made.Text != "Only this.\n" || made.Tokens < 2 || made.Tokens > 6 || strings.Contains(strings.Join(made.Session.Notes, ""), "--budget") {
		t.Errorf("%q, %d tokens, %s", made.Text, made.Tokens, told)
	}
	editor(`cat "$1" "$1" "$1" > more && mv more "$1"`)
	made, told := handingOff(t, "--edit", "--budget", "1500", "-o", "more.jsonl")
	if made.Session == nil {
		t.Fatal(told)
	}
	if notes := strings.Join(made.Session.Notes, "\n"); made.Tokens < 2000 || !strings.Contains(notes, "more than --budget 1,500") {
		t.Errorf("%d tokens, %q", made.Tokens, notes)
	}
	for script, says := range map[string]string{`: > "$1"`: "the text is empty: nothing was written", "exit 3": "nothing was written"} {
		editor(script)
		if _, told := handingOff(t, "--edit", "-o", "two.jsonl"); !strings.Contains(told, says) {
			t.Errorf("%s: %s", script, told)
		}
	}
	t.Setenv("EDITOR", "")
	if _, told := handingOff(t, "--edit", "-o", "two.jsonl"); !strings.Contains(told, "set VISUAL or EDITOR") {
		t.Error(told)
	}
	if _, err := os.Stat("two.jsonl"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was written: %v", err)
	}
	if _, told := handingOff(t, "--into", "emacs"); !strings.Contains(told, "known are claude-code") {
		t.Error(told)
	}
}

// TestHandoffReadsBeforeCompactions: what was said before the agent compacted is told too, where its file still holds it,
// whatever the summary left out.
func TestHandoffReadsBeforeCompactions(t *testing.T) {
	const rule = "Never commit generated protobuf stubs."
	sampleFolder(t)
	for name, lines := range map[string][]string{
		"claude-code": {
			`{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"` + rule + `"}}`,
			`{"type":"assistant","uuid":"a","parentUuid":"u","sessionId":"s","message":{"role":"assistant","id":"a","content":[{"type":"text","text":"I shall not."}]}}`,
			`{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"logicalParentUuid":"a","sessionId":"s","compactMetadata":{"trigger":"auto","preTokens":9000}}`,
			`{"type":"user","uuid":"r","parentUuid":"b","sessionId":"s","isCompactSummary":true,"message":{"role":"user","content":"The cart is done."}}`,
			`{"type":"user","uuid":"v","parentUuid":"r","sessionId":"s","message":{"role":"user","content":"And now the page of the order."}}`,
		},
		"codex": {
			`{"type":"session_meta","payload":{"id":"s","cwd":"/x"}}`,
			`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"` + rule + `"}]}}`,
			`{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I shall not."}]}}`,
			`{"type":"compacted","payload":{"message":"The cart is done."}}`,
			`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"And now the page of the order."}]}}`,
		},
	} {
		putFile(t, "session.jsonl", strings.Join(lines, "\n")+"\n", 0o600)
		if made, told := handingOff(t, "--into", name); !strings.Contains(made.Text, strings.TrimSuffix(rule, ".")) {
			t.Errorf("%s: %s\n%s", name, told, made.Text)
		}
	}
}

// TestHandoffLastWords: what the assistant asked last is in the text, however long the message is and small the budget, also
// beside what comes next; what the user answered already is not what came last.
func TestHandoffLastWords(t *testing.T) {
	sampleFolder(t)
	table := strings.Repeat("| a fix of the parser | it reads the empty field |\\n", 200)
	lines := `{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"Fix what the review found."}}
{"type":"assistant","uuid":"a","parentUuid":"u","sessionId":"s","message":{"role":"assistant","id":"a","content":[{"type":"text","text":"All is fixed.\n` + table + `Ready to commit these changes?"}]}}
`
	for i, budget := range []string{"500", "6000", "6000"} {
		putFile(t, "session.jsonl", lines, 0o600)
		made, told := handingOff(t, append([]string{"--budget", budget, "-o", strconv.Itoa(i) + ".jsonl"}, []string{"", "", "Yes, commit."}[i])...)
		if !strings.HasSuffix(strings.TrimSpace(made.Text), " Ready to commit these changes?") || !strings.Contains(made.Text, "## What the assistant said last\n> All is fixed.") || budget == "500" && made.Tokens > 500 || made.Tokens > 6000 {
			t.Errorf("%s: %d tokens, %s\n%s", budget, made.Tokens, told, made.Text)
		}
	}
	putFile(t, "session.jsonl", lines+`{"type":"user","uuid":"v","parentUuid":"a","sessionId":"s","message":{"role":"user","content":"Yes, commit."}}`+"\n", 0o600)
	if made, told := handingOff(t, "-o", "answered.jsonl"); made.Text == "" || strings.Contains(made.Text, "What the assistant said last") {
		t.Errorf("%s\n%s", told, made.Text)
	}
}

// TestWrittenSessions: what handoff and --into wrote has a title that says so, and is no session of the user until an agent goes on with it.
func TestWrittenSessions(t *testing.T) {
	sampleFolder(t)
	for _, agent := range transcript.Writers() {
		made, told := handingOff(t, "--into", string(agent))
		if made.Session == nil {
			t.Fatal(told)
		}
		other := "of-" + string(agent) + ".jsonl"
		if status, _, told := run(t, "compact", "session.jsonl", "--budget", "9000", "--into", string(agent), "--store", "memory:", "-o", other); status != exitDone {
			t.Fatal(told)
		}
		for _, path := range []string{made.Session.Path, other} {
			if f, err := transcript.Open(path, nil); err != nil || agent != "kimi-code" && !strings.HasPrefix(f.Transcripts[0].Title, "[palimpsest] We had a bad night") {
				t.Errorf("%s, %s: %v, title %q", agent, path, err, f.Transcripts[0].Title)
			}
		}
	}
	finder, err := localFinder()
	if err != nil {
		t.Fatal(err)
	}
	all, err := finder.Find("")
	if used := finder.InUse(all, 5); err != nil || len(all) < 4 || len(used) > 0 {
		t.Errorf("%v: of %d sessions %+v are used", err, len(all), used)
	}
	if _, out, told := run(t); !strings.Contains(out, "No sessions of agents were found") {
		t.Error(out, told)
	}
	if status, _, told := run(t, "lost"); status != exitUsage {
		t.Error(told)
	}
	made, _ := handingOff(t)
	f, err := os.OpenFile(made.Session.Path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(`{"type":"assistant","uuid":"z","parentUuid":null,"sessionId":"` + made.Session.ID + `","message":{"role":"assistant","id":"z","content":[{"type":"text","text":"On it."}],"usage":{"input_tokens":9,"output_tokens":2}}}` + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if all, err = finder.Find(""); err != nil || len(finder.InUse(all, 5)) != 1 {
		t.Errorf("%v: %+v", err, finder.InUse(all, 5))
	}
}

// TestHandoffDryRun: nothing is written, also for a file whose agent's sessions cannot be written.
func TestHandoffDryRun(t *testing.T) {
	sampleFolder(t)
	if status, out, told := run(t, "handoff", "session.jsonl", "--dry-run", "what next"); status != exitDone || !strings.Contains(out, "never touch the public API") || strings.Contains(out, "resume:") {
		t.Errorf("%s%s", out, told)
	}
	putFile(t, "session.jsonl", `{"model":"m","messages":[{"role":"user","content":"Keep to Go 1.22."}]}`, 0o600)
	if made, told := handingOff(t, "--dry-run"); made.Session != nil || !strings.Contains(made.Text, "Go 1.22") {
		t.Errorf("%+v, %s", made, told)
	}
	finder, _ := localFinder()
	if all, err := finder.Find(""); err != nil || len(all) > 0 {
		t.Errorf("%v, %+v", err, all)
	}
}
