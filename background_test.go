package palimpsest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// slow is a policy that waits in Plan until it is let go.
type slow struct {
	policy.Policy
	soon, patient bool
	planning, go_ chan struct{}
}

func newSlow(p policy.Policy) *slow {
	return &slow{Policy: p, planning: make(chan struct{}), go_: make(chan struct{})}
}

func (p *slow) DueSoon(s *policy.Situation) (bool, string) {
	if p.soon {
		return true, "always"
	}
	return p.Policy.(policy.Background).DueSoon(s)
}

func (p *slow) WaitsForJobs() bool { return p.patient }

func (p *slow) Plan(ctx context.Context, s *policy.Situation) (*policy.Fitted, error) {
	p.planning <- struct{}{}
	select {
	case <-p.go_:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return p.Policy.Plan(ctx, s)
}

// inBackground is a compactor whose jobs are done in this process.
func inBackground(t testing.TB, config palimpsest.Config) (*palimpsest.Compactor, job.Queue) {
	t.Helper()
	var c *palimpsest.Compactor
	q := job.NewMemory(job.Handlers{palimpsest.CompactJob: func(ctx context.Context, j job.Job) error { return c.Work(ctx, j) }}, nil)
	config.Jobs, config.Domain = q, "chat"
	c, err := palimpsest.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return c, q
}

// steps lets an agent go on for so many steps and returns the size of its last
// prompt in characters of results.
func steps(t testing.TB, th *palimpsest.Session, budget, from, to int) int {
	t.Helper()
	shown := 0
	step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: budget}
	for n := from; n < to; n++ {
		if n == 0 {
			step.Messages = []thread.Message{plain(thread.User, "Tidy the queue.")}
		}
		p, err := th.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		shown = 0
		for _, m := range p.Messages {
			if r, ok := m.Result(); ok {
				shown += len(r.Text())
			}
		}
		call, result := work(n)
		if err := th.FinishStep(t.Context(), nil, wire.Usage{}, call); err != nil {
			t.Fatal(err)
		}
		step.Messages = []thread.Message{result}
	}
	if _, err := th.Append(t.Context(), step.Messages...); err != nil {
		t.Fatal(err)
	}
	return shown
}

const background = "compact:chat:t"

// TestPreparedInTheBackground: at the soft mark a job makes the next plan; the
// agent goes on without waiting for it, and what it adds meanwhile is shown
// under the plan. D2
func TestPreparedInTheBackground(t *testing.T) {
	p := newSlow(policy.Auto{})
	sink := &recorder{}
	c, q := inBackground(t, palimpsest.Config{Policy: p, Events: sink})
	th := c.Session("t")
	const budget = 40_000
	n := 0
	for {
		busy, err := q.Busy(t.Context(), background)
		if err != nil {
			t.Fatal(err)
		}
		if busy {
			break
		}
		steps(t, th, budget, n, n+1)
		n++
	}
	<-p.planning
	shown := steps(t, th, budget, n, n+2) // nobody waits
	close(p.go_)
	if err := q.Wait(t.Context(), background); err != nil {
		t.Fatal(err)
	}
	plans, err := th.Plans(t.Context())
	if err != nil || len(plans) != 1 {
		t.Fatalf("%d plans, %v", len(plans), err)
	}
	if sink.count(event.Completed) != 1 || sink.count(event.Failed) != 0 {
		t.Errorf("%d completed, %d failed", sink.count(event.Completed), sink.count(event.Failed))
	}
	after := steps(t, th, budget, n+2, n+3)
	if after >= shown {
		t.Errorf("%d characters of results before the plan, %d under it", shown, after)
	}
	last, err := th.PrepareStep(t.Context(), palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{n, n + 1, n + 2} {
		call, _ := work(at)
		found := false
		for _, m := range last.Messages {
			found = found || m.Text() == call.Text()
		}
		if !found {
			t.Errorf("step %d, which came while the plan was made or after, is not shown", at)
		}
	}
}

// TestWaitsForWhatRuns: under a patient policy every request of the thread waits
// for the compaction that runs, under another only one that is due; other threads
// never do, and nobody waits for ever. D12
func TestWaitsForWhatRuns(t *testing.T) {
	for _, test := range []struct {
		name    string
		patient bool
		budget  int
		waits   bool
	}{
		{"patient", true, 1 << 20, true},
		{"below the hard mark", false, 1 << 20, false},
		{"over the hard mark", false, 6_000, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newSlow(policy.Auto{})
				c, q := inBackground(t, palimpsest.Config{Policy: p})
				th, other := c.Session("t"), c.Session("other")
				steps(t, th, 1<<20, 0, 12)
				steps(t, other, 1<<20, 0, 12)
				p.soon = true
				// The step that asks for the job has a budget to plan for.
				prepare := func(th *palimpsest.Session, budget int) {
					if _, err := th.PrepareStep(t.Context(), palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: budget}); err != nil {
						t.Error(err)
					}
				}
				put(t, q, 6_000)
				<-p.planning
				p.soon, p.patient = false, test.patient

				done := make(chan struct{})
				go func() {
					prepare(th, test.budget)
					close(done)
				}()
				synctest.Wait()
				select {
				case <-done:
					if test.waits {
						t.Error("the request did not wait")
					}
				default:
					if !test.waits {
						t.Error("the request waits")
					}
				}
				prepare(other, 1<<20) // would hang here if it waited
				close(p.go_)
				<-done
				if err := q.Wait(t.Context(), background); err != nil {
					t.Fatal(err)
				}
				if plans, err := th.Plans(t.Context()); err != nil || len(plans) != 1 {
					t.Errorf("%d plans, %v: the compaction was made once", len(plans), err)
				}
			})
		})
	}
	t.Run("not for ever", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newSlow(policy.Auto{})
			p.patient = true
			c, q := inBackground(t, palimpsest.Config{Policy: p, Patience: time.Minute})
			th := c.Session("t")
			steps(t, th, 1<<20, 0, 12)
			p.soon = true
			put(t, q, 6_000)
			<-p.planning
			start := time.Now()
			if _, err := th.PrepareStep(t.Context(), palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: 1 << 20}); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(start); waited != time.Minute {
				t.Errorf("it waited %v", waited)
			}
			close(p.go_)
		})
	})
}

