package llm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Cache keeps bytes by key; a store.Answers is one. It forgets what it likes, and
// one that fails has nothing. Implementations are safe for concurrent use.
type Cache interface {
	Get(ctx context.Context, key string) ([]byte, bool)
	Put(ctx context.Context, key string, value []byte)
}

// Answers asks a model each question once. A question is all that a model is
// sent: its name, the prompt, the schema and the options that change an answer
// (A15). Who asks what is being asked waits for that answer.
//
// A full answer of the shape that was asked for is kept in the cache. What else a
// model says to a question (that it does not fit, a refusal, an answer that was
// cut off) is remembered here, so the same process does not ask again. A failure
// that may pass is not remembered.
//
// A nil *Answers asks every time. Safe for concurrent use.
type Answers struct {
	*sharedAnswers
	agent Generator // whom Agent stands for; nil where nobody is at hand
}

// sharedAnswers is what all Answers of one origin share.
type sharedAnswers struct {
	cache Cache
	meter Meter // nil bounds nothing

	mu     sync.Mutex
	asking map[string]*inFlight
	poor   *lru.Cache[string, outcome] // what is no answer to be kept
}

// NewAnswers returns Answers that keeps in a cache; nil keeps in memory. Answers
// of one tenant must not be those of another, so each has its own.
func NewAnswers(c Cache) *Answers {
	if c == nil {
		c = memory{lru.New[string, []byte](maxMemory)}
	}
	return &Answers{sharedAnswers: &sharedAnswers{cache: c, asking: map[string]*inFlight{}, poor: lru.New[string, outcome](maxPoor)}}
}

// Meter bounds what models are asked. Implementations are safe for concurrent use.
type Meter interface {
	// Begin says that a model is about to be asked something of about so many tokens,
	// with the answer, or why it may not be. end is called with what was used.
	Begin(tokens int) (end func(used int), err error)
}

// NewMetered is NewAnswers whose questions are asked as far as a Meter lets them: the
// error of one that is not is an *APIError of the kind ErrRateLimited. What is known
// is answered in any case.
func NewMetered(c Cache, m Meter) *Answers {
	a := NewAnswers(c)
	a.meter = m
	return a
}

// metered asks as far as the meter lets it.
func (a *Answers) metered(p *prompt.Prompt, o *Options, ask func(context.Context) (*Reply, error)) func(context.Context) (*Reply, error) {
	if a == nil || a.meter == nil {
		return ask
	}
	return func(ctx context.Context) (*Reply, error) {
		end, err := a.meter.Begin(size(p) + cmp.Or(o.MaxOutput, p.MaxOutput))
		if err != nil {
			return nil, &APIError{Kind: ErrRateLimited, Message: err.Error(), Err: err}
		}
		used := 0
		defer func() { end(used) }()
		reply, err := ask(ctx)
		if reply != nil {
			u := reply.Usage
			used = u.Input + u.CacheRead + u.CacheWrite + u.Output
		}
		return reply, err
	}
}

// size is about how many tokens a prompt has.
func size(p *prompt.Prompt) int {
	bytes := 0
	for _, s := range p.System {
		bytes += len(s.Text)
	}
	for i := range p.Messages {
		bytes += len(p.Messages[i].Text())
	}
	return bytes / 4
}

// outcome is what came of a question.
type outcome struct {
	reply *Reply
	err   error
}

// inFlight is a question that is being asked; done is closed when there is an
// outcome, or when whoever asked has gone without one.
type inFlight struct {
	done chan struct{}
	outcome
	gone bool
}

// maxPoor is how many outcomes that are no answers are remembered.
const maxPoor = 256

// Ask asks g, unless the answer is known; then Reply.Cached is set, and nothing
// was used. The error is that of g, or a *RepeatedError with it when the model was
// not asked again.
func (a *Answers) Ask(ctx context.Context, g Generator, p *prompt.Prompt, o *Options) (*Reply, error) {
	g = a.Of(g)
	return a.Once(ctx, g, p, o, func(ctx context.Context) (*Reply, error) { return g.Generate(ctx, p, o) })
}

// Once is Ask for a question that may be put in other words than p: ask gets the
// answer, p and o say what the question is.
func (a *Answers) Once(ctx context.Context, g Generator, p *prompt.Prompt, o *Options, ask func(context.Context) (*Reply, error)) (*Reply, error) {
	real := Options{}
	if o != nil {
		real = *o
	}
	if own, ok := g.(Adjuster); ok {
		real = *own.Adjust(&real)
	}
	ask = a.metered(p, &real, ask)
	if a == nil || real.Fresh {
		return ask(ctx)
	}
	key := question(g.Model(), p, &real)
	for {
		a.mu.Lock()
		if known, ok := a.poor.Get(key); ok {
			a.mu.Unlock()
			return known.repeated()
		}
		other := a.asking[key]
		if other == nil {
			mine := &inFlight{done: make(chan struct{}), gone: true}
			a.asking[key] = mine
			a.mu.Unlock()
			return a.ask(ctx, key, mine, g, &real, ask)
		}
		a.mu.Unlock()
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil, ended(ctx.Err())
		}
		if !other.gone {
			return other.repeated()
		}
	}
}

