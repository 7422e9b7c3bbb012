package eval

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"github.com/palimpsest-ai/palimpsest/lab/eval/ledger"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// replay is a session as its provider bills it: one request for each answer.
type replay struct {
	*references.Session
	model    token.Model
	rates    token.Rates // for short prompts
	ttl      time.Duration
	requests []modelRequest
	// sizes are the tokens of the messages as they are sent, before the sum of those
	// before each, and blocks the messages as the prompt cache sees them.
	sizes, before []int
	blocks        []ledger.Block
}

// modelRequest is a request to the model.
type modelRequest struct {
	step int // the index of the step that answers it
	at   int // the history: the messages before this position
	end  int // where the answer ends
	when time.Duration
	// answered is when the answer was there, output its tokens.
	answered time.Duration
	output   int
	// cold: the provider's cache of the request before has expired.
	cold bool
}

// defaultGap is the time between two requests where the record has none.
const defaultGap = 20 * time.Second

// The lognormal times between requests have the median of the recorded ones, and the
// same share above the five minutes after which a cache expires: of 3,836 gaps of the
// public sessions' dev split the median is 7.0 seconds, and 3.0 % are longer than five
// minutes.
const (
	medianGap = 7 * time.Second
	sigmaGap  = 2.0
)

// gapsOf returns the times between requests, the same for the same session, and whether
// recorded times replace them.
func gapsOf(s *references.Session, model string) (next func() time.Duration, recorded bool) {
	if model != LognormalGaps {
		return func() time.Duration { return defaultGap }, model != FixedGaps
	}
	sum := fnv.New64a()
	sum.Write([]byte(s.Name))
	rng := rand.New(rand.NewPCG(sum.Sum64(), 23))
	return func() time.Duration { return time.Duration(float64(medianGap) * math.Exp(sigmaGap*rng.NormFloat64())) }, false
}

// newReplay makes the requests of a session for a model with prices.
func newReplay(s *references.Session, m token.Model, times string, counter *token.Counter) *replay {
	r := &replay{Session: s, model: m, ttl: m.Cache.Life()}
	r.rates, _ = m.Rates(0)
	p := references.Profile()
	sum := 0
	for i, msg := range s.Thread.All() {
		size := s.Sizes[i]
		if sent := p.Translate(*msg, false); len(sent.Parts) == 0 {
			size = 0
		} else if len(sent.Parts) < len(msg.Parts) {
			size = counter.Message(&sent)
		}
		r.sizes = append(r.sizes, size)
		r.before = append(r.before, sum)
		r.blocks = append(r.blocks, ledger.Block{Hash: uint64(i)<<8 | plainBlock, Tokens: size})
		sum += size
	}
	r.before = append(r.before, sum)
	r.request(times)
	return r
}

// The kinds of blocks, in the lowest byte of their hashes.
const (
	headBlock = 1 + iota
	plainBlock
	clearedBlock
	madeBlock
)

func (r *replay) request(times string) {
	start := r.Thread.At(0).Time
	wait, recorded := gapsOf(r.Session, times)
	// since is the time of a message, or, where it is not known, some time after the last.
	since := func(i int, last time.Duration, wait time.Duration) time.Duration {
		t := r.Thread.At(i).Time
		if !recorded || t.IsZero() || start.IsZero() {
			return last + wait
		}
		return max(last, t.Sub(start))
	}
	now, asked := time.Duration(0), time.Duration(0)
	for step, at := range r.Steps {
		if at == 0 {
			continue // a greeting that nobody asked for
		}
		if n := len(r.requests); n > 0 && r.requests[n-1].end == at {
			// Several messages of the model in a row are one answer.
			r.requests[n-1].end = at + 1
			r.requests[n-1].output += r.Session.Sizes[at]
			continue
		}
		now = since(at-1, now, wait())
		a := modelRequest{step: step, at: at, end: at + 1, when: now, output: r.Session.Sizes[at]}
		a.cold = len(r.requests) > 0 && r.ttl > 0 && now-asked > r.ttl
		asked = now
		now = since(at, now, 0)
		a.answered = now
		r.requests = append(r.requests, a)
	}
}

// price returns the rates for a prompt of that size, and what a token of its uncached input costs,
// in such tokens of a short prompt: all costs are in these. Some providers ask more for long ones.
func (r *replay) price(size int) (rates token.Rates, token float64) {
	rates, ok := r.model.Rates(size)
	short, _ := r.model.Price(0)
	if !ok || short.Input <= 0 {
		return r.rates, 1
	}
	long, _ := r.model.Price(size)
	return rates, long.Input / short.Input
}

// uncachedCost is what the requests cost when nothing is compacted or cached.
func (r *replay) uncachedCost() float64 {
	sum := 0.0
	for k := range r.requests {
		size := r.Fixed + r.historyTokens(k)
		_, token := r.price(size)
		sum += token * float64(size)
	}
	return sum
}

// historyTokens is the size of the history before a request, in tokens.
func (r *replay) historyTokens(k int) int { return r.before[r.requests[k].at] }

// growth is how much the history has grown per request, up to the k-th.
func (r *replay) growth(k int) float64 {
	return float64(r.historyTokens(k)) / float64(k+1)
}

// firstUserMessage is the position of what the user asked first, or -1.
func (r *replay) firstUserMessage() int {
	for i, m := range r.Thread.All() {
		if m.StartsTurn() {
			return i
		}
	}
	return -1
}

// newestStart returns where the newest messages begin that fit so many tokens, together
// with the user's first message.
func (r *replay) newestStart(at, tokens int) (from int) {
	if first := r.firstUserMessage(); first >= 0 && first < at {
		tokens -= r.sizes[first]
	}
	from = at
	for from > 0 && r.sizes[from-1] <= tokens {
		tokens -= r.sizes[from-1]
		from--
	}
	// A result cannot be sent without its call.
	for from < at-1 && r.Thread.At(from).Role == thread.Tool {
		from++
	}
	return from
}
