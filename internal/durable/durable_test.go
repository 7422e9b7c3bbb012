package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/durable"
)

func open(t *testing.T) (durable.Dir, string) {
	path := filepath.Join(t.TempDir(), "a", "b")
	d, err := durable.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Root.Close() })
	return d, path
}

// TestCreate: of several who want a name one gets it, whole, and nothing else is
// left.
func TestCreate(t *testing.T) {
	d, path := open(t)
	var won atomic.Int32
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			switch err := d.Create("x/y", []byte(strings.Repeat(string(rune('a'+n)), 10_000))); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, fs.ErrExist):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(filepath.Join(path, "x", "y"))
	if err != nil || won.Load() != 1 || len(data) != 10_000 || strings.Trim(string(data), string(data[:1])) != "" {
		t.Errorf("%d won, %d bytes, %v", won.Load(), len(data), err)
	}
	entries, err := os.ReadDir(filepath.Join(path, "x"))
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Size() != 10_000 || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestStaysInside: no name leads out of the directory.
func TestStaysInside(t *testing.T) {
	d, path := open(t)
	for _, name := range []string{"../out", "x/../../out", "/out"} {
		if d.Create(name, nil) == nil {
			t.Errorf("%s was written", name)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("outside: %v, %v", entries, err)
	}
}
