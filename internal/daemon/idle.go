package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/job"
)

// idleTimer notices when a daemon had no request and no job for a while.
type idleTimer struct {
	after   time.Duration // 0 is never
	expired chan struct{} // closed then

	mu        sync.Mutex
	active    int       // requests and jobs that are under way
	idleSince time.Time // when there were none any more
	timer     *time.Timer
}

func newIdleTimer(after time.Duration) *idleTimer {
	return &idleTimer{after: after, expired: make(chan struct{})}
}

// start begins to wait.
func (i *idleTimer) start() {
	if i.after <= 0 {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.idleSince = time.Now()
	i.timer = time.AfterFunc(i.after, i.check)
}

// check ends the wait when the time is over, and sets the timer again when something
// was asked meanwhile.
func (i *idleTimer) check() {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch rest := i.after - time.Since(i.idleSince); {
	case i.after <= 0: // it was stopped
	case i.active > 0: // the end of it waits
	case rest > 0:
		i.timer.Reset(rest)
	default:
		close(i.expired)
		i.after = 0
	}
}

// stop waits no longer.
func (i *idleTimer) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.after = 0
	if i.timer != nil {
		i.timer.Stop()
	}
}

// begin counts a request or job as under way, until end is called.
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

// trackJob keeps the daemon from ending while a job runs.
func (i *idleTimer) trackJob(do job.Handler) job.Handler {
	return func(ctx context.Context, j job.Job) error {
		defer i.begin()()
		return do(ctx, j)
	}
}
