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
	// Compactor.Work; when one is due the policy says (policy.Background, of auto in
	// policy/auto.go).
	CompactJob = "compact"

	// DefaultPatience bounds how long a step waits for a compaction that runs. The
	// seed that waits has no bound; an agent that waits for ever has failed.
	DefaultPatience = 30 * time.Second

	// DefaultMemory is what a Compactor remembers at most where Config.Memory is nil,
	// in bytes.
	DefaultMemory = 128 << 20
)

// compactArgs are the arguments of a job: the step that it is prepared for.
type compactArgs struct {
	Domain string `json:"domain"`
	Thread string `json:"thread"`
	savedStep
	// Usage corrects the counter as it does for the step.
	Usage *calibration `json:"usage,omitempty"`
}

// ParseJob says what a job of CompactJob is for: the domain, by which a worker who serves
// several Compactors finds the right one, the conversation, and the model, which may be
// empty.
func ParseJob(j job.Job) (domain, session, model string, err error) {
	var a compactArgs
	if err := json.Unmarshal(j.Args, &a); err != nil {
		return "", "", "", fmt.Errorf("palimpsest.ParseJob(%s): %w", j.Key, err)
	}
	return a.Domain, a.Thread, a.Model, nil
}

// Work does a job of CompactJob: it makes the plan that the policy would make
// now and puts it in force, unless somebody has done so or nothing is to be done
// any more. Doing a job twice changes nothing. The error is that of the stores,
// of the policy, or of the context; the thread then goes on as it is.
func (c *Compactor) Work(ctx context.Context, j job.Job) error {
	var a compactArgs
	if err := json.Unmarshal(j.Args, &a); err != nil {
		return fmt.Errorf("palimpsest.Work(%s): %w", j.Key, err)
	}
	s := c.Session(a.Thread).forJob()
	l, err := s.load(ctx)
	if err == nil {
		_, err = s.compactNow(ctx, l, a.step(), stepOptions{usage: a.Usage, attempt: j.Attempt, attempts: j.Attempts}, c.checkDueSoon)
	}
	if err != nil && !errors.Is(err, policy.ErrNothing) {
		return fmt.Errorf("palimpsest.Work(%s): %w", j.Key, err)
	}
	return nil
}

// checkDueSoon says whether the policy wants a compaction prepared, or made, and why.
func (c *Compactor) checkDueSoon(situation *policy.Situation) dueCheck {
	yes, why := c.config.Policy.Due(situation)
	if early, ok := c.config.Policy.(policy.Background); ok && !yes {
		yes, why = early.DueSoon(situation)
	}
	return dueCheck{isDue: yes, trigger: "auto", reason: why}
}

func (s *Session) jobKey() string { return job.CompactKey(s.c.config.Domain, s.id) }

// enqueueCompaction has a compaction prepared when the policy wants one soon, and reports whether
// one is being prepared. A queue that fails does not stop the agent: the compaction is
// then made when it is due.
func (s *Session) enqueueCompaction(ctx context.Context, situation *policy.Situation, step Step) bool {
	if s.c.config.Jobs == nil || !s.c.checkDueSoon(situation).isDue {
		return false
	}
	a := compactArgs{Domain: s.c.config.Domain, Thread: s.id, savedStep: newSavedStep(step, s.c.tokenMemo.Prompt(situation.Base))}
	a.Profile = s.profile(step)
	if u := s.state().calibration.newest; u.Input > 0 {
		a.Usage = &u
	}
	args, err := json.Marshal(a)
	if err == nil {
		_, err = s.c.config.Jobs.Put(ctx, job.Job{Kind: CompactJob, Key: s.jobKey(), Args: args})
	}
	if err != nil {
		s.emit(ctx, event.Event{Type: event.Failed, Err: event.ErrorClass(err)})
	}
	return err == nil
}

// waitOutcome says how a step has waited for a compaction that is prepared beside it.
type waitOutcome int

const (
	notWaited     waitOutcome = iota // it has not
	waitedOnce                       // it has, and goes on with what is there now
	waitedMaySend                    // it has, and goes on without a compaction where the request can be sent
)

// waitForJob waits for a compaction of the thread that is being prepared, for as long as
// Config.Patience allows. Requests below the hard mark do not wait, unless the policy
// is patient: then one is prepared where one is due, as the queue's job, which is
// tried again where it fails, and not by the request itself. A request does the work
// itself where it cannot be sent without, and where whoever does the job is gone.
func (s *Session) waitForJob(ctx context.Context, situation *policy.Situation, due bool, step Step) waitOutcome {
	if s.c.config.Jobs == nil {
		return notWaited
	}
	patient := s.waitsForJobs()
	if !due && !patient {
		return notWaited
	}
	busy, err := s.c.config.Jobs.Busy(ctx, s.jobKey())
	if err == nil && !busy && due && patient && s.fitsLimit(situation) {
		busy = s.enqueueCompaction(ctx, situation, step)
	}
	out := notWaited
	if err == nil && busy {
		limited, cancel := context.WithTimeout(ctx, s.c.config.Patience)
		defer cancel()
		err = s.c.config.Jobs.Wait(limited, s.jobKey())
		if out = waitedOnce; patient && !errors.Is(err, job.ErrAbandoned) {
			out = waitedMaySend
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

// waitsForJobs reports whether the policy has its requests wait for jobs.
func (s *Session) waitsForJobs() bool {
	early, ok := policy.As[policy.Background](s.c.config.Policy)
	return ok && early.WaitsForJobs()
}

// fitsLimit reports whether the request can be sent as it is.
func (s *Session) fitsLimit(situation *policy.Situation) bool {
	limit := s.limit(situation)
	return !situation.Forced && (limit == 0 || situation.PromptTokens < limit)
}
