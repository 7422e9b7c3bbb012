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
)

const (
	// CompactJob is the kind of the jobs that prepare compactions. Their handler is
	// Compactor.Work; when one is due the policy says (policy.Early, of auto in
	// policy/auto.go).
	CompactJob = "compact"

	// DefaultPatience bounds how long a step waits for a compaction that runs. The
	// seed that waits has no bound; an agent that waits for ever has failed.
	DefaultPatience = 30 * time.Second

	// DefaultMemory is what a Compactor remembers at most where Config.Memory is nil,
	// in bytes.
	DefaultMemory = 128 << 20
)

// compaction are the arguments of a job: the step that it is prepared for.
type compaction struct {
	Domain string `json:"domain"`
	Thread string `json:"thread"`
	keptStep
	// Usage corrects the counter as it does for the step.
	Usage *calibration `json:"usage,omitempty"`
}

// JobOf says what a job of CompactJob is for: the domain, by which a worker who serves
// several Compactors finds the right one, the conversation, and the model, which may be
// empty.
func JobOf(j job.Job) (domain, session, model string, err error) {
	var a compaction
	if err := json.Unmarshal(j.Args, &a); err != nil {
		return "", "", "", fmt.Errorf("palimpsest.JobOf(%s): %w", j.Key, err)
	}
	return a.Domain, a.Thread, a.Model, nil
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
	s := c.Session(a.Thread).beside()
	l, err := s.load(ctx)
	if err == nil {
		_, err = s.compactNow(ctx, l, a.step(), how{usage: a.Usage, attempt: j.Attempt, attempts: j.Attempts}, c.soon)
	}
	if err != nil && !errors.Is(err, policy.ErrNothing) {
		return fmt.Errorf("palimpsest.Work(%s): %w", j.Key, err)
	}
	return nil
}

// soon says whether the policy wants a compaction prepared, or made, and why.
func (c *Compactor) soon(at *policy.Situation) due {
	yes, why := c.config.Policy.Due(at)
	if early, ok := c.config.Policy.(policy.Early); ok && !yes {
		yes, why = early.Soon(at)
	}
	return due{yes: yes, trigger: "auto", why: why}
}

func (s *Session) key() string { return job.CompactKey(s.c.config.Domain, s.id) }

// ahead has a compaction prepared when the policy wants one soon, and reports whether
// one is being prepared. A queue that fails does not stop the agent: the compaction is
// then made when it is due.
func (s *Session) ahead(ctx context.Context, at *policy.Situation, step Step) bool {
	if s.c.config.Jobs == nil || !s.c.soon(at).yes {
		return false
	}
	a := compaction{Domain: s.c.config.Domain, Thread: s.id, keptStep: keptOf(step, s.c.stands.Prompt(at.Base))}
	a.Profile = s.profile(step)
	if u := s.cached().calibration.newest; u.Input > 0 {
		a.Usage = &u
	}
	args, err := json.Marshal(a)
	if err == nil {
		_, err = s.c.config.Jobs.Put(ctx, job.Job{Kind: CompactJob, Key: s.key(), Args: args})
	}
	if err != nil {
		s.emit(ctx, event.Event{Type: event.Failed, Err: event.ErrorClass(err)})
	}
	return err == nil
}

// waited says how a step has waited for a compaction that is prepared beside it.
type waited int

const (
	notYet waited = iota // it has not
	over                 // it has, and goes on with what is there now
	passes               // it has, and goes on without a compaction where the request can be sent
)

// wait waits for a compaction of the thread that is being prepared, for as long as
// Config.Patience allows. Requests below the hard mark do not wait, unless the policy
// is patient (D12): then one is prepared where one is due, as the queue's job, which is
// tried again where it fails, and not by the request itself. A request does the work
// itself where it cannot be sent without, and where whoever does the job is gone.
func (s *Session) wait(ctx context.Context, at *policy.Situation, due bool, step Step) waited {
	if s.c.config.Jobs == nil {
		return notYet
	}
	patient := s.patient()
	if !due && !patient {
		return notYet
	}
	busy, err := s.c.config.Jobs.Busy(ctx, s.key())
	if err == nil && !busy && due && patient && s.fits(at) {
		busy = s.ahead(ctx, at, step)
	}
	out := notYet
	if err == nil && busy {
		limited, cancel := context.WithTimeout(ctx, s.c.config.Patience)
		defer cancel()
		err = s.c.config.Jobs.Wait(limited, s.key())
		if out = over; patient && !errors.Is(err, job.ErrAbandoned) {
			out = passes
		}
		if limited.Err() != nil || errors.Is(err, job.ErrAbandoned) {
			err = nil // long enough: the step goes on by itself
		}
	}
	if err != nil {
		s.emit(ctx, event.Event{Type: event.Failed, Err: event.ErrorClass(err)})
	}
	return out
}

// patient reports whether the policy has its requests wait for jobs.
func (s *Session) patient() bool {
	early, ok := policy.As[policy.Early](s.c.config.Policy)
	return ok && early.Patient()
}

// fits reports whether the request can be sent as it is.
func (s *Session) fits(at *policy.Situation) bool {
	limit := s.limit(at)
	return !at.Forced && (limit == 0 || at.Prompt < limit)
}
