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
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Cache keeps bytes by key; a store.Answers is one. It may forget anything, and one that
// fails acts as if it were empty. Implementations are safe for concurrent use.
type Cache interface {
	Get(ctx context.Context, key string) ([]byte, bool)
	Put(ctx context.Context, key string, value []byte)
}

// Answers asks a model each question once. A question is everything that a model is sent: its
// name, the prompt, the schema and the options that change an answer. A caller whose
// question is already being asked waits for that answer.
//
// A complete answer of the requested shape goes into the cache. Other outcomes (an overflow,
// a refusal, an answer that was cut off) are remembered in memory, so that the same process
// does not ask again. Temporary failures are not remembered.
//
// A nil *Answers asks every time. Safe for concurrent use.
type Answers struct {
	*sharedAnswers
	agent Generator // the model that Agent stands for, or nil
}

// sharedAnswers is what an Answers shares with those that its For returns.
type sharedAnswers struct {
	cache Cache
	meter Meter // nil bounds nothing

	mu          sync.Mutex
	inFlight    map[string]*inFlightAnswer
	uncacheable *lru.Cache[string, outcome] // outcomes that do not go into the cache
}

// NewAnswers returns an Answers with a cache; nil stands for one in memory. Tenants must not
// see each other's answers, so each needs its own.
func NewAnswers(c Cache) *Answers {
	if c == nil {
		c = memoryCache{lru.New[string, []byte](maxCachedReplies)}
	}
	return &Answers{sharedAnswers: &sharedAnswers{cache: c, inFlight: map[string]*inFlightAnswer{}, uncacheable: lru.New[string, outcome](maxUncacheable)}}
}

// Meter limits the use of models. Implementations are safe for concurrent use.
type Meter interface {
	// Begin is called before a request of about so many tokens, including the answer. An
	// error forbids it. Otherwise end is called afterwards with the tokens used.
	Begin(tokens int) (end func(used int), err error)
}

// NewMetered is NewAnswers with a Meter. A question that the Meter forbids fails with an
// *APIError of kind ErrRateLimited. Known answers are not metered.
func NewMetered(c Cache, m Meter) *Answers {
	a := NewAnswers(c)
	a.meter = m
	return a
}

// withMeter wraps ask with the meter, if there is one.
func (a *Answers) withMeter(p *prompt.Prompt, o *Options, ask func(context.Context) (*Reply, error)) func(context.Context) (*Reply, error) {
	if a == nil || a.meter == nil {
		return ask
	}
	return func(ctx context.Context) (*Reply, error) {
		end, err := a.meter.Begin(estimateTokens(p) + cmp.Or(o.MaxOutput, p.MaxOutput))
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

func estimateTokens(p *prompt.Prompt) int {
	bytes := 0
	for _, s := range p.System {
		bytes += len(s.Text)
	}
	for i := range p.Messages {
		bytes += len(p.Messages[i].Text())
	}
	return bytes / 4
}

// outcome is the result of a question.
type outcome struct {
	reply *Reply
	err   error
}

// inFlightAnswer is a question that is being asked. done is closed when there is an outcome,
// or when the caller that asked gave up.
type inFlightAnswer struct {
	done chan struct{}
	outcome
	abandoned bool
}

// maxUncacheable bounds the outcomes that are remembered in memory.
const maxUncacheable = 256

// Ask asks g, unless the answer is known; then Reply.Cached is set and Usage is zero. The
// error is that of g, or a *RepeatedError around an earlier one if the model was not asked
// again.
func (a *Answers) Ask(ctx context.Context, g Generator, p *prompt.Prompt, o *Options) (*Reply, error) {
	g = a.GeneratorFor(g)
	return a.AskWith(ctx, g, p, o, func(ctx context.Context) (*Reply, error) { return g.Generate(ctx, p, o) })
}

// AskWith is Ask for a question that may be asked in other words than p: ask gets the answer,
// and p and o identify the question.
func (a *Answers) AskWith(ctx context.Context, g Generator, p *prompt.Prompt, o *Options, ask func(context.Context) (*Reply, error)) (*Reply, error) {
	real := *cmp.Or(o, &Options{})
	if own, ok := g.(Adjuster); ok {
		real = *own.Adjust(&real)
	}
	ask = a.withMeter(p, &real, ask)
	if a == nil || real.Fresh {
		return ask(ctx)
	}
	key := cacheKey(g.Model(), p, &real)
	for {
		a.mu.Lock()
		if known, ok := a.uncacheable.Get(key); ok {
			a.mu.Unlock()
			return known.withoutAsking()
		}
		other := a.inFlight[key]
		if other == nil {
			mine := &inFlightAnswer{done: make(chan struct{}), abandoned: true}
			a.inFlight[key] = mine
			a.mu.Unlock()
			return a.ask(ctx, key, mine, g, &real, ask)
		}
		a.mu.Unlock()
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil, waitError(ctx.Err())
		}
		if !other.abandoned {
			return other.withoutAsking()
		}
	}
}

// ask gets the answer from the cache or the model, and passes it to those who wait.
func (a *Answers) ask(ctx context.Context, key string, mine *inFlightAnswer, g Generator, o *Options, ask func(context.Context) (*Reply, error)) (*Reply, error) {
	defer func() { // also when a generator panics
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.inFlight, key)
		if !mine.abandoned && mine.isUncacheable(o) {
			a.uncacheable.Put(key, mine.outcome, 1)
		}
		close(mine.done)
	}()
	if value, ok := a.cache.Get(ctx, key); ok {
		if reply, ok := decodeReply(value); ok {
			mine.reply, mine.abandoned = reply, false
			return reply, nil
		}
	}
	reply, err := ask(ctx)
	mine.outcome, mine.abandoned = outcome{reply, err}, err != nil && ctx.Err() != nil
	if err == nil && isComplete(reply, o) {
		// The answer is paid for, even if nobody waits for it any more.
		a.cache.Put(context.WithoutCancel(ctx), key, encodeReply(reply, g.Model()))
	}
	return reply, err
}

