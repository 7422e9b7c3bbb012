// Package daemon serves threads over HTTP: the operations of package api, health
// and metrics. What other packages serve (the proxy, the web page) is mounted
// beside them.
package daemon

import (
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/internal/mcp"
	"github.com/palimpsest-ai/palimpsest/internal/ondemand"
	"github.com/palimpsest-ai/palimpsest/internal/web"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
)

// Server answers requests. It is safe for concurrent use.
type Server struct {
	config   Config
	mux      *http.ServeMux
	metrics  *metrics
	access   *access
	tenants  *tenants
	log      *slog.Logger
	jobs     job.Queue // nil where nothing is done in the background
	upkeep   *care.Upkeep
	requests requestCounter
	idle     *idleTimer

	// running describes the daemon to callers at the socket; nil without one.
	running atomic.Pointer[ondemand.Running]
	// stop is closed when the daemon stops, so that streams end; closeStop closes it
	// once.
	stop      chan struct{}
	closeStop func()
}

// New returns a server. The error names the part of the configuration that cannot
// be used.
func New(c Config) (*Server, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("daemon.New: %w", err)
	}
	s := &Server{
		config: c, mux: http.NewServeMux(), log: c.Logger, stop: make(chan struct{}),
		access: &access{
			keys: c.Keys, ownKey: c.OwnKey,
			rates: newRates(c.Limits.Rate, c.Limits.Burst, "", c.Now), tenantRates: newRates(c.Limits.TenantRate, 2*c.Limits.TenantRate, " of the tenant", c.Now),
		},
		requests: requestCounter{active: map[string]int{}}, idle: &idleTimer{after: c.Idle},
		metrics: newMetrics(c.Counters, c.Memory, c.Compactor.Memory, c.Spending),
	}
	searchBytes := mcp.DefaultMemory
	if c.Limits.Memory > 0 {
		searchBytes = int(min(int64(searchBytes), c.Limits.Memory/32))
	}
	s.tenants = &tenants{
		config: &s.config, searchCache: mcp.NewMemory(searchBytes), byName: map[string]*tenant{},
		prepared: lru.New[[2]string, *palimpsest.Prepared](preparedBytes),
	}
	s.closeStop = sync.OnceFunc(func() { close(s.stop) })
	// Fail now rather than at the first request.
	if _, err := palimpsest.New(c.Compactor); err != nil {
		return nil, fmt.Errorf("daemon.New: %w", err)
	}
	s.routes()
	if c.Jobs != nil {
		var err error
		s.upkeep = &care.Upkeep{Store: c.Store, Artifacts: c.Artifacts, Reseal: c.Reseal, OnError: func(err error) {
			s.log.Warn("upkeep", "class", event.ErrorClass(err))
		}}
		work := s.upkeep.Handlers()
		// The hourly upkeep does not count as use of the daemon.
		work[palimpsest.CompactJob] = s.idle.trackJob(s.tenants.runJob)
		if c.Proxy != nil {
			work[proxy.CompactJob] = s.idle.trackJob(s.tenants.runProxyJob)
		}
		failed := func(j job.Job, err error) { // its work is tried again when it comes up the next time
			s.log.Error("job", "kind", j.Kind, "class", event.ErrorClass(err), "cause", event.CauseText(err))
		}
		if s.jobs, err = c.Jobs(s.metrics.countJobs(work), &job.Options{Failed: failed}); err != nil {
			return nil, fmt.Errorf("daemon.New: jobs: %w", err)
		}
		s.tenants.jobs = s.jobs
	}
	return s, nil
}

func (s *Server) routes() {
	handlers := handlers()
	for _, op := range api.Operations() {
		s.mux.Handle(op.Method+" "+op.Path, s.operationHandler(op, handlers[op.ID]))
	}
	s.mux.HandleFunc("GET /openapi.json", s.openAPI)
	s.mux.HandleFunc("GET /healthz", s.health)
	s.mux.HandleFunc("GET /readyz", s.ready)
	s.mux.Handle("GET /metrics", s.metricsPage())
	s.mux.HandleFunc("GET "+ondemand.Path, s.socketOnly(s.serveRunning))
	s.mux.HandleFunc("POST "+ondemand.StopPath, s.socketOnly(s.serveStop))
	if s.config.MCP != NoMCP {
		s.mux.Handle("POST /mcp", s.operationHandler(api.Operation{Right: apikey.Read}, answerMCP))
	}
	page := web.Handler()
	for _, path := range web.Paths() {
		s.mux.Handle("GET "+path, page)
	}
}

