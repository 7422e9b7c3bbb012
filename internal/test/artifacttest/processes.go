package artifacttest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/test/keyringtest"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// conditions: a record is changed only if it is still the one that was seen.
func conditions(b tested) {
	ctx, m := b.Context(), metadata("", "t", "one")
	put := func(want bool, content string, c artifact.Condition) {
		b.Helper()
		if done, err := b.Put(ctx, m, []byte(content), c); done != want || err != nil {
			b.Errorf("Put: %v, %v, want %v", done, err, want)
		}
	}
	large := strings.Repeat("x", 200_000)
	put(false, large, func(stored *artifact.Metadata) bool { return stored != nil })
	if done, err := b.Delete(ctx, "", m.ID, func(*artifact.Metadata) bool { b.Error("it was asked"); return true }); done || err != nil {
		b.Errorf("Delete of nothing: %v, %v", done, err)
	}
	put(true, large, func(stored *artifact.Metadata) bool { return stored == nil })
	m.Turn++
	put(false, "two", func(stored *artifact.Metadata) bool { return stored == nil || stored.Turn == m.Turn })
	if held := b.holds("", m.ID, large); held.Turn != m.Turn-1 {
		b.Errorf("%+v", held)
	}
	put(true, "two", func(stored *artifact.Metadata) bool { return stored != nil && stored.Turn == m.Turn-1 })
	for _, may := range []bool{false, true} {
		if done, err := b.Delete(ctx, "", m.ID, func(stored *artifact.Metadata) bool { return may && stored.Turn == m.Turn }); done != may || err != nil {
			b.Errorf("Delete: %v, %v, want %v", done, err, may)
		}
	}
}

func newRing(tb testing.TB) *keyring.Keyring {
	masters, err := keyring.ParseMasters(keyring.NewMaster())
	if err != nil {
		tb.Fatal(err)
	}
	return keyring.New(masters, &keyringtest.Memory{}, nil)
}

// processes: several of them lose nothing of what each says of the same content. Each
// of the stores stands for one.
func processes(b tested) {
	ctx, ring := b.Context(), newRing(b)
	var stores []*artifact.Store
	for range 4 {
		stores = append(stores, artifact.NewStore(b.Backend, &artifact.Options{Keyring: ring}))
	}
	first := over{stores[0], b}
	for round := range 10 {
		content := fmt.Sprint("content of all ", round)
		if round%2 > 0 { // its time is over
			first.puts(artifact.Metadata{TTLSeconds: 1, CreatedAt: time.Unix(0, 0)}, content)
		}
		_, err := ring.Rotate(ctx, "")
		b.need(err)
		var all sync.WaitGroup
		for n, s := range stores {
			sensitivity := []artifact.Sensitivity{artifact.Internal, artifact.Internal, artifact.Restricted, artifact.Internal}[n]
			all.Go(func() {
				for i := range 5 {
					m := artifact.Metadata{ThreadID: "t", MessageIDs: []thread.ID{thread.ID(fmt.Sprint(n, "/", i))}, Sensitivity: sensitivity}
					if _, err := s.Put(ctx, m, content); err != nil {
						b.Error(err)
					}
				}
			})
			all.Go(func() {
				if _, err := s.Sweep(ctx, artifact.Requester{}, nil); err != nil {
					b.Error(err)
				}
				if _, err := s.Reseal(ctx, artifact.Requester{}); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		m := first.reads(artifact.Requester{}, artifact.IDOf("t", content), content)
		if m.Sensitivity != artifact.Restricted || m.TTLSeconds != 0 {
			b.Errorf("round %d: %+v", round, m)
		}
		for n := range stores {
			for i := range 5 {
				if !slices.Contains(m.MessageIDs, thread.ID(fmt.Sprint(n, "/", i))) {
					b.Errorf("round %d: what store %d said of message %d is lost", round, n, i)
				}
			}
		}
	}
}
