//go:build unix

package sessions_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/sessions"
)

// TestPipes: a pipe in place of an agent's database, or of its list of them, is no session and is not waited for.
func TestPipes(t *testing.T) {
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	for _, path := range []string{"opencode/opencode.db", "goose/sessions/sessions.db", "crush/projects.json"} {
		path = filepath.Join(data, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, agent := range []string{"opencode", "goose", "crush"} {
		if all, err := new(sessions.Finder).Find(agent); err != nil || len(all) > 0 {
			t.Errorf("%s: %v, %v", agent, all, err)
		}
	}
}
