package keydir

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/palimpsest-ai/palimpsest/apikey"
	"github.com/palimpsest-ai/palimpsest/apikey/apikeytest"
)

func open(t testing.TB, path string) *Store {
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStore(t *testing.T) {
	apikeytest.TestStore(t, func(t testing.TB) apikey.Store { return open(t, t.TempDir()) })
}

// TestFiles: nobody else reads the files, they hold no token, and a revoked key
// is refused by another process that has the directory open.
func TestFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	here, there := apikey.New(open(t, path), nil), apikey.New(open(t, path), nil)
	token, k, err := here.Add(t.Context(), apikey.Grant{Rights: apikey.Read})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	data, err := os.ReadFile(filepath.Join(path, entries[0].Name()))
	if err != nil || bytes.Contains(data, []byte(token[len(token)-52:])) {
		t.Errorf("%v: %s", err, data)
	}
	if info, err := entries[0].Info(); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := there.Check(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	if err := here.Revoke(t.Context(), k.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := there.Check(t.Context(), token); err == nil {
		t.Error("a revoked key is still good elsewhere")
	}
}

// TestDamage: a file that cannot be read opens nothing, is named, and does not
// hide the others.
func TestDamage(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	keys := apikey.New(s, nil)
	var tokens, ids []string
	for range 3 {
		token, k, err := keys.Add(t.Context(), apikey.Grant{Rights: apikey.Read})
		if err != nil {
			t.Fatal(err)
		}
		tokens, ids = append(tokens, token), append(ids, k.ID)
	}
	if err := os.WriteFile(filepath.Join(path, ids[0]+".json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(path, ids[1]+".json"), filepath.Join(path, "aaaaaaaaaaaaaaaa.json")); err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens[:2] {
		if _, err := keys.Check(t.Context(), token); err == nil {
			t.Error("a damaged key is good")
		}
	}
	if _, err := keys.Check(t.Context(), tokens[2]); err != nil {
		t.Error(err)
	}
	good, bad := 0, 0
	for k, err := range keys.List(t.Context()) {
		if err == nil && k.ID == ids[2] {
			good++
		} else if err != nil && k.ID != "" {
			bad++
		}
	}
	if good != 1 || bad != 2 {
		t.Errorf("%d good, %d bad", good, bad)
	}
}

// FuzzDecode: any file is a key or an error, and a key is written as it is read.
func FuzzDecode(f *testing.F) {
	s, keys := &apikey.Memory{}, (*apikey.Keys)(nil)
	keys = apikey.New(s, nil)
	_, k, err := keys.Add(context.Background(), apikey.Grant{Tenant: "t", Rights: apikey.Read, Name: "n"})
	if err != nil {
		f.Fatal(err)
	}
	data, err := encode(k)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{data, {}, []byte("{}"), []byte(`{"version":1,"rights":"read","sha256":"00"}`), []byte(`{"version":2}`)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := decode(data)
		if err != nil {
			return
		}
		written, err := encode(k)
		if err != nil {
			return // a year that JSON cannot write
		}
		if again, err := decode(written); err != nil || !again.Created.Equal(k.Created) || again.Hash != k.Hash || again.Rights != k.Rights {
			t.Errorf("%+v became %+v, %v", k, again, err)
		}
	})
}

// TestFirstForm takes a key that the first version kept. The file may not change.
func TestFirstForm(t *testing.T) {
	k, err := apikey.New(open(t, "testdata/v1"), nil).Check(t.Context(), "plk_mzuxq5dvojsscztj_pb2hk4tfeftgs6duovzgkilgnf4hi5lsmuqwm2lyor2xezjbmzuq")
	if err != nil || k.Tenant != "acme" || k.Rights != apikey.Read|apikey.Admin || k.Name != "fixture" || k.Created.Year() != 2025 {
		t.Errorf("%+v, %v", k, err)
	}
}
