package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestSecret: the key is made once, for its owner alone, and only where it is
// needed; a file that holds none is told of.
func TestSecret(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_DATA_HOME", home)
	path := filepath.Join(home, "palimpsest", secretFile)
	if key, err := loadSecret(false); key != nil || err != nil {
		t.Errorf("without need: %x, %v", key, err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("it was made without need")
	}
	first, err := loadSecret(true)
	if err != nil || len(first) != 32 {
		t.Fatalf("%x, %v", first, err)
	}
	for _, needed := range []bool{true, false} {
		if again, err := loadSecret(needed); err != nil || !bytes.Equal(first, again) {
			t.Errorf("again: %x, %v", again, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := loadSecret(true); key != nil || err == nil {
		t.Errorf("from nonsense: %x, %v", key, err)
	}
}
