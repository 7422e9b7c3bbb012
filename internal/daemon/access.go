package daemon

import (
	"context"
	"crypto/subtle"
	"errors"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/ratelimit"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
)

// Keys checks bearer keys, as *apikey.Keys does. Implementations are safe for
// concurrent use.
type Keys interface {
	// Check returns the key of a token. The error wraps apikey.ErrUnauthorized
	// when it is not valid.
	Check(ctx context.Context, token string) (apikey.Key, error)
}

// identity is who asks.
type identity struct {
	// tenant is whose data the caller may see, key the id of the key, which may be
	// logged.
	tenant, key string
	rights      apikey.Rights
	token       string // the key itself, never logged
}

// access finds out who asks, and holds callers to their limits.
type access struct {
	keys        Keys   // nil for none
	ownKey      string // of the daemon's user; empty for none
	rates       *rates // of keys, and of addresses without one
	tenantRates *rates
}

// authenticate finds out who asks by one of the ways to show a key, and holds the
// caller to the limit on requests per second. A request with a wrong key counts for the
// address that it came from.
func (a *access) authenticate(r *http.Request, identify func(*http.Request) (identity, error)) (identity, error) {
	who, err := identify(r)
	if err == nil {
		requestOf(r.Context()).setCaller(who)
	}
	if refused := a.rates.take(rateKey(r, who), 1); refused != nil {
		return who, refused
	}
	if err != nil {
		return who, err
	}
	return who, a.tenantRates.take(who.tenant, 1)
}

// countMore counts n more requests of a caller whose request holds several.
func (a *access) countMore(r *http.Request, who identity, n int) error {
	key := rateKey(r, who)
	if refused := a.rates.take(key, n); refused != nil {
		return refused
	}
	refused := a.tenantRates.take(who.tenant, n)
	if refused != nil { // what is not answered does not count
		a.rates.buckets.Give(key, float64(n))
	}
	return refused
}

// rates hold callers to a limit on requests per second. Without a limit they hold nobody.
type rates struct {
	limit, burst int
	of           string // whose requests these are, in what a caller is told
	buckets      *ratelimit.Buckets[string]
}

func newRates(limit, burst int, of string, now func() time.Time) *rates {
	all := &rates{limit: limit, burst: burst, of: of}
	if limit > 0 {
		all.buckets = ratelimit.New[string](float64(burst), time.Second*time.Duration(burst)/time.Duration(limit), now)
	}
	return all
}

// take counts n requests. The error says how long to wait.
func (l *rates) take(key string, n int) error {
	until := l.buckets.Take(key, float64(n))
	if until == 0 {
		return nil
	}
	wait := max(1, int(math.Ceil(until.Round(time.Millisecond).Seconds())))
	p := problem(api.TooManyRequests, "more than %d requests%s in a second; wait %d s", l.limit, l.of, wait)
	p.RetryAfter = wait
	return p
}

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

// byBearer identifies a caller of the API, by the header Authorization.
func (a *access) byBearer(r *http.Request) (identity, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	return a.identify(r, token, "send a key: Authorization: Bearer KEY ("+a.keyHint()+")")
}

// KeyHeader carries the daemon's key in requests to the proxy, whose Authorization is
// the provider's. It is not sent on.
const KeyHeader = "X-Palimpsest-Key"

// byKeyHeader identifies a caller of the proxy, by KeyHeader.
func (a *access) byKeyHeader(r *http.Request) (identity, error) {
	who, err := a.identify(r, r.Header.Get(KeyHeader), "there is nothing at this address, unless it is meant for a provider: then send a key of this daemon as "+KeyHeader)
	if err == nil {
		err = who.require(apikey.Read | apikey.Write) // models read there what was kept
	}
	return who, err
}

// identify returns the caller who shows a token; missing is told to one who needs a token and shows none.
func (a *access) identify(r *http.Request, token, missing string) (identity, error) {
	// A daemon without keys listens to this machine only, and only its user can open the socket.
	switch open := a.keys == nil && a.ownKey == ""; {
	case open, overSocket(r) && (token == "" || a.keys == nil):
		return ownerIdentity(), checkLocalOrigin(r)
	case token == "":
		return identity{}, problem(api.Unauthorized, "%s", missing)
	}
	return a.identifyToken(r.Context(), token)
}

