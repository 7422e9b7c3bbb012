//go:build unix

package hostile_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/hostile"
)

// TestHeld: whatever is said of a history that the provider holds is passed on or refused, and
// the proxy goes on.
func TestHeld(t *testing.T) {
	const (
		message = `{"role":"user","content":[{"type":"text","text":"Read all files.","cache_control":{"type":"ephemeral"}}]}`
		thread  = `"model":"claude-x","max_tokens":1000,"messages":[` + message + `]}`
	)
	s, up := proxied(t)
	n, share := size()
	for i, held := range []struct{ name, path, body string }{
		{"a thread begins", "/v1/messages", `{"thread":{"type":"create"},"system":"You repair builds.","tools":[{"name":"read_file","input_schema":{"type":"object"}}],` + thread},
		{"a thread goes on", "/v1/messages", `{"thread":{"type":"continue","previous_message_id":"msg_1"},` + thread},
		{"a thread is counted", "/v1/messages/count_tokens", `{"thread":{"type":"continue","previous_message_id":"msg_1"},` + thread},
		{"a conversation begins", "/v1/conversations", `{"items":[` + message + `],"metadata":{"a":"b"}}`},
		{"a conversation grows", "/v1/conversations/resp_1/items", `{"items":[` + message + `]}`},
		{"a response in a conversation", "/v1/responses", `{"model":"m","conversation":{"id":"resp_1"},"input":[` + message + `]}`},
	} {
		t.Run(held.name, func(t *testing.T) {
			for c := range inTurn(slices.Values(some(hostile.Whole(n), i, share)), slices.Values(some(hostile.Broken([]byte(held.body), n), i, share)), hostile.Changed([]byte(held.body), n, i, max(1, share/8)), slices.Values(some(hostile.Packed([]byte(held.body), n/8), i, share))) {
				up.say(nil, "")
				q := request{"POST", held.path, nil, c.Data}
				if c.Encoding != "" {
					q.header = map[string]string{"Content-Encoding": c.Encoding}
				}
				if status, said := s.send(t, q); status == 0 || status >= 500 {
					t.Fatalf("%s: %d %.300s", c.Name, status, said)
				}
			}
			for _, api := range apis {
				s.alive(t, api)
			}
		})
	}
	for _, path := range []string{"//", "/..%2f..", "/%00", "/conv_1%0d%0aX-A:b", "/" + fmt.Sprintf("%02000d", 1), "/conv_1/items/x"} {
		if status, said := s.send(t, request{"DELETE", "/v1/conversations" + path, nil, nil}); status >= 500 {
			t.Errorf("%q: %d %.300s", path, status, said)
		}
	}
}
