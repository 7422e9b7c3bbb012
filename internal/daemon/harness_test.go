package daemon_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/leak"
	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
)

func TestMain(m *testing.M) {
	corpus.CollectLessOften()
	status := pgtest.Main(m)
	if err := leak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// host is a daemon on a real connection.
type host struct {
	*daemon.Server
	url  string
	http *http.Client
}

// start starts a daemon. Every answer that its clients get is checked by the OpenAPI
// document.
func start(t *testing.T, c daemon.Config) *host {
	t.Helper()
	s, err := daemon.New(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Stop()
		server.Close()
	})
	client := server.Client()
	document, err := readDocument()
	if err != nil {
		t.Fatal(err)
	}
	client.Transport = &checkingTransport{t: t, next: client.Transport, document: document}
	return &host{Server: s, url: server.URL, http: client}
}

// client returns a client with a key.
func (h *host) client(t *testing.T, key string) *api.Client {
	t.Helper()
	c, err := api.NewClient(h.url, &api.Options{HTTP: h.http, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// do sends a request as it is.
func (h *host) do(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	answer, err := h.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(data)
}

func (h *host) get(t *testing.T, token, path string) *http.Response {
	t.Helper()
	answer, _ := h.do(t, "GET", path, "", "Authorization", "Bearer "+token)
	return answer
}

// metric is a line of /metrics.
func (h *host) metric(t *testing.T, token, name string) string {
	t.Helper()
	_, page := h.do(t, "GET", "/metrics", "", "Authorization", "Bearer "+token)
	for line := range strings.Lines(page) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
