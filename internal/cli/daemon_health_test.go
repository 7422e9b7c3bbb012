package cli

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/daemon"
)

// TestReachable: a daemon that listens on all addresses is asked on this machine.
func TestReachable(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:7433":    "http://127.0.0.1:7433",
		"0.0.0.0:18733":     "http://127.0.0.1:18733",
		":18733":            "http://127.0.0.1:18733",
		"[::]:80":           "http://127.0.0.1:80",
		"[fe80::1]:80":      "http://[fe80::1]:80",
		"daemon.local:7433": "http://daemon.local:7433",
	} {
		if got := reachable(listen); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
}

// health asks the daemon of the settings in the environment.
func health(t *testing.T) (status int, report string) {
	t.Helper()
	var out, failed strings.Builder
	status = Run(t.Context(), []string{"health"}, Streams{In: strings.NewReader(""), Out: &out, Err: &failed})
	return status, failed.String()
}

// newDaemon is a daemon to be served.
func newDaemon(t *testing.T) *daemon.Server {
	t.Helper()
	s, err := daemon.New(daemon.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// TestHealthTLS: a daemon with a certificate is asked by TLS, at an address that the
// certificate need not name, and another server is not it.
func TestHealthTLS(t *testing.T) {
	server := httptest.NewTLSServer(newDaemon(t))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "cert.pem")
	certificate := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PALIMPSEST_LISTEN", server.Listener.Addr().String())
	t.Setenv("PALIMPSEST_TLS_CERT", file)
	certificate(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	if status, report := health(t); status != exitDone {
		t.Errorf("ready: %d %s", status, report)
	}
	certificate(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("another")}))
	if status, report := health(t); status != exitFailed || !strings.Contains(report, "another certificate") {
		t.Errorf("with another certificate: %d %s", status, report)
	}
	certificate([]byte("none"))
	if status, report := health(t); status != exitFailed || !strings.Contains(report, "tls-cert: "+file) {
		t.Errorf("without a certificate: %d %s", status, report)
	}
}

// TestHealthSocket: a daemon that listens on its socket alone is asked there.
func TestHealthSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "p") // a test's own has too long a name
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: newDaemon(t)}
	go server.Serve(l)
	defer server.Close()
	t.Setenv("PALIMPSEST_LISTEN", "")
	t.Setenv("PALIMPSEST_SOCKET", socket)
	if status, report := health(t); status != exitDone {
		t.Errorf("ready: %d %s", status, report)
	}
	server.Close()
	if status, _ := health(t); status != exitFailed {
		t.Errorf("gone: %d", status)
	}
}
