package cli

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestMasked: a token that stands in a session is in nothing that leaves the machine, unless the setting says so:
// pages of a session and of a stored conversation, sessions for each agent, handoffs, and both kinds of log. The
// store has it whole.
func TestMasked(t *testing.T) {
	sampleFolder(t)
	const token, other = "ghp_q1W2e3R4t5Y6u7I8o9P0a1S2d3F4g5H6j7K8", "sk-ant-api03-Zx81mQ0aLs92kdPq-Wn3"
	sample, err := os.ReadFile("session.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	const request = `"content":"` // of the person, and of a result of the tool
	sample = bytes.ReplaceAll(sample, []byte(request), []byte(request+`Use GITHUB_TOKEN=`+token+`.\n`))
	sample = bytes.Replace(sample, []byte("go test ./..."), []byte("curl -H 'x-api-key: "+other+"' host; go test ./..."), -1)
	sample = append(sample, `{"type":"custom-title","customTitle":"Why `+token+` fails","sessionId":"91bfefb2-9533-4bcc-8bfc-f00dd138f269"}`+"\n"...)
	if err := os.WriteFile("session.jsonl", sample, 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(t *testing.T, args ...string) string {
		t.Helper()
		status, out, told := run(t, args...)
		if status != exitDone {
			t.Fatal(told)
		}
		return out + told
	}
	written := func(t *testing.T, args ...string) string {
		t.Helper()
		file := t.TempDir() + "/written"
		command(t, append(args, "-o", file)...)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if stored := command(t, "compact", "session.jsonl", "--budget", "16000", "--store", "p.db"); !strings.Contains(stored, token) {
		t.Error("a prompt for the machine's own use is masked")
	}
	logged := func(t *testing.T) string {
		t.Helper()
		c, err := loadSettings("", nil)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		newLogger(c, Streams{Err: &log}).Error("refused", "cause", "invalid key "+other, "error", errors.New("no such key "+token))
		return log.String()
	}
	type face struct {
		name string
		show func(*testing.T) string
	}
	faces := []face{
		{"page", func(t *testing.T) string { return written(t, "explain", "session.jsonl", "--budget", "16000") }},
		{"page of what is stored", func(t *testing.T) string {
			return written(t, "explain", "91bfefb2-9533-4bcc-8bfc-f00dd138f269", "--store", "p.db")
		}},
		{"log", logged},
		{"lines of run", func(t *testing.T) string {
			masks, err := settingsMask()
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			(&deferredLines{w: &log, masks: masks}).print(event.Event{}, "the provider refused a request: invalid key "+token)
			return log.String()
		}},
	}
	for i, agent := range transcript.Writers() {
		if i > 1 && !corpus.Long() {
			break
		}
		faces = append(faces,
			face{"session of " + string(agent), func(t *testing.T) string {
				return written(t, "compact", "session.jsonl", "--into", string(agent), "--budget", "60000")
			}},
			face{"handoff to " + string(agent), func(t *testing.T) string {
				return written(t, "handoff", "session.jsonl", "Call it with "+token, "--into", string(agent))
			}})
	}
	for _, f := range faces {
		t.Run(f.name, func(t *testing.T) {
			if text := f.show(t); strings.Contains(text, token) || strings.Contains(text, other) || !strings.Contains(text, "[secret: ") {
				t.Errorf("a token is shown, or none was there: %.300q", text[max(0, strings.Index(text, token)-150):])
			}
			t.Setenv("PALIMPSEST_MASK_SECRETS", "off")
			if text := f.show(t); !strings.Contains(text, token) || strings.Contains(text, "[secret: ") {
				t.Error("the setting off is not heeded")
			}
		})
	}
	if found := command(t, "recall", token, "--store", "p.db", "--thread", "91bfefb2-9533-4bcc-8bfc-f00dd138f269"); !strings.Contains(found, token) {
		t.Errorf("the store has it no more: %s", found)
	}
}
