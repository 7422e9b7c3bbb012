package emulate

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/native"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	answer = `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"On it."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":700,"cache_creation_input_tokens":20,"cache_read_input_tokens":600,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":0},"output_tokens":7,"service_tier":"standard"}}`
	call   = `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}`
)

var stream = []string{
	`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":700,"cache_creation_input_tokens":20,"cache_read_input_tokens":600,"output_tokens":1}}}`,
	`{"type":"ping"}`,
	`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"On it."}}`,
	`{"type":"content_block_stop","index":0}`,
	`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"read","input":{}}}`,
	`{"type":"content_block_stop","index":1}`,
	`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":7}}`,
	`{"type":"message_stop"}`,
}

// TestAnswers: the answers and the streams have the documented shape. The golden files are
// read by people.
func TestAnswers(t *testing.T) {
	applied := []native.Applied{{Type: native.ClearThinking, Cleared: 2, Tokens: 300}, {Type: native.ClearTools, Cleared: 5, Tokens: 4000}}
	threshold, signed := native.ThresholdBlock("What \"was\" said.", "opaque"), native.SignedBlock("What was said.", "opaque")
	var got strings.Builder
	write := func(name string, lines ...string) {
		got.WriteString("== " + name + "\n" + strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n\n")
		for _, line := range lines {
			for part := range strings.SplitSeq(line, "\n") {
				if data, ok := strings.CutPrefix(part, "data: "); (ok || strings.HasPrefix(part, "{")) && !gjson.Valid(cmp.Or(data, part)) {
					t.Errorf("%s: no JSON: %s", name, part)
				}
			}
		}
	}
	for _, c := range []struct {
		name string
		make func() *addition
	}{
		{"nothing", func() *addition { return &addition{} }},
		{"edits that did nothing", func() *addition { return &addition{managed: true} }},
		{"edits", func() *addition { return &addition{managed: true, applied: applied} }},
		{"below the threshold", func() *addition { return &addition{managed: true, iterate: true} }},
		{"compacted", func() *addition {
			return &addition{managed: true, applied: applied[1:], iterate: true, block: threshold}
		}},
	} {
		write(c.name+": whole", c.make().addToAnswer(answer))
		add := c.make()
		var events []string
		for _, data := range stream {
			out := add.addToEvent(data)
			if c.name == "nothing" && (len(out) != 1 || out[0] != data) {
				t.Errorf("an event was changed for nothing: %q", out)
			}
			events = append(events, out...)
		}
		write(c.name+": stream", events...)
	}
	if (&addition{}).addToAnswer(answer) != answer {
		t.Error("an answer was changed for nothing")
	}
	write("compacted: an answer without content", (&addition{iterate: true, block: threshold}).addToAnswer(call))
	write("paused: whole", (&addition{managed: true, iterate: true, block: threshold, applied: applied}).answer("msg_2", "m"))
	write("paused: stream", (&addition{managed: true, iterate: true, block: threshold, applied: applied}).answerEvents("msg_2", "m"))
	write("on demand: whole", (&addition{block: signed}).answer("msg_2", "m"))
	write("on demand: stream", (&addition{block: signed}).answerEvents("msg_2", "m"))
	write("count", (&addition{managed: true, applied: applied}).addToCount(`{"input_tokens":1200}`))
	write("count of something else", (&addition{managed: true}).addToCount(`{"object":"echo"}`))
	write("unavailable", native.Unavailable())
	path := filepath.Join("testdata", "answers.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got.String() {
		t.Errorf("not what %s says (%v); if it is meant, run with -update. Got\n%s", path, err, got.String())
	}
}

// FuzzEvent: an answer that nobody understands stays JSON, or stays as it is.
func FuzzEvent(f *testing.F) {
	f.Add(answer)
	for _, data := range stream {
		f.Add(data)
	}
	f.Add(`{"type":"message_delta","usage":[1]}`)
	f.Add(`{"content":"x","usage":3}`)
	f.Fuzz(func(t *testing.T, data string) {
		if !gjson.Valid(data) {
			return
		}
		add := &addition{managed: true, iterate: true, block: native.ThresholdBlock("x", "y")}
		for _, out := range append(add.addToEvent(data), add.addToAnswer(data), add.addToCount(data)) {
			if !gjson.Valid(out) {
				t.Fatalf("%s became %s", data, out)
			}
		}
	})
}
