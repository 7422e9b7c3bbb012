package daemon

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/api"
)

// Keys says who shows a bearer key. Implementations are safe for concurrent use.
type Keys interface {
	// Identify returns whose key it is. An error that wraps ErrUnknownKey says
	// that it is nobody's; why (never made, revoked, expired) is not told.
	Identify(ctx context.Context, key string) (Identity, error)
}

// ErrUnknownKey is wrapped by the error about a key that opens nothing.
var ErrUnknownKey = errors.New("unknown key")

// Identity is who asks.
type Identity struct {
	// Tenant is whose data may be seen, Key the name of the key in logs.
	Tenant, Key string
	// Rights are some of api.RightRead, RightContent and RightWrite.
	Rights []string
}

// owner is who asks a daemon without keys: it listens to this machine only.
func owner() Identity {
	return Identity{Rights: []string{api.RightRead, api.RightContent, api.RightWrite}}
}

// identify finds out who asks.
func (s *Server) identify(r *http.Request) (Identity, error) {
	if s.config.Keys == nil {
		return owner(), fromHere(r)
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	key = strings.TrimSpace(key)
	if !strings.EqualFold(scheme, "Bearer") || key == "" {
		return Identity{}, problem(api.Unauthorized, "send a key: Authorization: Bearer KEY (`palimpsest keys add` makes one)")
	}
	who, err := s.config.Keys.Identify(r.Context(), key)
	if errors.Is(err, ErrUnknownKey) {
		return Identity{}, problem(api.Unauthorized, "the key is not known, or not any more; `palimpsest keys list` shows those that are")
	}
	return who, err
}

// fromHere refuses what a web page could send to a daemon without keys: a request
// for another host (a name that was made to point here), or from another origin.
func fromHere(r *http.Request) error {
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

// isLoopback reports whether an address, with or without a port, is this machine
// as seen from itself.
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

// allow reports what is missing for an operation.
func (who Identity) allow(right string) error {
	if slices.Contains(who.Rights, right) {
		return nil
	}
	return problem(api.Forbidden, "the key does not give the right to "+right+"; `palimpsest keys add` makes one that does")
}
