package sqlite_test

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/store/apikey"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// TestKeysAreGone: nobody else reads the file, and neither it nor its journal holds
// a data key as an older master key wrapped it, or one that was erased. A20
func TestKeysAreGone(t *testing.T) {
	ctx, folder := t.Context(), t.TempDir()
	path := filepath.Join(folder, "p.db")
	db := open(t, path, nil)
	wrapped := func(revision int, master string) keyring.Wrapped {
		return keyring.Wrapped{Tenant: "../x", Version: 1, Revision: revision, Master: master, Sealed: bytes.Repeat([]byte(master), 4), Created: time.Unix(1, 0).UTC()}
	}
	holds := func(master string) (n int) {
		for _, data := range contents(t, folder) {
			n += bytes.Count(data, bytes.Repeat([]byte(master), 4))
		}
		return n
	}
	keys := db.DataKeys()
	for n, master := range []string{"first-master", "first-master", "second-master"} {
		if err := keys.Put(ctx, wrapped(n+1, master)); err != nil {
			t.Fatal(err)
		}
		if n == 1 && holds("first-master") == 0 {
			t.Error("the test looks in the wrong place")
		}
	}
	if err := keys.(keyring.Settler).Settle(ctx); err != nil {
		t.Fatal(err)
	}
	if first, second := holds("first-master"), holds("second-master"); first != 0 || second == 0 {
		t.Errorf("wrapped by the old master key %d times, by the new one %d times", first, second)
	}
	if err := keys.Erase(ctx, "../x"); err != nil {
		t.Fatal(err)
	}
	if n := holds("second-master"); n != 0 {
		t.Errorf("after Erase the key is there %d times", n)
	}
	for name := range contents(t, folder) {
		if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// TestKeysStayInJournal: while somebody reads, the journal cannot be emptied and may hold an
// erased key. That is an error, and erasing again ends it.
func TestKeysStayInJournal(t *testing.T) {
	ctx, folder := t.Context(), t.TempDir()
	path := filepath.Join(folder, "p.db")
	db := open(t, path, nil)
	keys, secret := db.DataKeys(), bytes.Repeat([]byte("the-key"), 4)
	if err := keys.Put(ctx, keyring.Wrapped{Tenant: "x", Version: 1, Revision: 1, Master: "m", Sealed: secret, Created: time.Unix(1, 0).UTC()}); err != nil {
		t.Fatal(err)
	}
	holds := func() (n int) {
		for _, data := range contents(t, folder) {
			n += bytes.Count(data, secret)
		}
		return n
	}
	if _, err := db.SQL().ExecContext(ctx, "PRAGMA busy_timeout(0)"); err != nil { // it has one connection
		t.Fatal(err)
	}
	reader, err := open(t, path, nil).SQL().BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback()
	var n int
	if err := reader.QueryRowContext(ctx, "SELECT count(*) FROM data_keys").Scan(&n); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if err := keys.Erase(ctx, "x"); err == nil || !strings.Contains(err.Error(), "try again") || holds() == 0 {
		t.Errorf("while somebody reads: %v; the key is there %d times", err, holds())
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := keys.Erase(ctx, "x"); err != nil || holds() != 0 {
		t.Errorf("afterwards: %v; the key is there %d times", err, holds())
	}
}

// TestAPIKeys: a token is not in the file, what one process revokes another refuses,
// and a row that cannot be read opens nothing, is named, and does not hide others.
func TestAPIKeys(t *testing.T) {
	ctx, folder := t.Context(), t.TempDir()
	path := filepath.Join(folder, "p.db")
	db := open(t, path, nil)
	here, there := apikey.New(db.APIKeys(), nil), apikey.New(open(t, path, &sqlite.Options{}).APIKeys(), nil)
	var tokens, ids []string
	for range 4 {
		token, k, err := here.Add(ctx, apikey.Grant{Rights: apikey.Read})
		if err != nil {
			t.Fatal(err)
		}
		tokens, ids = append(tokens, token), append(ids, k.ID)
		if _, err := there.Check(ctx, token); err != nil {
			t.Error(err)
		}
	}
	for name, data := range contents(t, folder) {
		if secret := tokens[0][len(tokens[0])-52:]; bytes.Contains(data, []byte(secret)) {
			t.Errorf("%s holds a token", name)
		}
	}
	if err := here.Revoke(ctx, ids[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := db.SQL().Exec(`UPDATE api_keys SET rights = 'everything' WHERE id = $1; UPDATE api_keys SET hash = x'00' WHERE id = $2`, ids[1], ids[2]); err != nil {
		t.Fatal(err)
	}
	for n, token := range tokens {
		if _, err := there.Check(ctx, token); (err == nil) != (n == 3) {
			t.Errorf("token %d: %v", n, err)
		}
	}
	good, bad := 0, 0
	for k, err := range there.List(ctx) {
		if err == nil && (k.ID == ids[0] || k.ID == ids[3]) {
			good++
		} else if err != nil && (k.ID == ids[1] || k.ID == ids[2]) {
			bad++
		}
	}
	if good != 2 || bad != 2 {
		t.Errorf("%d good, %d bad", good, bad)
	}
}
