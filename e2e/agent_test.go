package e2e

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// agent is an ordinary loop around a model.
type agent struct {
	client client
	thread *palimpsest.Session
	// prepared is the prompt that the model last answered.
	prepared *palimpsest.Prepared
	log      store.Log
	world    *world
	window   int // tokens
	stream   bool
	said     []thread.Message // all that went into the log, in order
	refused  int              // requests that were refused as too long, and made again
	again    int              // requests that were made again as they were
	lookups  int              // calls that looked something up
}

// run works on the task to its end, and returns the model's last words.
func (a *agent) run(ctx context.Context) (report string, err error) {
	around, err := json.Marshal(a.client.around(taskTools))
	if err != nil {
		return "", err
	}
	base, err := a.client.codec().Decode(string(around))
	if err != nil {
		return "", err
	}
	step := palimpsest.Step{Base: base, Profile: render.For(a.client.codec().API()), Window: a.window, Output: maxOutput}
	news := []thread.Message{user(taskText())}
	for notes := 0; ; {
		step.Messages = news
		a.said = append(a.said, news...)
		answer, err := a.step(ctx, step)
		if err != nil {
			return "", err
		}
		news = nil
		for _, m := range answer.messages {
			report = m.Text()
			for _, c := range m.Calls() {
				m, ok, err := a.thread.Answer(ctx, a.prepared, c)
				switch {
				case err != nil:
					return "", err
				case ok:
					a.lookups++
				default:
					m = a.world.run(c)
				}
				news = append(news, m)
			}
		}
		switch {
		case len(news) > 0:
		case notes < len(customers) && len(a.world.locked) < len(services):
			news = []thread.Message{user(note(notes))}
			notes++
		default:
			return report, nil
		}
	}
}

// step asks the model once; again with less where that was too much, and again
// with the same where the answer broke off.
func (a *agent) step(ctx context.Context, step palimpsest.Step) (answered, error) {
	again := 0
	p, err := a.thread.PrepareStep(ctx, step)
	for err == nil {
		var body []byte
		if body, err = a.client.codec().Encode(p.Prompt); err != nil {
			return answered{}, err
		}
		var answer answered
		if answer, err = a.client.ask(ctx, body, a.stream); err == nil {
			a.said = append(a.said, answer.messages...)
			a.prepared = p
			return answer, a.thread.FinishStep(ctx, p, answer.usage, answer.messages...)
		}
		switch status, _ := a.client.refusal(err); {
		case overflowed(a.client, err):
			a.refused++
			p, err = a.thread.Overflowed(ctx, p, err)
		case status == 0 && again < 3:
			again++
			a.again++
			err = nil
		default:
			return answered{}, fmt.Errorf("after %d messages: %w", len(a.said), err)
		}
	}
	return answered{}, fmt.Errorf("after %d messages: %w", len(a.said), err)
}

func user(text string) thread.Message {
	return thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}}
}
