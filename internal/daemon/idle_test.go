package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/palimpsest-ai/palimpsest/job"
)

// TestIdle: the daemon is over when nothing was asked for as long as was set, counted
// from the end of the last request and the last job.
func TestIdle(t *testing.T) {
	isOver := func(i *idleTimer) bool {
		synctest.Wait()
		select {
		case <-i.expired:
			return true
		default:
			return false
		}
	}
	synctest.Test(t, func(t *testing.T) {
		i := newIdleTimer(time.Minute)
		i.start()
		time.Sleep(59 * time.Second)
		end := i.begin()
		time.Sleep(time.Hour)
		also := i.begin()
		end()
		time.Sleep(time.Hour)
		if isOver(i) {
			t.Fatal("it ended under a request")
		}
		also()
		time.Sleep(59 * time.Second)
		if isOver(i) {
			t.Fatal("it ended before its time")
		}
		work := i.trackJob(func(context.Context, job.Job) error {
			time.Sleep(5 * time.Minute)
			return nil
		})
		if err := work(t.Context(), job.Job{}); err != nil || isOver(i) {
			t.Fatalf("it ended under a job: %v", err)
		}
		time.Sleep(59 * time.Second)
		if isOver(i) {
			t.Fatal("it ended before its time, after a job")
		}
		time.Sleep(time.Second)
		if !isOver(i) {
			t.Fatal("it does not end")
		}
		i.begin()() // one that came just then
		i.stop()
	})
	synctest.Test(t, func(t *testing.T) {
		never := newIdleTimer(0)
		never.start()
		never.begin()()
		time.Sleep(1000 * time.Hour)
		stopped := newIdleTimer(time.Second)
		stopped.start()
		stopped.stop()
		time.Sleep(time.Hour)
		if isOver(never) || isOver(stopped) {
			t.Error("it ended although it was not to")
		}
	})
}
