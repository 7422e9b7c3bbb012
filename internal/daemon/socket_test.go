package daemon_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/ondemand"
	"github.com/palimpsest-ai/palimpsest/internal/test/apikeytest"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
)

// atSocket serves at a socket and a port as the command does.
func atSocket(t *testing.T, c daemon.Config) (socket, url string, served <-chan error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "p") // a test's own has too long a name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s, err := daemon.New(c)
	if err != nil {
		t.Fatal(err)
	}
	port, err := s.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s", "daemon.sock")
	local, err := ondemand.Listen(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, port, local) }()
	return socket, "http://" + port.Addr().String(), ended
}

// TestSocket: who is at the socket needs no key and is told the one of the port, whom
// nobody gets in without; a page gets in nowhere.
func TestSocket(t *testing.T) {
	store := apikey.New(&apikeytest.Memory{}, nil)
	token, _, err := store.Add(t.Context(), apikey.Grant{Rights: apikey.Read | apikey.Write})
	if err != nil {
		t.Fatal(err)
	}
	const own = "the-key-of-this-run"
	for name, keys := range map[string]daemon.Keys{"without keys": nil, "with keys": store} {
		t.Run(name, func(t *testing.T) {
			var provider http.HandlerFunc = func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) }
			socket, url, served := atSocket(t, daemon.Config{
				Keys: keys, OwnKey: own, Version: "1.2.3",
				Proxy: func(string) (http.Handler, error) { return provider, nil },
			})
			ask := func(c *http.Client, method, url, path string, header ...string) (int, string) {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), method, url+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				for i := 0; i < len(header); i += 2 {
					if header[i] == "Host" {
						r.Host = header[i+1]
					}
					r.Header.Set(header[i], header[i+1])
				}
				answer, err := c.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer answer.Body.Close()
				body, err := io.ReadAll(answer.Body)
				if err != nil {
					t.Fatal(err)
				}
				return answer.StatusCode, string(body)
			}
			transport := &http.Transport{DisableKeepAlives: true}
			local, port := ondemand.Client(socket), &http.Client{Transport: transport}
			const here, threads, model, page = "http://localhost", "/v1/threads", "/v1/messages", "http://example.com"
			keyed := http.StatusUnauthorized // a key of the store's, without a store of keys
			if keys != nil {
				keyed = http.StatusOK
			}
			for _, tt := range []struct {
				client      *http.Client
				method, url string
				path        string
				want        int
				header      []string
			}{
				{local, "GET", here, threads, http.StatusOK, nil},
				{local, "POST", here, model, http.StatusTeapot, []string{"Authorization", "Bearer the-provider's"}},
				{local, "GET", here, threads, http.StatusForbidden, []string{"Host", "example.com"}},
				{local, "GET", here, threads, http.StatusForbidden, []string{"Origin", page}},
				{local, "GET", here, ondemand.Path, http.StatusForbidden, []string{"Origin", page}},
				{local, "POST", here, ondemand.StopPath, http.StatusForbidden, []string{"Origin", page}},
				{local, "GET", here, ondemand.StopPath, http.StatusMethodNotAllowed, nil},
				{port, "GET", url, threads, http.StatusUnauthorized, nil},
				{port, "GET", url, threads, http.StatusUnauthorized, []string{"Authorization", "Bearer " + own + "x"}},
				{port, "GET", url, threads, http.StatusOK, []string{"Authorization", "Bearer " + own}},
				{port, "GET", url, threads, keyed, []string{"Authorization", "Bearer " + token}},
				{port, "POST", url, model, http.StatusUnauthorized, nil},
				{port, "POST", url, model, http.StatusTeapot, []string{daemon.KeyHeader, own}},
				{port, "GET", url, "/metrics", http.StatusUnauthorized, nil},
				{port, "GET", url, ondemand.Path, http.StatusNotFound, []string{"Authorization", "Bearer " + own}},
				{port, "POST", url, ondemand.StopPath, http.StatusNotFound, []string{"Authorization", "Bearer " + own}},
			} {
				if got, body := ask(tt.client, tt.method, tt.url, tt.path, tt.header...); got != tt.want || strings.Contains(body, own) {
					t.Errorf("%s %s%s %q: %d, want %d: %s", tt.method, tt.url, tt.path, tt.header, got, tt.want, body)
				}
			}
			var told ondemand.Running
			_, body := ask(local, "GET", here, ondemand.Path)
			if err := json.Unmarshal([]byte(body), &told); err != nil {
				t.Fatal(err)
			}
			if want := (ondemand.Running{Socket: socket, URL: url, Key: own, Version: "1.2.3", API: ondemand.API, PID: os.Getpid()}); told != want {
				t.Errorf("got %+v, want %+v", told, want)
			}
			if was, err := ondemand.Stop(t.Context(), socket); err != nil || was != told {
				t.Errorf("%+v, %v", was, err)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}
