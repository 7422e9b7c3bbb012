package daemon

import (
	"net/http"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/apikey"
)

// KeyHeader carries the daemon's key in requests to the proxy, whose
// Authorization is the provider's. It is not sent on.
const KeyHeader = "X-Palimpsest-Key"

// serveProxied hands on a request that is none of the API's to the proxy of the tenant
// who sent it.
func (s *Server) serveProxied(w http.ResponseWriter, r *http.Request) {
	who, err := s.identifyProxyCaller(r)
	err = s.countRequest(r, who, err)
	var handler http.Handler
	if err == nil {
		var end func()
		if end, err = s.beginRequest(who.tenant); err == nil {
			defer end()
			handler, err = s.config.Proxy(who.tenant)
		}
	}
	if err != nil {
		s.answerError(w, r, err)
		return
	}
	r.Header.Del(KeyHeader)
	// These say what the provider says.
	w.Header().Del("X-Request-Id")
	w.Header().Del("X-Content-Type-Options")
	handler.ServeHTTP(w, r)
}

func (s *Server) identifyProxyCaller(r *http.Request) (identity, error) {
	token := r.Header.Get(KeyHeader)
	if s.needsNoKey(r, token) {
		return ownerIdentity(), checkLocalOrigin(r)
	}
	if token == "" {
		return identity{}, problem(api.Unauthorized, "there is nothing at this address, unless it is meant for a provider: then send a key of this daemon as "+KeyHeader)
	}
	who, err := s.identifyToken(r.Context(), token)
	if err == nil {
		err = who.require(apikey.Read | apikey.Write) // models read there what was kept
	}
	return who, err
}

// LocalOnly refuses what a web page could send to a handler that listens to this machine
// only.
func LocalOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := checkLocalOrigin(r); err != nil {
			writeProblem(w, "", problemOf(err))
			return
		}
		next.ServeHTTP(w, r)
	})
}
