package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// TestAnswersAreBounded: the oldest answers of a tenant go when there are too
// many, and nobody else's.
func TestAnswersAreBounded(t *testing.T) {
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "p.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.Tenant("other").Answers.Put(t.Context(), "0", []byte("mine"))
	_, err = db.SQL().ExecContext(t.Context(), `INSERT INTO summaries (tenant, name, created, content)
		WITH RECURSIVE old(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM old WHERE n < $1) SELECT '', 'old ' || n, n, 'x' FROM old`, store.MaxAnswers)
	if err != nil {
		t.Fatal(err)
	}
	a := db.Tenant("").Answers
	const more = 64
	for n := range more {
		a.Put(t.Context(), fmt.Sprint(n), []byte("answer"))
	}
	for n := range more {
		if _, ok := a.Get(t.Context(), fmt.Sprint(n)); !ok {
			t.Errorf("the new answer %d is gone", n)
		}
	}
	var held, oldest int
	if err := db.SQL().QueryRowContext(t.Context(), `SELECT count(*), min(created) FROM summaries WHERE tenant = ''`).Scan(&held, &oldest); err != nil {
		t.Fatal(err)
	}
	// The new ones are counted from the first on, with the other tenant's.
	if held < store.MaxAnswers || held > store.MaxAnswers+1 || oldest < more-1 {
		t.Errorf("%d answers are held, the oldest of %d", held, oldest)
	}
	if _, ok := db.Tenant("other").Answers.Get(t.Context(), "0"); !ok {
		t.Error("another tenant's answer is gone")
	}
}
