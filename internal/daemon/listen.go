package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// ErrOpen is wrapped by the error about an address that others could reach while
// there are no keys.
var ErrOpen = errors.New("without keys the daemon listens to this machine only")

// Listen opens the address to serve on. Without keys it must be one that only
// this machine reaches; the check is made on what was opened, not on the name.
func (s *Server) Listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("daemon.Listen(%s): %w", address, err)
	}
	at, ok := listener.Addr().(*net.TCPAddr)
	if s.config.Keys == nil && (!ok || !at.IP.IsLoopback()) {
		listener.Close()
		return nil, fmt.Errorf("daemon.Listen(%s): %w: make a key with `palimpsest keys add`, or listen to 127.0.0.1:7433", address, ErrOpen)
	}
	return listener, nil
}

// Serve answers requests until ctx is done. Then nothing new is taken, streams of
// events end, and requests may finish; those that have not within Config.Drain
// are cut off, and the error says so. The listener is closed when it returns.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := HTTPServer(s, s.config.Limits.Arrive)
	served := net.Listener(headedListener{listener})
	if s.config.TLS != nil {
		server.TLSConfig = s.config.TLS.Clone()
		server.TLSConfig.NextProtos = []string{"h2", "http/1.1"}
		served = secured(listener, server.TLSConfig)
	}
	_ = s.unready(ctx) // it is logged; what can be read is served all the same
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(served) }()
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
		return fmt.Errorf("daemon.Serve: %w", err)
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
	<-failed
	if s.jobs != nil {
		// Jobs that are not done by then are left to whoever comes after.
		err = errors.Join(err, s.jobs.Stop(last))
	}
	return err
}

// Stop ends the streams of events and makes /readyz say that the daemon stops.
// Serve calls it; who serves by other means calls it before closing.
func (s *Server) Stop() {
	s.stopping.Store(true)
	s.stopOnce.Do(func() { close(s.stop) })
}
