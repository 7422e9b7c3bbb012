package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
)

// running starts `palimpsest serve` and returns its address, and what stops it
// and gives the exit status and what it wrote to standard error.
func running(t *testing.T, args ...string) (address string, stop func() (int, string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	status := make(chan int, 1)
	go func() {
		status <- Run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), Streams{In: strings.NewReader(""), Out: io.Discard, Err: w})
		w.Close()
	}()
	lines := bufio.NewScanner(r)
	var log strings.Builder
	for address == "" && lines.Scan() {
		fmt.Fprintln(&log, lines.Text())
		_, address, _ = strings.Cut(lines.Text(), "serving on ")
	}
	address, _, _ = strings.Cut(address, " and unix:")
	if address == "" {
		cancel()
		t.Fatalf("palimpsest serve ended with status %d:\n%s", <-status, log.String())
	}
	rest := make(chan struct{})
	go func() {
		defer close(rest)
		for lines.Scan() {
			fmt.Fprintln(&log, lines.Text())
		}
	}()
	return address, func() (int, string) {
		cancel()
		<-rest
		return <-status, log.String()
	}
}

// alone keeps a test from the settings, keys and data of whoever runs it.
func alone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "PALIMPSEST_") && name != "PALIMPSEST_REQUIRE_CORPUS" && name != "PALIMPSEST_LONG" {
			t.Setenv(name, "") // so that it is put back
			os.Unsetenv(name)
		}
	}
	return dir
}

