package neutral_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/hostile"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// through writes a message in neutral form and reads it again.
func through(m *thread.Message) (thread.Message, error) {
	data, err := json.Marshal(neutral.MessageOf(m))
	if err != nil {
		return thread.Message{}, err
	}
	var form neutral.Message
	if err := json.Unmarshal(data, &form); err != nil {
		return thread.Message{}, err
	}
	return form.Value("message")
}

// same reports how a message differs from what came back: it has the same id, and
// all that takes no part in the id.
func same(t testing.TB, m *thread.Message) {
	t.Helper()
	got, err := through(m)
	if err != nil {
		t.Fatalf("%+v: %v", m, err)
	}
	if thread.ChainID("", &got) != thread.ChainID("", m) {
		t.Fatalf("another message came back:\n%s", cmp.Diff(neutral.MessageOf(m), neutral.MessageOf(&got)))
	}
	again, want := neutral.MessageOf(&got), neutral.MessageOf(m)
	again.Turn = want.Turn // the log sets it
	if diff := cmp.Diff(want, again); diff != "" {
		t.Fatalf("something was lost (-want +got):\n%s", diff)
	}
}

// TestThereAndBack: the neutral form says all that a message holds, so that the
// same history has the same ids whichever way it came.
func TestThereAndBack(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		th := threadgen.Thread().Draw(rt, "thread")
		for _, m := range th.All() {
			got, err := through(m)
			if err != nil {
				rt.Fatalf("%+v: %v", m, err)
			}
			if thread.ChainID("", &got) != thread.ChainID("", m) {
				rt.Fatalf("another message came back:\n%s", cmp.Diff(neutral.MessageOf(m), neutral.MessageOf(&got)))
			}
		}
	})
}

// TestRealConversations: the same for what real agents said.
func TestRealConversations(t *testing.T) {
	messages, most := 0, 2_000
	if corpus.Long() {
		most = 20_000
	}
	err := filepath.WalkDir(corpus.Dir(t, "transcripts"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || messages > most {
			return err
		}
		f, err := transcript.Open(path, nil)
		if err != nil {
			return nil // the importers have tests of their own
		}
		for i := range f.Transcripts {
			for _, m := range f.Transcripts[i].Thread.All() {
				messages++
				same(t, m)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if messages < 1000 {
		t.Errorf("only %d messages were read", messages)
	}
	t.Logf("%d messages", messages)
}

// TestWhateverWasRead: what a log can hold is taken back as it was written, whatever
// the request that it came with looked like.
func TestWhateverWasRead(t *testing.T) {
	messages, nameless := 0, 0
	for _, codec := range []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}} {
		for _, parts := range []string{"", `{"type":"text","text":"see"},`} {
			for k := range hostile.Changed([]byte(strings.ReplaceAll(requests[codec.API()], "PARTS", parts)), 200, 0, 1) {
				p, err := codec.Decode(string(k.Data))
				if err != nil || !utf8.Valid(k.Data) { // other bytes are no JSON, and come back mended
					continue
				}
				for i := range p.Messages {
					if unpaired(&p.Messages[i]) {
						nameless++
						continue
					}
					messages++
					same(t, &p.Messages[i])
				}
			}
		}
	}
	if messages < 2000 || nameless == 0 || nameless > messages/10 {
		t.Errorf("%d messages were taken back, %d are of calls without a name or an id", messages, nameless)
	}
}

// requests hold everything that a message can, by API.
var requests = map[string]string{
	wire.Anthropic: `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[PARTS{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}},{"type":"document","source":{"type":"file","file_id":"f"}}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c","name":"t","input":{"a":1}},{"type":"server_tool_use","id":"d","name":"web","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}]}]}]}`,
	wire.Chat: `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","name":"n","content":[PARTS{"type":"image_url","image_url":{"url":"data:image/png;base64,eA==","detail":"low"}},{"type":"file","file":{"file_id":"f"}},{"type":"input_audio","input_audio":{"data":"eA==","format":"wav"}}]},
		{"role":"assistant","content":"a","refusal":"r","tool_calls":[{"id":"c","type":"function","function":{"name":"t","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"x"}]}`,
	wire.Responses: `{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,eA=="},{"type":"input_file","file_id":"f","filename":"n"}]},
		{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"e"},{"type":"function_call","call_id":"c","name":"t","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"x"},{"type":"web_search_call","id":"w","status":"completed"}]}`,
	wire.Gemini: `{"contents":[{"role":"user","parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"eA=="}},{"fileData":{"mimeType":"video/mp4","fileUri":"https://example.com/a"}}]},
		{"role":"model","parts":[{"text":"hm","thought":true,"thoughtSignature":"s"},{"functionCall":{"id":"c","name":"t","args":{"a":1}}},{"executableCode":{"language":"PYTHON","code":"1"}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"c","name":"t","response":{"output":"x"}}}]}]}`,
}

// unpaired reports whether a message has a call or a result that nothing can be paired
// with: no provider takes it, and the form refuses it.
func unpaired(m *thread.Message) bool {
	for _, c := range m.Calls() {
		if c.ID == "" || c.Name == "" {
			return true
		}
	}
	r, ok := m.Result()
	return ok && r.CallID == ""
}

// FuzzMessage: whatever is sent, it is read or refused with the path of the field,
// and what was read can be written.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		`{"role":"user","parts":[{"type":"text","text":"x"}]}`,
		`{"role":"assistant","parts":[{"type":"tool_call","call_id":"c","tool":"t","arguments":"{"}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","call_id":"c","structured":{"a":1},"content":[{"type":"media","media":"image","data":"x"}]}]}`,
		`{"role":"assistant","parts":[{"type":"opaque","api":"gemini","raw":"{}"},{"type":"reasoning","signature":"s"}]}`,
		`{"role":"tool","parts":[null]}`, `{}`, `{"role":"user","parts":[{"type":"media","media":"image"}]}`, `{"role":"assistant","parts":[]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var form neutral.Message
		if json.Unmarshal([]byte(text), &form) != nil {
			return
		}
		m, err := form.Value("m")
		if err != nil {
			var wrong *neutral.FieldError
			if !errors.As(err, &wrong) || !strings.HasPrefix(wrong.Path, "m") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		same(t, &m)
	})
}
