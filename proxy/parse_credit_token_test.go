package proxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest/proxy"
)

// TestCreditToken: a retry on another model under the token of a refusal goes out as the refused request did, but for
// the model and the token: the provider takes nothing else for it.
func TestCreditToken(t *testing.T) {
	var list []string
	for i := range 40 {
		list = append(list, fmt.Sprintf(`{"role":"user","content":"Shelf %d?"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm %d","signature":"c2ln"},{"type":"text","text":%q}]}`, i, i, strings.Repeat("boxes and boxes, ", 100)))
	}
	body := `{"model":"claude-opus-5","max_tokens":9,"messages":[` + strings.Join(list, ",") + `,{"role":"user","content":[{"type":"text","text":"And now?"}]}]}`
	var sent []string
	transport, err := proxy.NewTransport(&proxy.Options{Window: 9000, Base: roundTrip(func(r *http.Request) (*http.Response, error) {
		data, err := io.ReadAll(r.Body)
		sent = append(sent, string(data))
		answer := `{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5","content":[],"stop_reason":"refusal","stop_details":{"type":"refusal","fallback_credit_token":"fct_1","fallback_has_prefill_claim":false},"usage":{"input_tokens":9000,"output_tokens":1}}`
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer)), Header: http.Header{"Content-Type": {"application/json"}}, Request: r}, err
	})})
	if err != nil {
		t.Fatal(err)
	}
	retry := func(body string, more ...string) string {
		for _, set := range append(more, `model="claude-haiku-4-5"`, `fallback_credit_token="fct_1"`) {
			path, value, _ := strings.Cut(set, "=")
			body, err = sjson.SetRaw(body, path, value)
			if err != nil {
				t.Fatal(err)
			}
		}
		return body
	}
	const partial = `messages.-1={"role":"assistant","content":[{"type":"text","text":"Boxes"}]}`
	for _, b := range []string{body, retry(body), retry(body, partial)} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.anthropic.com/v1/messages", strings.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if len(sent) != 3 || len(sent[0]) >= len(body) {
		t.Fatalf("%d requests, the first of %d bytes", len(sent), len(sent[0]))
	}
	for n, want := range []string{retry(sent[0]), retry(sent[0], partial)} {
		if got := withoutCacheMarks(t, sent[n+1]); !reflect.DeepEqual(got, withoutCacheMarks(t, want)) {
			t.Errorf("sent\n%.3000s\nwant\n%.3000s", sent[n+1], want)
		}
	}
}

// withoutCacheMarks is a body without cache marks.
func withoutCacheMarks(t *testing.T, body string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(strings.ReplaceAll(body, `,"cache_control":{"type":"ephemeral"}`, "")), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
