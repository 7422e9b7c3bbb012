package daemon

import (
	"bytes"
	"cmp"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// defaultArrivalTimeout is how long the body of a request may take to arrive, and a
// caller to read each piece of the answer.
const defaultArrivalTimeout = 2 * time.Minute

// HTTPServer is a server for a handler that agents are pointed at. The body of a request
// has arrivalTimeout to arrive, and the caller as long to read each piece of the answer;
// 0 is two minutes. Serve it with a listener of CheckHeaders.
func HTTPServer(h http.Handler, arrivalTimeout time.Duration) *http.Server {
	arrivalTimeout = cmp.Or(max(arrivalTimeout, 0), defaultArrivalTimeout)
	s := &http.Server{
		Handler:           withDeadlines(h, arrivalTimeout),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// The errors that net/http logs quote addresses and requests.
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	s.ConnState = func(c net.Conn, state http.ConnState) {
		if h, ok := c.(*headerConn); ok && state == http.StateIdle {
			h.mu.Lock() // the header of the next request comes
			defer h.mu.Unlock()
			h.inHeader, h.line, h.hasLength, h.hasEncoding = true, nil, false, false
		}
	}
	return s
}

// withDeadlines sets the deadlines of each request. The read deadline is lifted at the
// end of the body: net/http would take it, during a long answer, for a caller who left.
// A write deadline holds only while something is written: HTTP/2 resets the request when
// it passes, also while the handler works on its answer.
func withDeadlines(next http.Handler, arrivalTimeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Only the writers of tests have no deadlines.
		control := http.NewResponseController(w)
		if r.ProtoMajor < 2 {
			// While the body is read the server may write, to tell the caller to go on.
			_ = control.SetWriteDeadline(time.Now().Add(arrivalTimeout))
		}
		if r.ContentLength != 0 {
			_ = control.SetReadDeadline(time.Now().Add(arrivalTimeout))
			own := *r
			own.Body = &deadlineBody{ReadCloser: r.Body, control: control}
			r = &own
		}
		timed := &deadlineWriter{ResponseWriter: w, control: control, timeout: arrivalTimeout}
		next.ServeHTTP(timed, r)
		_ = control.SetWriteDeadline(timed.deadline()) // for what is still buffered
	})
}

// deadlineBody lifts the read deadline at its end.
type deadlineBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *deadlineBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// deadlineWriter gives each piece of an answer a deadline.
type deadlineWriter struct {
	http.ResponseWriter
	control             *http.ResponseController
	timeout             time.Duration
	handlerSetsDeadline bool // the handler sets deadlines of its own, and lifts them
	cutOff              atomic.Bool
}

// longAgo is the deadline of what is cut off. It is none of the handler's own, and may come while that writes.
var longAgo = time.Unix(1, 0)

// deadline is that of what is written now: an answer that was cut off has a second to end well.
func (w *deadlineWriter) deadline() time.Time {
	if w.cutOff.Load() {
		return time.Now().Add(time.Second)
	}
	return time.Now().Add(w.timeout)
}

func (w *deadlineWriter) Write(p []byte) (int, error) {
	defer w.startDeadline()()
	return w.ResponseWriter.Write(p)
}

// FlushError sends what was written.
func (w *deadlineWriter) FlushError() error {
	defer w.startDeadline()()
	return w.control.Flush()
}

// startDeadline sets the deadline of a piece; the result lifts it.
func (w *deadlineWriter) startDeadline() (lift func()) {
	if w.handlerSetsDeadline {
		return func() {}
	}
	_ = w.control.SetWriteDeadline(w.deadline())
	return func() { _ = w.control.SetWriteDeadline(time.Time{}) }
}

// SetWriteDeadline is for http.ResponseController.
func (w *deadlineWriter) SetWriteDeadline(t time.Time) error {
	if t != longAgo {
		w.handlerSetsDeadline = true
	} else {
		w.cutOff.Store(true)
	}
	if w.cutOff.Load() {
		t = w.deadline()
	}
	return w.control.SetWriteDeadline(t)
}

// Unwrap is for http.ResponseController.
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// CheckHeaders is a listener for an HTTPServer. It breaks connections off whose requests
// name both a length and a transfer encoding.
func CheckHeaders(l net.Listener) net.Listener { return headerListener{l} }

type headerListener struct{ net.Listener }

func (l headerListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &headerConn{Conn: c, inHeader: true}, nil
}

// headerConn breaks off when the header of a request names both a length and a transfer
// encoding. net/http goes by the encoding; a proxy in front of it may have gone by the
// length, and the two would disagree on where the next caller's request begins (request
// smuggling).
type headerConn struct {
	net.Conn

	mu          sync.Mutex
	inHeader    bool // a header is being read
	line        []byte
	hasLength   bool
	hasEncoding bool
}

func (c *headerConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range p[:n] {
		if !c.inHeader {
			break
		}
		if b != '\n' {
			if len(c.line) < len("transfer-encoding:") {
				c.line = append(c.line, b)
			}
			continue
		}
		name, _, _ := bytes.Cut(bytes.ToLower(c.line), []byte(":"))
		switch string(bytes.TrimSpace(name)) {
		case "content-length":
			c.hasLength = true
		case "transfer-encoding":
			c.hasEncoding = true
		case "":
			c.inHeader = false
		}
		c.line = c.line[:0]
		if c.hasLength && c.hasEncoding {
			_, _ = io.WriteString(c.Conn, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request: both Content-Length and Transfer-Encoding")
			c.Conn.Close()
			return 0, net.ErrClosed
		}
	}
	return n, err
}
