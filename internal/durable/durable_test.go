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
	"github.com/palimpsest-ai/palimpsest/internal/property"
	"pgregory.net/rapid"
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
// left; Replace takes it in any case.
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
	if err := d.Replace("x/y", []byte("new")); err != nil {
		t.Fatal(err)
	}
	entries, err := d.List("x")
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Size() != 3 || runtime.GOOS != "windows" && info.Mode().Perm() != durable.FileMode {
		t.Errorf("%v, %v", info, err)
	}
}

// TestStaysInside: no name leads out of the directory.
func TestStaysInside(t *testing.T) {
	d, path := open(t)
	for _, name := range []string{"../out", "x/../../out", "/out"} {
		if d.Replace(name, nil) == nil || d.Create(name, nil) == nil || d.Append(name, nil) == nil {
			t.Errorf("%s was written", name)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("outside: %v, %v", entries, err)
	}
}

// TestEscape: one path element for each text, that no file system takes for
// another's.
func TestEscape(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[aA.%/\\: -]{0,4}`), rapid.StringMatching(`(long|LONG){38,42}`), rapid.SampledFrom([]string{"con", "NUL.txt", "com1", ".."}))
	property.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		x, y := durable.Escape(a, false), durable.Escape(b, false)
		if (a == b) != (x == y) || (a == b) != strings.EqualFold(x, y) {
			t.Errorf("%q is %q, %q is %q", a, x, b, y)
		}
		if x == "" || x == "." || x == ".." || len(x) > 200 || strings.ContainsAny(x, `/\:`) || durable.IsTemp(x) || !filepath.IsLocal(x) {
			t.Errorf("%q is %q", a, x)
		}
	})
}
