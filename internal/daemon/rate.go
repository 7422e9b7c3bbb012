package daemon

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
)

// admit counts a request, and refuses it where its payer has made too many. err is
// what was wrong with its key: it counts for the address that it came from.
func (s *Server) admit(r *http.Request, who identity, err error) error {
	if err == nil {
		requestOf(r.Context()).known(who)
	}
	wait := s.rate.take(payer(r, who))
	if wait == 0 {
		return err
	}
	p := problem(api.TooManyRequests, fmt.Sprintf("more than %d requests in a second; wait %d s", s.config.Limits.Rate, wait))
	p.RetryAfter = wait
	return p
}

// payer is whose requests are counted together.
func payer(r *http.Request, who identity) string {
	if who.key != "" {
		return "key " + who.key
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return "address " + host
}

// rates counts the requests of each payer in a bucket of tokens: it holds burst,
// is filled by rate per second, and each request takes one.
type rates struct {
	rate, burst float64
	now         func() time.Time

	mu      sync.Mutex
	buckets map[string]bucket
	// swept is when full buckets were last thrown away.
	swept time.Time
}

type bucket struct {
	tokens float64
	at     time.Time
}

func newRates(rate, burst int, now func() time.Time) *rates {
	return &rates{rate: float64(rate), burst: float64(burst), now: now, buckets: map[string]bucket{}}
}

// take takes a token of the payer's. It returns 0, or the whole seconds to wait
// where there is none.
func (r *rates) take(payer string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	r.sweep(now)
	b, known := r.buckets[payer]
	if !known {
		b.tokens = r.burst
	}
	if passed := now.Sub(b.at).Seconds(); known && passed > 0 {
		b.tokens = min(r.burst, b.tokens+passed*r.rate)
	}
	b.at = now
	wait := 0
	if b.tokens >= 1 {
		b.tokens--
	} else {
		wait = int(math.Ceil((1 - b.tokens) / r.rate))
	}
	r.buckets[payer] = b
	return wait
}

// sweep throws away the buckets that are full again, once a minute: they say the
// same as none.
func (r *rates) sweep(now time.Time) {
	if now.Sub(r.swept) < time.Minute {
		return
	}
	r.swept = now
	for payer, b := range r.buckets {
		if b.tokens+now.Sub(b.at).Seconds()*r.rate >= r.burst {
			delete(r.buckets, payer)
		}
	}
}