// TestFailedInTheBackground: a step that must compact does not wait for the second
// attempt of a job that has failed; it does the work itself.
func TestFailedInTheBackground(t *testing.T) {
	for _, running := range []bool{false, true} { // when the step begins
		synctest.Test(t, func(t *testing.T) {
			fail := make(chan struct{})
			q := job.NewMemory(job.Handlers{palimpsest.CompactJob: func(context.Context, job.Job) error {
				<-fail
				return errors.New("no luck")
			}}, &job.Options{Backoff: 20 * time.Second})
			c, err := palimpsest.New(palimpsest.Config{Jobs: q, Domain: "chat"})
			if err != nil {
				t.Fatal(err)
			}
			th := c.Session("t")
			steps(t, th, 1<<20, 0, 12)
			put(t, q, 6_000)
			begun := time.Now()
			if running {
				time.AfterFunc(10*time.Second, func() { close(fail) })
				begun = begun.Add(10 * time.Second)
			} else {
				close(fail)
				synctest.Wait()
			}
			if _, err := th.PrepareStep(t.Context(), palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: 6_000}); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(begun); waited < 0 || waited > 2*time.Second {
				t.Errorf("it ended %v after the job had failed", waited)
			}
			if plans, err := th.Plans(t.Context()); err != nil || len(plans) != 1 {
				t.Errorf("%d plans, %v", len(plans), err)
			}
			if err := q.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// put has thread "t" compacted, as a step with that budget would.
func put(t testing.TB, q job.Queue, budget int) {
	t.Helper()
	args := `{"domain":"chat","thread":"t","profile":{"API":"anthropic"},"budget":6000,"fixed":1}`
	added, err := q.Put(t.Context(), job.Job{Kind: palimpsest.CompactJob, Key: background, Args: []byte(args)})
	if err != nil || !added {
		t.Fatal(added, err)
	}
}

// TestWorkTwice: a job that is done again, or by somebody else at the same time,
// changes nothing.
func TestWorkTwice(t *testing.T) {
	memory := &store.Memory{}
	config := palimpsest.Config{Store: store.Tenant{Log: memory, Plans: memory}}
	one, err := palimpsest.New(config)
	if err != nil {
		t.Fatal(err)
	}
	two, err := palimpsest.New(config)
	if err != nil {
		t.Fatal(err)
	}
	th := one.Session("t")
	steps(t, th, 1<<20, 0, 12)
	j := job.Job{Kind: palimpsest.CompactJob, Key: background, Args: []byte(`{"domain":"chat","thread":"t","profile":{"API":"anthropic"},"budget":6000,"fixed":1}`)}
	if domain, _, _, err := palimpsest.ParseJob(j); err != nil || domain != "chat" {
		t.Errorf("domain %q, %v", domain, err)
	}
	ended := make(chan error)
	for _, c := range []*palimpsest.Compactor{one, two, one, two} {
		go func() { ended <- c.Work(t.Context(), j) }()
	}
	for range 4 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if plans, err := th.Plans(t.Context()); err != nil || len(plans) != 1 {
		t.Errorf("%d plans, %v", len(plans), err)
	}
}

// TestWorkOfAnEarlierBuild: a job, or a last step, that was stored with an answer that leaves nothing of its
// window is of use all the same: the answer has a third of it.
func TestWorkOfAnEarlierBuild(t *testing.T) {
	memory := &store.Memory{}
	c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: memory, Plans: memory, Documents: memory}})
	if err != nil {
		t.Fatal(err)
	}
	th := c.Session("t")
	steps(t, th, 1<<20, 0, 12)
	const saved = `"profile":{"API":"anthropic"},"window":9000,"output":20000,"fixed":1}`
	if err := c.Work(t.Context(), job.Job{Kind: palimpsest.CompactJob, Key: background, Args: []byte(`{"domain":"chat","thread":"t",` + saved)}); err != nil {
		t.Error(err)
	}
	if plans, err := th.Plans(t.Context()); err != nil || len(plans) != 1 {
		t.Errorf("%d plans, %v", len(plans), err)
	}
	if _, err := memory.Put(t.Context(), store.Document{Kind: "step", ID: "other", Body: []byte("{" + saved)}); err != nil {
		t.Fatal(err)
	}
	if last, err := c.Session("other").LastStep(t.Context()); err != nil || last.Window != 9_000 || last.Output != 3_000 {
		t.Errorf("a window of %d, %d for the answer, %v", last.Window, last.Output, err)
	}
}

