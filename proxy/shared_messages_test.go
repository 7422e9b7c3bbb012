package proxy_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/dsn"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// watchedLog notes what stands in logs when it is appended.
type watchedLog struct {
	store.Log
	mu  sync.Mutex
	was map[[2]string]string // by log and message
}

func (w *watchedLog) Append(ctx context.Context, id string, version int, messages []thread.Message) (*thread.Thread, error) {
	log, err := w.Log.Append(ctx, id, version, messages)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range log.All() {
		if at := [2]string{id, string(m.ID)}; w.was[at] == "" {
			w.was[at] = whole(m)
		}
	}
	return log, nil
}

// whole is all of a message that logs share with requests and prompts.
func whole(m *thread.Message) string {
	return fmt.Sprintf("%s %s %#v %s", m.Role, m.Name, m.Parts, m.Frame.Raw())
}

// TestSharedPartsStay: requests of one conversation at the same time, longer, shorter and other ones, change
// nothing of the messages that their logs share with them. Run with -race.
func TestSharedPartsStay(t *testing.T) {
	for _, api := range []string{wire.Anthropic, wire.Chat, wire.Responses, wire.Gemini} {
		for _, kind := range []string{"memory:", "sqlite:" + filepath.Join(t.TempDir(), "kept.db")} {
			t.Run(api+" "+kind[:6], func(t *testing.T) {
				db, err := dsn.Open(t.Context(), kind, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				kept := db.Tenant("")
				w := &watchedLog{Log: kept.Log, was: map[[2]string]string{}}
				up := strict(t)
				url, _ := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Log: w, Plans: kept.Plans, Documents: kept.Documents}}})
				a := newAgent(t, api, url, false)
				a.header.Set("User-Agent", "claude-cli/2.1.0 (external, cli)")
				a.grow(0, 12) // most of the first request is new
				for n := 12; n < 36; n += 8 {
					a.grow(n, 8)
					var wg sync.WaitGroup
					for k := range 6 {
						own := *a
						own.history = own.history[:len(own.history)-2*(k%3)]
						if k == 5 {
							own.history = append(own.history[:1:1], own.history[3:]...)
						}
						wg.Go(func() {
							if s, err := own.try(); err != nil || s.status != 200 {
								t.Errorf("status %d, %v: %.200s", s.status, err, s.raw)
							}
						})
					}
					wg.Wait()
				}
				for at, was := range w.was {
					log, err := kept.Log.Load(t.Context(), at[0])
					if err != nil {
						t.Fatal(err)
					}
					i, found := log.Index(thread.ID(at[1]))
					if !found || whole(log.At(i)) != was {
						t.Errorf("message %s of %s has changed:\n%.300s\n%.300s", at[1], at[0], was, whole(log.At(i)))
					}
				}
				if len(w.was) < 80 {
					t.Errorf("%d messages are in logs", len(w.was))
				}
			})
		}
	}
}
