package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// TLS makes the configuration for Config.TLS from the PEM files of a certificate (with
// those of its issuers after it) and of its key. Changed files are read again, so that a
// certificate can be renewed while the daemon runs; when they cannot be used, the old
// one stays. The error says which file cannot be used.
func TLS(certFile, keyFile string) (*tls.Config, error) {
	p := &certificateFiles{paths: [2]string{certFile, keyFile}}
	if _, err := p.certificate(nil); err != nil {
		return nil, err
	}
	return &tls.Config{GetCertificate: p.certificate}, nil
}

// certificateFiles is a certificate and the files that it comes from.
type certificateFiles struct {
	paths [2]string

	mu     sync.Mutex
	tried  [2]fileStamp // of the files when they were last read
	loaded *tls.Certificate
}

// fileStamp tells one state of a file from another.
type fileStamp struct {
	changed time.Time
	size    int64
}

func (p *certificateFiles) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var now [2]fileStamp
	for n, file := range p.paths {
		// A missing file has the zero stamp; loading it gives the error.
		if info, err := os.Stat(file); err == nil {
			now[n] = fileStamp{info.ModTime(), info.Size()}
		}
	}
	if p.loaded != nil && now == p.tried {
		return p.loaded, nil
	}
	p.tried = now
	fresh, err := tls.LoadX509KeyPair(p.paths[0], p.paths[1])
	switch {
	case err == nil:
		p.loaded = &fresh
	case p.loaded == nil:
		return nil, fmt.Errorf("daemon.TLS(%s, %s): %w", p.paths[0], p.paths[1], err)
	}
	return p.loaded, nil
}

// handshakeTimeout is how long a connection may take to become one under TLS.
const handshakeTimeout = 10 * time.Second

// newTLSListener is a listener whose connections have completed the TLS handshake, so
// that headers can be checked as those of plain connections are. HTTP/2 needs no check:
// it has one way to say where a body ends.
func newTLSListener(l net.Listener, config *tls.Config) net.Listener {
	s := &tlsListener{Listener: l, config: config, ready: make(chan acceptResult), closed: make(chan struct{})}
	go s.acceptAll()
	return s
}

type tlsListener struct {
	net.Listener
	config *tls.Config
	ready  chan acceptResult
	once   sync.Once
	closed chan struct{}
}

type acceptResult struct {
	conn net.Conn
	err  error
}

func (s *tlsListener) Accept() (net.Conn, error) {
	select {
	case a := <-s.ready:
		return a.conn, a.err
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *tlsListener) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Listener.Close()
}

// acceptAll accepts connections until the listener is closed. None waits for the
// handshake of another.
func (s *tlsListener) acceptAll() {
	for {
		conn, err := s.Listener.Accept()
		if err == nil {
			go s.handshake(conn)
			continue
		}
		select {
		case s.ready <- acceptResult{err: err}: // the server waits a while, and accepts again
		case <-s.closed:
			return
		}
	}
}

func (s *tlsListener) handshake(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(handshakeTimeout))
	t := tls.Server(conn, s.config)
	if err := t.Handshake(); err != nil {
		if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && plain.Conn != nil {
			_, _ = io.WriteString(plain.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nThis address speaks TLS: use https.\n")
		}
		conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Time{})
	out := net.Conn(t)
	if t.ConnectionState().NegotiatedProtocol != "h2" {
		out = &headerConn{Conn: t, inHeader: true}
	}
	select {
	case s.ready <- acceptResult{conn: out}:
	case <-s.closed:
		conn.Close()
	}
}
