package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/job"
)

// idleTimer notices when the daemon had no request and no job for a while.
type idleTimer struct {
	after   time.Duration // 0 for never
	expired chan struct{} // closed when the time is over

	mu        sync.Mutex
	active    int // requests and jobs at work
	idleSince time.Time
	timer     *time.Timer
}

func newIdleTimer(after time.Duration) *idleTimer {
	return &idleTimer{after: after, expired: make(chan struct{})}
}

// start starts the timer.
func (i *idleTimer) start() {
	if i.after <= 0 {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.idleSince = time.Now()
	i.timer = time.AfterFunc(i.after, i.check)
}

// check ends the wait, or sets the timer again when there was a request meanwhile.
func (i *idleTimer) check() {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch rest := i.after - time.Since(i.idleSince); {
	case i.after <= 0: // stopped
	case i.active > 0: // its end sets the timer
	case rest > 0:
		i.timer.Reset(rest)
	default:
		close(i.expired)
		i.after = 0
	}
}

// stop stops the timer for good.
func (i *idleTimer) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.after = 0
	if i.timer != nil {
		i.timer.Stop()
	}
}

// begin counts a request or job as at work until end is called.
func (i *idleTimer) begin() (end func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.active++
	return i.end
}

func (i *idleTimer) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.active--; i.active == 0 && i.after > 0 && i.timer != nil {
		i.idleSince = time.Now()
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
