package transcript_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// TestSessionsCanBeSent proves that what was read of an agent's session is a
// request that the agent's provider takes: the only broken rule is that a call
// that was interrupted has no result, and only where the log has none.
func TestSessionsCanBeSent(t *testing.T) {
	dir, rows := index(t)
	files := []string{"own-runs/claude-code.jsonl.gz", "own-runs/codex-rollout.jsonl.gz", "own-runs/pi-session.jsonl.gz"}
	for _, r := range corpus.EveryNth(rows, 3) {
		if !strings.HasPrefix(r.File, "agent-sessions-schema/") { // trimmed: ids and media types are placeholders
			files = append(files, r.File)
		}
	}
	codecs := map[transcript.Format]wire.Codec{
		"claude-code": anthropic.Codec{}, "pi": anthropic.Codec{},
		"codex": openai.Responses{}, "gemini-cli": gemini.Codec{},
	}
	checked := map[transcript.Format]int{}
	for _, file := range files {
		f, err := transcript.Open(filepath.Join(dir, file), nil)
		if err != nil || codecs[f.Format] == nil {
			continue // TestCorpus is about errors
		}
		checked[f.Format]++
		codec, tr := codecs[f.Format], f.Transcripts[0]
		body, err := codec.Encode(&prompt.Prompt{
			Model: "test-model", MaxOutput: 1000, System: tr.System, Tools: tr.Tools, Messages: tr.Thread.Messages(),
		})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		open, pairs := 0, thread.Pair(tr.Thread)
		for i := range tr.Thread.Len() {
			open += len(pairs.Missing(i))
		}
		for _, p := range codec.Validate(body) {
			switch {
			case p.Advice:
			case p.Rule == "tool-pairing" && open > 0:
				open--
			default:
				t.Errorf("%s: %v", file, p)
			}
		}
	}
	for format := range codecs {
		if checked[format] == 0 {
			t.Errorf("no session of %s was checked", format)
		}
	}
}

// TestSamplesCanBeSent is TestSessionsCanBeSent for formats of which there are no
// sessions but our own samples, and for an API that is not the agent's alone.
func TestSamplesCanBeSent(t *testing.T) {
	for _, file := range []string{"openhands-v0.json", "openhands-v1.jsonl", "openhands-acp.jsonl", "openhands-history.jsonl", "opencode.json", "qwen-code.jsonl", "droid.jsonl", "copilot-cli.jsonl", "cline.json", "cline-3.json"} {
		f, err := transcript.Open(filepath.Join("testdata", file), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tr := range f.Transcripts {
			for _, codec := range []wire.Codec{anthropic.Codec{}, openai.Chat{}} {
				body, err := codec.Encode(&prompt.Prompt{Model: "test-model", MaxOutput: 1000, System: tr.System, Tools: tr.Tools, Messages: tr.Thread.Messages()})
				if err != nil {
					t.Fatal(err)
				}
				open := strings.Contains(string(body), "sleep 60") || strings.Contains(string(body), "make test") // runs when the sample ends
				for _, p := range codec.Validate(body) {
					if !p.Advice && !(open && p.Rule == "tool-pairing") {
						t.Errorf("%s for %s: %v", file, codec.API(), p)
					}
				}
			}
		}
	}
}
