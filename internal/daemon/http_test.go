package daemon_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/apikeytest"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
)

// connected is a bare connection to a daemon that is served as the command does.
func connected(t *testing.T, c daemon.Config) net.Conn {
	t.Helper()
	s, err := daemon.New(c)
	if err != nil {
		t.Fatal(err)
	}
	url, stop := serving(t, s)
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// echo is a proxy that reads the whole body.
func echo(string) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Provider", "yes") // it is held against no document of ours
		if _, err := io.Copy(w, r.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
	}), nil
}

// pipes is a listener whose connections are pipes in memory, that keep to the clock
// of a bubble.
type pipes struct {
	dialed chan net.Conn
	closed chan struct{}
	close  func()
}

func newPipes() *pipes {
	p := &pipes{dialed: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.dialed:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.close(); return nil }

func (*pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.dialed <- theirs
	return ours
}

// piped is connected in a bubble.
func piped(t *testing.T, c daemon.Config) net.Conn {
	t.Helper()
	s, err := daemon.New(c)
	if err != nil {
		t.Fatal(err)
	}
	listener := newPipes()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, daemon.CheckHeaders(listener)) }()
	conn := listener.dial()
	t.Cleanup(func() {
		conn.Close()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return conn
}

// TestSlowBodies: who sends a body slowly, or none, is cut off, with a key or without
// one, and whether anybody reads the body or not.
func TestSlowBodies(t *testing.T) {
	const arrive = time.Minute
	keys := apikey.New(&apikeytest.Memory{}, nil)
	token := key(t, keys, "a", apikey.Read|apikey.Write)
	for name, header := range map[string]string{"without a key": "", "agent": "X-Palimpsest-Key: " + token + "\r\n", "client": "Authorization: Bearer " + token + "\r\n"} {
		for _, path := range []string{"/v1/messages", "/v1/threads", "/nothing"} {
			t.Run(name+path, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					conn := piped(t, daemon.Config{Keys: keys, Proxy: echo, Limits: daemon.Limits{ArrivalTimeout: arrive}})
					begun := time.Now()
					fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%sContent-Length: 60000000\r\n\r\n{", path, header)
					if _, err := io.Copy(io.Discard, conn); err != nil {
						t.Error(err) // else it ends when the daemon closes the connection
					}
					if took := time.Since(begun); took > arrive+time.Second {
						t.Errorf("cut off after %v", took)
					}
				})
			})
		}
	}
}

// TestSlowReaders: who does not read an answer is cut off; who reads it slowly is not,
// nor one that is long in coming.
func TestSlowReaders(t *testing.T) {
	const arrive = time.Minute
	synctest.Test(t, func(t *testing.T) {
		left := make(chan error, 1)
		pouring := func(string) (http.Handler, error) {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				piece := bytes.Repeat([]byte("x"), 1<<20)
				for {
					if _, err := w.Write(piece); err != nil {
						left <- err
						return
					}
				}
			}), nil
		}
		conn := piped(t, daemon.Config{Proxy: pouring, Limits: daemon.Limits{ArrivalTimeout: arrive}})
		begun := time.Now()
		fmt.Fprint(conn, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
		if err, took := <-left, time.Since(begun); err == nil || took != arrive {
			t.Errorf("cut off after %v: %v", took, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		const pieces, size = 5, 64 << 10
		giving := func(string) (http.Handler, error) {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for range pieces {
					w.Write(bytes.Repeat([]byte("x"), size))
				}
			}), nil
		}
		conn := piped(t, daemon.Config{Proxy: giving, Limits: daemon.Limits{ArrivalTimeout: arrive}})
		fmt.Fprint(conn, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		for n := range pieces {
			time.Sleep(arrive * 2 / 3)
			if _, err := io.ReadFull(res.Body, make([]byte, size)); err != nil {
				t.Fatalf("piece %d: %v", n, err)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		thinking := func(string) (http.Handler, error) {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				select {
				case <-time.After(5 * arrive):
				case <-r.Context().Done():
				}
				io.WriteString(w, "done")
			}), nil
		}
		conn := piped(t, daemon.Config{Proxy: thinking, Limits: daemon.Limits{ArrivalTimeout: arrive}})
		begun := time.Now()
		fmt.Fprint(conn, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if said, err := io.ReadAll(res.Body); string(said) != "done" || time.Since(begun) != 5*arrive {
			t.Errorf("after %v: %q, %v", time.Since(begun), said, err)
		}
	})
}

// TestTwoLengths: a request that says in two ways where it ends is refused, also
// behind another on the same connection, and its body is no request; under TLS too.
func TestTwoLengths(t *testing.T) {
	t.Run("plain", func(t *testing.T) { twoLengths(t, connected(t, daemon.Config{Proxy: echo})) })
	t.Run("TLS", func(t *testing.T) {
		certFile, keyFile, roots := issue(t, t.TempDir(), 1)
		config, err := daemon.TLS(certFile, keyFile)
		if err != nil {
			t.Fatal(err)
		}
		twoLengths(t, tls.Client(connected(t, daemon.Config{Proxy: echo, TLS: config}), &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}))
	})
}

func twoLengths(t *testing.T, conn net.Conn) {
	t.Helper()
	const good = "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
	const both = "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\ncontent-length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
	const chunked = "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n11\r\nContent-Length: 4\r\n0\r\n\r\n"
	r := bufio.NewReader(conn)
	for n, c := range []struct {
		request string
		want    int
	}{{good, 200}, {chunked, 200}, {good, 200}, {both, 400}} {
		fmt.Fprint(conn, c.request)
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("request %d: %v", n, err)
		}
		io.Copy(io.Discard, res.Body)
		if res.StatusCode != c.want {
			t.Errorf("request %d: %d, want %d", n, res.StatusCode, c.want)
		}
	}
	if rest, _ := io.ReadAll(r); len(rest) > 0 {
		t.Errorf("behind the refusal stands %q", rest)
	}
}

// TestRateOfProxy: what agents ask counts as well, and so do wrong keys, for the
// address that they come from.
func TestRateOfProxy(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	keys := apikey.New(&apikeytest.Memory{}, nil)
	h := start(t, daemon.Config{Keys: keys, Proxy: echo, Limits: daemon.Limits{Rate: 1, Burst: 2}, Now: func() time.Time { return now }})
	token := key(t, keys, "a", apikey.Read|apikey.Write)
	for _, c := range []struct {
		path, name, key string
		want            []int
	}{
		{"/v1/messages", daemon.KeyHeader, token, []int{200, 200, 429}},
		{"/v1/messages", daemon.KeyHeader, "plk_wrong", []int{401, 401, 429}},
		{"/v1/threads", "Authorization", "Bearer plk_wrong", []int{429}},
		{"/v1/messages", daemon.KeyHeader, "", []int{429}},
	} {
		for n, want := range c.want {
			method := "POST"
			if c.path == "/v1/threads" {
				method = "GET"
			}
			if answer, _ := h.do(t, method, c.path, "", c.name, c.key); answer.StatusCode != want {
				t.Errorf("%s with %q, request %d: %d, want %d", c.path, c.key, n, answer.StatusCode, want)
			}
		}
	}
}
