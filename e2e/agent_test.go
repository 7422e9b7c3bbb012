package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// agent is an ordinary loop around a model.
type agent struct {
	client client
	thread *palimpsest.Thread
	memory *removed
	world  *world
	window int // tokens
	stream bool
	// forgetful agents offer nothing to look things up with.
	forgetful bool

	said    []thread.Message // all that went into the log, in order
	refused int              // requests that were refused as too long, and made again
	again   int              // requests that were made again as they were
	lookups int              // calls that looked something up
}

// run works on the task to its end, and returns the model's last words.
func (a *agent) run(ctx context.Context) (report string, err error) {
	handler := &rehydrate.Handler{Artifacts: a.memory, Recaller: a.memory}
	if a.forgetful {
		handler = &rehydrate.Handler{}
	}
	around, err := json.Marshal(a.client.around(taskTools))
	if err != nil {
		return "", err
	}
	base, err := a.client.codec().Decode(around)
	if err != nil {
		return "", err
	}
	base.Tools = append(base.Tools, handler.Tools()...)
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
				if handler.Handles(c.Name) {
					a.lookups++
					r, err := handler.Answer(ctx, c)
					if err != nil {
						return "", err
					}
					news = append(news, result(c, r))
					continue
				}
				news = append(news, a.world.run(c))
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
		if body, err = a.client.codec().Encode(p); err != nil {
			return answered{}, err
		}
		var answer answered
		if answer, err = a.client.ask(ctx, body, a.stream); err == nil {
			a.said = append(a.said, answer.messages...)
			return answer, a.thread.FinishStep(ctx, answer.messages...)
		}
		switch status, _ := a.client.refusal(err); {
		case overflowed(a.client, err):
			a.refused++
			p, err = a.thread.Overflowed(ctx)
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

// removed finds what the plan in force hides.
type removed struct {
	store *store.Memory
	id    string

	plan  *plan.Plan // that the index is of
	index *recall.Index
}

func (r *removed) load(ctx context.Context) (*thread.Thread, *plan.Plan, error) {
	log, err := r.store.Load(ctx, r.id)
	if err != nil {
		return nil, nil, err
	}
	p, _, err := r.store.Current(ctx, r.id)
	return log, p, err
}

// Recall implements rehydrate.Recaller.
func (r *removed) Recall(ctx context.Context, query string, limit int) ([]recall.Hit, error) {
	log, p, err := r.load(ctx)
	if err != nil || p == nil {
		return nil, err
	}
	if r.plan != p {
		r.plan, r.index = p, recall.NewIndex(recall.Removed(log, p))
	}
	return r.index.Search(query, &recall.Options{Limit: limit}), nil
}

// Artifact implements rehydrate.Artifacts, for what was put aside and for any
// message that a search found.
func (r *removed) Artifact(ctx context.Context, id string) (rehydrate.Content, error) {
	log, p, err := r.load(ctx)
	if err != nil || p == nil {
		return rehydrate.Content{}, fmt.Errorf("%w: %w", artifact.ErrNotFound, err)
	}
	message := thread.ID(id)
	if i := slices.IndexFunc(p.Externalizations, func(e plan.Externalization) bool { return e.ArtifactID == id }); i >= 0 {
		message = p.Externalizations[i].Span.First()
	}
	at, ok := log.Index(message)
	if !ok {
		return rehydrate.Content{}, artifact.ErrNotFound
	}
	return rehydrate.Content{ID: id, Turn: log.At(at).Turn, Text: recall.FullText(log.At(at))}, nil
}
