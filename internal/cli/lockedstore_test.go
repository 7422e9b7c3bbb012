package cli

import (
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// TestLockedStore: while another process has the file of the store locked, a write waits as long as it is
// told to, also behind others that wait, and is then answered with 503 and when to try again; what only
// reads is answered, and so is a write once the lock is gone.
func TestLockedStore(t *testing.T) {
	const busy = 100 * time.Millisecond
	path := filepath.Join(t.TempDir(), "p.db")
	db, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.SQL().ExecContext(t.Context(), "PRAGMA busy_timeout(100)"); err != nil { // it has one connection
		t.Fatal(err)
	}
	d, err := daemon.New(daemon.Config{Store: db})
	if err != nil {
		t.Fatal(err)
	}
	served := httptest.NewServer(d)
	defer served.Close()
	ask := func(method, path, body string) (*http.Response, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, served.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		res, err := served.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		said, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(said)
	}
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			began := time.Now()
			res, said := ask("POST", api.Root, `{"id":"a"}`)
			if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") != "1" || !strings.Contains(said, "locked") {
				t.Errorf("while it is locked: %d, Retry-After %q: %s", res.StatusCode, res.Header.Get("Retry-After"), said)
			}
			if took := time.Since(began); took < busy {
				t.Errorf("it waited only %v", took)
			}
		})
	}
	all.Wait()
	if res, said := ask("GET", api.Root, ""); res.StatusCode != http.StatusOK {
		t.Errorf("what reads: %d %s", res.StatusCode, said)
	}
	if _, err := other.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if res, said := ask("POST", api.Root, `{"id":"a"}`); res.StatusCode != http.StatusCreated {
		t.Errorf("afterwards: %d %s", res.StatusCode, said)
	}
}
