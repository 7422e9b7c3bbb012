package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/ondemand"
)

// ErrOpen is wrapped by the error of Listen when other machines could reach the address
// while there are no keys.
var ErrOpen = errors.New("without keys the daemon listens to this machine only")

// Listen opens the address to serve on. Without keys only this machine may reach it; the
// address that was opened is checked, not its name.
func (s *Server) Listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w: stop the program that listens there, or name another port, such as --listen 127.0.0.1:7434", err)
		}
		return nil, fmt.Errorf("daemon.Listen(%s): %w", address, err)
	}
	at, ok := listener.Addr().(*net.TCPAddr)
	if s.config.Keys == nil && (!ok || !at.IP.IsLoopback()) {
		listener.Close()
		return nil, fmt.Errorf("daemon.Listen(%s): %w: make a key with `palimpsest keys add`, or listen to 127.0.0.1:7433", address, ErrOpen)
	}
	return listener, nil
}

// Serve answers requests on listeners of Listen and of ondemand.Listen, whose requests
// need no key. It ends when ctx is done, when a caller at the socket stops it, or after
// Config.Idle without a request: it accepts no more, ends event streams, and lets
// requests finish. Those that take longer than Config.Drain are cut off, and the error
// says so. It closes the listeners.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	server := HTTPServer(s, s.config.Limits.ArrivalTimeout)
	if s.config.TLS != nil {
		server.TLSConfig = s.config.TLS.Clone()
		server.TLSConfig.NextProtos = []string{"h2", "http/1.1"}
	}
	s.running.Store(s.config.runningAt(listeners))
	_ = s.checkReady(ctx) // a failure is logged; reads may work all the same
	failed := make(chan error, len(listeners))
	listening := make([]net.Listener, len(listeners)) // made before any is served: serving changes server.TLSConfig
	for i, l := range listeners {
		listening[i] = headerListener{l}
		if s.config.TLS != nil && !isSocket(l.Addr()) {
			listening[i] = newTLSListener(l, server.TLSConfig)
		}
	}
	for _, served := range listening {
		go func() { failed <- server.Serve(served) }()
	}
	idle := s.idle.start()
	if s.jobs != nil {
		keeping, cancel := context.WithCancel(ctx)
		kept := make(chan struct{})
		go func() {
			defer close(kept)
			s.upkeep.Run(keeping, s.jobs)
		}()
		defer func() {
			cancel()
			<-kept
		}()
	}
	select {
	case err := <-failed:
		s.Stop()
		server.Close()
		return fmt.Errorf("daemon.Serve: %w", err)
	case <-idle:
		s.log.Info("no requests", "for", s.config.Idle)
	case <-s.stop: // by a caller at the socket
	case <-ctx.Done():
	}
	s.Stop()
	s.log.Info("stopping", "deadline", s.config.Drain)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.Drain)
	defer cancel()
	err := server.Shutdown(last)
	if err != nil {
		server.Close()
		err = fmt.Errorf("daemon.Serve: requests were cut off after %s: %w", s.config.Drain, err)
	}
	for range listeners {
		<-failed
	}
	if s.jobs != nil {
		// Jobs that are not done by then are left to the next process.
		err = errors.Join(err, s.jobs.Stop(last))
	}
	return err
}

// Stop ends the event streams and makes /readyz say that the daemon is stopping. Serve
// calls it; without Serve, call it before closing the server.
func (s *Server) Stop() { s.closeStop() }

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

func (s *Server) serveStop(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusAccepted)
	s.Stop()
}
