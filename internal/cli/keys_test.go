package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// TestDataKeys changes data keys and the master key under what is encrypted, as
// an operator does, and erases a tenant.
func TestDataKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.db")
	run := func(want int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		status := Run(t.Context(), append([]string{"keys"}, args...), Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		if status != want {
			t.Fatalf("%q: status %d: %s", args, status, &errs)
		}
		return out.String() + errs.String()
	}
	masterFile := filepath.Join(t.TempDir(), "master.key")
	masterText := run(0, "master")
	saveMaster := func() {
		t.Helper()
		if err := os.WriteFile(masterFile, []byte(masterText), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ring := func() *keyring.Keyring {
		t.Helper()
		masters, err := keyring.ParseMasters(masterText)
		if err != nil {
			t.Fatal(err)
		}
		db, err := sqlite.Open(t.Context(), file, &sqlite.Options{Masters: masters})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db.Keyring()
	}
	saveMaster()
	flags := []string{"--store", file, "--master-key", masterFile}
	with := func(args ...string) []string { return append(args, flags...) }
	if told := run(1, with("rotate")...); !strings.Contains(told, "there is no store") {
		t.Errorf("without a store: %s", told)
	}
	ring()
	if told := run(1, with("rotate")...); !strings.Contains(told, "nothing was encrypted") {
		t.Errorf("without data keys: %s", told)
	}

	sealed := map[string][]byte{}
	for _, tenant := range []string{"", "acme"} {
		var err error
		if sealed[tenant], _, err = ring().Seal(t.Context(), tenant, nil, []byte("text of "+tenant)); err != nil {
			t.Fatal(err)
		}
	}
	opens := func(when string) {
		t.Helper()
		for tenant, data := range sealed {
			if text, err := ring().Open(t.Context(), tenant, nil, data); err != nil || string(text) != "text of "+tenant {
				t.Errorf("%s: tenant %q: %q, %v", when, tenant, text, err)
			}
		}
	}
	if told := run(0, with("rotate", "--tenant", "acme")...); told != "tenant acme: dk-2 instead of dk-1\n" {
		t.Errorf("one tenant: %s", told)
	}
	if told := run(0, with("rotate")...); told != "the default tenant: dk-2 instead of dk-1\ntenant acme: dk-3 instead of dk-2\n" {
		t.Errorf("all tenants: %s", told)
	}
	opens("after rotating")
	run(1, with("rotate", "--tenant", "amce")...)
	run(2, with("rotate", "--tenant", "acme", "--master")...)

	old := masterText
	masterText += run(0, "master")
	saveMaster()
	if told := run(0, with("rotate", "--master")...); !strings.HasPrefix(told, "5 data keys wrapped") {
		t.Errorf("master: %s", told)
	}
	masterText = strings.TrimPrefix(masterText, old)
	saveMaster()
	opens("with the new master key alone")
	run(2, with("erase", "--tenant", "acme")...)
	run(1, with("erase", "--tenant", "amce", "--confirm", "amce")...)
	opens("before Erase")
	run(0, with("erase", "--tenant", "acme", "--confirm", "acme")...)
	if _, err := ring().Open(t.Context(), "acme", nil, sealed["acme"]); !errors.Is(err, keyring.ErrErased) {
		t.Errorf("after Erase: %v", err)
	}
	delete(sealed, "acme")
	opens("after the other tenant was erased")
}
