package proxy_test

import (
	"fmt"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestHiddenSignature: Gemini signs only the first call of a batch. If that is one of ours, which the
// client is not shown, the client's first call has the documented value for a call without one: else
// Gemini would refuse the client's own history.
func TestHiddenSignature(t *testing.T) {
	ours := thread.ToolCall{ID: "ours_1", Name: recall.RecallTool, Arguments: `{"query":"code"}`}
	theirs := func(n int) thread.ToolCall {
		return thread.ToolCall{ID: fmt.Sprint("theirs_", n), Name: "read_file", Arguments: fmt.Sprintf(`{"path":"part_%03d.go"}`, n)}
	}
	part := func(c thread.ToolCall, sign string) string {
		return `data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":` + rawjson.Quote(c.Name) + `,"args":` + c.Arguments + `}` + sign + `}]}` + `,"index":0}]}` + "\n\n"
	}
	const signed, skip = `,"thoughtSignature":"c2lnbmVk"`, "skip_thought_signature_validator"
	inPieces := part(ours, signed) + part(theirs(1), "") + part(theirs(2), "") + `data: {"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9}}` + "\n\n"
	for name, c := range map[string]struct {
		stream bool
		a      proxytest.Answer
		want   string // of the first call
	}{
		"whole":          {false, proxytest.Answer{Calls: []thread.ToolCall{ours, theirs(1), theirs(2)}}, skip},
		"stream":         {true, proxytest.Answer{Calls: []thread.ToolCall{ours, theirs(1), theirs(2)}}, skip},
		"in pieces":      {true, proxytest.Answer{Stream: inPieces}, skip},
		"theirs first":   {false, proxytest.Answer{Calls: []thread.ToolCall{theirs(1), ours, theirs(2)}}, "c2lnbmVk"},
		"theirs, stream": {true, proxytest.Answer{Calls: []thread.ToolCall{theirs(1), ours, theirs(2)}}, "c2lnbmVk"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := strict(t)
			up.Model = func(q *proxytest.Request) proxytest.Answer {
				if _, tools := last(q); offered(q) && len(tools) > 0 {
					return c.a
				}
				return proxytest.Answer{Text: "ok"}
			}
			url, p := start(t, up, smallWindow())
			a := newAgent(t, wire.Gemini, url, c.stream)
			a.grow(0, 24)
			s := a.ask()
			parts := gjson.Get(s.element, `parts.#(functionCall)#`).Array()
			if len(parts) != 2 || parts[0].Get("thoughtSignature").Str != c.want || parts[1].Get("thoughtSignature").Exists() {
				t.Fatalf("the client has the calls %v", parts)
			}
			a.results(s.calls, partOf)
			up.Model = nil
			if next := a.ask(); next.status != 200 || next.thread() != s.thread() {
				t.Errorf("the next step: status %d, %q after %q", next.status, next.thread(), s.thread())
			}
			// And past the proxy.
			up.Window = 0
			a.url = up.URL
			if own, err := a.try(); err != nil || own.status != 200 {
				t.Errorf("the client's own history: status %d, %v: %s", own.status, err, own.raw)
			}
			refused(t, up.Requests())
			if p.Totals().Faults != 0 {
				t.Errorf("%+v", p.Totals())
			}
		})
	}
}
