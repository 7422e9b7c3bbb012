package palimpsest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/policy"
)

const (
	// CompactJob is the kind of the jobs that prepare compactions. Their handler is
	// Compactor.Work. The policy says when one is due (policy.Background).
	CompactJob = "compact"

	// DefaultPatience bounds how long a step waits for a compaction in the background.
	// The system whose rules policy.Workstream follows has no bound; but an agent must not wait for ever.
	DefaultPatience = 30 * time.Second

	// DefaultMemory is the size of a Compactor's own Memory, in bytes.
	DefaultMemory = 128 << 20
)

// compactArgs are the arguments of a job: the step to prepare a compaction for.
type compactArgs struct {
	Domain string `json:"domain"`
	Thread string `json:"thread"`
	savedStep
	// Sent is Fixed without the tools that come with the first plan; 0 after it.
	Sent int `json:"sent,omitempty"`
	// Usage corrects the counter as it does for the step.
	Usage *calibration `json:"usage,omitempty"`
}

// ParseJob reads what a job of CompactJob is for: the domain, by which a worker that
// serves several Compactors finds the right one, the conversation, and the model, which
// may be empty.
func ParseJob(j job.Job) (domain, session, model string, err error) {
	var a compactArgs
	err = json.Unmarshal(j.Args, &a)
	nameCall(&err, "ParseJob", j.Key)
	return a.Domain, a.Thread, a.Model, err
}

// Work is the handler of CompactJob: it makes the plan that the policy would make now and
// puts it in force, unless none is due any more. Doing a job twice changes nothing. The
// error is that of the stores, the policy or the context; the thread then continues
// unchanged.
func (c *Compactor) Work(ctx context.Context, j job.Job) (err error) {
	defer nameCall(&err, "Work", j.Key)
	var a compactArgs
	if err := json.Unmarshal(j.Args, &a); err != nil {
		return err
	}
	s := c.Session(a.Thread)
	s.stateOverride = &sessionState{sizes: s.state().sizes} // a job waits for no step, and holds up none
	l, err := load(ctx, s)
	if err != nil {
		return err
	}
	_, err = compactNow(ctx, s, l, planRequest{Step: a.step(), sent: a.Sent, usage: a.Usage, attempt: j.Attempt, attempts: j.Attempts})
	if errors.Is(err, policy.ErrNothing) {
		return nil
	}
	return err
}

// checkDueSoon says whether the policy wants a compaction made or prepared, and why.
func (c *Compactor) checkDueSoon(situation *policy.Situation) dueCheck {
	yes, why := c.config.Policy.Due(situation)
	if early, ok := policy.As[policy.Background](c.config.Policy); ok && !yes {
		yes, why = early.DueSoon(situation)
	}
	return dueCheck{isDue: yes, trigger: "auto", reason: why, planner: c.config.Policy}
}

// enqueueCompaction enqueues a compaction when the policy wants one soon, and reports
// whether it did. When the queue fails, the compaction is made when it is due.
func enqueueCompaction(ctx context.Context, s *Session, situation *policy.Situation, step Step) bool {
	if s.c.config.Jobs == nil || !s.c.checkDueSoon(situation).isDue {
		return false
	}
	a := compactArgs{Domain: s.c.config.Domain, Thread: s.id, savedStep: newSavedStep(step, cmp.Or(step.Fixed, s.c.config.Counter.Prompt(situation.Base)))}
	a.Profile = s.c.profile(step.Profile)
	if step.Fixed == 0 && situation.Current.Empty() {
		a.Sent = s.c.config.Counter.Prompt(situation.SentBase)
	}
	if u := s.state().calibration.newest; u.Input > 0 {
		a.Usage = &u
	}
	args, err := json.Marshal(a)
	if err == nil {
		_, err = s.c.config.Jobs.Put(ctx, job.Job{Kind: CompactJob, Key: job.CompactKey(s.c.config.Domain, s.id), Args: args})
	}
	if err != nil {
		s.emit(ctx, event.Event{Type: event.Failed}.Failing(err))
	}
	return err == nil
}

// waitOutcome says how a step waited for a compaction in the background.
type waitOutcome int

const (
	notWaited     waitOutcome = iota // there is none to wait for
	waitedOnce                       // look again at what is there now
	waitedMaySend                    // look again, and send the request uncompacted if it fits
)

// waitForJob waits for a compaction of the thread that is being prepared, at most for
// Config.Patience. Requests below the hard mark do not wait, unless the policy says so;
// for such a policy a due compaction is made by the queue, which retries, and not by the
// step. A step compacts by itself where its request cannot be sent otherwise, or where the
// job's worker is gone.
func waitForJob(ctx context.Context, s *Session, situation *policy.Situation, due bool, step Step) waitOutcome {
	if s.c.config.Jobs == nil {
		return notWaited
	}
	early, ok := policy.As[policy.Background](s.c.config.Policy)
	patient := ok && early.WaitsForJobs()
	if !due && !patient {
		return notWaited
	}
	busy, err := s.c.config.Jobs.Busy(ctx, job.CompactKey(s.c.config.Domain, s.id))
	if err == nil && !busy && due && patient && fitsLimit(s.c.config.Policy, situation) {
		busy = enqueueCompaction(ctx, s, situation, step)
	}
	out := notWaited
	if err == nil && busy {
		limited, cancel := context.WithTimeout(ctx, s.c.config.Patience)
		defer cancel()
		err = s.c.config.Jobs.Wait(limited, job.CompactKey(s.c.config.Domain, s.id))
		if out = waitedOnce; patient && !errors.Is(err, job.ErrAbandoned) {
			out = waitedMaySend
		}
		if limited.Err() != nil || errors.Is(err, job.ErrAbandoned) {
			err = nil // the step continues by itself
		}
	}
	if err != nil {
		s.emit(ctx, event.Event{Type: event.Failed}.Failing(err))
	}
	return out
}

// fitsLimit reports whether the request can be sent as it is.
func fitsLimit(p policy.Policy, situation *policy.Situation) bool {
	limit := requestLimit(p, situation)
	return !situation.Forced && (limit == 0 || situation.PromptTokens < limit)
}
