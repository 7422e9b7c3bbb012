package postgres_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
)

// How a relay loses a connection that commits: before the server has heard of
// it, and after the server has done it.
const (
	passing int32 = iota
	unheard
	unanswered
)

// relay stands between a client and a server. It loses the next connection that
// commits as it is told, and goes back to passing.
type relay struct {
	lose    atomic.Int32
	lost    atomic.Int32
	address string
}

func newRelay(t *testing.T, address string) *relay {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Del("host")
	u.Host, u.RawQuery = l.Addr().String(), q.Encode()
	r := &relay{address: u.String()}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { r.pass(client) })
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
	return r
}

func (r *relay) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", pgtest.Current().Socket())
	if err != nil {
		return
	}
	defer server.Close()
	var deaf atomic.Bool // the client hears nothing any more
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		buffer := make([]byte, 1<<16)
		for {
			n, err := server.Read(buffer)
			if err != nil || deaf.Load() {
				client.Close()
				return
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			break
		}
		if bytes.Contains(buffer[:n], []byte("commit\x00")) {
			switch r.lose.Swap(passing) {
			case unheard:
				r.lost.Add(1)
				client.Close()
				server.Close()
			case unanswered:
				r.lost.Add(1)
				deaf.Store(true)
			}
		}
		if _, err := io.Copy(server, bytes.NewReader(buffer[:n])); err != nil {
			break
		}
	}
	server.Close()
	<-answers
}

// TestLostInMidCommit: the connection is lost between the commit and its answer.
// The error says that it is not known whether the write is there; it is there as
// a whole or not at all; and making it again does it once, or says that it is
// done. A14
func TestLostInMidCommit(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]int32{"unheard": unheard, "unanswered": unanswered} {
		t.Run(name, func(t *testing.T) {
			ctx, address := t.Context(), pgtest.Database(t)
			r := newRelay(t, address)
			db := open(t, r.address, nil)
			direct := open(t, address, nil)
			there := 0
			if how == unanswered {
				there = 1
			}
			s, seen := db.Tenant(""), direct.Tenant("")
			lose := func(what string, write func() error) {
				t.Helper()
				before := r.lost.Load()
				r.lose.Store(how)
				if err := write(); !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("%s: %v", what, err)
				}
				if r.lost.Load() != before+1 {
					t.Fatalf("%s: no connection was lost in a commit", what)
				}
			}

			add := func() error { _, err := s.Log.Append(ctx, "t", 0, user("one")); return err }
			lose("append", add)
			if th, err := seen.Log.Load(ctx, "t"); err != nil || th.Len() != there {
				t.Errorf("append: %v, %v, want %d messages", th, err, there)
			}
			if err := add(); err != nil {
				t.Errorf("append again: %v", err)
			}
			th, err := seen.Log.Load(ctx, "t")
			if err != nil || th.Len() != 1 {
				t.Fatalf("append again: %v, %v", th, err)
			}

			c := store.Commit{
				Plan:      &plan.Plan{Schema: plan.SchemaVersion, ThreadID: "t", ThreadVersion: 1, Drops: []plan.Removal{{Span: th.Range(0, 1)}}},
				Events:    []event.Event{{Type: event.Completed}},
				Documents: []store.Document{{Kind: "k", ID: "t", Body: []byte(`1`)}},
			}
			commit := func() error { _, err := s.Plans.Commit(ctx, "t", 0, c); return err }
			lose("commit", commit)
			_, version, planErr := seen.Plans.Current(ctx, "t")
			events, eventErr := seen.Events.Events(ctx, "t", 0, 0)
			marks, markErr := seen.Plans.Compacted(ctx, "t")
			documents, documentErr := seen.Documents.Documents(ctx, "k", "", 0)
			if err := errors.Join(planErr, eventErr, markErr, documentErr); err != nil || version != there || len(events) != there || len(marks) != there || len(documents) != there {
				t.Errorf("commit: plan %d, %d events, %d marks, %d documents, %v, want %d of each", version, len(events), len(marks), len(documents), err, there)
			}
			var conflict *store.ConflictError
			if err := commit(); how == unheard && err != nil || how == unanswered && (!errors.As(err, &conflict) || conflict.Have != 1) {
				t.Errorf("commit again: %v", err)
			}
			// The one that was lost is not taken for what is known.
			if p, version, err := s.Plans.Current(ctx, "t"); err != nil || version != 1 || len(p.Drops) != 1 {
				t.Errorf("commit again: plan %d, %v", version, err)
			}

			artifacts := artifact.NewStore(db.Artifacts(), nil)
			put := func() error {
				_, err := artifacts.Put(ctx, artifact.Metadata{ThreadID: "t"}, "content")
				return err
			}
			lose("artifact", put)
			if err := put(); err != nil {
				t.Errorf("artifact again: %v", err)
			}
			lose("delete", func() error { return s.Catalog.Delete(ctx, "gone") })
			counts, err := care.Check(ctx, direct, func(p care.Problem) { t.Error(p) }, nil)
			if err != nil || counts.Messages != 1 || counts.Plans != 1 || counts.Artifacts != 1 {
				t.Errorf("%+v, %v", counts, err)
			}
		})
	}
}
