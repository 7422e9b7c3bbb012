package daemon

import (
	"encoding/json"
	"net"
	"net/http"
	"os"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/ondemand"
)

// isSocket reports whether an address is that of a Unix socket.
func isSocket(a net.Addr) bool { return a != nil && a.Network() == "unix" }

// overSocket reports whether a request came by the socket, which only the user of this
// process can open.
func overSocket(r *http.Request) bool {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return isSocket(at)
}

// runningAt describes the daemon to callers at the socket; nil without a socket.
func (c *Config) runningAt(listeners []net.Listener) *ondemand.Running {
	r := &ondemand.Running{Key: c.OwnKey, Version: c.Version, API: ondemand.API, PID: os.Getpid()}
	scheme := "http://"
	if c.TLS != nil {
		scheme = "https://"
	}
	for _, l := range listeners {
		if isSocket(l.Addr()) {
			r.Socket = l.Addr().String()
		} else {
			r.URL = scheme + l.Addr().String()
		}
	}
	if r.Socket == "" {
		return nil
	}
	return r
}

// socketOnly is a handler that answers at the socket only.
func (s *Server) socketOnly(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := error(problem(api.NotFound, "this is answered at the daemon's socket only"))
		if overSocket(r) {
			err = checkLocalOrigin(r)
		}
		if err != nil {
			s.answerError(w, r, err)
			return
		}
		next(w, r)
	}
}

// serveRunning describes this daemon, with the key to its port.
func (s *Server) serveRunning(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(s.running.Load()) // the caller may be gone
}

// serveStop ends Serve.
func (s *Server) serveStop(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusAccepted)
	s.Stop()
}