// client returns a client that leaves no connection behind.
func client(t *testing.T, address, key string) *api.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := api.NewClient(address, &api.Options{Key: key, HTTP: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestServe: threads outlive the daemon in the usual place; with a key made, only
// who has one gets in; with a master key nothing is legible in the files.
func TestServe(t *testing.T) {
	const canary = "CANARY-never-touch-vendor.lock"
	dir := alone(t)
	address, stop := running(t)
	c := client(t, address, "")
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	said := api.Append{Messages: []neutral.Message{{Role: "user", Parts: []neutral.Part{{Type: neutral.TextPart, Text: canary}}}}}
	if _, err := c.Append(t.Context(), "t", 0, said); err != nil {
		t.Fatal(err)
	}
	if status, log := stop(); status != exitDone || strings.Contains(log, canary) {
		t.Fatalf("status %d:\n%s", status, log)
	}

	var token, report strings.Builder
	if status := Run(t.Context(), []string{"keys", "add"}, Streams{In: strings.NewReader(""), Out: &token, Err: &report}); status != exitDone {
		t.Fatal(report.String())
	}
	address, stop = running(t)
	if _, err := client(t, address, "").Thread(t.Context(), "t"); !api.IsKind(err, api.Unauthorized) {
		t.Errorf("without the key: %v", err)
	}
	if th, err := client(t, address, strings.TrimSpace(token.String())).Thread(t.Context(), "t"); err != nil || th.Version != 1 {
		t.Errorf("after a restart: %+v: %v", th, err)
	}
	if status, log := stop(); status != exitDone || strings.Contains(log, strings.TrimSpace(token.String())) {
		t.Fatalf("status %d:\n%s", status, log)
	}

	var master strings.Builder
	if status := Run(t.Context(), []string{"keys", "master"}, Streams{In: strings.NewReader(""), Out: &master, Err: &report}); status != exitDone {
		t.Fatal(report.String())
	}
	masterFile, sealed := filepath.Join(dir, "master.key"), filepath.Join(dir, "sealed.db")
	if err := os.WriteFile(masterFile, []byte(master.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		file    string
		args    []string
		legible bool
	}{
		{sealed, []string{"--master-key", masterFile}, false},
		{filepath.Join(dir, "plain.db"), nil, true},
	} {
		address, stop := running(t, append(tt.args, "--store", "sqlite:"+tt.file)...)
		c := client(t, address, strings.TrimSpace(token.String()))
		if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Append(t.Context(), "t", 0, said); err != nil {
			t.Fatal(err)
		}
		if status, log := stop(); status != exitDone {
			t.Fatal(log)
		}
		legible := false
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasPrefix(path, tt.file) {
				return err
			}
			data, err := os.ReadFile(path)
			legible = legible || strings.Contains(string(data), canary)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if legible != tt.legible {
			t.Errorf("%s: legible %v, want %v", filepath.Base(tt.file), legible, tt.legible)
		}
	}
}

// TestServeRefuses: what cannot be served is told before anything listens.
func TestServeRefuses(t *testing.T) {
	dir := alone(t)
	file := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(file, []byte("listn: 127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--listen", "0.0.0.0:0", "--store", "memory:"}, exitUsage, "palimpsest keys add"},
		{[]string{"--listen", "nowhere"}, exitUsage, "want an address with a port"},
		{[]string{"--listen", ""}, exitUsage, "set one of them"},
		{[]string{"--store", "floppy:a"}, exitUsage, "sqlite:FILE"},
		{[]string{"--store", "sqlite:" + filepath.Join(dir, "none", "x.db")}, exitFailed, "none"},
		{[]string{"--policy", "hope"}, exitUsage, "known are auto"},
		{[]string{"--counter", "fingers"}, exitUsage, "fingers"},
		{[]string{"--master-key", filepath.Join(dir, "none.key")}, exitFailed, "none.key"},
		{[]string{"--tls-cert", file}, exitUsage, "go together"},
		{[]string{"--tls-cert", filepath.Join(dir, "none.pem"), "--tls-key", file}, exitFailed, "none.pem"},
		{[]string{"--models", filepath.Join(dir, "none.json")}, exitFailed, "none.json"},
		{[]string{"--config", file}, exitUsage, `c.yaml:1: unknown setting "listn"; did you mean listen?`},
		{[]string{"--config", filepath.Join(dir, "none.yaml")}, exitUsage, "none.yaml"},
		{[]string{"now"}, exitUsage, "no arguments"},
	} {
		var report strings.Builder
		got := Run(t.Context(), append([]string{"serve"}, tt.args...), Streams{In: strings.NewReader(""), Out: io.Discard, Err: &report})
		if got != tt.status || !strings.Contains(report.String(), tt.says) {
			t.Errorf("serve %v: status %d, want %d and %q:\n%s", tt.args, got, tt.status, tt.says, report.String())
		}
	}
}

// TestAPICommands: the curl commands of the documentation do what they are
// shown for, one after the other, as they are written there.
func TestAPICommands(t *testing.T) {
	alone(t)
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	address, stop := running(t, "--store", "memory:")
	defer stop()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	commands := 0
	for line := range strings.SplitSeq(string(page), "\n") {
		if !strings.HasPrefix(line, "curl ") {
			continue
		}
		commands++
		r := curl(t, strings.ReplaceAll(line, "http://127.0.0.1:7433", address))
		answer, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode >= 300 {
			body, _ := io.ReadAll(answer.Body)
			t.Errorf("%s\n%d %s", line, answer.StatusCode, body)
		}
		answer.Body.Close()
	}
	if commands < 10 {
		t.Errorf("only %d commands were found", commands)
	}
}

// curl makes the request of a command line, of which it knows what the
// documentation uses.
func curl(t *testing.T, line string) *http.Request {
	t.Helper()
	var words []string
	for n, piece := range strings.Split(line, "'") {
		if n%2 == 1 {
			words = append(words, piece) // quoted: one word
		} else {
			words = append(words, strings.Fields(piece)...)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://none", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "-s", "-N":
		case "--max-time":
			i++
		case "-X":
			i++
			r.Method = words[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(words[i], ": ")
			r.Header.Set(name, value)
		case "-d":
			i++
			r.Method, r.Body, r.ContentLength = "POST", io.NopCloser(strings.NewReader(words[i])), int64(len(words[i]))
		default:
			if r.URL, err = url.Parse(words[i]); err != nil || r.URL.Host == "" {
				t.Fatalf("%s: %q is not understood: %v", line, words[i], err)
			}
			r.Host = r.URL.Host
		}
	}
	return r
}

// TestServeSays: the daemon tells when it compacts before it serves, and each
// compaction in words; a log level above that turns both off.
func TestServeSays(t *testing.T) {
	alone(t)
	up := proxytest.New(t)
	for _, level := range []string{"info", "warn"} {
		address, stop := running(t, "--store", "memory:", "--favor", "cost", "--window", "20k", "--log-level", level, "--anthropic-upstream", up.URL)
		cmd := exec.Command(os.Args[0], "-test.run=TestAsAgent")
		cmd.Env = append(os.Environ(), "PALIMPSEST_TEST_AGENT=ask", "ANTHROPIC_BASE_URL="+address)
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), "got 200") {
			t.Errorf("the agent says %q", out)
		}
		_, log := stop()
		for _, want := range []string{`msg="compacts at 12,000 to 18,000 of 20,000 tokens `, `each request is `} {
			if strings.Contains(log, want) != (level == "info") {
				t.Errorf("%s: %q in\n%s", level, want, log)
			}
		}
	}
}
