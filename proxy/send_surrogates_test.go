package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/proxy"
)

// TestBrokenSurrogatesPass: half a surrogate pair is sent as it came, below the mark and under a plan.
func TestBrokenSurrogatesPass(t *testing.T) {
	for _, turns := range []int{1, 40} {
		var list []string
		for i := range turns {
			list = append(list, fmt.Sprintf(`{"role":"user","content":"Shelf %d?"},{"role":"assistant","content":%q}`, i, strings.Repeat("boxes and boxes, ", 100)))
		}
		const last = `{"role":"user","content":"cut \ud83d here"}`
		body := `{"model":"claude-opus-5","max_tokens":9,"messages":[` + strings.Join(list, ",") + `,` + last + `]}`
		sent := ""
		transport, err := proxy.NewTransport(&proxy.Options{Window: 9000, Base: roundTrip(func(r *http.Request) (*http.Response, error) {
			data, err := io.ReadAll(r.Body)
			sent = string(data)
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: io.NopCloser(strings.NewReader("{}")), Header: http.Header{}, Request: r}, err
		})})
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.anthropic.com/v1/messages", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if (sent == body) != (turns == 1) || !strings.Contains(sent, `cut \ud83d here`) {
			t.Errorf("%d turns were sent as %.2000s", turns, sent)
		}
	}
}