// withoutAsking is the outcome for a caller that did not ask the model itself.
func (o outcome) withoutAsking() (*Reply, error) {
	if o.err != nil {
		return nil, &RepeatedError{o.err}
	}
	again := *o.reply
	again.Cached, again.Usage = true, wire.Usage{}
	return &again, nil
}

// isUncacheable reports whether the outcome cannot go into the cache, but asking again would
// not change it.
func (o outcome) isUncacheable(asked *Options) bool {
	if o.err != nil {
		return isPermanent(o.err)
	}
	for _, attempt := range o.reply.Attempts {
		if _, ok := errors.AsType[*APIError](attempt.Err); ok && !isPermanent(attempt.Err) {
			return false // that model may answer the next time
		}
	}
	return !isComplete(o.reply, asked)
}

// isPermanent reports whether the same request would fail in the same way again.
func isPermanent(err error) bool {
	if again, ok := errors.AsType[*RepeatedError](err); ok {
		err = again.Err
	}
	if all, ok := errors.AsType[*AttemptsError](err); ok {
		for _, attempt := range all.Attempts {
			if !isPermanent(attempt.Err) {
				return false
			}
		}
		return true
	}
	return errors.Is(err, ErrInvalid) || errors.Is(err, ErrOverflow) || errors.Is(err, ErrRefused) || errors.Is(err, ErrTruncated)
}

// isComplete reports whether a reply is a complete answer of the requested shape.
func isComplete(r *Reply, o *Options) bool {
	if o.Schema != nil {
		if _, ok := rawjson.FindObject(cmp.Or(r.JSON, r.Text)); !ok {
			return false
		}
	}
	return (r.Stop == wire.StopEnd || r.Stop == "") && len(r.Message.Calls()) == 0 && strings.TrimSpace(r.Text+r.JSON) != ""
}

// cachedReply is the form of an answer in the cache.
type cachedReply struct {
	Text  string `json:"text,omitempty"`
	JSON  string `json:"json,omitempty"`
	Model string `json:"model,omitempty"` // as Reply has it
	By    string `json:"by"`              // the generator that answered
}

func encodeReply(r *Reply, by string) []byte {
	if n := len(r.Attempts); n > 0 {
		by = r.Attempts[n-1].Model
	}
	value, err := json.Marshal(cachedReply{r.Text, r.JSON, r.Model, by})
	if err != nil {
		return nil // cannot happen: strings can always be written
	}
	return value
}

func decodeReply(value []byte) (*Reply, bool) {
	var k cachedReply
	if err := json.Unmarshal(value, &k); err != nil || k.Text+k.JSON == "" {
		return nil, false
	}
	return &Reply{
		Message: thread.NewMessage(thread.Assistant, cmp.Or(k.Text, k.JSON)),
		Text:    k.Text, JSON: k.JSON, Stop: wire.StopEnd, Model: k.Model, Attempts: []Attempt{{Model: k.By}}, Cached: true,
	}, true
}

// cacheKey is a hash of a question. A length before each field keeps fields apart.
func cacheKey(model string, p *prompt.Prompt, o *Options) string {
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

// waitError is the error of a caller whose context ended while it waited.
func waitError(err error) error {
	kind := ErrCanceled
	if errors.Is(err, context.DeadlineExceeded) {
		kind = ErrTimeout
	}
	return &APIError{Kind: kind, Message: "waiting for an answer to the same question", Err: err}
}

// maxCachedReplies bounds the answers in a memoryCache.
const maxCachedReplies = 1024

// memoryCache is a Cache that lasts as long as the process.
type memoryCache struct{ replies *lru.Cache[string, []byte] }

func (m memoryCache) Get(_ context.Context, key string) ([]byte, bool) { return m.replies.Get(key) }

func (m memoryCache) Put(_ context.Context, key string, value []byte) { m.replies.Put(key, value, 1) }
