// Package daemon serves threads over HTTP: the operations of package api, health
// and metrics. What other packages serve (the proxy, the web page) is mounted
// beside them.
package daemon

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/bucket"
	"github.com/palimpsest-ai/palimpsest/internal/mcp"
	"github.com/palimpsest-ai/palimpsest/internal/ondemand"
	"github.com/palimpsest-ai/palimpsest/internal/upkeep"
	"github.com/palimpsest-ai/palimpsest/internal/web"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Config is what a daemon is made of. The zero value keeps everything in memory,
// has no keys, and holds the default limits.
type Config struct {
	// Store keeps everything; nil keeps it until the process ends. Whoever opened
	// it closes it, after Serve has returned.
	Store store.DB
	// Artifacts holds what is true of all artifacts over Store.Artifacts; nil is
	// one with the default options.
	Artifacts *artifact.Store
	// Keys open the daemon; nil lets everybody on this machine in, and nobody
	// else.
	Keys Keys
	// OwnKey is a key of this run: requests to the port that show it are the user's of
	// this process, and who has no key is let in at the socket alone. Empty is none.
	OwnKey string
	// Compactor is how threads are compacted. Its stores, artifacts, jobs and
	// requester are set for each tenant; a sink given here is told as well.
	Compactor palimpsest.Config
	// Models are the known models; the zero value is the built-in table.
	Models *token.ModelSet
	// Window is the context window of models that nobody knows, in tokens; 0
	// leaves such threads to the policy's own limits.
	Window int
	// Counters add up what happens for /metrics, so that others can be told of
	// what they do beside the daemon; nil is one of the daemon's own.
	Counters *event.Counters
	// Jobs makes the queue that does background work with the handlers and options
	// it is given; the daemon stops it. Nil compacts within PrepareStep only.
	Jobs func(job.Handlers, *job.Options) (job.Queue, error)
	// Reseal says that Artifacts has keys, so that what is sealed under an older
	// one is sealed anew as a job.
	Reseal bool
	// Proxy gives the handler of a tenant's requests that are none of the API's:
	// those that agents send to a provider. Nil refuses them.
	Proxy func(tenant string) (http.Handler, error)
	// Policies are the policy, ladder and name for a policy's name and what it is to
	// favour, empty for its own, so that a plan of another one can be looked at and
	// used. Nil: there is only that of Compactor.
	Policies func(name, favor string) (palimpsest.Config, error)
	// Sessions are those that agents left on this machine; nil shows none, and so do
	// Keys.
	Sessions Sessions
	// MCP offers threads to agents at /mcp, by the Model Context Protocol; the zero
	// value does not.
	MCP MCP
	// Version is what the daemon calls itself there.
	Version string
	// Memory is what the proxies remember, and the room for bodies of requests, those of
	// the API too; nil is one of the daemon's own.
	Memory *proxy.Memory
	// Ready reports why the daemon cannot work; nil asks the store whether it keeps
	// what is written to it, at most once a second.
	Ready func(context.Context) error
	// Spending bounds what models are asked for each tenant; nil counts it.
	Spending *Spending
	// TLS is what connections are secured with, as TLS makes it; nil speaks plain
	// HTTP.
	TLS *tls.Config
	// Limits bound what callers may do.
	Limits Limits
	// Drain is how long requests may take to finish when Serve stops; 0 is half a
	// minute.
	Drain time.Duration
	// Idle ends Serve when there was no request and no background job for so long; 0
	// never does.
	Idle time.Duration
	// Logger is told of every request, without content and keys; nil for nobody.
	Logger *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Limits bound what callers may do. Zero fields hold the defaults.
type Limits struct {
	// Body is the largest request, in bytes; default 64 MiB, twice what a
	// provider takes.
	Body int64
	// Depth is how deep its JSON may nest; default 200, at most 1000.
	Depth int
	// Rate is how many requests a key, or an address without keys, may make per
	// second, and Burst how many at once; defaults 200 and 400.
	Rate, Burst int
	// ArrivalTimeout is how long a request may take to arrive, and a caller to read each piece
	// of an answer; default two minutes.
	ArrivalTimeout time.Duration
	// Page is the largest page of a list; default 500.
	Page int
	// Memory is how much memory the process may have of the system, in bytes, before
	// requests are refused; 0 for any amount.
	Memory int64
	// Requests is how many requests of a tenant may be at work at once; 0 for any number.
	Requests int
	// Streams is how many event streams a tenant may hold open; default 100.
	Streams int
}

func (l Limits) withDefaults() Limits {
	l.Body = cmp.Or(max(l.Body, 0), 64<<20)
	l.Depth = cmp.Or(max(l.Depth, 0), 200)
	l.Rate = cmp.Or(max(l.Rate, 0), 200)
	l.Burst = cmp.Or(max(l.Burst, 0), 2*l.Rate)
	l.Page = cmp.Or(max(l.Page, 0), 500)
	l.Streams = cmp.Or(max(l.Streams, 0), 100)
	return l
}

// Server answers requests. It is safe for concurrent use.
type Server struct {
	config      Config
	models      token.ModelSet
	mux         *http.ServeMux
	metrics     *metrics
	rate        *bucket.Buckets[string]
	log         *slog.Logger
	jobs        job.Queue // nil where nothing is done in the background
	upkeep      *upkeep.Upkeep
	requests    requestCounter
	idle        *idleTimer
	searchCache *mcp.Memory

	mu      sync.Mutex
	tenants map[string]*tenant

	// running is what is told at the socket, nil where nothing is served at one.
	running atomic.Pointer[ondemand.Running]
	// stop is closed when the daemon stops, so that streams end; closeStop closes it
	// once.
	stop      chan struct{}
	closeStop func()
}

// New returns a server. The error names the part of the configuration that cannot
// be used.
func New(c Config) (*Server, error) {
	if c.Store == nil {
		c.Store = mem.New()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Artifacts == nil {
		c.Artifacts = artifact.NewStore(c.Store.Artifacts(), &artifact.Options{Now: c.Now})
	}
	if c.Compactor.Counter == nil {
		counter, err := token.New("o200k", nil)
		if err != nil {
			return nil, fmt.Errorf("daemon.New: %w", err)
		}
		c.Compactor.Counter = counter
	}
	c.Drain = cmp.Or(max(c.Drain, 0), 30*time.Second)
	c.Counters = cmp.Or(c.Counters, &event.Counters{})
	c.Spending = cmp.Or(c.Spending, NewSpending(0, c.Now))
	c.Memory = cmp.Or(c.Memory, proxy.NewMemory(nil))
	c.Limits = c.Limits.withDefaults()
	if c.Ready == nil {
		c.Ready = storeProbe(c.Store, c.Now)
	}
	c.Compactor.Memory = cmp.Or(c.Compactor.Memory, palimpsest.NewMemory(0)) // one for all tenants
	s := &Server{
		config: c, mux: http.NewServeMux(), log: c.Logger,
		rate: bucket.New[string](float64(c.Limits.Burst), time.Second*time.Duration(c.Limits.Burst)/time.Duration(c.Limits.Rate), c.Now), tenants: map[string]*tenant{}, stop: make(chan struct{}),
		requests: requestCounter{limit: c.Limits.Requests}, idle: newIdleTimer(c.Idle), searchCache: mcp.NewMemory(searchCacheBytes),
	}
	s.closeStop = sync.OnceFunc(func() { close(s.stop) })
	if s.models = token.Models(); c.Models != nil {
		s.models = *c.Models
	}
	s.metrics = newMetrics(c.Counters, c.Memory, c.Compactor.Memory, c.Spending)
	// What cannot be used is told now and not at the first request.
	if _, err := palimpsest.New(c.Compactor); err != nil {
		return nil, fmt.Errorf("daemon.New: %w", err)
	}
	if err := s.routes(); err != nil {
		return nil, fmt.Errorf("daemon.New: %w", err)
	}
	if c.Jobs != nil {
		var err error
		s.upkeep = &upkeep.Upkeep{Store: c.Store, Artifacts: c.Artifacts, Reseal: c.Reseal, OnError: func(err error) {
			s.log.Warn("upkeep", "class", event.ErrorClass(err))
		}}
		work := s.upkeep.Handlers()
		// The sweep that comes round is no use of the daemon.
		work[palimpsest.CompactJob] = s.idle.trackJob(s.runJob)
		if c.Proxy != nil {
			work[proxy.CompactJob] = s.idle.trackJob(s.runProxyJob)
		}
		if s.jobs, err = c.Jobs(s.metrics.countJobs(work), &job.Options{Failed: s.jobFailed}); err != nil {
			return nil, fmt.Errorf("daemon.New: jobs: %w", err)
		}
	}
	return s, nil
}

// jobFailed tells of a job that is given up. What it was for is tried again when
// it comes up the next time.
func (s *Server) jobFailed(j job.Job, err error) {
	s.log.Error("job", "kind", j.Kind, "class", event.ErrorClass(err), "cause", causeOf(err))
}

// routes puts every operation and everything beside them in its place.
func (s *Server) routes() error {
	handlers := s.handlers()
	for _, op := range api.Operations() {
		h := handlers[op.ID]
		if h == nil {
			return fmt.Errorf("nothing answers the operation %q", op.ID)
		}
		s.mux.Handle(op.Method+" "+op.Path, s.operationHandler(op, h))
		delete(handlers, op.ID)
	}
	for id := range handlers {
		return fmt.Errorf("%q is no operation", id)
	}
	s.mux.HandleFunc("GET /openapi.json", s.openAPI)
	s.mux.HandleFunc("GET /healthz", s.health)
	s.mux.HandleFunc("GET /readyz", s.ready)
	s.mux.Handle("GET /metrics", s.metricsPage())
	s.mux.HandleFunc("GET "+ondemand.Path, s.socketOnly(s.serveRunning))
	s.mux.HandleFunc("POST "+ondemand.StopPath, s.socketOnly(s.serveStop))
	if s.config.MCP != NoMCP {
		s.mux.HandleFunc("POST /mcp", s.answerMCP)
	}
	page := web.Handler()
	for _, path := range web.Paths() {
		s.mux.Handle("GET "+path, page)
	}
	return nil
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.idle.begin()()
	s.serveObserved(w, r, func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := s.mux.Handler(r); pattern == "" {
			s.serveUnrouted(w, r)
			return
		}
		s.mux.ServeHTTP(w, r)
	})
}

// serveUnrouted answers what no route fits: it names the methods that would, or hands
// the request on to the proxy.
func (s *Server) serveUnrouted(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := *r
		other.Method = method
		if _, pattern := s.mux.Handler(&other); pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 && s.config.Proxy != nil && !isAPIPath(r.URL.Path) {
		if allowed = proxy.Methods(r.URL.Path); proxy.Takes(r.Method, r.URL.Path) || isUpgrade(r) && len(allowed) > 0 {
			s.serveProxied(w, r)
			return
		}
	}
	if len(allowed) == 0 {
		writeProblem(w, requestID(r.Context()), problem(api.NotFound, "there is nothing at this address; /openapi.json describes what there is, and only the paths of the providers' APIs are sent on"))
		return
	}
	for _, method := range allowed {
		w.Header().Add("Allow", method)
	}
	writeProblem(w, requestID(r.Context()), problem(api.NotAllowed, "the address takes %s, not %s", strings.Join(allowed, ", "), r.Method))
}

// isUpgrade reports whether a request would become a WebSocket, which the proxy
// refuses in its own way.
func isUpgrade(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }

// isAPIPath reports whether an address could only be meant for the API: what is sent
// there by mistake goes to no provider.
func isAPIPath(address string) bool {
	clean := path.Clean("/"+address) + "/"
	return strings.HasPrefix(clean, api.Root+"/") || strings.HasPrefix(clean, api.SessionsRoot+"/")
}

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(api.Document())
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write([]byte("ok\n"))
}
