package exchange_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/internal/exchange"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

func response(body string) *exchange.Response {
	return &exchange.Response{Body: strings.NewReader(body), Status: 200, RequestID: "req_1"}
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
		if r, err := q.Reply("test", response(body)); err == nil && r.JSON != "" && r.JSON[0] != '{' {
			t.Fatalf("%q is no object", r.JSON)
		}
	})
}
