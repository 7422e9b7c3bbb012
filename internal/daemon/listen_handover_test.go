package daemon_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/job/river"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// stuck is a policy that makes no plan until it is interrupted.
type stuck struct {
	policy.Policy
	begun chan struct{}
}

func (p stuck) Plan(ctx context.Context, _ *policy.Situation) (*policy.Fitted, error) {
	close(p.begun)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestHandOver: a daemon that stops in the middle of a background compaction that
// does not end in time says so, and the daemon that is started next makes it.
func TestHandOver(t *testing.T) {
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "daemon.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var queue job.Queue
	config := daemon.Config{Store: db, Drain: time.Millisecond, Jobs: func(work job.Handlers, o *job.Options) (job.Queue, error) {
		q, err := river.OnSQLite(t.Context(), db.SQL(), work, o)
		queue = q
		return q, err
	}}
	long := strings.Repeat("The build failed at the linker. ", 3000)
	key := job.CompactKey("", "t")
	serve := func(p policy.Policy) func() error {
		config.Compactor.Policy = p
		s, err := daemon.New(config)
		if err != nil {
			t.Fatal(err)
		}
		_, stop := serving(t, s)
		return stop
	}
	c := start(t, daemon.Config{Store: db}).client(t, "")
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(t.Context(), "t", 0, api.Append{Messages: []neutral.Message{said("user", long), said("assistant", long), said("user", "Go on.")}}); err != nil {
		t.Fatal(err)
	}
	first := stuck{policy.Auto{}, make(chan struct{})}
	stop := serve(first)
	args := []byte(`{"domain":"","thread":"t","profile":{"API":"anthropic"},"budget":4000,"fixed":1}`)
	if added, err := queue.Put(t.Context(), job.Job{Kind: palimpsest.CompactJob, Key: key, Args: args}); err != nil || !added {
		t.Fatal(added, err)
	}
	<-first.begun
	if err := stop(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a daemon that interrupts a job ends with %v", err)
	}
	if th, err := c.Thread(t.Context(), "t"); err != nil || th.PlanVersion != 0 {
		t.Fatalf("%+v: %v", th, err)
	}
	config.Drain = time.Minute
	stop = serve(policy.Auto{})
	if err := queue.Wait(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if th, err := c.Thread(t.Context(), "t"); err != nil || th.PlanVersion != 1 {
		t.Errorf("%+v: %v", th, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
