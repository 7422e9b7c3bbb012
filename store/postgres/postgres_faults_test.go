package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/postgres"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func user(text string) []thread.Message {
	return []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}}}
}

// TestLostConnection: the server ends the connection in the middle of a write.
// The error says so, nothing is half there, and the same call again makes it
// whole.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	ctx, address := t.Context(), pgtest.Database(t)
	killer, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer killer.Close(context.WithoutCancel(ctx))
	var at atomic.Value
	at.Store("")
	db, err := postgres.OpenSteps(ctx, address+"&application_name=victim", nil, func(step string) {
		if step == at.Load() {
			if _, err := killer.Exec(ctx, `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'victim'`); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := db.Tenant("")
	if _, err := s.Log.Append(ctx, "t", 0, user("zero")); err != nil {
		t.Fatal(err)
	}
	for n, step := range []string{"append: begun", "append: written"} {
		at.Store(step)
		if _, err := s.Log.Append(ctx, "t", n+1, user(step)); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v", step, err)
		}
		at.Store("")
		if th, err := s.Log.Load(ctx, "t"); err != nil || th.Len() != n+1 {
			t.Errorf("%s: %v, %v", step, th, err)
		}
		if th, err := s.Log.Append(ctx, "t", n+1, user(step)); err != nil || th.Len() != n+2 {
			t.Errorf("%s, again: %v, %v", step, th, err)
		}
	}
	// The answer is lost behind the commit: the same call again changes nothing.
	at.Store("append: committed")
	if _, err := s.Log.Append(ctx, "t", 3, user("three")); err != nil {
		t.Fatal(err)
	}
	at.Store("")
	if th, err := s.Log.Append(ctx, "t", 3, user("three")); err != nil || th.Len() != 4 {
		t.Errorf("%v, %v", th, err)
	}
}

// TestRestart: the server falls and comes back while many write. Each of them
// meets it. Writers that try the same call again lose nothing and write nothing
// twice.
func TestRestart(t *testing.T) {
	const writers, each = 4, 30
	ctx, address := t.Context(), pgtest.Database(t)
	server := pgtest.Current()
	s := open(t, address, nil).Tenant("")
	var wg sync.WaitGroup
	var met [writers]int
	var written [writers]int
	half := make(chan struct{}, writers)
	back := make(chan struct{})
	for w := range writers {
		wg.Go(func() {
			id := fmt.Sprint("thread ", w)
			// To the first message behind the restart: of one that met it nobody knows
			// whether it was written until it is sent again.
			for n, sure := 0, false; n < each || !sure; {
				if n == each/2 {
					half <- struct{}{}
				}
				_, err := s.Log.Append(ctx, id, n, user(fmt.Sprint(n)))
				switch {
				case err == nil:
					n++
					written[w], sure = n, met[w] > 0
				case errors.Is(err, store.ErrUnavailable):
					met[w]++
					<-back
				default:
					t.Errorf("%s: %v", id, err)
					return
				}
			}
		})
	}
	for range writers {
		<-half
	}
	if err := server.Halt(); err != nil {
		t.Error(err)
	}
	if err := server.Resume(); err != nil {
		t.Error(err)
	}
	close(back)
	wg.Wait()
	for w := range writers {
		id := fmt.Sprint("thread ", w)
		th, err := open(t, address, nil).Tenant("").Log.Load(ctx, id)
		if err != nil || th.Len() != written[w] {
			t.Fatalf("%s: %v, %v", id, th, err)
		}
		for n, m := range th.All() {
			if m.Text() != fmt.Sprint(n) {
				t.Errorf("%s: message %d is %q", id, n, m.Text())
			}
		}
	}
	t.Logf("met by each %d times", met)
}

// TestDeadlock: two writers that hold what the other wants. The server gives one
// of them up, and it is made again by itself.
func TestDeadlock(t *testing.T) {
	ctx, address := t.Context(), pgtest.Database(t)
	holder := open(t, address+"&deadlock_timeout=10s", nil)
	if _, err := holder.Tenant("").Documents.Put(ctx, store.Document{Kind: "a", ID: "x", Body: []byte(`1`)}); err != nil {
		t.Fatal(err)
	}
	tx, err := holder.Pool().Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	if _, err := tx.Exec(ctx, `SELECT 1 FROM documents WHERE id = 'x' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	locked := 0
	got, release := make(chan struct{}), make(chan error, 1)
	// Who looks for deadlocks first is given up: that is the store.
	db, err := postgres.OpenSteps(ctx, address+"&deadlock_timeout=10ms", nil, func(step string) {
		if step == "commit: begun" && locked > 0 {
			<-got // made again once the other goes on: else it might be the faster one again
		}
		if step != "commit: locked" {
			return
		}
		if locked++; locked > 1 {
			return
		}
		// The other wants the thread, which the store has, before the store
		// comes to the document.
		go func() {
			_, err := tx.Exec(ctx, `UPDATE threads SET changed = changed WHERE name = 't'`)
			close(got)
			release <- errors.Join(err, tx.Commit(ctx))
		}()
		for waiting := 0; waiting == 0; {
			if err := holder.Pool().QueryRow(ctx, `SELECT count(*) FROM pg_locks WHERE NOT granted`).Scan(&waiting); err != nil {
				t.Error(err)
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := db.Tenant("")
	if _, err := s.Log.Append(ctx, "t", 0, user("zero")); err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: "t"}
	version, err := s.Plans.Commit(ctx, "t", 0, store.Commit{Plan: p, Documents: []store.Document{{Kind: "a", ID: "x", Version: 1, Body: []byte(`2`)}}})
	held := <-release
	if err != nil || version != 1 || locked < 2 || held != nil {
		t.Errorf("%d, %v (locked %d times; the other: %v)", version, err, locked, held)
	}
}

// TestNewer: a database of a later version is refused.
func TestNewer(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	db := open(t, address, nil)
	if _, err := db.Pool().Exec(t.Context(), `INSERT INTO palimpsest_schema (version_id, is_applied) VALUES (99, true)`); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Open(t.Context(), address, nil); !errors.Is(err, store.ErrNewer) || !strings.Contains(err.Error(), "99") {
		t.Errorf("%v", err)
	}
}

// TestReadOnly: a user or server that may only read is told apart.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	readOnly := address + "&default_transaction_read_only=on"
	if _, err := postgres.Open(t.Context(), readOnly, nil); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("without tables: %v", err)
	}
	if _, err := open(t, address, nil).Tenant("").Log.Append(t.Context(), "t", 0, user("one")); err != nil {
		t.Fatal(err)
	}
	s := open(t, readOnly, nil).Tenant("")
	if th, err := s.Log.Load(t.Context(), "t"); err != nil || th.Len() != 1 {
		t.Errorf("%v, %v", th, err)
	}
	if _, err := s.Log.Append(t.Context(), "t", 1, user("two")); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("%v", err)
	}
}

// TestCanary: with keys no column of any table holds what was said. A20
func TestCanary(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, ring := range []*keyring.Keyring{nil, storetest.NewRing(t)} {
		db := open(t, pgtest.Database(t), &postgres.Options{Keyring: ring})
		storetest.Fill(t, db, "acme", "canary")
		rows, err := db.Pool().Query(ctx, `SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = current_schema()`)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Table, Column, Type string }])
		if err != nil || len(columns) < 30 {
			t.Fatalf("%d columns, %v", len(columns), err)
		}
		found := map[string]int{}
		for _, c := range columns {
			text := pgx.Identifier{c.Column}.Sanitize() + `::text`
			if c.Type == "bytea" {
				text = `encode(` + pgx.Identifier{c.Column}.Sanitize() + `, 'escape')`
			}
			var n int
			if err := db.Pool().QueryRow(ctx, `SELECT count(*) FROM `+pgx.Identifier{c.Table}.Sanitize()+` WHERE `+text+` LIKE '%canary%' OR `+text+` LIKE '%compaction\_completed%'`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				found[c.Table] += n
			}
		}
		for _, table := range []string{"messages", "plans", "events", "documents", "summaries"} {
			if ring == nil && found[table] == 0 {
				t.Errorf("without keys it is not found in %s: the test looks in the wrong place", table)
			}
		}
		if ring != nil && len(found) > 0 {
			t.Errorf("found in %v", found)
		}
	}
}
