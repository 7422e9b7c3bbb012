package daemon

import (
	"net/http"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/apikey"
)

// KeyHeader carries the daemon's key in requests to the proxy, whose
// Authorization is the provider's. It is not sent on.
const KeyHeader = "X-Palimpsest-Key"

// proxied hands on a request that is none of the API's to the proxy of the tenant
// who sent it.
func (s *Server) proxied(w http.ResponseWriter, r *http.Request) {
	who, err := s.proxyUser(r)
	err = s.admit(r, who, err)
	var handler http.Handler
	if err == nil {
		var end func()
		if end, err = s.begin(who.tenant); err == nil {
			defer end()
			handler, err = s.config.Proxy(who.tenant)
		}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	r.Header.Del(KeyHeader)
	// These say what the provider says.
	w.Header().Del("X-Request-Id")
	w.Header().Del("X-Content-Type-Options")
	handler.ServeHTTP(w, r)
}

func (s *Server) proxyUser(r *http.Request) (identity, error) {
	token := r.Header.Get(KeyHeader)
	if s.open(r, token) {
		return everything(), fromHere(r)
	}
	if token == "" {
		return identity{}, problem(api.Unauthorized, "there is nothing at this address, unless it is meant for a provider: then send a key of this daemon as "+KeyHeader)
	}
	who, err := s.keyed(r.Context(), token)
	if err == nil {
		err = who.allow(apikey.Read | apikey.Write) // models read there what was kept
	}
	return who, err
}

// Local refuses what a web page could send to a handler that listens to this machine
// only.
func Local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := fromHere(r); err != nil {
			refuse(w, "", problemOf(err))
			return
		}
		next.ServeHTTP(w, r)
	})
}
