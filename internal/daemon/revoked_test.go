package daemon_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/apikeytest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
	"github.com/palimpsest-ai/palimpsest/token"
)

// unending answers each request with a stream that goes on until the client leaves.
type unending struct{}

func (unending) RoundTrip(r *http.Request) (*http.Response, error) {
	body, w := io.Pipe()
	go func() {
		for {
			select {
			case <-r.Context().Done():
				w.CloseWithError(r.Context().Err())
				return
			case <-time.After(time.Second):
			}
			if _, err := io.WriteString(w, "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_x\",\"output\":[]}}\n\n"); err != nil {
				return
			}
		}
	}()
	return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body, Request: r}, nil
}

// endless are proxies to a provider whose answers do not end.
func endless(t *testing.T) func(string) (http.Handler, error) {
	t.Helper()
	counter, err := token.New("chars/4", nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(&proxy.Options{Base: unending{}, Window: 20_000, NoTools: true, Config: palimpsest.Config{Counter: counter, Policy: policy.Auto{}}})
	if err != nil {
		t.Fatal(err)
	}
	return func(string) (http.Handler, error) { return p, nil }
}

// streaming is a daemon in a bubble with such a provider, and a client of it.
func streaming(t *testing.T, keys daemon.Keys) *http.Client {
	t.Helper()
	s, err := daemon.New(daemon.Config{Keys: keys, Proxy: endless(t)})
	if err != nil {
		t.Fatal(err)
	}
	listener := newPipes()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, daemon.CheckHeaders(listener)) }()
	c := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return listener.dial(), nil }}}
	t.Cleanup(func() {
		c.CloseIdleConnections()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return c
}

// streams open what goes on until somebody leaves. The function that each returns reads to the end.
var streams = map[string]func(t *testing.T, c *http.Client, token string) func(){
	"events": func(t *testing.T, c *http.Client, token string) func() {
		header := http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
		opened(t, c, "POST", "/v1/threads", `{"id":"t"}`, header).Body.Close()
		return drained(opened(t, c, "GET", "/v1/threads/t/events", "", header))
	},
	"an answer": func(t *testing.T, c *http.Client, token string) func() {
		header := http.Header{daemon.KeyHeader: {token}, "Content-Type": {"application/json"}}
		return drained(opened(t, c, "POST", "/v1/responses", `{"model":"m","stream":true,"input":"Go on."}`, header))
	},
	"a WebSocket": func(t *testing.T, c *http.Client, token string) func() { return socket(t, c, token, "") },
	"an answer on a WebSocket": func(t *testing.T, c *http.Client, token string) func() {
		return socket(t, c, token, `{"type":"response.create","model":"m","input":"Go on."}`)
	},
	"a body that comes slowly": func(t *testing.T, c *http.Client, token string) func() {
		return unread(t, c, "POST /v1/threads HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\nAuthorization: Bearer "+token+"\r\n\r\n")
	},
}

// unread begins a request and reads nothing; the function goes on with it, a byte a second, until the daemon ends it.
func unread(t *testing.T, c *http.Client, begins string) func() {
	t.Helper()
	conn, err := c.Transport.(*http.Transport).DialContext(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	var drops sync.WaitGroup
	t.Cleanup(func() {
		conn.Close()
		drops.Wait()
	})
	if _, err := io.WriteString(conn, begins); err != nil {
		t.Fatal(err)
	}
	drops.Add(1)
	return func() {
		defer drops.Done()
		for err := error(nil); err == nil; time.Sleep(time.Second) {
			_, err = io.WriteString(conn, " ")
		}
	}
}

// narrowing are keys of which one loses a right at a time.
type narrowing struct {
	daemon.Keys
	of string
	at time.Time
}

func (n *narrowing) Check(ctx context.Context, token string) (apikey.Key, error) {
	k, err := n.Keys.Check(ctx, token)
	if token == n.of && !time.Now().Before(n.at) {
		k.Rights = apikey.Write
	}
	return k, err
}

func opened(t *testing.T, c *http.Client, method, path, body string, header http.Header) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	res, err := c.Do(r)
	if err != nil || res.StatusCode/100 != 2 {
		t.Fatalf("%s: %v, %v", path, res, err)
	}
	return res
}

func drained(res *http.Response) func() {
	return func() {
		_, _ = io.Copy(io.Discard, res.Body) // how it is cut off does not matter
		res.Body.Close()
	}
}

// upgraded makes a connection a WebSocket, and returns what reads it.
func upgraded(t *testing.T, conn net.Conn, header string) io.Reader {
	t.Helper()
	fmt.Fprintf(conn, "GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n%s\r\n", header)
	reader := bufio.NewReader(conn)
	if res, err := http.ReadResponse(reader, nil); err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(res, err)
	}
	return reader
}

