package anthropic_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

func TestAnswers(t *testing.T) {
	wiretest.TestAnswers(t, anthropic.Codec{}, wiretest.Corpus(t, wire.Anthropic))
}

const (
	start = `{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":10,"output_tokens":1}}}`
	end   = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}`
	stop  = `{"type":"message_stop"}`
)

func block(index, block string) string {
	return `{"type":"content_block_start","index":` + index + `,"content_block":` + block + `}`
}

func piece(index, delta string) string {
	return `{"type":"content_block_delta","index":` + index + `,"delta":` + delta + `}`
}

var streams = []struct {
	name   string
	events []string
	stop   wire.Stop
	parts  []thread.Part
}{
	{"citations", []string{start,
		block("0", `{"type":"text","text":"","citations":[]}`),
		piece("0", `{"type":"text_delta","text":"As it <says>."}`),
		piece("0", `{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x"}}`), end, stop},
		wire.StopEnd, []thread.Part{thread.Text{Text: "As it <says>.", Source: from(`{"type":"text","text":"As it <says>.","citations":[{"type":"char_location","cited_text":"x"}]}`)}}},
	{"thinking without text keeps its seal", []string{start,
		block("0", `{"type":"thinking","thinking":"","signature":""}`),
		piece("0", `{"type":"signature_delta","signature":"c2Vh"}`), piece("0", `{"type":"signature_delta","signature":"bA=="}`),
		block("1", `{"type":"redacted_thinking","data":"ZGF0YQ=="}`), end, stop},
		wire.StopEnd, []thread.Part{
			thread.Reasoning{Signature: "c2VhbA==", Source: from(`{"type":"thinking","thinking":"","signature":"c2VhbA=="}`)},
			thread.Reasoning{Signature: "ZGF0YQ==", Source: from(`{"type":"redacted_thinking","data":"ZGF0YQ=="}`)}}},
	{"compaction", []string{start,
		block("0", `{"type":"compaction","content":null,"encrypted_content":null}`),
		piece("0", `{"type":"compaction_delta","content":"so far","encrypted_content":"eA=="}`), end, stop},
		wire.StopEnd, []thread.Part{thread.Opaque{Kind: "compaction", Text: "so far", Source: from(`{"type":"compaction","content":"so far","encrypted_content":"eA=="}`)}}},
	{"a call without arguments, and indices with gaps", []string{start,
		block("3", `{"type":"tool_use","id":"toolu_1","name":"look","input":{}}`), piece("3", `{"type":"input_json_delta","partial_json":""}`),
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, stop},
		wire.StopTool, []thread.Part{thread.ToolCall{ID: "toolu_1", Name: "look", Arguments: "{}", Source: from(`{"type":"tool_use","id":"toolu_1","name":"look","input":{}}`)}}},
	{"arguments cut off by the limit", []string{start,
		block("0", `{"type":"tool_use","id":"toolu_1","name":"look","input":{}}`), piece("0", `{"type":"input_json_delta","partial_json":"{\"at\": \"th"}`),
		`{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`, stop},
		wire.StopLength, []thread.Part{thread.ToolCall{ID: "toolu_1", Name: "look", Arguments: `{"at": "th`}}},
	{"nothing said", []string{start, end}, wire.StopEnd, nil},
	{"not at its end", []string{start, block("0", `{"type":"text","text":"a"}`), piece("0", `{"type":"text_delta","text":"b"}`)},
		"", []thread.Part{thread.Text{Text: "ab", Source: from(`{"type":"text","text":"ab"}`)}}},
}

// read adds up a stream.
func read(t *testing.T, events ...string) (wire.Answer, error) {
	t.Helper()
	s := anthropic.Codec{}.NewStream()
	for _, e := range events {
		if _, err := s.Event(e); err != nil {
			return wire.Answer{}, err
		}
	}
	return s.Answer()
}

func TestStream(t *testing.T) {
	for _, test := range streams {
		a, err := read(t, test.events...)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if diff := cmp.Diff(test.parts, a.Message.Parts, cmpopts.EquateEmpty()); diff != "" || a.Stop != test.stop {
			t.Errorf("%s: stop %q (-want +got):\n%s", test.name, a.Stop, diff)
		}
	}
	text := block("0", `{"type":"text"}`)
	for name, events := range map[string][]string{
		"a piece of no block": {start, piece("0", `{"type":"text_delta","text":"a"}`)},
		"a block twice":       {start, text, text},
		"nothing":             nil,
		"pings only":          {`{"type":"ping"}`},
	} {
		if _, err := read(t, events...); !errors.Is(err, wire.ErrAnswer) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Some gateways send zeros in one of the events.
func TestStreamUsage(t *testing.T) {
	for name, test := range map[string]struct {
		first, last string // usage of the first event, and the members of the last
		want        wire.Usage
	}{
		"usual":           {`{"input_tokens":10,"output_tokens":1}`, `"usage":{"output_tokens":7}`, wire.Usage{Input: 10, Output: 7, Known: true}},
		"all at the end":  {`{"input_tokens":0,"output_tokens":0}`, `"usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":7}`, wire.Usage{Input: 17, CacheRead: 5, CacheWrite: 2, Output: 7, Known: true}},
		"zero at the end": {`{"input_tokens":10}`, `"usage":{"input_tokens":0,"output_tokens":7}`, wire.Usage{Input: 10, Output: 7, Known: true}},
		"none":            {`null`, `"usage":null`, wire.Usage{}},
		"zeros":           {`{"input_tokens":0,"output_tokens":0}`, `"usage":{"output_tokens":0}`, wire.Usage{}},
		"nonsense":        {`{"input_tokens":"ten","output_tokens":-4}`, `"usage":7`, wire.Usage{}},
		// The prompt was read again with what the provider's own tools brought.
		"grown":      {`{"input_tokens":10}`, `"usage":{"input_tokens":90,"output_tokens":7}`, wire.Usage{Input: 90, Output: 7, Known: true, Mixed: true}},
		"own tools":  {`{"input_tokens":10}`, `"usage":{"input_tokens":10,"output_tokens":7,"server_tool_use":{"web_search_requests":1}}`, wire.Usage{Input: 10, Output: 7, Known: true, Mixed: true}},
		"iterations": {`{"input_tokens":10}`, `"usage":{"output_tokens":7,"iterations":[{},{}]}`, wire.Usage{Input: 10, Output: 7, Known: true, Mixed: true}},
		"own edits":  {`{"input_tokens":10}`, `"context_management":{"applied_edits":[{}]},"usage":{"output_tokens":7}`, wire.Usage{Input: 10, Output: 7, Known: true, Mixed: true}},
	} {
		a, err := read(t, `{"type":"message_start","message":{"usage":`+test.first+`}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},`+test.last+`}`)
		if err != nil || a.Usage != test.want {
			t.Errorf("%s: %+v, %v", name, a.Usage, err)
		}
	}
}

func FuzzStream(f *testing.F) {
	var seeds []string
	for _, test := range streams {
		seeds = append(seeds, strings.Join(test.events, "\n"))
	}
	seeds = append(seeds, `{"content":[{"type":"tool_use","id":"a","name":"b","input":{}}],"stop_reason":"tool_use"}`)
	wiretest.FuzzStream(f, anthropic.Codec{}, seeds...)
}
