package page_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var (
	command string          // the command, built
	browser context.Context // one browser for all tests
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	path, err := exec.LookPath("chromium")
	if err != nil {
		fmt.Fprintln(os.Stderr, "chromium is not installed; the page is not tested in a browser")
		if os.Getenv("PALIMPSEST_REQUIRE_CHROMIUM") != "" {
			return 1
		}
		return 0
	}
	dir, err := os.MkdirTemp("", "page")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	command = filepath.Join(dir, "palimpsest")
	build := exec.Command("go", "build", "-o", command, "./cmd/palimpsest")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
		return 1
	}
	// Root has no sandbox; the memory of precise figures is asked for below.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("enable-precise-memory-info", true))
	allocated, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	browser, cancel = chromedp.NewContext(allocated)
	defer cancel()
	if err := chromedp.Run(browser); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// tab is a page in the browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// patience is how long anything may take before a test gives up.
const patience = 30 * time.Second

// open opens an address in a tab of its own. What the page's console or its policy
// complains about fails the test.
func open(t *testing.T, url string, width, height int64, dark bool) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(e any) {
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page threw: %s", e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError && !strings.Contains(e.Entry.URL, "/v1/") {
				t.Errorf("the browser complains: %s %s", e.Entry.Text, e.Entry.URL)
			}
		}
	})
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.do(log.Enable(), chromedp.EmulateViewport(width, height), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}), chromedp.Navigate(url))
	return p
}

func (p *tab) do(actions ...chromedp.Action) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	// The first run makes the tab, which must outlive the deadline.
	if chromedp.FromContext(p.ctx).Target == nil {
		if err := chromedp.Run(p.ctx); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.t.Fatalf("%v", err)
	}
}

// eval is the value of an expression in the page.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	var v T
	p.do(chromedp.Evaluate(expression, &v, func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
	return v
}

// until waits for an expression to become true.
func (p *tab) until(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, chromedp.Poll(expression, nil, chromedp.WithPollingInterval(20*time.Millisecond))); err != nil {
		var shown string
		_ = chromedp.Run(p.ctx, chromedp.Evaluate(`document.body.innerText.slice(0, 300)`, &shown))
		p.t.Fatalf("never true: %s: %v; the page shows:\n%s", expression, err, shown)
	}
}

func (p *tab) keys(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		p.do(chromedp.KeyEvent(key))
	}
}

// click waits until a selector's first element can be seen and reached, and clicks in its
// middle. The page says where that is: a node that the driver has found may have been
// drawn anew before it is clicked.
func (p *tab) click(selector string) {
	p.t.Helper()
	where := fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		if (!e) return null;
		e.scrollIntoView({ block: 'nearest', inline: 'nearest' });
		const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2, top = document.elementFromPoint(x, y);
		return r.width > 0 && top && (e.contains(top) || top.contains(e)) ? [x, y] : null;
	})()`, selector)
	p.until(where)
	at := eval[[]float64](p, where)
	if len(at) != 2 {
		p.t.Fatalf("%s is gone", selector)
	}
	p.do(chromedp.MouseClickXY(at[0], at[1]))
}

// shoot takes a picture; it is kept where PALIMPSEST_SHOTS says.
func (p *tab) shoot(name string) []byte {
	p.t.Helper()
	var png []byte
	p.do(chromedp.CaptureScreenshot(&png))
	if dir := os.Getenv("PALIMPSEST_SHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o666); err != nil {
			p.t.Fatal(err)
		}
	}
	return png
}

// session is the sample session that the pages show.
const session = "../../testdata/sessions/fix-retry.claude-code.jsonl"

// explain writes the page of a file and returns its address.
func explain(t *testing.T, file string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "page.html")
	cmd := exec.CommandContext(t.Context(), command, append([]string{"explain", file, "-o", out}, flags...)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s%v", text, err)
	}
	return "file://" + out
}

// daemon is the command serving, with a home of its own.
type daemon struct {
	t         *testing.T
	url, home string
	key       string
}

// serve starts a daemon.
func serve(t *testing.T, flags ...string) *daemon {
	t.Helper()
	d := &daemon{t: t, home: t.TempDir()}
	d.start(flags...)
	return d
}

func (d *daemon) start(flags ...string) {
	d.t.Helper()
	cmd := d.command(append([]string{"serve", "--listen", "127.0.0.1:0", "--store", filepath.Join(d.home, "p.db"), "--window", "200000"}, flags...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "serving on "); ok {
			d.url = strings.TrimSpace(address)
			break
		}
	}
	go io.Copy(io.Discard, stderr)
	if d.url == "" {
		d.t.Fatal("the daemon does not serve")
	}
}

func (d *daemon) command(args ...string) *exec.Cmd {
	cmd := exec.Command(command, args...)
	cmd.Env = append(os.Environ(), "HOME="+d.home, "XDG_DATA_HOME="+d.home, "CLAUDE_CONFIG_DIR="+filepath.Join(d.home, ".claude"), "CODEX_HOME="+filepath.Join(d.home, ".codex"), "PI_CODING_AGENT_DIR="+filepath.Join(d.home, ".pi"))
	return cmd
}

// ask asks the daemon's API.
func (d *daemon) ask(method, path string, body any) map[string]any {
	d.t.Helper()
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			d.t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, bytes.NewReader(data))
	if err != nil {
		d.t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if d.key != "" {
		r.Header.Set("Authorization", "Bearer "+d.key)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer answer.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil {
		d.t.Fatal(err)
	}
	if answer.StatusCode >= 300 {
		d.t.Fatalf("%s %s: %v", method, path, out)
	}
	return out
}

// thread makes a thread of n messages, each behind a turn of its own every ten.
func (d *daemon) thread(id string, messages []map[string]any) {
	d.t.Helper()
	d.ask("POST", "/v1/threads", map[string]any{"id": id})
	d.ask("POST", "/v1/threads/"+id+"/messages", map[string]any{"messages": messages})
}
