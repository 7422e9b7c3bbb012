package daemon

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
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
	// OwnKey is a key for this run alone: a request to the port that shows it comes from
	// the user of this process. Without a key only the socket is open. Empty for none.
	OwnKey string
	// Compactor is how threads are compacted. Its stores, artifacts, jobs and
	// requester are set for each tenant; a sink given here is told as well. Without a Counter
	// each thread is counted as the model of its last step counts, by o200k where that is unknown.
	Compactor palimpsest.Config
	// Models are the known models; the zero value is the built-in table.
	Models *token.ModelSet
	// Window is the context window of models that are not in Models, in tokens; 0
	// leaves such threads to the policy's own limits.
	Window int
	// countsByModel is set where Compactor has no counter.
	countsByModel bool
	// Counters add up events for /metrics. Other parts of the program may count in the
	// same ones; nil makes them.
	Counters *event.Counters
	// Jobs makes the queue that does background work with the handlers and options
	// it is given; the daemon stops it. Nil compacts within PrepareStep only.
	Jobs func(job.Handlers, *job.Options) (job.Queue, error)
	// Reseal says that Artifacts encrypts, so that a job encrypts anew what is still
	// under an older key.
	Reseal bool
	// Proxy returns a tenant's handler for requests that are meant for a provider, at
	// addresses that are not the API's. Nil refuses them.
	Proxy func(tenant string) (http.Handler, error)
	// Policies returns the policy of that name with what it should favor, empty for its
	// default, so that the page can preview other policies and use them. Nil offers only that of Compactor.
	Policies func(name, favor string) (palimpsest.Config, error)
	// Off says why a thread is not to be prepared, for people, or "": its agent then goes on by
	// itself. Nil prepares all.
	Off func(thread string) string
	// Sessions are those that agents left on this machine. They are shown only without
	// Keys; nil shows none.
	Sessions Sessions
	// MCP offers threads to agents at /mcp, by the Model Context Protocol; the zero
	// value does not.
	MCP MCP
	// Version is what the daemon calls itself there.
	Version string
	// Memory is what the proxies remember, and bounds the bodies of requests that are at
	// work, those of the API too; nil makes one.
	Memory *proxy.Memory
	// Ready reports why the daemon cannot work; nil asks the store whether it keeps
	// what is written to it, at most once a second.
	Ready func(context.Context) error
	// Spending bounds the tokens that each tenant may spend on models; nil only counts
	// them.
	Spending *Spending
	// TLS secures connections, as the function TLS makes it; nil serves plain HTTP.
	TLS *tls.Config
	// Limits bound what callers may do.
	Limits Limits
	// Drain is how long requests may take to finish when Serve stops; 0 is half a
	// minute.
	Drain time.Duration
	// Idle ends Serve when no request and no background job came for so long; 0 for
	// never.
	Idle time.Duration
	// Logger logs every request, without content and keys; nil logs nothing.
	Logger *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() (Config, error) {
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
			return c, err
		}
		c.Compactor.Counter, c.countsByModel = counter, true
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
	if c.Models == nil {
		models := token.Models()
		c.Models = &models
	}
	return c, nil
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
	// TenantRate is how many requests per second all keys of a tenant may make together, and
	// twice as many at once; 0 for any number.
	TenantRate int
	// ArrivalTimeout is how long a request may take to arrive, and a caller to read each piece
	// of an answer; default two minutes.
	ArrivalTimeout time.Duration
	// Page is the largest page of a list; default 500.
	Page int
	// Memory is how much memory the process may take, in bytes, before requests are
	// refused; 0 for any amount.
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
	l.TenantRate = max(l.TenantRate, 0)
	l.Page = cmp.Or(max(l.Page, 0), 500)
	l.Streams = cmp.Or(max(l.Streams, 0), 100)
	return l
}