// ownerIdentity is the user whose process this is, who may do everything.
func ownerIdentity() identity {
	return identity{rights: apikey.Read | apikey.Write | apikey.Admin}
}

func (a *access) keyHint() string {
	if a.keys == nil {
		return "`palimpsest daemon` prints it"
	}
	return "`palimpsest keys add` makes one"
}

// identifyToken returns the caller whose key a token is.
func (a *access) identifyToken(ctx context.Context, token string) (identity, error) {
	if own := a.ownKey; own != "" && subtle.ConstantTimeCompare([]byte(own), []byte(token)) == 1 {
		return ownerIdentity(), nil
	}
	if a.keys == nil {
		return identity{}, problem(api.Unauthorized, "the key is not that of this daemon, which has another one each time it starts (%s)", a.keyHint())
	}
	key, err := a.keys.Check(ctx, token)
	switch {
	case errors.Is(err, apikey.ErrRevoked), errors.Is(err, apikey.ErrExpired):
		return identity{}, problem(api.Unauthorized, "the key is not valid any more; ask for a new one (`palimpsest keys add`)")
	case errors.Is(err, apikey.ErrUnauthorized):
		return identity{}, problem(api.Unauthorized, "the key is not a valid one (`palimpsest keys list` shows those that are)")
	}
	return identity{tenant: key.Tenant, key: key.ID, rights: key.Rights, token: token}, err
}

// recheckInterval is how often the key of a request that is still being answered is checked again.
const recheckInterval = 2 * time.Second

// whileValid returns the request of a caller with a context that ends when the key is revoked, has expired or
// opens something else, and what is being read or written of it with it. A store that cannot be asked ends
// nothing. end must be called.
func (a *access) whileValid(w http.ResponseWriter, r *http.Request, who identity) (_ *http.Request, end func()) {
	if who.key == "" {
		return r, func() {}
	}
	ctx, cancel := context.WithCancel(r.Context())
	var answering sync.Mutex // afterwards the connection is that of other requests
	end = func() {
		answering.Lock()
		defer answering.Unlock()
		cancel()
	}
	cutOff := func() {
		answering.Lock()
		defer answering.Unlock()
		if ctx.Err() == nil {
			cancel()
			control := http.NewResponseController(w) // only the writers of tests have no deadlines
			_ = control.SetReadDeadline(longAgo)
			_ = control.SetWriteDeadline(longAgo)
		}
	}
	go func() {
		tick := time.NewTicker(recheckInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if now, err := a.identifyToken(ctx, who.token); api.IsKind(err, api.Unauthorized) || err == nil && now != who {
					cutOff()
				}
			}
		}
	}()
	return r.WithContext(ctx), end
}

// checkLocalOrigin refuses what a web page could send to a daemon without keys: a request
// for another host (DNS rebinding), or from another origin.
func checkLocalOrigin(r *http.Request) error {
	if !isLoopback(r.Host) {
		return problem(api.Forbidden, "without keys the daemon answers only under the names of this machine, such as 127.0.0.1 and localhost")
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !strings.EqualFold(u.Host, r.Host) {
			return problem(api.Forbidden, "without keys the daemon does not answer pages of another origin")
		}
	}
	return nil
}

// isLoopback reports whether an address, with or without a port, is the loopback of this
// machine.
func isLoopback(address string) bool {
	host := address
	if h, _, err := net.SplitHostPort(address); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// require checks a right. The error names what is missing.
func (who identity) require(right apikey.Rights) error {
	if who.rights.Has(right) {
		return nil
	}
	return problem(api.Forbidden, "the key does not give the right to %s; `palimpsest keys add` makes one that does", right&^who.rights)
}

// LocalOnly is a handler that refuses what a web page could send to a server that
// listens to this machine only.
func LocalOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := checkLocalOrigin(r); err != nil {
			writeProblem(w, "", problemOf(err))
			return
		}
		next.ServeHTTP(w, r)
	})
}
