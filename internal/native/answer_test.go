package native_test

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
		make func() *native.Addition
	}{
		{"nothing", func() *native.Addition { return &native.Addition{} }},
		{"edits that did nothing", func() *native.Addition { return &native.Addition{Managed: true} }},
		{"edits", func() *native.Addition { return &native.Addition{Managed: true, Applied: applied} }},
		{"below the threshold", func() *native.Addition { return &native.Addition{Managed: true, Iterations: true} }},
		{"compacted", func() *native.Addition {
			return &native.Addition{Managed: true, Applied: applied[1:], Iterations: true, Block: threshold}
		}},
	} {
		write(c.name+": whole", c.make().AddToAnswer(answer))
		add := c.make()
		var events []string
		for _, data := range stream {
			out := add.AddToEvent(data)
			if c.name == "nothing" && (len(out) != 1 || out[0] != data) {
				t.Errorf("an event was changed for nothing: %q", out)
			}
			events = append(events, out...)
		}
		write(c.name+": stream", events...)
	}
	if (&native.Addition{}).AddToAnswer(answer) != answer {
		t.Error("an answer was changed for nothing")
	}
	write("compacted: an answer without content", (&native.Addition{Iterations: true, Block: threshold}).AddToAnswer(call))
	write("paused: whole", (&native.Addition{Managed: true, Iterations: true, Block: threshold, Applied: applied}).Answer("msg_2", "m"))
	write("paused: stream", (&native.Addition{Managed: true, Iterations: true, Block: threshold, Applied: applied}).AnswerEvents("msg_2", "m"))
	write("on demand: whole", (&native.Addition{Block: signed}).Answer("msg_2", "m"))
	write("on demand: stream", (&native.Addition{Block: signed}).AnswerEvents("msg_2", "m"))
	write("count", (&native.Addition{Managed: true, Applied: applied}).AddToCount(`{"input_tokens":1200}`))
	write("count of something else", (&native.Addition{Managed: true}).AddToCount(`{"object":"echo"}`))
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
		add := &native.Addition{Managed: true, Iterations: true, Block: native.ThresholdBlock("x", "y")}
		for _, out := range append(add.AddToEvent(data), add.AddToAnswer(data), add.AddToCount(data)) {
			if !gjson.Valid(out) {
				t.Fatalf("%s became %s", data, out)
			}
		}
	})
}
