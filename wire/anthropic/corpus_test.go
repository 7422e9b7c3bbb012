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
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

func TestConformance(t *testing.T) {
	wiretest.TestCodec(t, anthropic.Codec{}, wiretest.Corpus(t, wire.Anthropic))
}

// Any mix of replaced, dropped and inserted messages and of cache points leaves
// a real request valid, with all its calls and results in order. The last
// message stays: what it would uncover may not end a request.
func TestEditedRequestsStayValid(t *testing.T) {
	for name, body := range wiretest.Corpus(t, wire.Anthropic) {
		property.Few(t, 30, func(rt *rapid.T) {
			p := decode(t, string(body))
			var kept []thread.Message
			gone := map[string]bool{} // calls that were dropped with their message
			for i, m := range p.Messages {
				r, isResult := m.Result()
				if isResult && gone[r.CallID] {
					continue
				}
				switch do := rapid.IntRange(0, 4).Draw(rt, "do"); {
				case do == 0 && i > 0 && i < len(p.Messages)-1 && !isResult:
					for _, c := range m.Calls() {
						gone[c.ID] = true
					}
					continue
				case do == 1 && isResult:
					m = made(thread.Tool, thread.ToolResult{CallID: r.CallID, Tool: r.Tool, Outcome: r.Outcome, Content: []thread.Part{words("[cleared]")}})
				case do == 1 && m.Role == thread.User:
					m = made(thread.User, words("shorter"))
				case do == 2 && m.Role == thread.User:
					kept = append(kept, made(thread.User, words("a note between")))
				}
				kept = append(kept, m)
			}
			p.Messages = kept
			for range rapid.IntRange(0, 6).Draw(rt, "points") {
				p.CachePoints = append(p.CachePoints, prompt.CachePoint{
					After: rapid.IntRange(-1, len(kept)-1).Draw(rt, "after"),
					TTL:   rapid.SampledFrom([]string{"", "5m", "1h"}).Draw(rt, "ttl"),
				})
			}
			out := encode(t, p)
			for _, problem := range problems(out) {
				// Which thinking may stay is for the renderer to decide, and the
				// bodies for count_tokens have no max_tokens.
				if problem.Rule != "thinking-first" && problem.Path != "max_tokens" {
					rt.Errorf("%s: %v\n%s", name, problem, out)
				}
			}
			back := decode(t, out)
			if got, want := callOrder(back.Messages), callOrder(kept); got != want {
				rt.Errorf("%s: calls and results\n got %s\nwant %s", name, got, want)
			}
		})
	}
}

// callOrder lists calls and results in order.
func callOrder(messages []thread.Message) string {
	var b strings.Builder
	for i := range messages {
		for _, c := range messages[i].Calls() {
			b.WriteString(" call " + c.ID)
		}
		if r, ok := messages[i].Result(); ok {
			b.WriteString(" result " + r.CallID)
		}
	}
	return b.String()
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
		for _, file := range corpus.EveryNth(files, 3) {
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
					if f := messages[i].Frame; f.Raw() != raw || messages[i].Index != i || f.Messages() != len(messages) {
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
