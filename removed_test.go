package palimpsest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// slowLog takes a second to give out one log, and counts how often it did.
type slowLog struct {
	store.Log
	id    string
	given int
}

func (l *slowLog) Load(ctx context.Context, id string) (*thread.Thread, error) {
	if id == l.id {
		time.Sleep(time.Second)
		l.given++
	}
	return l.Log.Load(ctx, id)
}

// TestIndexedBeforeTheQuestion: what a plan removed is indexed while the model
// answers; the first question waits for nothing but the rest of that, and the next one
// for nothing. A new plan, a process that starts anew and a thread that was deleted
// have an index of their own. A23
func TestIndexedBeforeTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &store.Memory{}
		log := &slowLog{Log: db, id: "before"}
		config := palimpsest.Config{Policy: policy.Loop{ContextLimit: loopBudget, MaxOutput: 1000}, Recall: &palimpsest.Recall{}, Store: store.Tenant{Log: log, Plans: db}}
		session := func() *palimpsest.Session {
			t.Helper()
			c, err := palimpsest.New(config)
			if err != nil {
				t.Fatal(err)
			}
			return c.Session("t", "before")
		}
		if _, err := db.Append(t.Context(), "before", 0, []thread.Message{{ID: "old", Role: thread.User, Parts: []thread.Part{thread.Text{Text: "the carrier is Postbote"}}}}); err != nil {
			t.Fatal(err)
		}
		s := session()
		ask := func(when string, wait time.Duration, given int) {
			t.Helper()
			start := time.Now()
			hits, err := s.Recall(t.Context(), "Postbote", &recall.Options{ThreadID: "before"})
			if err != nil || len(hits) != 1 {
				t.Errorf("%s: %d hits, %v", when, len(hits), err)
			}
			if took := time.Since(start); took != wait || log.given != given {
				t.Errorf("%s: waited %v, want %v; the log was given out %d times, want %d", when, took, wait, log.given, given)
			}
		}
		prepare := func(news ...thread.Message) *palimpsest.Prepared {
			t.Helper()
			p, err := s.PrepareStep(t.Context(), palimpsest.Step{Messages: news})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		prepare(plain(thread.User, "Tidy the queue."))
		time.Sleep(2 * time.Second)
		ask("before the first plan", 0, 1)
		n := 0
		compact := func() {
			t.Helper()
			for {
				call, result := work(n)
				n++
				if prepare(call, result).Compacted != nil {
					return
				}
			}
		}
		compact()
		time.Sleep(time.Second / 4)
		ask("while it is made", 3*time.Second/4, 2)
		ask("once more", 0, 2)
		compact()
		time.Sleep(2 * time.Second)
		ask("after the model's answer", 0, 3)
		prepare()
		time.Sleep(2 * time.Second)
		ask("after a step under the same plan", 0, 3)
		s = session()
		prepare()
		time.Sleep(2 * time.Second)
		ask("in another process", 0, 4)
		s.Release()
		ask("after it was released", time.Second, 5)
	})
}