// lateLog lets a message come in while a plan is made.
type lateLog struct {
	store.Log
	after   int // appends on its own once it was loaded so often
	message thread.Message
	loads   int
}

func (l *lateLog) Load(ctx context.Context, id string) (*thread.Thread, error) {
	t, err := l.Log.Load(ctx, id)
	if l.loads++; err == nil && l.loads == l.after {
		_, err = l.Log.Append(ctx, id, t.Version(), []thread.Message{l.message})
		if err == nil {
			t, err = l.Log.Load(ctx, id)
		}
	}
	return t, err
}

// TestRebase: a plan made while messages came is put in force when it holds for
// them, and made anew when it does not.
func TestRebase(t *testing.T) {
	for name, message := range map[string]thread.Message{
		"it holds":      plain(thread.User, "And hurry."),
		"a late result": toolMessage("call_late", "late\n"),
	} {
		t.Run(name, func(t *testing.T) {
			memory := &store.Memory{}
			log := &lateLog{Log: memory, message: message}
			c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: log, Plans: memory}})
			if err != nil {
				t.Fatal(err)
			}
			th := c.Session("t")
			late := thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: "call_late", Name: "Read", Arguments: `{"file_path":"a"}`}}}
			if _, err := th.Append(t.Context(), plain(thread.User, "Tidy."), late, plain(thread.User, "Go on.")); err != nil {
				t.Fatal(err)
			}
			steps(t, th, 1<<20, 1, 14)
			log.after = log.loads + 2 // after PrepareStep has read it
			p, err := th.PrepareStep(t.Context(), palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: 6_000})
			if err != nil {
				t.Fatal(err)
			}
			current, _, err := memory.Current(t.Context(), "t")
			if err != nil || current.Empty() {
				t.Fatalf("no plan: %v", err)
			}
			whole, err := memory.Load(t.Context(), "t")
			if err != nil {
				t.Fatal(err)
			}
			if err := current.Validate(whole); err != nil {
				t.Error(err)
			}
			if len(p.Messages) == 0 {
				t.Error("no prompt")
			}
		})
	}
}

// broken is a queue out of order.
type broken struct{ job.Queue }

var errQueue = errors.New("the queue is out of order")

func (broken) Put(context.Context, job.Job) (bool, error) { return false, errQueue }
func (broken) Busy(context.Context, string) (bool, error) { return false, errQueue }
func (broken) Wait(context.Context, string) error         { return errQueue }

