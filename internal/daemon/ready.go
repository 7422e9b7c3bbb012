package daemon

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// readyTimeout is how long a store may take to answer before it counts as unreachable.
const readyTimeout = 5 * time.Second

// probeInterval is how long the result of a probe is reused: anybody may ask, and a probe
// writes.
const probeInterval = time.Second

// storeProbe returns the check whether a store keeps what is written to it.
func storeProbe(db store.DB, now func() time.Time) func(context.Context) error {
	p, ok := db.(store.Prober)
	if !ok {
		return func(context.Context) error { return nil }
	}
	var mu sync.Mutex
	var last error
	var at time.Time
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if age := now().Sub(at); !at.IsZero() && age >= 0 && age < probeInterval {
			return last
		}
		// The caller may leave; the result is for others too.
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
		defer cancel()
		last, at = p.Probe(limited), now()
		return last
	}
}

// checkReady returns why the daemon cannot work; nil when it can.
func (s *Server) checkReady(ctx context.Context) error {
	select {
	case <-s.stop:
		return errStopping
	default:
	}
	limited, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	err := s.config.Ready(limited)
	if err != nil {
		s.log.WarnContext(ctx, "not ready", "class", event.ErrorClass(err), "cause", event.CauseText(err))
	}
	return err
}

var errStopping = errors.New("stopping")

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if err := s.checkReady(r.Context()); err != nil {
		writeProblem(w, requestID(r.Context()), problem(api.Unavailable, "%s", unreadyDetail(err)))
		return
	}
	s.health(w, r)
}

// unreadyDetail says for callers what keeps the daemon from working, without paths and
// addresses.
func unreadyDetail(err error) string {
	switch detail := brokenStore(err); {
	case detail != "":
		return detail
	case errors.Is(err, errStopping):
		return "the daemon is stopping"
	case errors.Is(err, store.ErrUnavailable):
		return "the daemon's store cannot be reached"
	}
	return "the daemon's store does not work; the daemon's log says more"
}

// brokenStore says why the store takes no writes until somebody sees to it; empty for other errors.
func brokenStore(err error) string {
	for _, why := range []struct {
		is   error
		says string
	}{
		// First: it may wrap the error of opening the file again.
		{store.ErrGone, "the file of the daemon's store was removed or replaced; it takes no writes until the daemon is started again"},
		{store.ErrFull, "the daemon's store has no room left, and takes no writes; what is there can be read"},
		{store.ErrReadOnly, "the daemon may not write to its store; what is there can be read"},
		{store.ErrSealed, "the daemon's store is encrypted, and the daemon was started without its master key; it takes no writes"},
		{keyring.ErrNoMaster, "the daemon's store is encrypted under a master key that the daemon was not given"},
	} {
		if errors.Is(err, why.is) {
			return why.says
		}
	}
	return ""
}
