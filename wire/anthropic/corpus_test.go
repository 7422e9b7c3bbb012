package anthropic_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/corpus"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/wiretest"
)

func TestConformance(t *testing.T) {
	wiretest.TestCodec(t, anthropic.Codec{}, wiretest.Corpus(t, wire.Anthropic))
}

// The messages in real Claude Code transcripts are elements of this API. Each
// one decodes, and goes out again with the bytes that it had.
func TestTranscriptsOfClaudeCode(t *testing.T) {
	root := corpus.Dir(t, "transcripts")
	seen := 0
	for _, folder := range []string{"agentcmd-claude", "claude-code-viewer", "entire-cli", "vscode-copilot-chat"} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.jsonl*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for n, line := range lines(t, file) {
				raw := gjson.Get(line, "message").Raw
				role := gjson.Get(raw, "role").Str
				if role != "user" && role != "assistant" {
					continue
				}
				seen++
				messages, err := anthropic.DecodeMessage(raw)
				if err != nil {
					t.Errorf("%s:%d: %v", filepath.Base(file), n+1, err)
					continue
				}
				for i := range messages {
					if f := messages[i].Frame; f.Raw != raw || messages[i].Index != i || f.Messages != len(messages) {
						t.Errorf("%s:%d: message %d is not framed by the line", filepath.Base(file), n+1, i)
					}
				}
				if out := encode(t, &prompt.Prompt{Model: "m", Messages: messages}); !strings.Contains(out, raw) {
					t.Errorf("%s:%d: the bytes changed", filepath.Base(file), n+1)
				}
			}
		}
	}
	t.Logf("%d messages", seen)
	if seen < 1000 {
		t.Errorf("only %d messages found", seen)
	}
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(file, ".gz") {
		unzip, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if data, err = io.ReadAll(unzip); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return strings.Split(string(data), "\n")
}

// Every real request is valid. The exceptions are bodies for count_tokens,
// which the API takes without max_tokens.
func TestRealRequestsAreValid(t *testing.T) {
	for name, body := range wiretest.Corpus(t, wire.Anthropic) {
		counting := strings.Contains(name, "count-tokens") || strings.Contains(name, "count_tokens")
		for _, p := range (anthropic.Codec{}).Validate(body) {
			if !p.Advice && !(counting && p.Path == "max_tokens") {
				t.Errorf("%s: %v", name, p)
			}
		}
	}
}
