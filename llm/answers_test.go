package llm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

func said(text string) *prompt.Prompt {
	return &prompt.Prompt{Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}}}}
}

// shelf is a cache that counts.
type shelf struct {
	mu   sync.Mutex
	held map[string][]byte
}

func (s *shelf) Get(_ context.Context, key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.held[key]
	return v, ok
}

func (s *shelf) Put(_ context.Context, key string, value []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = map[string][]byte{}
	}
	s.held[key] = value
}

// A15: a question is asked once, by the next process too; whatever changes what
// the model is asked makes another question.
func TestAnswersAskOnce(t *testing.T) {
	cache := &shelf{}
	warm, schema := 0.3, &llm.Schema{Name: "s", JSON: `{"type":"object"}`}
	questions := []struct {
		p *prompt.Prompt
		o *llm.Options
	}{
		{said("1"), nil}, {said("2"), nil}, {said("1"), &llm.Options{MaxOutput: 5}}, {said("1"), &llm.Options{Temperature: &warm}}, {said("1"), &llm.Options{Schema: schema}},
		{&prompt.Prompt{System: []prompt.System{{Text: "Be brief."}}, Messages: said("1").Messages}, nil},
	}
	for process := range 2 {
		answers := llm.NewAnswers(cache)
		for range 2 {
			for n, q := range questions {
				g := llmtest.Script(llmtest.Say(fmt.Sprintf(`{"answer":%d}`, n)))
				r, err := answers.Ask(t.Context(), g, q.p, q.o)
				if err != nil || r.Text != fmt.Sprintf(`{"answer":%d}`, n) || (r.JSON != "") != (q.o != nil && q.o.Schema != nil) || r.Message.Text() != r.Text || r.Stop != wire.StopEnd {
					t.Errorf("question %d: %+v, %v", n, r, err)
				}
				if r.Cached != (len(g.Asked()) == 0) || process > 0 && !r.Cached {
					t.Errorf("process %d, question %d: cached %v, asked %d times", process, n, r.Cached, len(g.Asked()))
				}
			}
		}
	}
	if len(cache.held) != len(questions) {
		t.Errorf("%d answers are kept", len(cache.held))
	}
	// How long it may take, and who listens, is no part of a question.
	if r, err := llm.NewAnswers(cache).Ask(t.Context(), llmtest.Script(), said("1"), &llm.Options{Timeout: time.Hour}); err != nil || !r.Cached {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := llm.NewAnswers(cache).Ask(t.Context(), llmtest.Script(llmtest.Say("new")), said("1"), &llm.Options{Fresh: true}); err != nil || r.Cached || r.Text != "new" {
		t.Errorf("fresh: %+v, %v", r, err)
	}
	var none *llm.Answers
	if r, err := none.Ask(t.Context(), llmtest.Script(llmtest.Say("new")), said("1"), nil); err != nil || r.Text != "new" {
		t.Errorf("nil: %+v, %v", r, err)
	}
}

// What is no answer is remembered by the process alone, and a failure that may
// pass by nobody.
func TestAnswersThatAreNone(t *testing.T) {
	schema := &llm.Options{Schema: &llm.Schema{Name: "s", JSON: `{"type":"object"}`}}
	for name, c := range map[string]struct {
		turn   llmtest.Turn
		o      *llm.Options
		asked  int // in one process
		anew   int // in two
		failed bool
	}{
		"answer":    {llmtest.Say("yes"), nil, 1, 1, false},
		"refused":   {llmtest.Turn{Reply: llm.Reply{Text: "no", Stop: wire.StopRefusal}}, nil, 1, 2, false},
		"cut off":   {llmtest.Turn{Reply: llm.Reply{Text: "The", Stop: wire.StopLength}}, nil, 1, 2, false},
		"empty":     {llmtest.Say(" "), nil, 1, 2, false},
		"too large": {llmtest.Fail(llm.ErrOverflow), nil, 1, 2, true},
		"invalid":   {llmtest.Fail(llm.ErrInvalid), nil, 1, 2, true},
		"down":      {llmtest.Fail(llm.ErrServer), nil, 2, 4, true},
		"busy":      {llmtest.Fail(llm.ErrRateLimited), nil, 2, 4, true},
		"no object": {llmtest.Say("I would rather not."), schema, 1, 2, false},
		"object":    {llmtest.Say(`Here: {"a":1}`), schema, 1, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			cache := &shelf{}
			g := llmtest.Script(c.turn, c.turn, c.turn, c.turn)
			for process := range 2 {
				answers := llm.NewAnswers(cache)
				for range 2 {
					if _, err := answers.Ask(t.Context(), g, said("1"), c.o); (err != nil) != c.failed {
						t.Fatal(err)
					}
				}
				if want := []int{c.asked, c.anew}[process]; len(g.Asked()) != want {
					t.Errorf("process %d: asked %d times, want %d", process, len(g.Asked()), want)
				}
			}
		})
	}
}

