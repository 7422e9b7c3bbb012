package proxy

import (
	"cmp"
	"context"
	"fmt"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/policy"
)

// CompactJob is the kind of the jobs that compact a proxy's conversations, on the queue of its Config.
// Their handler is Transport.Work, or Proxy.Work.
const CompactJob = "compact-proxied"

// proxyQueue gives the jobs of compactors the kind CompactJob. Their keys stay: a conversation has one
// compaction at a time.
type proxyQueue struct{ job.Queue }

// Put implements job.Queue.
func (q proxyQueue) Put(ctx context.Context, j job.Job) (bool, error) {
	j.Kind = CompactJob
	return q.Queue.Put(ctx, j)
}

// setUpJobs makes compactions jobs if the policy has its requests wait for them, and gives requests a
// deadline beyond that wait. Otherwise requests compact on the way.
func (t *Transport) setUpJobs() {
	c := &t.options.Config
	early, ok := policy.As[policy.Background](c.Policy)
	if t.options.Agent != nil {
		c.Jobs = nil
		t.options.Deadline = cmp.Or(t.options.Deadline, agentDeadline)
	}
	if c.Jobs == nil || !ok || !early.WaitsForJobs() {
		c.Jobs = nil
		return
	}
	c.Jobs = proxyQueue{c.Jobs}
	if t.options.Deadline == 0 {
		t.options.Deadline = cmp.Or(c.Patience, palimpsest.DefaultPatience) + defaultDeadline
	}
}

// Work does a job of CompactJob (see palimpsest.Compactor.Work).
func (t *Transport) Work(ctx context.Context, j job.Job) error {
	_, id, model, err := palimpsest.ParseJob(j)
	if err != nil {
		return fmt.Errorf("proxy.Work: %w", err)
	}
	c, err := t.compactors.compactor(t.models.model(model), true)
	if err != nil {
		return fmt.Errorf("proxy.Work: %w", err)
	}
	_, before, err := t.conversations.plans.Current(ctx, id)
	if err == nil {
		err = c.Work(ctx, j)
	}
	if err != nil {
		return err
	}
	if _, after, err := t.conversations.plans.Current(ctx, id); err == nil && after > before {
		t.compactions.Add(1)
	}
	return nil
}

// Work does a job of CompactJob (see palimpsest.Compactor.Work).
func (p *Proxy) Work(ctx context.Context, j job.Job) error { return p.transport.Work(ctx, j) }

func isCompacting(ctx context.Context, c *palimpsest.Config, id string) bool {
	if c.Jobs == nil {
		return false
	}
	busy, err := c.Jobs.Busy(ctx, job.CompactKey(c.Domain, id))
	return err == nil && busy
}
