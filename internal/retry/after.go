package retry

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter is the most that RetryAfter returns: a date in the next century is a broken
// clock.
const maxRetryAfter = 24 * time.Hour

// Headers are those of an answer: an http.Header. This package does without net/http, which
// would bring TLS and more, 1.5 MB, into programs that call no provider themselves.
type Headers interface{ Get(name string) string }

// dates are the forms of an HTTP date (RFC 9110, section 5.6.7).
var dates = [...]string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC}

// RetryAfter returns how long a server asks to wait: Retry-After-Ms (OpenAI, Azure), or else
// Retry-After in seconds, which may have a fraction, or as an HTTP date relative to now (RFC
// 9110, section 10.2.3). It is 0 if the headers are missing, unreadable or in the past.
func RetryAfter(h Headers, now time.Time) time.Duration {
	if d, ok := parseDelay(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if d, ok := parseDelay(v, time.Second); ok {
		return d
	}
	for _, form := range dates {
		if at, err := time.Parse(form, v); err == nil {
			return min(max(at.Sub(now), 0), maxRetryAfter)
		}
	}
	return 0
}

func parseDelay(v string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		return 0, false
	}
	if n > float64(maxRetryAfter/unit) {
		return maxRetryAfter, true
	}
	return time.Duration(n * float64(unit)), true
}
