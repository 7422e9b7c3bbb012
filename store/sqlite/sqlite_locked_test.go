package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// waited is how long SQLite waits by itself.
const waited = (wait + 1) * time.Millisecond

// locked are connections to a file that another process has locked for good.
type locked struct{ err error }

func (l locked) Connect(context.Context) (driver.Conn, error) {
	time.Sleep(waited)
	return nil, l.err
}

func (locked) Driver() driver.Driver { return nil }

// TestLockedWhole: opening a file that is locked even for readers waits as long as a write, once.
func TestLockedWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	holder := pool(path, "_pragma=locking_mode(EXCLUSIVE)", 1)
	defer holder.Close()
	if _, err := holder.Exec("CREATE TABLE a (b)"); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", path+"?_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	busy := other.PingContext(t.Context())
	if busy == nil {
		t.Fatal("it is not locked")
	}
	for range 20 { // where two things are due, which comes first is by chance
		synctest.Test(t, func(t *testing.T) {
			db, began := sql.OpenDB(locked{busy}), time.Now()
			defer db.Close()
			if err := ready(t.Context(), db); err == nil || time.Since(began) > waited {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		})
	}
}
