package daemon

import (
	"math"
	"net"
	"net/http"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
)

// countRequest counts a request, and refuses it where its key or address has made too many. err is
// what was wrong with its key: it counts for the address that it came from.
func (s *Server) countRequest(r *http.Request, who identity, err error) error {
	if err == nil {
		requestOf(r.Context()).setCaller(who)
	}
	until := s.rate.Take(rateKey(r, who), 1)
	if until == 0 {
		return err
	}
	wait := max(1, int(math.Ceil(until.Round(time.Millisecond).Seconds())))
	p := problem(api.TooManyRequests, "more than %d requests in a second; wait %d s", s.config.Limits.Rate, wait)
	p.RetryAfter = wait
	return p
}

// rateKey is whose requests are counted together.
func rateKey(r *http.Request, who identity) string {
	if who.key != "" {
		return "key " + who.key
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return "address " + host
}