// Who asks what is being asked waits for that answer; one who gives up, or who
// panics, does not take the others along.
func TestAnswersInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := llm.NewAnswers(nil)
		var asked atomic.Int32
		slow := func(ctx context.Context) (*llm.Reply, error) {
			asked.Add(1)
			select {
			case <-time.After(time.Second):
				return &llm.Reply{Text: "yes", Stop: wire.StopEnd, Usage: wire.Usage{Input: 9, Known: true}}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		var used, cached atomic.Int32
		var wg sync.WaitGroup
		ask := func(ctx context.Context, text string) error {
			r, err := answers.AskWith(ctx, llmtest.Echo{}, said(text), nil, slow)
			if err == nil {
				used.Add(int32(r.Usage.Input))
				if r.Cached {
					cached.Add(1)
				}
			}
			return err
		}
		for range 8 {
			wg.Go(func() {
				if err := ask(t.Context(), "1"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if asked.Load() != 1 || used.Load() != 9 || cached.Load() != 7 {
			t.Errorf("asked %d times, %d tokens, %d waited", asked.Load(), used.Load(), cached.Load())
		}

		gone, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		wg.Go(func() { _ = ask(gone, "2") })
		wg.Go(func() {
			if err := ask(t.Context(), "2"); err != nil {
				t.Error("who waited for one that gave up:", err)
			}
		})
		wg.Wait()
		wg.Go(func() { _ = ask(t.Context(), "3") })
		wg.Go(func() {
			synctest.Wait() // the other asks
			short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if err := ask(short, "3"); !errors.Is(err, context.DeadlineExceeded) {
				t.Error("who could not wait:", err)
			}
		})
		wg.Wait()

		wg.Go(func() {
			defer func() { _ = recover() }()
			_, _ = answers.AskWith(t.Context(), llmtest.Echo{}, said("4"), nil, func(context.Context) (*llm.Reply, error) { time.Sleep(time.Millisecond); panic("no") })
		})
		wg.Go(func() {
			synctest.Wait() // the other asks
			if err := ask(t.Context(), "4"); err != nil {
				t.Error("who waited for one that panicked:", err)
			}
		})
		wg.Wait()
	})
}

// An error of several models names each, and is all of them.
func TestAttemptsError(t *testing.T) {
	err := fmt.Errorf("policy: %w", &llm.AttemptsError{Attempts: []llm.Attempt{{Model: "a", Err: llm.ErrServer}, {Model: "b", Err: llm.ErrAuth}}})
	if !errors.Is(err, llm.ErrServer) || !errors.Is(err, llm.ErrAuth) || !strings.Contains(err.Error(), "a: server error; b: not authorized") {
		t.Error(err)
	}
	if all := llm.AttemptsOf("x", err); len(all) != 2 || all[1].Model != "b" {
		t.Error(all)
	}
	if all := llm.AttemptsOf("x", llm.ErrServer); len(all) != 1 || all[0].Model != "x" {
		t.Error(all)
	}
}
