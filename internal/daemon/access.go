package daemon

import (
	"context"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/apikey"
)

// Keys says who shows a bearer key; *apikey.Keys does. Implementations are safe
// for concurrent use.
type Keys interface {
	// Check returns the key of a token. The error wraps apikey.ErrUnauthorized
	// when it is not valid.
	Check(ctx context.Context, token string) (apikey.Key, error)
}

// identity is who asks.
type identity struct {
	// tenant is whose data may be seen, key the id of the key, which may be
	// logged.
	tenant, key string
	rights      apikey.Rights
}

// authenticate finds out who asks, and applies the limit on requests per second.
func (s *Server) authenticate(r *http.Request) (identity, error) {
	who, err := s.identifyCaller(r)
	return who, s.countRequest(r, who, err)
}

// identifyCaller finds out who asks.
func (s *Server) identifyCaller(r *http.Request) (identity, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	if s.needsNoKey(r, token) {
		return ownerIdentity(), checkLocalOrigin(r)
	}
	if token == "" {
		return identity{}, problem(api.Unauthorized, "send a key: Authorization: Bearer KEY (%s)", s.keyHint())
	}
	return s.identifyToken(r.Context(), token)
}

// needsNoKey reports whether a request with a token, or with none, needs no key. A daemon
// without keys listens to this machine only, and only its user reaches the socket.
func (s *Server) needsNoKey(r *http.Request, token string) bool {
	if s.config.Keys == nil && s.config.OwnKey == "" {
		return true
	}
	return overSocket(r) && (token == "" || s.config.Keys == nil)
}

// ownerIdentity is who may do everything: the user whose process this is.
func ownerIdentity() identity {
	return identity{rights: apikey.Read | apikey.Write | apikey.Admin}
}

// keyHint says where a key comes from.
func (s *Server) keyHint() string {
	if s.config.Keys == nil {
		return "`palimpsest daemon` prints it"
	}
	return "`palimpsest keys add` makes one"
}

// identifyToken finds out whose key a token is.
func (s *Server) identifyToken(ctx context.Context, token string) (identity, error) {
	if own := s.config.OwnKey; own != "" && subtle.ConstantTimeCompare([]byte(own), []byte(token)) == 1 {
		return ownerIdentity(), nil
	}
	if s.config.Keys == nil {
		return identity{}, problem(api.Unauthorized, "the key is not that of this daemon, which has another one each time it starts (%s)", s.keyHint())
	}
	key, err := s.config.Keys.Check(ctx, token)
	switch {
	case errors.Is(err, apikey.ErrRevoked), errors.Is(err, apikey.ErrExpired):
		return identity{}, problem(api.Unauthorized, "the key is not valid any more; ask for a new one (`palimpsest keys add`)")
	case errors.Is(err, apikey.ErrUnauthorized):
		return identity{}, problem(api.Unauthorized, "the key is not a valid one (`palimpsest keys list` shows those that are)")
	}
	return identity{tenant: key.Tenant, key: key.ID, rights: key.Rights}, err
}

// checkLocalOrigin refuses what a web page could send to a daemon without keys: a request
// for another host (a name that was made to point here), or from another origin.
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

// require returns an error that names the right that is missing for an operation.
func (who identity) require(right apikey.Rights) error {
	if who.rights.Has(right) {
		return nil
	}
	return problem(api.Forbidden, "the key does not give the right to %s; `palimpsest keys add` makes one that does", right&^who.rights)
}
