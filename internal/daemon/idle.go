package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/job"
)

// idle notices when a daemon was of no use for a while.
type idle struct {
	after time.Duration // 0 is never
	over  chan struct{} // closed then

	mu    sync.Mutex
	under int       // requests and jobs that are under way
	last  time.Time // when there were none any more
	timer *time.Timer
}

func newIdle(after time.Duration) *idle { return &idle{after: after, over: make(chan struct{})} }

// start begins to wait.
func (i *idle) start() {
	if i.after <= 0 {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last = time.Now()
	i.timer = time.AfterFunc(i.after, i.look)
}

// look ends the waiting, or waits on where something was asked meanwhile.
func (i *idle) look() {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch rest := i.after - time.Since(i.last); {
	case i.after <= 0: // it was stopped
	case i.under > 0: // the end of it waits
	case rest > 0:
		i.timer.Reset(rest)
	default:
		close(i.over)
		i.after = 0
	}
}

// stop waits no longer.
func (i *idle) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.after = 0
	if i.timer != nil {
		i.timer.Stop()
	}
}

// begin says that the daemon is of use, until end is called.
func (i *idle) begin() (end func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.under++
	return i.end
}

func (i *idle) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.under--; i.under == 0 && i.after > 0 && i.timer != nil {
		i.last = time.Now()
		i.timer.Reset(i.after)
	}
}

// during is a job that the daemon is of use for as long as it runs.
func (i *idle) during(do job.Handler) job.Handler {
	return func(ctx context.Context, j job.Job) error {
		defer i.begin()()
		return do(ctx, j)
	}
}
