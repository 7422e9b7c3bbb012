package policy_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// ill is a model that fails in one way until it is cured.
type ill struct {
	way   func(context.Context, *llm.Options) (*llm.Reply, error)
	cured bool
	asked int
}

func (*ill) Model() string { return "ill" }

func (m *ill) Generate(ctx context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	m.asked++
	if o == nil {
		o = &llm.Options{}
	}
	if !m.cured {
		return m.way(ctx, o)
	}
	said := "I look at the worker next"
	text := said + "."
	if o.Schema != nil {
		if text = `{"facts":[{"text":"` + said + `","sources":[1,2,3,4,5,6]}]}`; strings.Contains(o.Schema.JSON, "key_facts") {
			text = `{"summary":{"key_facts":["` + said + `"],"conversation_flow":[],"open_threads":[]},"state_delta":{}}`
		}
	}
	return &llm.Reply{Text: text, JSON: text, Stop: wire.StopEnd, Message: say(thread.Assistant, text)}, nil
}

// ways are the failures of a summarizer, as its client reports them.
func ways() map[string]func(context.Context, *llm.Options) (*llm.Reply, error) {
	type way = func(context.Context, *llm.Options) (*llm.Reply, error)
	fails := func(err error) way {
		return func(context.Context, *llm.Options) (*llm.Reply, error) { return nil, err }
	}
	says := func(text string, stop wire.Stop) way {
		return func(context.Context, *llm.Options) (*llm.Reply, error) {
			return &llm.Reply{Text: text, JSON: text, Stop: stop, Message: say(thread.Assistant, text)}, nil
		}
	}
	return map[string]way{
		"timeout":      fails(&llm.APIError{Kind: llm.ErrTimeout}),
		"500":          fails(&llm.APIError{Kind: llm.ErrServer, Status: 500}),
		"429":          fails(&llm.APIError{Kind: llm.ErrRateLimited, Status: 429}),
		"cancelled":    fails(&llm.APIError{Kind: llm.ErrCanceled}),
		"other error":  fails(errors.New("the pipe broke")),
		"refusal":      says("I cannot help with that.", wire.StopRefusal),
		"empty":        says("", wire.StopEnd),
		"blank":        says(" \n\t", wire.StopEnd),
		"cut-off JSON": says(`{"summary":{"key_facts":["the que`, wire.StopLength),
		"garbage":      says("\x00\xff{{{[[ zzz qqq vvv", wire.StopEnd),
		"inflated":     says(strings.Repeat("Lorem ipsum dolor sit amet, consectetur adipiscing elit. ", 3000), wire.StopEnd),
		"hang": func(ctx context.Context, o *llm.Options) (*llm.Reply, error) {
			limit := o.Timeout
			if limit == 0 {
				limit = llm.DefaultTimeout
			}
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			<-ctx.Done()
			return nil, &llm.APIError{Kind: llm.ErrTimeout, Err: ctx.Err()}
		},
	}
}

// TestEveryFailureUnderEveryPolicy: whatever happens at the summarizer, the loop
// goes on, the log is untouched, an event says what happened and what was done
// instead, and once the summarizer is well the next round uses it.
func TestEveryFailureUnderEveryPolicy(t *testing.T) {
	for way := range ways() {
		for name := range withModel(&ill{}) {
			t.Run(name+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { failAndRecover(t, name, way) })
			})
		}
	}
}

func failAndRecover(t *testing.T, name, way string) {
	m := &ill{way: ways()[way]}
	config := withModel(m)[name]
	memory, told := &store.Memory{}, &trace{}
	config.Store.Log, config.Store.Plans, config.Events = memory, memory, told
	c, err := palimpsest.New(config)
	if err != nil {
		t.Fatal(err)
	}
	th := c.Session("queue")
	step := palimpsest.Step{Profile: render.For(wire.Chat), Budget: window}
	var said []thread.Message
	var failed, healed *event.Event
	n := 0
	play := func(until func() bool) {
		t.Helper()
		for ; !until(); n++ {
			if n > 100 {
				t.Fatal("it never happened")
			}
			var answer thread.Message
			step.Messages, answer = queueWork(n)
			p, err := th.PrepareStep(t.Context(), step)
			if err != nil || len(p.Messages) == 0 {
				t.Fatalf("the loop stopped: %v", err)
			}
			if err := th.FinishStep(t.Context(), nil, wire.Usage{}, answer); err != nil {
				t.Fatal(err)
			}
			said = append(append(said, step.Messages...), answer)
			for i := range told.events {
				e := &told.events[i]
				switch ended := e.Type == event.Completed || e.Type == event.Failed; {
				case ended && !m.cured && failed == nil && m.asked > 0:
					failed = e
				case ended && m.cured && healed == nil:
					healed = e
				}
			}
			told.events = nil
		}
	}
	play(func() bool { return failed != nil })
	if failed.Err == "" || failed.Details["fallback"] == nil {
		t.Errorf("the event says %+v", *failed)
	}
	log, err := memory.Load(t.Context(), "queue")
	if err != nil || log.Len() != len(said) {
		t.Fatalf("the log has %d messages of %d: %v", log.Len(), len(said), err)
	}
	for i, message := range log.All() {
		if message.Role != said[i].Role || !reflect.DeepEqual(message.Parts, said[i].Parts) {
			t.Fatalf("message %d of the log is another", i)
		}
	}
	m.cured = true
	asked := m.asked
	play(func() bool { return healed != nil })
	for healed.Err != "" && n < 60 { // a text may still be too short to be taken
		healed = nil
		play(func() bool { return healed != nil })
	}
	if healed.Type != event.Completed || healed.Err != "" || m.asked == asked {
		t.Errorf("after the cure: %+v, asked %d times", *healed, m.asked-asked)
	}
}

// TestCallerGivesUp: a caller whose context ends while the summarizer hangs gets
// the context's error; the log and the plans are untouched, and the next call
// goes on.
func TestCallerGivesUp(t *testing.T) {
	for name := range withModel(&ill{}) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &ill{way: ways()["hang"]}
				c, err := palimpsest.New(withModel(m)[name])
				if err != nil {
					t.Fatal(err)
				}
				th := c.Session("queue")
				for n := range 30 {
					news, answer := queueWork(n)
					if name == "auto" { // what rules alone cannot make smaller
						answer.Parts = append([]thread.Part{thread.Text{Text: strings.Repeat(fmt.Sprintf("Job %d waits behind another one. ", n), 30)}}, answer.Parts...)
					}
					if _, err := th.Append(t.Context(), append(news, answer)...); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := th.Append(t.Context(), toolResult(29, "Bash", queueReport(29)), say(thread.User, "Go on.")); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				step := palimpsest.Step{Profile: render.For(wire.Chat), Budget: window}
				_, err = th.PrepareStep(ctx, step)
				if m.asked == 0 {
					t.Fatal("the model was not asked")
				}
				plans, _ := th.Plans(t.Context())
				if !errors.Is(err, context.DeadlineExceeded) && !(err == nil && len(plans) == 1) {
					t.Fatalf("%v, %d plans", err, len(plans))
				}
				m.cured = true
				if p, err := th.PrepareStep(t.Context(), step); err != nil || len(p.Messages) == 0 {
					t.Errorf("the next call: %v", err)
				}
			})
		})
	}
}
