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
	isOver := func(expired <-chan time.Time) bool {
		synctest.Wait()
		select {
		case <-expired:
			return true
		default:
			return false
		}
	}
	synctest.Test(t, func(t *testing.T) {
		i := &idleTimer{after: time.Minute}
		over := i.start()
		time.Sleep(59 * time.Second)
		end := i.begin()
		time.Sleep(time.Hour)
		also := i.begin()
		end()
		time.Sleep(time.Hour)
		if isOver(over) {
			t.Fatal("it ended under a request")
		}
		also()
		time.Sleep(59 * time.Second)
		if isOver(over) {
			t.Fatal("it ended before its time")
		}
		work := i.trackJob(func(context.Context, job.Job) error {
			time.Sleep(5 * time.Minute)
			return nil
		})
		if err := work(t.Context(), job.Job{}); err != nil || isOver(over) {
			t.Fatalf("it ended under a job: %v", err)
		}
		time.Sleep(59 * time.Second)
		if isOver(over) {
			t.Fatal("it ended before its time, after a job")
		}
		time.Sleep(time.Second)
		if !isOver(over) {
			t.Fatal("it does not end")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		never := &idleTimer{}
		over := never.start()
		never.begin()()
		time.Sleep(1000 * time.Hour)
		if isOver(over) {
			t.Error("it ended although it was not to")
		}
		early := &idleTimer{after: time.Second}
		end := early.begin() // before it was started
		over = early.start()
		time.Sleep(time.Hour)
		if end(); isOver(over) {
			t.Error("it ended under a request that came early")
		}
	})
}
