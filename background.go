package palimpsest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
)

// CompactJob is the kind of the jobs that prepare compactions. Their handler is
// Compactor.Work.
const CompactJob = "compact"

// defaultPatience bounds how long a step waits for a compaction that runs. The
// seed that waits has no bound; an agent that waits for ever has failed.
const defaultPatience = 30 * time.Second

// compaction are the arguments of a job: the step that it is prepared for. What
// stands around the messages is not kept, only its size.
type compaction struct {
	Domain  string         `json:"domain"`
	Thread  string         `json:"thread"`
	Model   string         `json:"model,omitempty"`
	Profile render.Profile `json:"profile"`
	Window  int            `json:"window,omitempty"`
	Output  int            `json:"output,omitempty"`
	Budget  int            `json:"budget,omitempty"`
	Fixed   int            `json:"fixed"`
	// Usage corrects the counter as it does for the step.
	Usage *usage `json:"usage,omitempty"`
}

// JobDomain returns the domain that a job of CompactJob is of, so that a worker
// who serves several Compactors finds the right one.
func JobDomain(j job.Job) (string, error) {
	var a compaction
	if err := json.Unmarshal(j.Args, &a); err != nil {
		return "", fmt.Errorf("palimpsest.JobDomain(%s): %w", j.Key, err)
	}
	return a.Domain, nil
}

// Work does a job of CompactJob: it makes the plan that the policy would make
// now and puts it in force, unless somebody has done so or nothing is to be done
// any more. Doing a job twice changes nothing. The error is that of the stores,
// of the policy, or of the context; the thread then goes on as it is.
func (c *Compactor) Work(ctx context.Context, j job.Job) error {
	var a compaction
	if err := json.Unmarshal(j.Args, &a); err != nil {
		return fmt.Errorf("palimpsest.Work(%s): %w", j.Key, err)
	}
	t := c.handle(a.Thread)
	if u := a.Usage; u != nil {
		t.usage = u.calibration()
	}
	t.step = Step{
		Base: &prompt.Prompt{Model: a.Model}, Profile: a.Profile,
		Window: a.Window, Output: a.Output, Budget: a.Budget, fixed: a.Fixed,
	}
	if err := t.work(ctx); err != nil {
		return fmt.Errorf("palimpsest.Work(%s): %w", j.Key, err)
	}
	return nil
}

func (t *Thread) work(ctx context.Context) error {
	for attempt := range tries {
		log, err := t.c.config.Log.Load(ctx, t.id)
		if err != nil {
			return err
		}
		s, version, err := t.state(ctx, log)
		if err != nil {
			return err
		}
		due, why := t.c.soon(s)
		if !due {
			return nil
		}
		t.offer(s)
		switch _, err = t.compact(ctx, s, version, trigger{name: "auto", why: why, attempt: attempt + 1}); {
		case errors.Is(err, store.ErrConflict):
			continue
		case errors.Is(err, policy.ErrNothing):
			return nil
		}
		return err
	}
	return fmt.Errorf("after %d tries: %w", tries, store.ErrConflict)
}

// soon reports whether the policy wants a compaction prepared, or made, and why.
func (c *Compactor) soon(s *policy.State) (soon bool, why string) {
	if due, why := c.config.Policy.Due(s); due {
		return true, why
	}
	early, ok := c.config.Policy.(policy.Early)
	if !ok {
		return false, ""
	}
	return early.Soon(s)
}

func (t *Thread) key() string { return job.CompactKey(t.c.config.Domain, t.id) }

// ahead has a compaction prepared when the policy wants one soon. A queue that
// fails does not stop the agent: the compaction is then made when it is due.
func (t *Thread) ahead(ctx context.Context, s *policy.State) {
	if t.c.config.Jobs == nil {
		return
	}
	if soon, _ := t.c.soon(s); !soon {
		return
	}
	a := compaction{
		Domain: t.c.config.Domain, Thread: t.id, Model: s.Base.Model, Profile: s.Profile,
		Window: s.Window, Output: s.Output, Budget: s.Budget, Fixed: s.Fixed,
	}
	if u := t.usage; u.input > 0 {
		a.Usage = usageOf(u)
	}
	args, err := json.Marshal(a)
	if err == nil {
		_, err = t.c.config.Jobs.Put(ctx, job.Job{Kind: CompactJob, Key: t.key(), Args: args})
	}
	if err != nil {
		t.emit(ctx, event.Event{Type: event.Failed, Policy: t.c.config.Policy.Name(), Err: event.ErrorClass(err)})
	}
}

// await waits for a compaction of the thread that is being prepared, for as long
// as Config.Patience allows, and reports whether there was one. Requests below
// the hard mark do not wait, unless the policy is patient (D12).
func (t *Thread) await(ctx context.Context, due bool) bool {
	if t.c.config.Jobs == nil {
		return false
	}
	if early, ok := t.c.config.Policy.(policy.Early); !due && (!ok || !early.Patient()) {
		return false
	}
	busy, err := t.c.config.Jobs.Busy(ctx, t.key())
	if err == nil && busy {
		limited, cancel := context.WithTimeout(ctx, t.c.config.Patience)
		defer cancel()
		if err = t.c.config.Jobs.Wait(limited, t.key()); err != nil && limited.Err() != nil {
			err = nil // long enough: the step goes on by itself
		}
	}
	if err != nil {
		t.emit(ctx, event.Event{Type: event.Failed, Policy: t.c.config.Policy.Name(), Err: event.ErrorClass(err)})
	}
	return busy
}