// handlers answer the operations of package api.
func handlers() map[string]handler {
	return map[string]handler{
		"create":       createThread,
		"list":         listThreads,
		"get":          withThread(getThread),
		"delete":       withThread(deleteThread),
		"log":          withThread(readLog),
		"append":       withBody(appendMessages),
		"prepare":      withBody(prepareStep),
		"finish":       withBody(finishStep),
		"answer":       withBody(answerTool),
		"overflowed":   withBody(overflowedStep),
		"cut-off":      withBody(cutOffStep),
		"remember":     withBody(addMemory),
		"outcome":      withBody(noteOutcome),
		"compact":      withBody(compactThread),
		"dry-run":      withBody(planThread),
		"plans":        withThread(listPlans),
		"plan":         withThread(readPlan),
		"diff":         withThread(diffPlans),
		"undo":         withBody(undoPlan),
		"expand":       withBody(expandMessage),
		"render":       withBody(renderThread),
		"artifacts":    withThread(listArtifacts),
		"artifact":     describeArtifact,
		"content":      readArtifact,
		"recall":       withThread(searchThread),
		"events":       withThread(followEvents),
		"view":         withThread(viewThread),
		"text":         withThread(viewText),
		"preview":      withBody(viewPreview),
		"pin":          withBody(pinMessage),
		"sessions":     withSessions(listSessions),
		"session-view": withSessions(viewSession),
	}
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

// serveUnrouted answers a request that fits no route: it goes to the proxy, or the
// answer names the methods that the address takes.
func (s *Server) serveUnrouted(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := *r
		other.Method = method
		if _, pattern := s.mux.Handler(&other); pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 && s.isProxied(r) {
		s.serveProxied(w, r)
		return
	}
	if len(allowed) == 0 && s.mayBeProxied(r) {
		allowed = proxy.Methods(r.URL.Path)
	}
	if len(allowed) == 0 {
		writeProblem(w, requestID(r.Context()), problem(api.NotFound, "there is nothing at this address; /openapi.json describes what there is, and only the paths of the providers' APIs are passed on"))
		return
	}
	for _, method := range allowed {
		w.Header().Add("Allow", method)
	}
	writeProblem(w, requestID(r.Context()), problem(api.NotAllowed, "the address takes %s, not %s", strings.Join(allowed, ", "), r.Method))
}

// mayBeProxied reports whether an address may be one of the proxy's. A mistake in one that can only be meant for the
// API must not be sent to a provider.
func (s *Server) mayBeProxied(r *http.Request) bool {
	clean := path.Clean("/"+r.URL.Path) + "/"
	return s.config.Proxy != nil && !strings.HasPrefix(clean, api.Root+"/") && !strings.HasPrefix(clean, api.SessionsRoot+"/")
}

// isProxied reports whether a request that fits no route goes to the proxy, which refuses WebSockets in its own way.
func (s *Server) isProxied(r *http.Request) bool {
	return s.mayBeProxied(r) && (proxy.Takes(r.Method, r.URL.Path) || r.Header.Get("Upgrade") != "" && len(proxy.Methods(r.URL.Path)) > 0)
}

// serveProxied hands a request to the proxy of the caller's tenant.
func (s *Server) serveProxied(w http.ResponseWriter, r *http.Request) {
	who, handler, end, err := s.beginProxied(r)
	if err != nil {
		s.answerError(w, r, err)
		return
	}
	defer end()
	r, endChecks := s.access.whileValid(w, r, who)
	defer endChecks()
	r.Header.Del(KeyHeader)
	// These say what the provider says.
	w.Header().Del("X-Request-Id")
	w.Header().Del("X-Content-Type-Options")
	handler.ServeHTTP(w, r)
}

func (s *Server) beginProxied(r *http.Request) (who identity, handler http.Handler, end func(), err error) {
	if who, err = s.access.authenticate(r, s.access.byKeyHeader); err != nil {
		return who, nil, nil, err
	}
	if handler, err = s.config.Proxy(who.tenant); err != nil {
		return who, nil, nil, err
	}
	if p, ok := handler.(*proxy.Proxy); ok {
		count := func() error { return s.access.countMore(r, who, 1) }
		handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.ServeCounted(w, r, count) })
	}
	end, err = s.beginRequest(who.tenant)
	return who, handler, end, err
}

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(api.Document())
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write([]byte("ok\n"))
}
