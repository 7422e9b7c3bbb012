package proxy

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/redact"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/dialect"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Proxy is the http.Handler that agents point their base URL at. Make one with
// New; it is safe for concurrent use.
type Proxy struct {
	transport *Transport
	upstreams map[dialect.Vendor]*url.URL
	reverse   *httputil.ReverseProxy
}

// New returns a proxy; nil options are the zero value. The error says which option is invalid.
func New(o *Options) (*Proxy, error) {
	o = cmp.Or(o, &Options{})
	upstreams, err := o.upstreams()
	if err != nil {
		return nil, fmt.Errorf("proxy.New: %w", err)
	}
	t, err := NewTransport(o)
	if err != nil {
		return nil, fmt.Errorf("proxy.New: %w", err)
	}
	p := &Proxy{transport: t, upstreams: upstreams}
	p.reverse = &httputil.ReverseProxy{
		Transport:     t,
		FlushInterval: -1, // each read of the answer goes on at once
		BufferPool:    httpbody.Buffers{},
		Rewrite:       func(r *httputil.ProxyRequest) { routeUpstream(r, upstreams) },
		ErrorHandler:  answerUnreachable,
		ErrorLog:      log.New(io.Discard, "", 0), // the broken connection itself tells the client
	}
	return p, nil
}

// ServeHTTP forwards a request through the Transport. It answers a WebSocket for responses, as Codex
// opens, and refuses one for another API with 426, on which clients go on over HTTP. Paths that
// are no provider's get 404 or 405. Empty segments of a path are dropped.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.ServeCounted(w, r, func() error { return nil })
}

// ServeCounted is ServeHTTP for callers that are held to a number of requests: count is asked before each
// message of a WebSocket, and its error is what the client is told instead. It must be safe for
// concurrent use.
func (p *Proxy) ServeCounted(w http.ResponseWriter, r *http.Request, count func() error) {
	if e := endpointOf(r.URL.Path); r.Header.Get("Upgrade") != "" && e.task == generate {
		if e.dialect.API() == wire.Responses && strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			p.serveSocket(w, r, count)
			return
		}
		d := forward(reasonWebSocket)
		d.setHeaders(w.Header())
		refuseHere(w, http.StatusUpgradeRequired, "invalid_request_error", "no WebSocket here, use HTTP")
		pass{p.transport, r, e, time.Now()}.emit(d, http.StatusUpgradeRequired, nil)
		return
	}
	if r.URL.RawPath == "" && strings.Contains(r.URL.Path, "//") {
		own, u := *r, *r.URL
		u.Path, own.URL = path.Clean("/"+r.URL.Path), &u
		r = &own
	}
	if !Takes(r.Method, r.URL.Path) {
		refuseUnknown(w, r)
		return
	}
	p.reverse.ServeHTTP(w, r)
}

// Totals are the sums since the proxy was made.
func (p *Proxy) Totals() Totals { return p.transport.Totals() }

// Upstream is a provider that a Proxy sends requests to.
type Upstream struct {
	// Name is "Anthropic", "OpenAI" or "Gemini".
	Name string
	// URL is where its requests go, without passwords and keys.
	URL string
	// Requests counts the requests that asked a model, as Totals does.
	Requests int64
}

// Upstreams are the providers of a proxy. Their requests add up to Totals.Requests.
func (p *Proxy) Upstreams() []Upstream {
	var all []Upstream
	for _, u := range []struct {
		name   string
		vendor dialect.Vendor
	}{{"Anthropic", dialect.AnthropicVendor}, {"OpenAI", dialect.OpenAIVendor}, {"Gemini", dialect.GeminiVendor}} {
		all = append(all, Upstream{u.name, redact.URL(p.upstreams[u.vendor].String()), p.transport.byVendor[u.vendor].Load()})
	}
	return all
}

// Finished records how the task of a conversation ended, for Config.Quality, and returns how it fared
// under compaction since this process first saw it (see palimpsest.Session.Quality). The thread is
// that of ThreadHeader. With an empty outcome it records nothing.
func (p *Proxy) Finished(thread string, o thread.Outcome) quality.Metrics {
	return p.transport.compactors.finished(thread, o)
}

// proxyHeaders are headers that httputil.ReverseProxy removes, and that a provider's gateway may need.
var proxyHeaders = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

func routeUpstream(r *httputil.ProxyRequest, upstreams map[dialect.Vendor]*url.URL) {
	v := vendorOf(r.In)
	r.Out.URL = upstreamURL(v, upstreams[v], r.In.URL)
	r.Out.Host = ""
	for _, name := range proxyHeaders {
		if values, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = values
		}
	}
}

// answerUnreachable answers for an upstream that did not, in a form on which the SDKs of all providers
// try again.
func answerUnreachable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	status := http.StatusBadGateway
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		status = http.StatusRequestEntityTooLarge
	}
	if failed, ok := errors.AsType[*connectionError](err); ok {
		failed.sent.setHeaders(w.Header())
	}
	refuseHere(w, status, "api_error", "the provider gave no answer: "+connectionTrouble(err))
}

// connectionTrouble says what is wrong with a connection, but not its address, which clients need not
// know.
func connectionTrouble(err error) string {
	var named *net.DNSError
	var tlsRecord tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	var large *http.MaxBytesError
	var network net.Error
	switch {
	case errors.As(err, &large):
		return "the request is too large"
	case errors.As(err, &named):
		return "the name of its server is not known"
	case errors.As(err, &certificate):
		return "its certificate is not valid"
	case errors.As(err, &tlsRecord):
		return "its server does not speak TLS"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection broke off"
	case errors.As(err, &network) && network.Timeout():
		return "it took too long"
	}
	return "the connection failed"
}
