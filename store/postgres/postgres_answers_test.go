package postgres_test

import (
	"fmt"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/postgres"
)

// TestAnswersAreBounded: the oldest answers of a tenant go when there are too many.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	db, err := postgres.Open(t.Context(), pgtest.Database(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Pool().Exec(t.Context(), `INSERT INTO summaries (tenant, name, created, content) SELECT '', 'old ' || n, n, 'x' FROM generate_series(1, $1::int) n`, store.MaxAnswers)
	if err != nil {
		t.Fatal(err)
	}
	a := db.Tenant("").Answers
	const more = 64
	for n := range more {
		a.Put(t.Context(), fmt.Sprint(n), []byte("answer"))
	}
	var held, oldest int
	if err := db.Pool().QueryRow(t.Context(), `SELECT count(*), min(created) FROM summaries`).Scan(&held, &oldest); err != nil {
		t.Fatal(err)
	}
	if held != store.MaxAnswers || oldest != more+1 {
		t.Errorf("%d answers are held, the oldest of %d", held, oldest)
	}
}
