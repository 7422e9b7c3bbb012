package cli

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestNoise: what a provider sends unasked is in no log.
func TestNoise(t *testing.T) {
	alone(t)
	var text strings.Builder
	standard := oneByOne{w: &text}
	defer log.SetOutput(log.Writer())
	log.SetOutput(&standard)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		r := bufio.NewReader(conn)
		q, err := http.ReadRequest(r)
		if err == nil {
			_, err = io.Copy(io.Discard, q.Body)
		}
		if err == nil {
			// The second answer is one that nobody has asked for.
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 200 OK\r\nX-Secret: CANARY\r\nContent-Length: 0\r\n\r\n")
			_, _ = r.ReadByte() // until the client has closed
		}
	}()
	address, stop := running(t, "--store", "memory:", "--anthropic-upstream", "http://"+listener.Addr().String())
	if status, _, text := ask(t, address+"/v1/messages", longTalk(1)); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	<-closed
	if _, text := stop(); strings.Contains(text, "CANARY") {
		t.Errorf("the log is\n%s", text)
	}
	standard.mu.Lock()
	defer standard.mu.Unlock()
	if text.Len() > 0 {
		t.Errorf("the standard log has %q", text.String())
	}
}