// ask gets the answer from the cache or the model, and hands it to who waits.
func (a *Answers) ask(ctx context.Context, key string, mine *inFlight, g Generator, o *Options, ask func(context.Context) (*Reply, error)) (*Reply, error) {
	defer func() { // also when a generator panics
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.asking, key)
		if !mine.gone && mine.poor(o) {
			a.poor.Put(key, mine.outcome, 1)
		}
		close(mine.done)
	}()
	if value, ok := a.cache.Get(ctx, key); ok {
		if reply, ok := read(value); ok {
			mine.reply, mine.gone = reply, false
			return reply, nil
		}
	}
	reply, err := ask(ctx)
	mine.outcome, mine.gone = outcome{reply, err}, err != nil && ctx.Err() != nil
	if err == nil && full(reply, o) {
		// The answer is paid for, whether or not anybody waits for it.
		a.cache.Put(context.WithoutCancel(ctx), key, written(reply, g.Model()))
	}
	return reply, err
}

// repeated is the outcome for who did not ask the model.
func (o outcome) repeated() (*Reply, error) {
	if o.err != nil {
		return nil, &RepeatedError{o.err}
	}
	again := *o.reply
	again.Cached, again.Usage = true, Usage{}
	return &again, nil
}

// poor reports whether the outcome is no answer to be kept, and asking again would
// give no other.
func (o outcome) poor(asked *Options) bool {
	if o.err != nil {
		return settled(o.err)
	}
	for _, attempt := range o.reply.Attempts {
		if _, ok := errors.AsType[*APIError](attempt.Err); ok && !settled(attempt.Err) {
			return false // that model may answer the next time
		}
	}
	return !full(o.reply, asked)
}

// settled reports whether the same request will fail in the same way again.
func settled(err error) bool {
	if again, ok := errors.AsType[*RepeatedError](err); ok {
		err = again.Err
	}
	if all, ok := errors.AsType[*AttemptsError](err); ok {
		for _, attempt := range all.Attempts {
			if !settled(attempt.Err) {
				return false
			}
		}
		return true
	}
	return errors.Is(err, ErrInvalid) || errors.Is(err, ErrOverflow) || errors.Is(err, ErrRefused) || errors.Is(err, ErrTruncated)
}

// full reports whether a reply is a whole answer of the shape that was asked for.
func full(r *Reply, o *Options) bool {
	if o.Schema != nil {
		if _, ok := FindJSON(cmp.Or(r.JSON, r.Text)); !ok {
			return false
		}
	}
	return (r.Stop == StopEnd || r.Stop == "") && len(r.Message.Calls()) == 0 && strings.TrimSpace(r.Text+r.JSON) != ""
}

// kept is an answer as the cache has it.
type kept struct {
	Text  string `json:"text,omitempty"`
	JSON  string `json:"json,omitempty"`
	Model string `json:"model,omitempty"` // as Reply has it
	By    string `json:"by"`              // the generator that answered
}

func written(r *Reply, by string) []byte {
	if n := len(r.Attempts); n > 0 {
		by = r.Attempts[n-1].Model
	}
	value, err := json.Marshal(kept{r.Text, r.JSON, r.Model, by})
	if err != nil {
		return nil // texts and nothing else: it does not fail
	}
	return value
}

func read(value []byte) (*Reply, bool) {
	var k kept
	if err := json.Unmarshal(value, &k); err != nil || k.Text+k.JSON == "" {
		return nil, false
	}
	return &Reply{
		Message: thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: cmp.Or(k.Text, k.JSON)}}},
		Text:    k.Text, JSON: k.JSON, Stop: StopEnd, Model: k.Model, Attempts: []Attempt{{Model: k.By}}, Cached: true,
	}, true
}

// question is a hash of what a model is asked. The length in front of each field
// keeps two from passing as others.
func question(model string, p *prompt.Prompt, o *Options) string {
	h := sha256.New()
	field := func(texts ...string) {
		for _, s := range texts {
			fmt.Fprintf(h, "%d:%s", len(s), s)
		}
	}
	field("1", model, fmt.Sprint(cmp.Or(o.MaxOutput, p.MaxOutput)))
	field(fmt.Sprint(len(p.System)))
	for _, s := range p.System {
		field(s.Role, s.Text)
	}
	field(fmt.Sprint(len(p.Tools)))
	for _, t := range p.Tools {
		field(t.Name, t.Description, t.Schema)
	}
	for i := range p.Messages {
		field(string(thread.ChainID("", &p.Messages[i])))
	}
	if o.Schema != nil {
		field("schema", o.Schema.Name, o.Schema.Description, o.Schema.JSON)
	}
	if o.Temperature != nil {
		field("temperature", fmt.Sprint(*o.Temperature))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ended is the error of who waited too long.
func ended(err error) error {
	kind := ErrCanceled
	if errors.Is(err, context.DeadlineExceeded) {
		kind = ErrTimeout
	}
	return &APIError{Kind: kind, Message: "waiting for an answer to the same question", Err: err}
}

// maxMemory is how many answers are kept in memory.
const maxMemory = 1024

// memory is a Cache that lasts as long as the process.
type memory struct{ held *lru.Cache[string, []byte] }

func (m memory) Get(_ context.Context, key string) ([]byte, bool) { return m.held.Get(key) }

func (m memory) Put(_ context.Context, key string, value []byte) { m.held.Put(key, value, 1) }
