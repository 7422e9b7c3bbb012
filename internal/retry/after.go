package retry

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestAfter is the most that After returns: a date in the next century is a
// broken clock, and says no more than "not soon".
const longestAfter = 24 * time.Hour

// After reads how long a server asks to wait: retry-after-ms (OpenAI, Azure),
// else Retry-After as seconds, with or without a fraction, or as an HTTP date
// relative to now (RFC 9110, section 10.2.3). It is 0 when the header says
// nothing that can be read, or a moment that has passed.
func After(h http.Header, now time.Time) time.Duration {
	if d, ok := amount(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if d, ok := amount(v, time.Second); ok {
		return d
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(at.Sub(now), 0), longestAfter)
	}
	return 0
}

func amount(v string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		return 0, false
	}
	if n > float64(longestAfter/unit) {
		return longestAfter, true
	}
	return time.Duration(n * float64(unit)), true
}
