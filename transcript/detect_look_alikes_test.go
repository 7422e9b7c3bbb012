package transcript_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestLookAlikes: sessions whose lines are like those of other agents are read as what they are, with
// every call and result.
func TestLookAlikes(t *testing.T) {
	dir := corpus.Dir(t, "cases/agents/look-alikes")
	for name, want := range map[string]transcript.Format{
		"qwen.jsonl": "qwen-code", "droid.jsonl": "droid", "copilot.jsonl": "copilot-cli", "cline.json": "cline", "cline-sdk.messages.json": "cline",
	} {
		f, err := transcript.Open(filepath.Join(dir, name), nil)
		if err != nil {
			t.Error(err)
			continue
		}
		calls, results, texts := 0, 0, ""
		for _, m := range f.Transcripts[0].Thread.All() {
			calls += len(m.Calls())
			texts += m.Text()
			if r, ok := m.Result(); ok {
				results++
				if !strings.Contains(r.Text(), "create table harvest") {
					t.Errorf("%s: the result is %q", name, r.Text())
				}
			}
		}
		if f.Format != want || calls != 1 || results != 1 || !strings.Contains(texts, "harvest") || !strings.Contains(texts, "Done") || len(f.Report.Warnings) > 0 {
			t.Errorf("%s: read as %s, %d calls, %d results, %s", name, f.Format, calls, results, warnings(f))
		}
		if first := f.Transcripts[0].Thread.At(0); !strings.HasPrefix(first.Text(), "Rename ") || first.Author() != thread.ByPerson {
			t.Errorf("%s begins with %q by %s", name, first.Text(), first.Author())
		}
	}
}

// TestEachLineAlone: a line of a session that holds a call or a result shows its format without the others.
func TestEachLineAlone(t *testing.T) {
	for _, name := range []string{"claude-code.jsonl", "codex.jsonl", "pi.jsonl", "qwen-code.jsonl", "droid.jsonl", "copilot-cli.jsonl", "cursor.jsonl"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if !strings.Contains(line, `"c1"`) && !strings.Contains(line, "tool_use") {
				continue
			}
			f, err := transcript.Read(strings.NewReader(line), nil)
			if err != nil && !errors.Is(err, transcript.ErrEmpty) || f != nil && string(f.Format) != strings.TrimSuffix(name, ".jsonl") {
				t.Errorf("%s: %v, %v: %s", name, f, err, line)
			}
		}
	}
}

// TestMessageAlone: of a session whose beginning is lost a message shows the format.
func TestMessageAlone(t *testing.T) {
	for line, want := range map[string]transcript.Format{
		`{"type":"message","id":"m1","parentId":null,"timestamp":"2026-11-01T10:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"Hi."}]}}`:                                    "droid",
		`{"type":"message","id":"m1","parentId":null,"timestamp":"2026-11-01T10:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"Hi."}],"timestamp":1793527200000}}`:          "pi",
		`{"type":"message","id":"m1","parentId":"m0","timestamp":"2026-11-01T10:00:00.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"bash","arguments":{}}]}}`: "pi",
	} {
		if f, err := transcript.Read(strings.NewReader(line), nil); err != nil || f.Format != want {
			t.Errorf("%v, %v: %s", f, err, line)
		}
	}
}

// TestForkOfOpenCode: an export of Kilo is told from one of opencode, which has the same members.
func TestForkOfOpenCode(t *testing.T) {
	for version, want := range map[string]transcript.Format{"1.18.33": "opencode", "2.0.1": "opencode", "7.7.9": "kilo", "": "opencode"} {
		f, err := transcript.Read(strings.NewReader(`{"info":{"id":"ses_1","version":"`+version+`"},"messages":[{"info":{"id":"m1","role":"user"},"parts":[{"type":"text","text":"Hi."}]}]}`), nil)
		if err != nil || f.Format != want {
			t.Errorf("%q: %v, %v", version, f, err)
		}
	}
}
