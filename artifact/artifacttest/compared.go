package artifacttest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/keyring"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// compared: a record is changed only as it was seen, so that two processes lose
// nothing of what each says of the same content.
func compared(t *testing.T, b artifact.Backend) {
	ctx := t.Context()
	m := metadata("", "t", "one")
	put := func(want bool, content string, may func(artifact.Metadata, bool) bool) {
		t.Helper()
		if done, err := b.Put(ctx, m, []byte(content), may); done != want || err != nil {
			t.Errorf("Put: %v, %v, want %v", done, err, want)
		}
	}
	large := strings.Repeat("x", 200_000)
	put(false, large, func(_ artifact.Metadata, there bool) bool { return there })
	if done, err := b.Delete(ctx, "", m.ID, func(artifact.Metadata) bool { t.Error("it was asked"); return true }); done || err != nil {
		t.Errorf("Delete of nothing: %v, %v", done, err)
	}
	put(true, large, func(_ artifact.Metadata, there bool) bool { return !there })
	m.Turn++
	put(false, "two", func(held artifact.Metadata, there bool) bool { return !there || held.Turn == m.Turn })
	if held, content, err := b.Get(ctx, "", m.ID); err != nil || string(content) != large || held.Turn != m.Turn-1 {
		t.Errorf("%+v, %d bytes, %v", held, len(content), err)
	}
	put(true, "two", func(held artifact.Metadata, there bool) bool { return there && held.Turn == m.Turn-1 })
	for _, may := range []bool{false, true} {
		if done, err := b.Delete(ctx, "", m.ID, func(held artifact.Metadata) bool { return may && held.Turn == m.Turn }); done != may || err != nil {
			t.Errorf("Delete: %v, %v, want %v", done, err, may)
		}
	}

	// Each of these stores stands for a process.
	masters, err := keyring.ParseMasters(keyring.NewMaster())
	if err != nil {
		t.Fatal(err)
	}
	ring := keyring.New(masters, &keyring.Memory{}, nil)
	var stores []*artifact.Store
	for range 4 {
		stores = append(stores, artifact.NewStore(b, &artifact.Options{Sealer: ring}))
	}
	for round := range 10 {
		content := fmt.Sprint("content of all ", round)
		id := artifact.IDOf("t", content)
		if round%2 > 0 { // its time is over
			if _, err := stores[0].Put(ctx, artifact.Metadata{ThreadID: "t", TTLSeconds: 1, CreatedAt: time.Unix(0, 0)}, content); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ring.Rotate(ctx, ""); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for n, s := range stores {
			all.Go(func() {
				sensitivity := artifact.Internal
				if n == 2 {
					sensitivity = artifact.Restricted
				}
				for i := range 5 {
					m := artifact.Metadata{ThreadID: "t", MessageIDs: []thread.ID{thread.ID(fmt.Sprint(n, "/", i))}, Sensitivity: sensitivity}
					if _, err := s.Put(ctx, m, content); err != nil {
						t.Error(err)
					}
				}
			})
			all.Go(func() {
				if _, err := s.Sweep(ctx, artifact.Requester{}, nil); err != nil {
					t.Error(err)
				}
				if _, err := s.Reseal(ctx, artifact.Requester{}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		m, got, err := stores[0].Get(ctx, artifact.Requester{}, id)
		if err != nil || got != content || m.Sensitivity != artifact.Restricted || m.TTLSeconds != 0 {
			t.Errorf("round %d: %+v, %q, %v", round, m, got, err)
		}
		for n := range stores {
			for i := range 5 {
				if !slices.Contains(m.MessageIDs, thread.ID(fmt.Sprint(n, "/", i))) {
					t.Errorf("round %d: what store %d said of message %d is lost", round, n, i)
				}
			}
		}
	}
}