// TestBrokenQueue: without its queue a thread is compacted when it is due.
func TestBrokenQueue(t *testing.T) {
	sink := &recorder{}
	c, err := palimpsest.New(palimpsest.Config{Jobs: broken{}, Events: sink})
	if err != nil {
		t.Fatal(err)
	}
	th, _, _ := longLoop(t, c)
	plans, err := th.Plans(t.Context())
	if err != nil || len(plans) == 0 {
		t.Errorf("%d plans, %v", len(plans), err)
	}
	if sink.count(event.Failed) == 0 {
		t.Error("nobody was told")
	}
}

// wrapped is a policy in another one that knows nothing of jobs.
type wrapped struct{ policy.Policy }

func (w wrapped) Unwrap() policy.Policy { return w.Policy }

// TestWrappedPolicyIsPreparedEarly: a policy that wants a compaction prepared gets it, also
// where another one wraps it.
func TestWrappedPolicyIsPreparedEarly(t *testing.T) {
	c, q := inBackground(t, palimpsest.Config{Policy: wrapped{policy.Auto{}}})
	th := c.Session("t")
	for n := range 60 {
		steps(t, th, 40_000, n, n+1)
		if err := q.Wait(t.Context(), background); err != nil {
			t.Fatal(err)
		}
		plans, err := th.Plans(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(plans) == 0 {
			continue
		}
		if p := plans[0]; p.OriginalTokens > 35_000 {
			t.Errorf("the first plan was made at %d tokens, not at the soft mark", p.OriginalTokens)
		}
		return
	}
	t.Error("no plan was made")
}

// TestCutsInTheBackground: a policy that cuts compacts once per mark with a queue of jobs and
// known prices too, and not at nearly every step.
func TestCutsInTheBackground(t *testing.T) {
	settings, err := policyfile.Read("cut.yaml", []byte("base: last-turns:2"))
	if err != nil {
		t.Fatal(err)
	}
	sink := &recorder{}
	c, q := inBackground(t, palimpsest.Config{Policy: settings.Policy(nil), Events: sink})
	th := c.Session("t")
	step := palimpsest.Step{Base: &prompt.Prompt{Model: "claude-sonnet-4-5"}, Profile: render.For(wire.Anthropic), Window: 200_000, Output: 8_000}
	text := strings.Repeat("0x1f 0x2e 0x3d\n", 400)
	const total = 45
	for n := range total {
		step.Messages = []thread.Message{plain(thread.User, fmt.Sprint("Read part ", n, "\n", text))}
		p, err := th.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		if err := th.FinishStep(t.Context(), p, wire.Usage{}, plain(thread.Assistant, "I read it.")); err != nil {
			t.Fatal(err)
		}
		if err := q.Wait(t.Context(), background); err != nil {
			t.Fatal(err)
		}
	}
	if done := sink.count(event.Completed); done == 0 || done > 3 {
		t.Errorf("%d compactions in %d steps", done, total)
	}
}

// TestJobsCountWhatIsSent: a job tells the size of the request as it is sent, without the tools
// that come with its plan, and decides at the same mark as a step. A12, A18
func TestJobsCountWhatIsSent(t *testing.T) {
	var before, sent []int
	c, q := inBackground(t, palimpsest.Config{
		Policy: policy.Ladder{MaxInputTokens: 9_900}, Recall: &palimpsest.Recall{},
		Events: event.Func(func(_ context.Context, e event.Event) {
			switch e.Type {
			case event.PromptPrepared:
				sent = append(sent, e.TokensAfter)
			case event.Completed:
				before = append(before, e.TokensBefore)
			}
		}),
	})
	th := c.Session("t")
	step := palimpsest.Step{Window: 100_000, Messages: []thread.Message{plain(thread.User, strings.Repeat("Tidy the queue. ", 1000))}}
	for n := 0; len(before) == 0 && n < 300; n++ {
		p, err := th.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		if err := th.FinishStep(t.Context(), p, wire.Usage{}, plain(thread.Assistant, strings.Repeat("I tidied. ", 80))); err != nil {
			t.Fatal(err)
		}
		if err := q.Wait(t.Context(), background); err != nil {
			t.Fatal(err)
		}
		step.Messages = []thread.Message{plain(thread.User, "Go on.")}
	}
	if len(before) == 0 || before[0] <= 5_915 || before[0] > sent[len(sent)-1]+400 {
		t.Errorf("a compaction of %d tokens after requests of %d", before, sent[max(0, len(sent)-3):])
	}
}
