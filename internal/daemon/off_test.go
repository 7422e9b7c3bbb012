package daemon_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
)

// TestOff: a thread that is off is not prepared, so that its agent goes on by itself; it can be
// searched, and others are prepared.
func TestOff(t *testing.T) {
	off := map[string]string{"codex.s1": "palimpsest is off for codex"}
	c := start(t, daemon.Config{Off: func(id string) string { return off[id] }}).client(t, "")
	step := api.Step{Base: &neutral.Prompt{Model: "m"}, Window: 20_000, Edits: true, Messages: []neutral.Message{
		{ID: "a", Role: "user", Parts: []neutral.Part{{Type: "text", Text: "hello"}}},
	}}
	for _, id := range []string{"codex.s1", "codex.s2"} {
		if _, err := c.CreateThread(t.Context(), api.NewThread{ID: id}); err != nil {
			t.Fatal(err)
		}
		_, err := c.Prepare(t.Context(), id, 0, step)
		p, refused := errors.AsType[*api.Problem](err)
		if refused != (off[id] != "") || refused && (p.Status != http.StatusForbidden || !strings.Contains(p.Detail, "off for codex")) {
			t.Errorf("%s: %v", id, err)
		}
	}
	delete(off, "codex.s1")
	if _, err := c.Prepare(t.Context(), "codex.s1", 0, step); err != nil {
		t.Error(err)
	}
}
