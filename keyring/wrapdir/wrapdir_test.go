package wrapdir

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/keyring"
	"github.com/palimpsest-ai/palimpsest/keyring/keyringtest"
)

func open(t testing.TB, path string) *Keys {
	k, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

func TestKeys(t *testing.T) {
	keyringtest.TestKeys(t, func(t testing.TB) keyring.Keys { return open(t, t.TempDir()) })
}

// TestFiles: nobody else reads the files, one of each key holds something, old
// ones go, and all but the mark go with Erase.
func TestFiles(t *testing.T) {
	path := t.TempDir()
	k := open(t, path)
	for revision := 1; revision <= 20; revision++ {
		if err := k.Put(t.Context(), keyring.Wrapped{Tenant: "../x", Version: 1, Revision: revision}); err != nil {
			t.Fatal(err)
		}
	}
	files := 0
	names := func() (names []string) {
		files = 0
		err := filepath.Walk(path, func(name string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() {
				files++
				if info.Size() == 0 {
					return nil
				}
				names = append(names, info.Name())
				if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
					t.Errorf("%s has mode %v", name, info.Mode())
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	if got := strings.Join(names(), " "); got != "1.20.json" || files != keep {
		t.Errorf("%d files: %s", files, got)
	}
	if err := k.Erase(t.Context(), "../x"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names(), " "); got != "erased.json" || files != 1 {
		t.Errorf("files after Erase: %s", got)
	}
}

// TestDamage: a file that cannot be read is named, and is no missing key.
func TestDamage(t *testing.T) {
	good := `{"format":1,"tenant":"t","version":1,"revision":1,"master":"m","sealed":"AAAA"}`
	for _, data := range []string{"", "{", "{}", `{"format":2}`, strings.Replace(good, `"t"`, `"u"`, 1), strings.Replace(good, `"revision":1`, `"revision":2`, 1)} {
		path := t.TempDir()
		k := open(t, path)
		if err := k.Put(t.Context(), keyring.Wrapped{Tenant: "t", Version: 1, Revision: 1}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "t", "1.1.json"), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if keys, err := k.Load(t.Context(), "t"); err == nil || !strings.Contains(err.Error(), "1.1.json") {
			t.Errorf("%q gave %v, %v", data, keys, err)
		}
	}
}

// FuzzDecode: any file is a key or an error, and a key is written as it is read.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"format":1,"tenant":"t","version":1,"revision":1,"master":"m","sealed":"AAAA","messages":4294967296}`, `{"format":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := decode(data)
		if err != nil {
			return
		}
		written, err := encode(w)
		if err != nil {
			return // a year that JSON cannot write
		}
		again, err := decode(written)
		if err != nil || again.Tenant != w.Tenant || again.Version != w.Version || again.Used != w.Used || string(again.Sealed) != string(w.Sealed) {
			t.Errorf("%+v became %+v, %v", w, again, err)
		}
	})
}
