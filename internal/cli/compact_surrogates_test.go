package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBrokenSurrogates: half a surrogate pair, which providers refuse, is replaced, and the report says so.
func TestBrokenSurrogates(t *testing.T) {
	file := filepath.Join(t.TempDir(), "body.json")
	body := `{"model":"claude-opus-5","max_tokens":9,"messages":[{"role":"user","content":"cut \ud83d here, whole \ud83d\ude00"}]}`
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	status, out, stderr := run(t, "compact", file, "--budget", "5000", "--store", t.TempDir())
	if want := strings.Replace(body, `\ud83d here`, `\ufffd here`, 1); status != 0 || strings.TrimSpace(out) != want {
		t.Errorf("status %d: %s\nwant %s", status, out, want)
	}
	if !strings.Contains(stderr, "1 broken surrogate pair became U+FFFD") {
		t.Errorf("the report does not say so: %s", stderr)
	}
}
