package dir_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/palimpsest-ai/palimpsest/store/dir"
)

// TestBeside: what the command itself puts into the usual place before there is a
// store does not keep one from being made; anything else does.
func TestBeside(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{dir.CompactionKeyFile, dir.DaemonFile, dir.DaemonFile + "-wal"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := dir.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	path = t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "thesis.tex"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Open(path, nil); !errors.Is(err, dir.ErrNotStore) {
		t.Errorf("got %v", err)
	}
}
