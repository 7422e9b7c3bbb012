package openai_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// chatSamples are written by hand: together they hold every form of message
// and part that the codec knows, and some that it does not.
var chatSamples = map[string][]byte{
	"parts": []byte(`{
  "model": "gpt-4o", "temperature": 0.2,
  "messages": [
    {"role": "system", "content": "Be brief."},
    {"role": "developer", "content": [{"type": "text", "text": "Use tools.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]},
    {"role": "user", "name": "ann", "content": [
      {"type": "text", "text": "What is on these?"},
      {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8=", "detail": "low"}},
      {"type": "image_url", "image_url": {"url": "https:\/\/example.com/a.png"}},
      {"type": "input_audio", "input_audio": {"data": "aGVsbG8=", "format": "mp3"}},
      {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGVsbG8="}},
      {"type": "file", "file": {"file_id": "file-1"}},
      {"type": "hologram", "hologram": {"depth": 3}}
    ]},
    {"role": "assistant", "content": [{"type": "text", "text": "I see."}, {"type": "refusal", "refusal": "not that one"}]},
    {"role": "system", "content": "It is now noon."},
    {"role": "user", "content": "go on"},
    {"role": "assistant", "content": null, "refusal": "I cannot."},
    {"role": "user", "content": ""},
    {"role": "assistant", "audio": {"id": "audio_1"}}
  ],
  "max_tokens": 100
}`),
	"calls": []byte(`{"stream":true,"messages":[{"role":"user","content":"list <b> & \u2028 é"},` +
		`{"content":"","role":"assistant","reasoning_content":"I should look.","tool_calls":[` +
		`{"id":"c1","type":"function","index":0,"function":{"name":"ls","arguments":"{\"path\": \"/\"}"}},` +
		`{"type":"custom","id":"c2","custom":{"name":"patch","input":"*** Begin"}}]},` +
		`{"role":"tool","tool_call_id":"c2","content":"done"},` +
		`{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},` +
		`{"role":"assistant","content":"two files","reasoning":"r","reasoning_details":[{"type":"reasoning.text","text":"r","signature":"s"}],"annotations":[]},` +
		`{"role":"user","content":"thanks"}],"model":"m","tools":[` +
		`{"type":"function","function":{"name":"ls","description":"list","parameters":{"type":"object","properties":{"path":{"type":"string"}}},"strict":false}} , ` +
		`{"type":"custom","custom":{"name":"patch"}}],"tool_choice":"auto","max_completion_tokens":512}` + "\n"),
	"legacy": []byte(`{"model":"gpt-3.5-turbo","messages":[{"role":"system","content":"s"},{"role":"user","content":"weather?"},` +
		`{"role":"assistant","content":null,"function_call":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}},` +
		`{"role":"function","name":"weather","content":"sunny"},{"role":"assistant","content":"Sunny."},{"role":"user","content":"and Oslo?"},` +
		`{"role":"assistant","content":"Let me see.","function_call":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}},` +
		`{"role":"function","name":"weather","content":"rain"}],"functions":[{"name":"weather","parameters":{"type":"object"}}],"function_call":"auto"}`),
	"bytes that are no UTF-8": []byte("{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\xff\xfeb\"},{\"role\":\"assistant\",\"content\":\"\\ud800\"}]}"),
}

func TestChatCodec(t *testing.T) {
	wiretest.TestCodec(t, openai.Chat{}, chatSamples)
}

func TestChatCodecOnCorpus(t *testing.T) {
	bodies := wiretest.Corpus(t, wire.Chat)
	maps.Copy(bodies, chatTranscripts(t))
	wiretest.TestCodec(t, openai.Chat{}, bodies)
}

// chatLenient are problems of real bodies that other servers than OpenAI's
// accepted, with the reason.
var chatLenient = map[string]string{
	// OpenRouter in front of Gemini gives ids of 50 characters and takes them
	// back; OpenAI refuses more than 40.
	"cassettes/test_openrouter_google_nested_schema": "messages[1].tool_calls[0].id",
}

// TestChatCorpusIsValid proves the validator on what real servers accepted.
func TestChatCorpusIsValid(t *testing.T) {
	bodies := wiretest.Corpus(t, wire.Chat)
	maps.Copy(bodies, chatTranscripts(t))
	for name, body := range bodies {
		for _, p := range (openai.Chat{}).Validate(body) {
			if !p.Advice && chatLenient[name] != p.Path {
				t.Errorf("%s: %v", name, p)
			}
		}
	}
}

// TestChatSamplesAreValid: what the provider would refuse in the samples is
// the one part that is there to be unknown.
func TestChatSamplesAreValid(t *testing.T) {
	for name, body := range chatSamples {
		for _, p := range (openai.Chat{}).Validate(body) {
			if !p.Advice && p.Path != "messages[2].content[6].type" {
				t.Errorf("%s: %v", name, p)
			}
		}
	}
}

// chatTranscripts wraps the messages of recorded runs as bodies: every tenth
// run of tau-bench, the legacy calls of ToolBench.
func chatTranscripts(t *testing.T) map[string][]byte {
	t.Helper()
	bodies := map[string][]byte{}
	wrap := func(name string, messages json.RawMessage) {
		bodies[name] = fmt.Appendf(nil, `{"model":"gpt-4o","messages":%s}`, messages)
	}
	dir := corpus.Dir(t, "transcripts")
	lines := bufio.NewScanner(bytes.NewReader(gunzip(t, filepath.Join(dir, "tau-bench", "gpt-4o-airline-public.jsonl.gz"))))
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		if n%10 != 1 {
			continue
		}
		var run struct{ Traj json.RawMessage }
		if err := json.Unmarshal(lines.Bytes(), &run); err != nil {
			t.Fatalf("tau-bench line %d: %v", n, err)
		}
		wrap(fmt.Sprintf("tau-bench/%d", n), run.Traj)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "toolbench", "*.json.gz"))
	for _, file := range files {
		var run struct {
			Answer struct {
				Messages []json.RawMessage `json:"train_messages"`
			} `json:"answer_generation"`
		}
		if err := json.Unmarshal(gunzip(t, file), &run); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if n := len(run.Answer.Messages); n > 0 {
			wrap("toolbench/"+filepath.Base(file), run.Answer.Messages[n-1])
		}
	}
	return bodies
}

func gunzip(t *testing.T, file string) []byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return data
}
