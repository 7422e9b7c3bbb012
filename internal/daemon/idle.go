package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/job"
)

// idleTimer notices when the daemon had no request and no job for a while.
type idleTimer struct {
	after time.Duration // 0 for never

	mu     sync.Mutex
	active int         // requests and jobs at work
	timer  *time.Timer // does not run while there are any; nil before start, and for never
}

// start starts the timer. The channel gets a value when the time is over; nil is never.
func (i *idleTimer) start() (expired <-chan time.Time) {
	if i.after <= 0 {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.timer = time.NewTimer(i.after)
	if i.active > 0 {
		i.timer.Stop()
	}
	return i.timer.C
}

// begin counts a request or job as at work until end is called.
func (i *idleTimer) begin() (end func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.active++; i.timer != nil {
		i.timer.Stop()
	}
	return i.end
}

func (i *idleTimer) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.active--; i.active == 0 && i.timer != nil {
		i.timer.Reset(i.after)
	}
}

// trackJob counts the runs of a job as use of the daemon.
func (i *idleTimer) trackJob(do job.Handler) job.Handler {
	return func(ctx context.Context, j job.Job) error {
		defer i.begin()()
		return do(ctx, j)
	}
}
