package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// childEnv holds, as JSON, what a test binary that was started by another one is to
// serve: benchmarks ask what a proxy costs, and not what their clients do.
const childEnv = "PALIMPSEST_TEST_CHILD"

// served is a proxy in a process of its own. The zero value of the rest is a plain
// httputil.ReverseProxy.
type served struct {
	Upstream string
	Ours     bool
	Window   int    // tokens
	File     string // of a store; empty keeps all in memory
	Stack    int    // bytes that a goroutine may take; 0 is Go's own limit
}

// serveChild serves until its input ends. For each line of it one comes back, which
// says how many bytes live on the heap.
func serveChild(described string) {
	var s served
	if err := json.Unmarshal([]byte(described), &s); err != nil {
		panic(err)
	}
	if s.Stack > 0 {
		debug.SetMaxStack(s.Stack)
	}
	handler, err := s.handler()
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(handler)
	fmt.Println(server.URL)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println(m.HeapAlloc)
	}
}

func (s *served) handler() (http.Handler, error) {
	base := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
	if !s.Ours {
		target, err := url.Parse(s.Upstream)
		return &httputil.ReverseProxy{Transport: base, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}, err
	}
	o := proxy.Options{Anthropic: s.Upstream, OpenAI: s.Upstream + "/v1", Gemini: s.Upstream, Base: base, Window: s.Window}
	if s.File != "" {
		db, err := sqlite.Open(context.Background(), s.File, nil)
		if err != nil {
			return nil, err
		}
		kept := db.Tenant("")
		o.Config.Store.Log, o.Config.Store.Plans = kept.Log, kept.Plans
	}
	return proxy.New(&o)
}

// child is such a process.
type child struct {
	url   string
	pid   int
	ask   io.Writer
	tells *bufio.Reader
}

func startChild(b testing.TB, s served) *child {
	b.Helper()
	described, err := json.Marshal(s)
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(described))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	c := &child{pid: cmd.Process.Pid, ask: in, tells: bufio.NewReader(out)}
	c.url = c.line(b)
	return c
}

func (c *child) line(b testing.TB) string {
	b.Helper()
	line, err := c.tells.ReadString('\n')
	if err != nil {
		b.Fatal("the proxy does not answer: ", err)
	}
	return strings.TrimSpace(line)
}

// heap is what lives on the heap, in bytes.
func (c *child) heap(b testing.TB) int {
	b.Helper()
	fmt.Fprintln(c.ask, "heap")
	n, err := strconv.Atoi(c.line(b))
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// cpu is the processor time that its threads took so far; 0 where the system does not tell.
func (c *child) cpu() (all time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", c.pid))
	for _, name := range threads {
		stat, _ := os.ReadFile(name)
		first, _, _ := strings.Cut(string(stat), " ")
		ns, _ := strconv.Atoi(first)
		all += time.Duration(ns)
	}
	return all
}

// resident is the memory that the system gave it, in bytes; 0 where the system does
// not tell.
func (c *child) resident() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	n, _ := strconv.Atoi(strings.Fields(rest + " 0")[0])
	return n << 10
}
