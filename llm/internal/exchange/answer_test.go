package exchange_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/internal/exchange"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

func events(list ...string) string {
	var b strings.Builder
	for _, e := range list {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

func response(body string, stream bool) *exchange.Response {
	return &exchange.Response{Body: strings.NewReader(body), Stream: stream, Status: 200, RequestID: "req_1"}
}

const (
	start = `{"type":"message_start","message":{"id":"msg_1","model":"m"}}`
	block = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`
	end   = `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`
	stop  = `{"type":"message_stop"}`

	chunk  = `{"choices":[{"index":0,"delta":{"content":"a"}}]}`
	finish = `{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`
	done   = "[DONE]"

	created   = `{"type":"response.created","response":{"status":"in_progress","error":null}}`
	completed = `{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","role":"assistant","content":"a"}]}}`
)

var streams = []struct {
	name string
	api  wire.Answers
	body string
	stop llm.Stop
	err  error
}{
	{"messages", anthropic.Codec{}, events(start, block, end, stop), llm.StopEnd, nil},
	{"no message_stop, no last empty line", anthropic.Codec{}, strings.TrimSuffix(events(start, block, end), "\n\n"), llm.StopEnd, nil},
	{"events after the end are not read", anthropic.Codec{}, events(start, block, end, stop) + "data: garbage\n\n", llm.StopEnd, nil},
	{"no stop reason", anthropic.Codec{}, events(start), "", io.ErrUnexpectedEOF},
	{"cut in an event", anthropic.Codec{}, events(start) + `data: {"type":"message_de`, "", io.ErrUnexpectedEOF},
	{"error event", anthropic.Codec{}, events(start, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), "", llm.ErrOverloaded},
	{"overflow event", anthropic.Codec{}, events(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`), "", llm.ErrOverflow},
	{"a block twice", anthropic.Codec{}, events(start, block, block), "", llm.ErrResponse},
	{"nothing", anthropic.Codec{}, "", "", llm.ErrResponse},
	{"pings only", anthropic.Codec{}, events(`{"type":"ping"}`), "", llm.ErrResponse},

	{"chat", openai.Chat{}, events(chunk, finish, done), llm.StopLength, nil},
	{"no DONE", openai.Chat{}, events(chunk, finish), llm.StopLength, nil},
	{"no finish reason", openai.Chat{}, events(chunk, done), llm.StopEnd, nil},
	{"DONE without a line end", openai.Chat{}, events(chunk) + "data: [DONE]", llm.StopEnd, nil},
	{"DONE in the event's name too", openai.Chat{}, "event: done\n" + events(chunk, done) + "garbage", llm.StopEnd, nil},
	{"cut off", openai.Chat{}, events(chunk), "", io.ErrUnexpectedEOF},
	{"error in a chunk", openai.Chat{}, events(chunk, `{"error":{"message":"no capacity","code":503}}`), "", llm.ErrOverloaded},
	{"error in the choice", openai.Chat{}, events(`{"choices":[{"error":{"message":"slow down","code":429},"delta":{},"finish_reason":"error"}]}`), "", llm.ErrRateLimited},
	{"only DONE", openai.Chat{}, events(done), "", llm.ErrResponse},

	{"responses", openai.Responses{}, events(created, completed), llm.StopEnd, nil},
	{"failed", openai.Responses{}, events(`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"x"},"output":[]}}`), "", llm.ErrServer},
	{"overflow", openai.Responses{}, events(`{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"x"}}}`), "", llm.ErrOverflow},
	{"error of the stream", openai.Responses{}, events(`{"type":"error","code":"rate_limit_exceeded","message":"x"}`), "", llm.ErrRateLimited},
	{"created and cut off", openai.Responses{}, events(created), "", io.ErrUnexpectedEOF},
	{"another API", openai.Responses{}, events(finish, done), "", llm.ErrResponse},
}

func TestStreams(t *testing.T) {
	for _, test := range streams {
		q := &exchange.Question{API: test.api}
		r, _, err := q.Reply("test", response(test.body, true))
		if test.err != nil || err != nil {
			if !errors.Is(err, test.err) {
				t.Errorf("%s: %v, want %v", test.name, err, test.err)
			}
			continue
		}
		if r.Text != "a" || r.Stop != test.stop || r.RequestID != "req_1" || r.Message.Frame != nil {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

// FuzzStreams: what was handed on is owned up to, adds up to the reply, and who
// listens changes nothing.
func FuzzStreams(f *testing.F) {
	for i, test := range streams {
		f.Add(test.body, uint8(i))
	}
	apis := []wire.Answers{anthropic.Codec{}, openai.Chat{}, openai.Responses{}}
	f.Fuzz(func(t *testing.T, body string, which uint8) {
		text := ""
		q := &exchange.Question{API: apis[int(which)%len(apis)], OnDelta: func(d llm.Delta) { text += d.Text }}
		r, delivered, err := q.Reply("test", response(body, true))
		if text != "" && !delivered {
			t.Fatal("text was handed on and not owned up to")
		}
		_, _, err2 := (&exchange.Question{API: q.API}).Reply("test", response(body, true))
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%v with a listener, %v without", err, err2)
		}
		if err != nil {
			return
		}
		if r.Message.Role != thread.Assistant {
			t.Fatal("a reply of nobody")
		}
		// Bytes that are no UTF-8 cannot be kept in a message, one U+FFFD stands
		// for each.
		if q.API == (openai.Chat{}) && r.Text != string([]rune(text)) {
			t.Fatalf("text %q, pieces %q", r.Text, text)
		}
	})
}

func FuzzWhole(f *testing.F) {
	for i, body := range []string{
		`{"type":"message","model":"m","content":[{"type":"text","text":"{}"}],"stop_reason":"end_turn","usage":{"input_tokens":1}}`,
		`{"model":"m","choices":[{"message":{"role":"assistant","content":"{}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`,
		`{"output":[{"type":"message","role":"assistant","content":"{}"}]}`, `{"error":{"message":"x"}}`, `{"error":"x"}`,
	} {
		f.Add(body, uint8(i))
	}
	apis := []wire.Answers{anthropic.Codec{}, openai.Chat{}, openai.Responses{}}
	f.Fuzz(func(t *testing.T, body string, which uint8) {
		q := &exchange.Question{API: apis[int(which)%len(apis)], Schema: &llm.Schema{JSON: `{"type":"object"}`}}
		if r, _, err := q.Reply("test", response(body, false)); err == nil && r.JSON != "" && r.JSON[0] != '{' {
			t.Fatalf("%q is no object", r.JSON)
		}
	})
}