// frame is a frame of a short text, behind a mask of zeros.
func frame(first byte, text string) []byte {
	return append([]byte{first, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)
}

func socket(t *testing.T, c *http.Client, token, says string) func() {
	t.Helper()
	conn, err := c.Transport.(*http.Transport).DialContext(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	reader := upgraded(t, conn, daemon.KeyHeader+": "+token+"\r\n")
	if says != "" {
		if _, err := conn.Write(frame(0x81, says)); err != nil {
			t.Fatal(err)
		}
	}
	return func() { _, _ = io.Copy(io.Discard, reader) }
}

// TestRevokedStreams: what is open when its key is revoked, expires, or loses a right ends within five seconds,
// and nothing else ends with it.
func TestRevokedStreams(t *testing.T) {
	for name, open := range streams {
		for _, how := range []string{"revoked", "expires", "narrowed"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					keys := apikey.New(&apikeytest.Memory{}, nil)
					grant := apikey.Grant{Tenant: "a", Rights: apikey.Read | apikey.Write}
					if how == "expires" {
						grant.Expires = time.Now().Add(time.Minute)
					}
					token, revoked, err := keys.Add(t.Context(), grant)
					if err != nil {
						t.Fatal(err)
					}
					c := streaming(t, &narrowing{keys, map[bool]string{true: token}[how == "narrowed"], time.Now().Add(time.Minute)})
					ended, other := make(chan struct{}), make(chan struct{})
					read := open(t, c, token)
					go func() {
						read()
						close(ended)
					}()
					goesOn := open(t, c, key(t, keys, "b", apikey.Read|apikey.Write))
					go func() {
						goesOn()
						close(other)
					}()
					defer func() { c.Transport.(*http.Transport).CloseIdleConnections() }()
					time.Sleep(time.Minute - time.Second)
					select {
					case <-ended:
						t.Fatal("it ended while its key was valid")
					default:
					}
					time.Sleep(time.Second)
					began := time.Now()
					if how == "revoked" {
						if err := keys.Revoke(t.Context(), revoked.ID); err != nil {
							t.Fatal(err)
						}
					}
					select {
					case <-ended:
					case <-time.After(time.Hour):
					}
					if took := time.Since(began); took > 5*time.Second {
						t.Errorf("it ended %v after its key", took)
					}
					select {
					case <-other:
						t.Error("that of another key ended too")
					default:
					}
				})
			})
		}
	}
}

// TestSlowMessage: a message on a WebSocket that comes a byte a second is cut off; the connection may wait
// for the next one.
func TestSlowMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := piped(t, daemon.Config{Proxy: endless(t)})
		go io.Copy(io.Discard, upgraded(t, conn, ""))
		time.Sleep(20 * time.Minute)
		began := time.Now()
		// The first frame begins a text, the others go on with it.
		var err error
		for kind := byte(1); err == nil && time.Since(began) < 30*time.Minute; kind = 0 {
			_, err = conn.Write(frame(kind, " "))
			time.Sleep(time.Second)
		}
		if took := time.Since(began); err == nil || took > 3*time.Minute || took < time.Minute {
			t.Errorf("it is cut off after %v: %v", took, err)
		}
	})
}
