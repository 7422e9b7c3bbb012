package crash_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/leak"
	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// writers is how many goroutines of a process write to a store.
const writers = 8

// entry is what a writer has done or seen, in the order in which it did.
type entry struct {
	Kind   string // append, read, commit
	Writer string
	Thread string
	// At is the position of an append, the length that a read saw, and the
	// version of a commit.
	At   int
	Text string `json:",omitempty"` // of an append
	Lost bool   `json:",omitempty"` // a commit that found another in its place
	Mark int    `json:",omitempty"` // a number that only this commit has
}

// writeHistory is what a process does: several writers on shared threads, each
// k.Count times.
func writeHistory(ctx context.Context, k task, out io.Writer) error {
	o, err := k.Place.open(ctx)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	encoder := json.NewEncoder(out)
	say := func(e entry) error {
		mu.Lock()
		defer mu.Unlock()
		return encoder.Encode(e)
	}
	failed := make(chan error, writers)
	for n := range writers {
		w := &writer{Tenant: o.db.Tenant("shared"), name: fmt.Sprint(k.Process, n), number: int(k.Seed)*writers + n, say: say}
		go func() {
			for i := range k.Count {
				if err := w.turn(ctx, fmt.Sprint("thread ", (n+i)%3), i); err != nil {
					failed <- fmt.Errorf("writer %s: %w", w.name, err)
					return
				}
			}
			failed <- nil
		}()
	}
	for range writers {
		err = errors.Join(err, <-failed)
	}
	return errors.Join(err, o.close(), leak.Find())
}

type writer struct {
	store.Tenant
	name   string
	number int
	say    func(entry) error
}

// turn appends a message, reads it back, and tries to put a plan in force.
func (w *writer) turn(ctx context.Context, id string, i int) error {
	m := thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: fmt.Sprint(w.name, " ", i)}}}
	var at int
	for {
		th, err := w.Log.Load(ctx, id)
		if err != nil {
			return err
		}
		at = th.Len()
		_, err = w.Log.Append(ctx, id, at, []thread.Message{m})
		if err == nil {
			break
		}
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) || conflict.Want != at || conflict.Have <= at {
			return err
		}
	}
	if err := w.say(entry{Kind: "append", Writer: w.name, Thread: id, At: at, Text: m.Text()}); err != nil {
		return err
	}
	th, err := w.Log.Load(ctx, id)
	if err != nil {
		return err
	}
	if th.Len() <= at || th.At(at).Text() != m.Text() {
		return fmt.Errorf("%s: what was written at %d is not read in %d messages", id, at, th.Len())
	}
	if err := w.say(entry{Kind: "read", Writer: w.name, Thread: id, At: th.Len()}); err != nil {
		return err
	}
	_, version, err := w.Plans.Current(ctx, id)
	if err != nil {
		return err
	}
	mark := w.number*1000 + i + 1
	p := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: id, ThreadVersion: th.Len(), CompactedTokens: mark,
		Clearings: []plan.Clearing{{Span: th.Range(0, 1), Origin: plan.Origin{Strategy: "test", Reason: "for a test"}}}}
	_, err = w.Plans.Commit(ctx, id, version, store.Commit{Plan: p})
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return err
	}
	return w.say(entry{Kind: "commit", Writer: w.name, Thread: id, At: version + 1, Lost: err != nil, Mark: mark})
}

// history runs two processes to their end and checks what they say they have
// done against what is in the store.
func history(t *testing.T, p place, each int) {
	ctx := t.Context()
	all := make(chan []entry)
	for n, process := range []string{"a", "b"} {
		cmd := command(t, task{Do: "history", Place: p, Process: process, Seed: uint64(n), Count: each})
		var said lines
		cmd.Stderr = &said
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			var entries []entry
			defer func() { all <- entries }()
			for r := bufio.NewScanner(out); r.Scan(); {
				var e entry
				if err := json.Unmarshal(r.Bytes(), &e); err != nil {
					t.Errorf("%s: %v", r.Bytes(), err)
				}
				entries = append(entries, e)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("process %s: %v\n%s", process, err, said)
			}
		}()
	}
	entries := append(<-all, <-all...)
	o, err := p.open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	replay(ctx, t, o.db.Tenant("shared"), entries)
	if want := 2 * writers * each * 3; len(entries) != want && !t.Failed() {
		t.Errorf("%d entries in the history, want %d", len(entries), want)
	}
	sound(ctx, t, o)
}

// lines is what a process has written to standard error.
type lines []byte

func (l *lines) Write(p []byte) (int, error) { *l = append(*l, p...); return len(p), nil }

// replay goes through the history. Every message stands where its writer was
// told, and only there; a writer's messages of a thread are in its order, and it
// never sees a thread shorter than before; every version of a plan has exactly one
// winner, and is what the winner wrote.
func replay(ctx context.Context, t *testing.T, s store.Tenant, entries []entry) {
	type of struct{ writer, thread string }
	type version struct {
		thread string
		n      int
	}
	written, seen := map[string]map[int]string{}, map[of]int{}
	last := map[of]int{}
	winners := map[version]int{}
	lost := 0
	for _, e := range entries {
		own := of{e.Writer, e.Thread}
		switch e.Kind {
		case "append":
			if before, ok := last[own]; ok && e.At <= before {
				t.Errorf("%+v stands before what its writer wrote at %d", e, before)
			}
			last[own] = e.At
			if written[e.Thread] == nil {
				written[e.Thread] = map[int]string{}
			}
			if other, taken := written[e.Thread][e.At]; taken {
				t.Errorf("%+v stands where %q was written", e, other)
			}
			written[e.Thread][e.At] = e.Text
		case "read":
			if e.At < seen[own] || e.At <= last[own] {
				t.Errorf("%+v: it had seen %d messages, and written at %d", e, seen[own], last[own])
			}
			seen[own] = e.At
		case "commit":
			v := version{e.Thread, e.At}
			switch mark, won := winners[v]; {
			case e.Lost:
				lost++
			case won:
				t.Errorf("version %d of %s was won by %d and by %d", e.At, e.Thread, mark, e.Mark)
			default:
				winners[v] = e.Mark
			}
		}
	}
	committed := 0
	for id, messages := range written {
		th, err := s.Log.Load(ctx, id)
		if err != nil || th.Len() != len(messages) {
			t.Fatalf("%s: %v, %v; %d were written", id, th, err, len(messages))
		}
		for n, m := range th.All() {
			if m.Text() != messages[n] {
				t.Errorf("%s: %q stands at %d where %q was written", id, m.Text(), n, messages[n])
			}
		}
		_, newest, err := s.Plans.Current(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		committed += newest
		for n := 1; n <= newest; n++ {
			p, err := s.Plans.Plan(ctx, id, n)
			if err != nil || p.CompactedTokens != winners[version{id, n}] {
				t.Errorf("plan %d of %s is that of %+v, %v; the winner was %d", n, id, p, err, winners[version{id, n}])
			}
		}
	}
	if committed != len(winners) {
		t.Errorf("%d plans are there, %d were won", committed, len(winners))
	}
	t.Logf("%d messages, %d plans; %d commits lost", len(entries)/3, committed, lost)
}

// TestHistory: two processes with eight writers each on one store.
func TestHistory(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		folder := t.TempDir()
		history(t, place{Store: "sqlite:" + filepath.Join(folder, "p.db"), Folder: folder, Master: keyring.NewMaster()}, 25)
	})
	t.Run("postgres", func(t *testing.T) {
		history(t, place{Store: pgtest.Database(t), Folder: t.TempDir(), Master: keyring.NewMaster()}, 25)
	})
}
