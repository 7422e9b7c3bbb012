//go:build unix

package hostile_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/palimpsest-ai/palimpsest/internal/test/hostile"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestWebSocket: whatever is said on a WebSocket for responses is answered, or the
// connection closed, and the proxy goes on.
func TestWebSocket(t *testing.T) {
	s, up := proxied(t)
	n, share := size()
	sample := []byte(`{"type":"response.create","generate":true,"previous_response_id":"resp_1","client_metadata":{"x-codex-turn-metadata":"{}"},` + strings.TrimPrefix(string(conversation(wire.Responses, true, 600)), "{"))
	limit, w := s.measured(t, wire.Responses, conversation(wire.Responses, true, 7000+n/12)), &worst{}
	for c := range inTurn(slices.Values(some(hostile.Whole(n), 1, share)), slices.Values(some(hostile.Broken(sample, n), 1, share)), hostile.Changed(sample, n, 1, share)) {
		up.say(nil, "")
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // far more than an answer takes
		conn, _, err := websocket.Dial(ctx, strings.Replace(s.url, "http", "ws", 1)+"/v1/responses", nil)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetReadLimit(-1)
		if err := conn.Write(ctx, websocket.MessageText, c.Data); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if _, _, err = conn.Read(ctx); err != nil && websocket.CloseStatus(err) < 0 {
			t.Errorf("%s: %v", c.Name, err)
		}
		conn.CloseNow()
		cancel()
		f := s.do(t, order{}).figures
		w.see(c.Name, f)
		limit.holds(t, len(c.Data), f)
		if t.Failed() {
			t.Fatalf("the last case: %s", c.Name)
		}
	}
	for _, api := range apis {
		s.alive(t, api)
	}
	w.tell(t, limit)
}
