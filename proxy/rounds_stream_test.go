package proxy

import (
	"bytes"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// translated passes a stream through the reader of an API.
func translated(t testing.TB, api endpoint, in []byte) []byte {
	t.Helper()
	s := &lookupStream{
		rounds: &rounds{lookups: &lookups{core: &core{}}, x: &received{request: httptest.NewRequest("POST", "/", nil), endpoint: api}, step: &step{}}, body: io.NopCloser(bytes.NewReader(nil)),
		events: sse.NewReader(bytes.NewReader(in), 0), answer: api.dialect.NewStream(),
	}
	s.translator, s.rewinder = api.dialect.Translator()
	out, err := io.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var streamPaths = map[string]string{
	wire.Anthropic: "/v1/messages", wire.Chat: "/v1/chat/completions", wire.Responses: "/v1/responses", wire.Gemini: "/v1beta/models/m:streamGenerateContent",
}

// FuzzStreams: whatever a provider sends, a stream without a call of our tools
// comes out as it went in.
func FuzzStreams(f *testing.F) {
	f.Add([]byte("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\ndata: {\"type\":\"message_stop\"}\n\n"))
	f.Add([]byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\",\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"x\",\"arguments\":\"{\"}}]},\"finish_reason\":null}]}\r\n\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))
	f.Add([]byte("event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":0,\"output_index\":0,\"item\":{\"type\":\"message\"}}\n\ndata: {\"type\":\"response.completed\",\"sequence_number\":1,\"response\":{\"output\":[]}}\n\n"))
	f.Add([]byte("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":1}}\r\n\r\n: a comment\n\n\n\ndata\n"))
	f.Add([]byte("\xff\xfe\n\ndata: {\"index\":-5,\"type\":\"content_block_delta\"}\n\n" + strings.Repeat("data: x\n", 100)))
	f.Fuzz(func(t *testing.T, in []byte) {
		if bytes.Contains(in, []byte("recall")) || bytes.Contains(in, []byte("read_artifact")) || bytes.Contains(in, []byte(`\u`)) || bytes.Contains(in, []byte("sequence_number")) {
			return // a call of ours, or numbers that a provider never sends so
		}
		for _, path := range streamPaths {
			if out := translated(t, endpointOf(path), in); !bytes.Equal(out, in) {
				t.Errorf("%s: %q\nbecame %q", path, in, out)
			}
		}
	})
}

// TestStreamsAsTheyCome: the same for streams of the providers' own form, cut
// anywhere.
func TestStreamsAsTheyCome(t *testing.T) {
	whole := "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r\"}}\n\n" +
		"event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":1,\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"m\"}}\n\n" +
		"event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"sequence_number\":2,\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"m\",\"role\":\"assistant\",\"content\":[]}}\n\n" +
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":3,\"response\":{\"output\":[{\"type\":\"message\",\"id\":\"m\"}],\"usage\":{}}}\n\n"
	for n := range len(whole) + 1 {
		if out := translated(t, endpointOf("/v1/responses"), []byte(whole[:n])); string(out) != whole[:n] {
			t.Fatalf("cut at %d: %q", n, out)
		}
	}
}
