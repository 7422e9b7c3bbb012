//go:build unix

package hostile_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/ondemand"
	"github.com/palimpsest-ai/palimpsest/internal/test/hostile"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestConnections: connections that begin a request and never end it, many of each
// kind, take little, and others are answered meanwhile. What is left of them when they
// go is nothing.
func TestConnections(t *testing.T) {
	s, _ := proxied(t)
	address := strings.TrimPrefix(s.url, "http://")
	begun(t, s, "tcp", address, address)
}

// TestSocket: the same at the socket of a daemon.
func TestSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "p") // a test's own has too long a name
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "daemon.sock")
	s, _ := proxied(t, "--socket", socket)
	s.url, s.http.Transport = "http://localhost", ondemand.Client(socket).Transport
	for i, c := range hostile.Whole(8 << 10) {
		path := []string{ondemand.Path, "/mcp", api.Root}[i%3]
		if status, answer := s.send(t, request{method: "GET", path: path, body: c.Data}); status >= 500 {
			t.Errorf("%s with %s: %d %.300s", path, c.Name, status, answer)
		}
	}
	begun(t, s, "unix", socket, "localhost")
}

// begun begins requests at an address, for a host.
func begun(t *testing.T, s *served, network, at, address string) {
	s.alive(t, wire.Anthropic)
	const many = 60
	before := s.do(t, order{}).figures
	post := func(path string) string {
		return "POST " + path + " HTTP/1.1\r\nHost: " + address + "\r\nContent-Type: application/json\r\n"
	}
	for name, begin := range map[string]string{
		"nothing":                     "",
		"half a line":                 "POST /v1/mess",
		"half a header":               post("/v1/messages") + "X-A: ",
		"a header without an end":     post("/v1/messages") + strings.Repeat("X-A: a\r\n", 4000),
		"a line without an end":       "GET /" + strings.Repeat("a", 60<<10),
		"one byte of 60 MB":           post("/v1/messages") + "Content-Length: 60000000\r\n\r\n{",
		"one byte of 60 MB for a log": post(api.Root+"/t/messages") + "Content-Length: 60000000\r\n\r\n{",
		"more than anybody takes":     post("/v1/messages") + "Content-Length: 9223372036854775807\r\n\r\n{",
		"a length that is none":       post("/v1/messages") + "Content-Length: -1\r\n\r\n{",
		"two lengths":                 post("/v1/messages") + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
		"half a chunk":                post("/v1/messages") + "Transfer-Encoding: chunked\r\n\r\nfffffff\r\n{",
		"a chunk of no size":          post("/v1/messages") + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{",
		"a length and chunks":         post("/v1/messages") + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"half a body":                 post("/v1/chat/completions") + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", 100_000, conversation(wire.Chat, false, 4000)),
		"it waits to be asked":        post("/v1/messages") + "Content-Length: 100\r\nExpect: 100-continue\r\n\r\n",
		"another protocol":            "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"HTTP/2":                      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"a tunnel":                    "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
		"a WebSocket":                 "GET /v1/responses HTTP/1.1\r\nHost: " + address + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
		"half a message": "GET /v1/responses HTTP/1.1\r\nHost: " + address + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n" +
			"\x01\x81\x00\x00\x00\x00 ",
		"many requests at once": strings.Repeat("GET /healthz HTTP/1.1\r\nHost: "+address+"\r\n\r\n", 500),
	} {
		t.Run(name, func(t *testing.T) {
			var open []net.Conn
			for range many {
				c, err := net.Dial(network, at)
				if err != nil {
					t.Fatal(err)
				}
				// It may be refused before all of it was read.
				_, _ = io.WriteString(c, begin)
				open = append(open, c)
			}
			s.alive(t, wire.Anthropic)
			f := s.do(t, order{}).figures
			if limit := before.Peak + 64<<20; f.Peak > limit {
				t.Errorf("%d of them took %d MB of memory, the ceiling is %d MB", many, f.Peak>>20, limit>>20)
			}
			if f.CPU > freeCPU {
				t.Errorf("%d of them took %v of processor time", many, f.CPU)
			}
			for _, c := range open {
				c.Close()
			}
		})
	}
	// Those that were waited for are let go as soon as they are seen to be gone.
	s.http.CloseIdleConnections()
	var f figures
	for range 20_000 { // a busy machine may take its time
		s.alive(t, wire.Anthropic)
		if f = s.do(t, order{}).figures; f.Files <= before.Files+10 && f.Goroutines <= before.Goroutines+20 {
			return
		}
	}
	t.Errorf("afterwards there are %d goroutines and %d open files, before there were %d and %d", f.Goroutines, f.Files, before.Goroutines, before.Files)
}
