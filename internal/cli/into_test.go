package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestInto: a session is compacted into each agent's own folder. What stands there
// holds a summary and the kept end, its provider takes it, the original is as it was,
// and a second one is written beside the first.
func TestInto(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE", "XDG_DATA_HOME"} {
		t.Setenv(name, home)
	}
	for _, name := range []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "KIMI_CODE_HOME"} {
		t.Setenv(name, "")
	}
	sample, err := os.ReadFile("../../testdata/sessions/fix-retry.claude-code.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	project := t.TempDir()
	sample = bytes.ReplaceAll(sample, []byte("/home/dev/shipq"), []byte(project))
	own := filepath.Join(home, ".claude", "projects", "-home-dev-shipq", "91bfefb2-9533-4bcc-8bfc-f00dd138f269.jsonl")
	if err := errors.Join(os.MkdirAll(filepath.Dir(own), 0o755), os.WriteFile(own, sample, 0o644)); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (int, *resumedSession, string) {
		var out, told bytes.Buffer
		status := Run(t.Context(), append([]string{"compact", "91bfefb2", "--json"}, args...), Streams{In: strings.NewReader(""), Out: &out, Err: &told})
		var rep struct{ Session *resumedSession }
		if status == 0 {
			if err := json.Unmarshal(told.Bytes(), &rep); err != nil || out.Len() > 0 {
				t.Fatalf("%v: %v, wrote %q", args, err, out.String())
			}
		}
		return status, rep.Session, told.String()
	}
	defer func() { // the folder of the project is gone
		os.RemoveAll(project)
		_, made, _ := run("--into", "claude-code")
		if made == nil || filepath.Dir(made.Path) == filepath.Dir(own) || !strings.Contains(strings.Join(made.Notes, " "), project+", is not on this machine") {
			t.Errorf("without its folder: %+v", made)
		}
	}()
	settings := filepath.Join(home, ".kimi-code", "config.toml")
	if err := errors.Join(os.Mkdir(filepath.Dir(settings), 0o755), os.WriteFile(settings, []byte("theme = \"dark\"\ndefault_model = \"kimi-code/k3\"\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	apis := map[string]string{"claude-code": wire.Anthropic, "codex": wire.Responses, "pi": wire.Anthropic, "opencode": wire.Anthropic, "kimi-code": wire.Chat}
	for agent, line := range map[string]string{
		"claude-code": "claude --resume ", "codex": "codex resume ", "pi": "pi --session ", "opencode": "opencode import ",
		"kimi-code": " -m kimi-code/k3",
	} {
		t.Run(agent, func(t *testing.T) {
			args := []string{"--into", agent, "--budget", "12000"}
			switch agent {
			case "claude-code":
				args = args[:2] // a quarter of its model's window
			case "codex":
				args[3] = "60000" // room for messages with thoughts
			}
			status, made, told := run(args...)
			if status != 0 || made == nil {
				t.Fatalf("status %d: %s", status, told)
			}
			if !strings.Contains(made.Resume, line) || !strings.Contains(made.Resume, made.ID) {
				t.Errorf("resume with %q", made.Resume)
			}
			if info, err := os.Stat(made.Path); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Fatalf("%s: %v, %v", made.Path, info, err)
			}
			if agent != "opencode" && !sessions.Within(made.Path, home) || agent == "claude-code" && filepath.Dir(made.Path) != filepath.Dir(own) {
				t.Errorf("it is at %s", made.Path)
			}
			if strings.Contains(strings.Join(made.Notes, " "), "tool names") != (agent != "claude-code") || agent == "codex" && made.Lost["reasoning"] == 0 {
				t.Errorf("notes %q, lost %v", made.Notes, made.Lost)
			}
			f, err := transcript.Open(made.Path, nil)
			if err != nil {
				t.Fatal(err)
			}
			messages := f.Transcripts[0].Thread.Messages()
			recaps, last := 0, messages[len(messages)-1]
			for i := range messages {
				if messages[i].Kind == thread.Recap {
					recaps++
				}
			}
			if string(f.Format) != agent || recaps == 0 || !strings.HasPrefix(last.Text(), "shipq 0.9.3") || messages[0].Kind != thread.Injected {
				t.Errorf("a session of %s with %d summaries, first of kind %d, last %q", f.Format, recaps, messages[0].Kind, last.Text())
			}
			if err := checkRequest(apis[agent], &prompt.Prompt{Model: "m", MaxOutput: 1000, Messages: messages}); err != nil {
				t.Error(err)
			}
			if _, again, _ := run(args...); again == nil || again.Path == made.Path {
				t.Errorf("the second is %+v", again)
			}
		})
	}
	_, elsewhere, _ := run("--into", "kimi-code", "--budget", "12000", "-o", "apart.jsonl")
	if elsewhere == nil || strings.Count(elsewhere.Resume, " && cp ") != 2 {
		t.Fatalf("a session of two files elsewhere: %+v", elsewhere)
	}
	for _, name := range []string{"apart.jsonl", "apart.jsonl.state.json"} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	if now, err := os.ReadFile(own); err != nil || !bytes.Equal(now, sample) {
		t.Errorf("the original is not as it was: %v", err)
	}
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"--into emacs", 2, "known are claude-code, codex, pi, kilo, opencode"},
		{"--into codex --to anthropic", 2, "leave --to anthropic out"},
		{"--into pi -o " + own, 2, "may not replace the input"},
		{"--into pi --budget 12000 -o there.jsonl", 1, "never overwritten"},
	} {
		if err := os.WriteFile("there.jsonl", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if status, _, told := run(strings.Fields(c.args)...); status != c.status || !strings.Contains(told, c.says) {
			t.Errorf("%s: status %d, %s", c.args, status, told)
		}
	}
}

// TestIntoFreeText: a call with free text, as a patch of Codex, stays one in a session of Codex and becomes a
// plain one elsewhere, with its result.
func TestIntoFreeText(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	for agent, want := range map[string]string{
		"codex": `"type":"custom_tool_call_output"`, "kilo": "*** Begin Patch", "pi": "*** Begin Patch", "opencode": "*** Begin Patch", "claude-code": "*** Begin Patch",
	} {
		path := filepath.Join(t.TempDir(), agent)
		var told bytes.Buffer
		status := Run(t.Context(), []string{"compact", "../../transcript/testdata/codex.jsonl", "--into", agent, "--budget", "20000", "-o", path}, Streams{Out: &told, Err: &told})
		if b, err := os.ReadFile(path); status != 0 || err != nil || !strings.Contains(string(b), want) || !strings.Contains(string(b), "done") {
			t.Errorf("%s: status %d, %v: %s\n%s", agent, status, err, told.String(), b)
		}
	}
}
