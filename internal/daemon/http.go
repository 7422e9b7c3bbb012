package daemon

import (
	"bytes"
	"cmp"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// defaultArrivalTimeout is how long a request may take to arrive once its header is there, and
// how long a reader may take for what is written to it at once.
const defaultArrivalTimeout = 2 * time.Minute

// HTTPServer is a server for a handler that agents are pointed at. A request has so
// long to arrive, and a reader as long for each piece of an answer; 0 is two minutes.
// One that says in two ways where its body ends is refused.
func HTTPServer(h http.Handler, arrivalTimeout time.Duration) *http.Server {
	arrivalTimeout = cmp.Or(max(arrivalTimeout, 0), defaultArrivalTimeout)
	s := &http.Server{
		Handler:           withDeadlines(h, arrivalTimeout),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// What net/http has to say quotes addresses and requests.
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	s.ConnState = func(c net.Conn, state http.ConnState) {
		if h, ok := c.(*headerConn); ok && state == http.StateIdle {
			h.expectHeader()
		}
	}
	return s
}

// withDeadlines sets the deadlines of each request. That of the body ends with the body: what
// takes long to answer would else be taken for a caller who is gone.
func withDeadlines(next http.Handler, arrivalTimeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Writers that know no deadlines are those of tests.
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(arrivalTimeout))
		if r.ContentLength != 0 {
			_ = control.SetReadDeadline(time.Now().Add(arrivalTimeout))
			own := *r
			own.Body = &deadlineBody{ReadCloser: r.Body, control: control}
			r = &own
		}
		next.ServeHTTP(&deadlineWriter{ResponseWriter: w, control: control, timeout: arrivalTimeout}, r)
		_ = control.SetWriteDeadline(time.Now().Add(arrivalTimeout)) // for what was not sent yet
	})
}

// deadlineBody is a body with a deadline.
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

// deadlineWriter is an answer, each piece of which has a deadline.
type deadlineWriter struct {
	http.ResponseWriter
	control             *http.ResponseController
	timeout             time.Duration
	handlerSetsDeadline bool // the handler sets deadlines of its own
}

func (w *deadlineWriter) Write(p []byte) (int, error) {
	w.extendDeadline()
	return w.ResponseWriter.Write(p)
}

// FlushError sends what was written.
func (w *deadlineWriter) FlushError() error {
	w.extendDeadline()
	return w.control.Flush()
}

func (w *deadlineWriter) extendDeadline() {
	if !w.handlerSetsDeadline {
		_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout))
	}
}

// SetWriteDeadline is for http.ResponseController.
func (w *deadlineWriter) SetWriteDeadline(t time.Time) error {
	w.handlerSetsDeadline = true
	return w.control.SetWriteDeadline(t)
}

// Unwrap is for http.ResponseController.
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// CheckHeaders is a listener for an HTTPServer: it looks at the headers of requests before
// anybody reads them.
func CheckHeaders(l net.Listener) net.Listener { return headerListener{l} }

type headerListener struct{ net.Listener }

func (l headerListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &headerConn{Conn: c, inHeader: true}, nil
}

// headerConn is a connection that breaks off where the header of a request names both a
// length and a transfer encoding. net/http takes such a request by its encoding; who
// stands before it may have taken it by its length, and what is the rest for the one
// is a request of somebody else's for the other.
type headerConn struct {
	net.Conn

	mu          sync.Mutex
	inHeader    bool // a header is read
	line        []byte
	hasLength   bool
	hasEncoding bool
}

// expectHeader prepares for the header of the next request.
func (c *headerConn) expectHeader() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inHeader, c.line, c.hasLength, c.hasEncoding = true, nil, false, false
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
