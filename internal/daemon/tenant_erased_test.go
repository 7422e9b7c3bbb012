package daemon_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// recalled is what an agent finds.
func recalled(t *testing.T, h *host, key, query string) (string, bool) {
	t.Helper()
	return called(t, h.agent(t, key), "recall", map[string]any{"query": query})
}

// TestRecallForgets: what an agent has searched once is not found again when its thread is
// deleted, also when one of the same name and length takes its place.
func TestRecallForgets(t *testing.T) {
	h := start(t, daemon.Config{MCP: daemon.ReadMCP})
	h.talked(t, "", "t", "NATS")
	if text, failed := recalled(t, h, "", "decided queue"); failed || !strings.Contains(text, "We decided on NATS") {
		t.Fatal(text)
	}
	if answer, body := h.do(t, "DELETE", "/v1/threads/t", ""); answer.StatusCode != 204 {
		t.Fatal(body)
	}
	if text, _ := recalled(t, h, "", "decided queue"); strings.Contains(text, "NATS") {
		t.Errorf("deleted:\n%s", text)
	}
	h.talked(t, "", "t", "Kafka")
	if text, failed := recalled(t, h, "", "decided queue"); failed || strings.Contains(text, "NATS") || !strings.Contains(text, "We decided on Kafka") {
		t.Errorf("begun anew:\n%s", text)
	}
}

// erasable is a daemon over a store that encrypts, with a thread "t" of a tenant "a".
func erasable(t *testing.T) (h *host, ring *keyring.Keyring, token string) {
	t.Helper()
	masters, err := keyring.ParseMasters(keyring.NewMaster())
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "p.db"), &sqlite.Options{Masters: masters})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	keys := apikey.New(db.APIKeys(), nil)
	h = start(t, daemon.Config{Store: db, Keys: keys, MCP: daemon.ReadMCP})
	token = key(t, keys, "a", apikey.Read|apikey.Write|apikey.Admin)
	h.talked(t, token, "t", "NATS")
	return h, db.Keyring(), token
}

// TestErased: when the keys of a tenant are erased, nothing that the daemon has in memory is
// shown, and what is asked of the tenant is gone, not broken.
func TestErased(t *testing.T) {
	h, ring, token := erasable(t)
	if text, failed := recalled(t, h, token, "decided queue"); failed || !strings.Contains(text, "We decided on NATS") {
		t.Fatal(text)
	}
	if err := ring.Erase(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if text, failed := recalled(t, h, token, "decided queue"); !failed || strings.Contains(text, "NATS") || !strings.Contains(text, "keys were erased") {
		t.Errorf("failed is %t: %s", failed, text)
	}
	for _, q := range []struct{ method, path, body string }{
		{"GET", "/v1/threads", ""}, {"GET", "/v1/threads/t", ""}, {"GET", "/v1/threads/t/messages", ""}, {"POST", "/v1/threads", `{"id":"u"}`},
		{"POST", "/v1/threads/t/messages", `{"messages":[{"role":"user","parts":[{"type":"text","text":"x"}]}]}`}, {"DELETE", "/v1/threads/t", ""},
	} {
		answer, body := h.do(t, q.method, q.path, q.body, "Authorization", "Bearer "+token)
		if answer.StatusCode != http.StatusGone || !strings.Contains(body, "keys were erased") {
			t.Errorf("%s %s: %d %s", q.method, q.path, answer.StatusCode, body)
		}
	}
}
