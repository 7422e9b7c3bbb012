package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// streamError is a stream of an API that begins well and ends with an error; large puts as much into
// the last event as providers repeat of a request.
func streamError(api string, large bool) string {
	switch api {
	case wire.Anthropic:
		return "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n" +
			"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"CANARY is overloaded\"}}\n\n"
	case wire.Responses:
		repeated := ""
		if large {
			repeated = `,"instructions":"` + strings.Repeat("You are careful. ", 5000) + `"`
		}
		return "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_1\",\"status\":\"in_progress\",\"error\":null,\"output\":[]}}\n\n" +
			"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"output_index\":0,\"delta\":\"We\"}\n\n" +
			"event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":2,\"response\":{\"id\":\"resp_1\",\"status\":\"failed\",\"error\":{\"code\":\"server_overloaded\",\"message\":\"CANARY\"}" + repeated + ",\"output\":[]}}\n\n"
	case wire.Chat:
		return "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"We\"},\"finish_reason\":null}]}\n\n" +
			"data: {\"error\":{\"message\":\"CANARY\",\"type\":\"overloaded\",\"code\":503}}\n\ndata: [DONE]\n\n"
	}
	return "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"We\"}]}}]}\r\n\r\n" +
		"data: {\"error\":{\"code\":503,\"message\":\"CANARY\",\"status\":\"UNAVAILABLE\"}}\r\n\r\n"
}

// TestProviderFailuresAreTold: an answer that is not a model's is told of as the provider's failure:
// its kind and its status, and nothing that was said. So is an error with which a stream ends, whether
// it was looked at on its way or not.
func TestProviderFailuresAreTold(t *testing.T) {
	for _, api := range apis {
		for _, results := range []int{1, 24} {
			up, l := strict(t), newReports()
			o := smallWindow()
			o.Config.Events = l
			url, _ := start(t, up, o)
			want := func(what string, s said, err error, status int, cause string) {
				t.Helper()
				e, _ := l.next()
				if err != nil || s.status != status || e.Details["status"] != status || e.Err != "provider" || event.CauseText(e.Cause) != cause || strings.Contains(l.text(), "CANARY") {
					t.Errorf("%s, %d results, %s: status %d, %v: told of %q, %q, %v", api, results, what, s.status, err, e.Err, event.CauseText(e.Cause), e.Details)
				}
			}
			a := newAgent(t, api, url, false)
			a.grow(0, results)
			for status, cause := range map[int]string{401: "not authorized", 403: "not authorized", 404: "not found", 429: "rate limited", 500: "server error", 529: "overloaded"} {
				up.Model = func(*proxytest.Request) proxytest.Answer {
					return proxytest.Answer{Status: status, Body: `{"error":{"message":"CANARY"}}`}
				}
				s, err := a.try()
				want("whole", s, err, status, fmt.Sprintf("%s (status %d)", cause, status))
			}
			a.stream = true
			for _, large := range []bool{false, true} {
				up.Model = func(*proxytest.Request) proxytest.Answer {
					return proxytest.Answer{Stream: streamError(api, large)}
				}
				res, raw := a.raw(t)
				want("stream", said{status: res.StatusCode, raw: raw}, nil, 200, "overloaded")
			}
			up.Model = nil
			a.ask()
			if e, _ := l.next(); e.Err != "" {
				t.Errorf("%s: a good answer is told of as %q", api, e.Err)
			}
			if all := l.failures(); len(all) > 0 {
				t.Errorf("%s: failures of ours: %v", api, all)
			}
		}
	}
}

// TestRoundFailuresAreTold: so is a further request that failed after all tries, in a stream too, whose
// status is still 200.
func TestRoundFailuresAreTold(t *testing.T) {
	for _, api := range apis {
		for _, stream := range []bool{false, true} {
			up, l := strict(t), newReports()
			up.Model = func(q *proxytest.Request) proxytest.Answer {
				if asks(q) > 0 {
					return proxytest.Answer{Status: 503, Body: errorBody(api, 503, "CANARY is down for today")}
				}
				return lookup(q)
			}
			o := smallWindow()
			o.Config.Events = l
			url, p := start(t, up, o)
			a := newAgent(t, api, url, stream)
			a.grow(0, 24)
			res, raw := a.raw(t)
			e, _ := l.next()
			status, cause := http.StatusOK, "overloaded"
			if api == wire.Chat || api == wire.Responses {
				cause = "server error" // as errorBody says
			}
			if !stream {
				status, cause = http.StatusServiceUnavailable, cause+" (status 503)"
			}
			if res.StatusCode != status || !strings.Contains(string(raw), "down for today") || e.Err != "provider" || event.CauseText(e.Cause) != cause || e.Details["action"] != proxy.Compacted || strings.Contains(l.text(), "CANARY") {
				t.Errorf("%s, stream %t: status %d: told of %q, %q, %v", api, stream, res.StatusCode, e.Err, event.CauseText(e.Cause), e.Details)
			}
			if p.Totals().Faults != 0 {
				t.Errorf("%s, stream %t: %+v", api, stream, p.Totals())
			}
		}
	}
}

// TestStreamsInBits: how a stream is cut on its way does not matter.
func TestStreamsInBits(t *testing.T) {
	for _, api := range apis {
		for _, size := range []int{1, 2, 7, 100} {
			up, l := strict(t), newReports()
			up.Model = func(*proxytest.Request) proxytest.Answer {
				return proxytest.Answer{Stream: streamError(api, true)}
			}
			o := smallWindow()
			o.Config.Events = l
			transport, err := proxy.NewTransport(&o)
			if err != nil {
				t.Fatal(err)
			}
			a := newAgent(t, api, up.URL, true)
			a.grow(0, 1)
			res, err := transport.RoundTrip(request(t, a.url+a.path(), a.body()))
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			for piece := make([]byte, size); err == nil; {
				var n int
				n, err = res.Body.Read(piece)
				got = append(got, piece[:n]...)
			}
			res.Body.Close()
			if e, _ := l.next(); e.Err != "provider" || event.CauseText(e.Cause) != "overloaded" || string(got) != streamError(api, true) {
				t.Errorf("%s, %d bytes at a time: told of %q, %q; %d bytes came", api, size, e.Err, event.CauseText(e.Cause), len(got))
			}
			transport.CloseIdleConnections()
		}
	}
}
