package daemon_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
)

// issue writes a certificate for this machine, signed by itself, and its key.
// The number tells it from others, and dates the files.
func issue(t *testing.T, dir string, number int64) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(number), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		rewrite(t, file, pem.EncodeToMemory(block), number)
	}
	parsed, err := x509.ParseCertificate(cert)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(parsed)
	return certFile, keyFile, roots
}

// rewrite writes a file with a date of its own.
func rewrite(t *testing.T, file string, data []byte, number int64) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_700_000_000+number, 0)
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}

// TestTLS: with a certificate the daemon speaks TLS alone, streams and shutdown
// included; a certificate that is renewed is used from the next connection on,
// and one that cannot be used leaves the one before.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, roots := issue(t, dir, 1)
	config, err := daemon.TLS(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	s, err := daemon.New(daemon.Config{TLS: config})
	if err != nil {
		t.Fatal(err)
	}
	url, stop := serving(t, s)
	address := strings.TrimPrefix(url, "http://")
	// over asks over a connection of its own, and says which certificate it met.
	over := func(roots *x509.CertPool) (int64, error) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		c, err := api.NewClient("https://"+address, &api.Options{HTTP: &http.Client{Transport: transport}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Threads(t.Context(), "", 0); err != nil {
			return 0, err
		}
		answer, err := (&http.Client{Transport: transport}).Get("https://" + address + "/healthz")
		if err != nil {
			return 0, err
		}
		answer.Body.Close()
		if answer.ProtoMajor != 2 {
			t.Errorf("the daemon speaks %s", answer.Proto)
		}
		return answer.TLS.PeerCertificates[0].SerialNumber.Int64(), nil
	}
	if n, err := over(roots); n != 1 || err != nil {
		t.Fatalf("certificate %d: %v", n, err)
	}
	plain := &http.Transport{}
	defer plain.CloseIdleConnections()
	if answer, err := (&http.Client{Transport: plain}).Get(url + "/v1/threads"); err == nil {
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %d", answer.StatusCode)
		}
		answer.Body.Close()
	}

	rewrite(t, certFile, []byte("half of it"), 2)
	if n, err := over(roots); n != 1 || err != nil {
		t.Errorf("with a new certificate that cannot be used: %d: %v", n, err)
	}
	_, _, renewed := issue(t, dir, 3)
	if n, err := over(renewed); n != 3 || err != nil {
		t.Errorf("with a new certificate: %d: %v", n, err)
	}

	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: renewed}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	c, err := api.NewClient("https://"+address, &api.Options{HTTP: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	stream, err := (&http.Client{Transport: transport}).Get("https://" + address + "/v1/threads/t/events")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	if _, err := io.Copy(io.Discard, stream.Body); err != nil {
		t.Errorf("the stream did not end well: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	for _, files := range [][2]string{{filepath.Join(dir, "none.pem"), keyFile}, {certFile, certFile}} {
		if _, err := daemon.TLS(files[0], files[1]); err == nil || !strings.Contains(err.Error(), files[0]) {
			t.Errorf("%v: %v", files, err)
		}
	}
}

// TestLongThinkingHTTP2: over HTTP/2 too, a request whose answer is long in coming is not cut
// off, neither before the first piece nor between two.
func TestLongThinkingHTTP2(t *testing.T) {
	const arrive = 150 * time.Millisecond // a busy machine takes some of it for each write
	certFile, keyFile, roots := issue(t, t.TempDir(), 1)
	config, err := daemon.TLS(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	thinking := func(string) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Provider", "yes")
			for range 2 {
				select {
				case <-time.After(arrive * 3 / 2):
				case <-r.Context().Done():
				}
				io.WriteString(w, "done")
				http.NewResponseController(w).Flush()
			}
		}), nil
	}
	s, err := daemon.New(daemon.Config{TLS: config, Proxy: thinking, Limits: daemon.Limits{ArrivalTimeout: arrive}})
	if err != nil {
		t.Fatal(err)
	}
	url, stop := serving(t, s)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	answer, err := (&http.Client{Transport: transport}).Post(strings.Replace(url, "http:", "https:", 1)+"/v1/messages", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); string(text) != "donedone" || err != nil || answer.ProtoMajor != 2 {
		t.Errorf("over %s: %q, %v", answer.Proto, text, err)
	}
	transport.CloseIdleConnections()
	if err := stop(); err != nil {
		t.Error(err)
	}
}
