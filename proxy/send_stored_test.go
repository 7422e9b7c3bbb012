package proxy_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestStoredAnswers: an answer is remembered if the request's own member "store" lets the provider keep it,
// whatever members of that name stand deeper in the request, and also if it was too small to be looked at.
func TestStoredAnswers(t *testing.T) {
	const deeper = `,"text":{"format":{"type":"json_schema","name":"x","schema":{"default":{"store":false}}}}`
	for _, c := range []struct {
		name   string
		stored bool
		more   string
		turns  int
		want   int
	}{
		{"stored", true, "", 24, 1},
		{"stored, and another member of that name", true, deeper, 24, 1},
		{"not stored", false, "", 24, 0},
		{"small, stored", true, "", 1, 1},
		{"small, not stored", false, "", 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			up, documents := proxytest.New(t), &store.Memory{}
			url, _ := start(t, up, proxy.Options{Window: 200_000, Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Documents: documents}}})
			a := newAgent(t, wire.Responses, url, false)
			a.stored, a.native = c.stored, c.more
			a.grow(0, c.turns)
			a.ask()
			kept, err := documents.Documents(t.Context(), "proxy-response", "", 10)
			if err != nil || len(kept) != c.want {
				t.Errorf("%d answers are remembered, %v", len(kept), err)
			}
		})
	}
}
