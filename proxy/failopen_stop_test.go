package proxy_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// heard notes the last request to a quiet provider.
type heard struct {
	quiet
	body []byte
}

func (h *heard) RoundTrip(r *http.Request) (*http.Response, error) {
	h.body, _ = io.ReadAll(r.Body)
	return h.quiet.RoundTrip(r)
}

// TestStop: where the process is to end while a compaction takes long, the request goes on as it came,
// also if the work does not hear of it.
func TestStop(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			over := make(chan struct{})
			stop, end := context.WithCancel(t.Context())
			defer close(over)
			f := &faulty{at: "plan", harm: func(ctx context.Context) error {
				end()
				if !deaf {
					<-ctx.Done()
					return ctx.Err()
				}
				<-over
				return nil
			}}
			up := &heard{}
			tr, err := proxy.NewTransport(&proxy.Options{Base: up, Window: window, Stop: stop, Config: palimpsest.Config{Counter: counter(), Policy: faultyPolicy{f}}})
			if err != nil {
				t.Fatal(err)
			}
			body := long(t, wire.Anthropic, 400<<10).body()
			res, err := tr.RoundTrip(request(t, "https://example.invalid"+paths[wire.Anthropic], bytes.Clone(body)))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if reason := res.Header.Get(proxy.ReasonHeader); reason != "stopping" || !bytes.Equal(up.body, body) {
				t.Errorf("passed because of %q with %d of %d bytes", reason, len(up.body), len(body))
			}
		})
	}
}
