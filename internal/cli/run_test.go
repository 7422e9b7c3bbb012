package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
)

// TestAsAgent is no test: it is the agent that TestRun runs, in a process of its
// own.
func TestAsAgent(t *testing.T) {
	what := os.Getenv("PALIMPSEST_TEST_AGENT")
	if what == "" {
		t.Skip("runs only as the agent of TestRun")
	}
	if what == "wait" {
		c := make(chan os.Signal, 8)
		signal.Notify(c, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		fmt.Println("ready")
		for got := range c {
			if got == syscall.SIGHUP {
				os.Exit(9)
			}
			fmt.Println(got)
		}
	}
	in, _ := io.ReadAll(os.Stdin)
	line := strings.Repeat("the pump is off and the valve stays shut until the pressure falls; ", 120)
	messages := `{"role":"user","content":"read on"}`
	for n := range 30 {
		messages += fmt.Sprintf(`,{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"t","input":{"n":%d}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":"part %d: %s"}]}`, n, n, n, n, line)
	}
	body := `{"model":"m","max_tokens":99,"tools":[{"name":"t","input_schema":{"type":"object"}}],"messages":[` + messages + `]}`
	res, err := http.Post(os.Getenv("ANTHROPIC_BASE_URL")+"/v1/messages", "application/json", strings.NewReader(body))
	if err != nil {
		fmt.Println(err)
		os.Exit(8)
	}
	res.Body.Close()
	// What a web page could send is refused.
	foreign, _ := http.NewRequest(http.MethodPost, os.Getenv("ANTHROPIC_BASE_URL")+"/v1/messages", strings.NewReader("{}"))
	foreign.Header.Set("Origin", "https://page.example")
	renamed := foreign.Clone(context.Background())
	renamed.Header.Del("Origin")
	renamed.Host, renamed.Body = "page.example", http.NoBody
	for _, r := range []*http.Request{foreign, renamed} {
		if refused, err := http.DefaultClient.Do(r); err != nil || refused.StatusCode != http.StatusForbidden {
			fmt.Println("not refused", err)
			os.Exit(6)
		}
	}
	fmt.Printf("said %s, got %d\n", in, res.StatusCode)
	fmt.Printf("tokens %s %s\n", res.Header.Get(proxy.BeforeHeader), res.Header.Get(proxy.SentHeader))
	os.Exit(7)
}

// TestRun: the agent's input, output and exit status are its own, its requests
// go through the proxy, lines say what holds and when it acts, that it has, and what
// was saved.
func TestRun(t *testing.T) {
	up := proxytest.New(t)
	t.Setenv("PALIMPSEST_TEST_AGENT", "ask")
	var out, err bytes.Buffer
	status := Run(context.Background(), []string{"run", "--window", "20k", "--anthropic-upstream", up.URL, "--", os.Args[0], "-test.run=TestAsAgent"},
		Streams{In: strings.NewReader("hello"), Out: &out, Err: &oneByOne{w: &err}})
	if status != 7 || !strings.Contains(out.String(), "said hello, got 200") {
		t.Errorf("status %d, %q, %q", status, out.String(), err.String())
	}
	// The line before and the line behind say the same of window and upstreams.
	const rule = "policy auto, window 20,000 tokens"
	lines := strings.Split(err.String(), "\n")
	if len(lines) != 5 || lines[0] != "palimpsest: "+rule+", kept in memory; requests go to "+up.URL+", https://api.openai.com/v1, https://generativelanguage.googleapis.com" {
		t.Fatalf("the line before is %q", lines[0])
	}
	for n, want := range []string{
		`compacts at 12,000 to 18,000 of 20,000 tokens \(90 % of what a request leaves for its messages\) and keeps about 6,700 to 10,000 \(favor: balanced\)`,
		`compacted [0-9]{2},[0-9]{3} tokens to [0-9],[0-9]{3} \(over [0-9]{2},[0-9]{3} of [0-9]{2},[0-9]{3}\); each request is [0-9]{2},[0-9]{3} tokens smaller`,
	} {
		if !regexp.MustCompile("^palimpsest: " + want + "$").MatchString(lines[1+n]) {
			t.Errorf("line %q, want %s", lines[1+n], want)
		}
	}
	// The mark that is used is one of those that were said.
	var thousands, rest int
	if _, err := fmt.Sscanf(lines[2][strings.Index(lines[2], "(over "):], "(over %d,%d", &thousands, &rest); err != nil || thousands < 12 || thousands > 18 {
		t.Errorf("it is compacted from %d,%03d on, %v", thousands, rest, err)
	}
	// The figures are those that the answer's headers had.
	var before, sent int
	if _, err := fmt.Sscanf(out.String()[strings.Index(out.String(), "tokens "):], "tokens %d %d", &before, &sent); err != nil {
		t.Fatal(err)
	}
	figures := fmt.Sprintf("together about %s tokens became %s, 1 compaction", number(before), number(sent))
	if !strings.HasPrefix(lines[3], "palimpsest: 1 request to "+up.URL+", 1 made smaller ("+rule+"): "+figures) || !strings.HasSuffix(lines[3], ", 1 compaction, ~10k until it compacts") {
		t.Errorf("the line behind is %q", lines[3])
	}
	if got := up.Requests(); len(got) != 1 || got[0].Refused != "" {
		t.Errorf("upstream got %d requests", len(got))
	}
}

// TestRunQuiet: a quiet run says only what fails.
func TestRunQuiet(t *testing.T) {
	t.Setenv("PALIMPSEST_TEST_AGENT", "ask")
	gone := httptest.NewServer(nil)
	gone.Close()
	for upstream, want := range map[string]string{proxytest.New(t).URL: "", gone.URL: "palimpsest: the provider gave no answer: "} {
		var out, err bytes.Buffer
		Run(t.Context(), []string{"run", "--quiet", "--window", "20k", "--anthropic-upstream", upstream, "--", os.Args[0], "-test.run=TestAsAgent"},
			Streams{In: strings.NewReader("hello"), Out: &out, Err: &oneByOne{w: &err}})
		if !strings.HasPrefix(err.String(), want) || strings.Count(err.String(), "\n") != min(len(want), 1) {
			t.Errorf("want %q: %q", want, err.String())
		}
	}
}

// TestRunTells: a run says why something failed, once, and which window a provider named.
func TestRunTells(t *testing.T) {
	t.Setenv("PALIMPSEST_TEST_AGENT", "ask")
	gone := httptest.NewServer(nil)
	gone.Close()
	dir := t.TempDir()
	run := func(upstream string, args ...string) string {
		t.Helper()
		var out, err bytes.Buffer
		args = append([]string{"run", "--anthropic-upstream", upstream}, append(args, "--", os.Args[0], "-test.run=TestAsAgent")...)
		if status := Run(context.Background(), args, Streams{In: strings.NewReader("hello"), Out: &out, Err: &oneByOne{w: &err}}); status != 7 {
			t.Fatalf("status %d: %s%s", status, out.String(), err.String())
		}
		return err.String()
	}
	named := fmt.Sprintf(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 70000 tokens > %d maximum"}}`, 15_000)
	store := "sqlite:" + filepath.Join(dir, "agents.db")
	for _, tt := range []struct {
		upstream string
		args     []string
		says     string
	}{
		{gone.URL, []string{"--window", "20k"}, "palimpsest: the provider gave no answer: dial tcp"},
		{gone.URL, []string{"--window", "20k"}, "palimpsest: 1 request to " + gone.URL + ", none answered\n"},
		{provider(t, 400, named), []string{"--window", "20k", "--store", store}, "palimpsest: the provider refused the smaller request too: context overflow (status 400)\n"},
	} {
		if text := run(tt.upstream, tt.args...); strings.Count(text, tt.says) != 1 {
			t.Errorf("not once %q:\n%s", tt.says, text)
		}
	}
	upstream := provider(t, 400, named)
	run(upstream, "--window", "20k", "--store", store)
	if text, want := run(upstream, "--window", "20k", "--store", store), "palimpsest: the provider says that the window of m is 15,000 tokens, not 20,000; that is used from now on\n"; strings.Count(text, want) != 1 {
		t.Errorf("not once %q:\n%s", want, text)
	}
	if text := run(upstream, "--window", "12k", "--store", store); strings.Contains(text, "the window of m") {
		t.Errorf("a larger window replaces the one that was given:\n%s", text)
	}
}

// TestSaved: requests to several providers are told apart, and add up; a password in
// an address is not shown.
func TestSaved(t *testing.T) {
	r := agentRun{policyName: "auto"}
	used := []proxy.Upstream{{Name: "Anthropic", URL: "https://a.example", Requests: 3}, {Name: "OpenAI", URL: "https://o.example/v1", Requests: 2}, {Name: "Gemini", URL: "https://g.example"}}
	if got, want := r.endLine(proxy.Totals{Requests: 5, Faults: 1}, used), "5 requests (3 to https://a.example, 2 to https://o.example/v1), all passed on unchanged (policy auto, each model's own window), 1 internal error (request passed on unchanged)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for unanswered, want := range map[int64]string{5: "), none answered", 2: "), 2 of them unanswered, the others passed on unchanged (policy auto, each model's own window)"} {
		if got := r.endLine(proxy.Totals{Requests: 5, Unanswered: unanswered}, used); !strings.HasSuffix(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if got, want := r.endLine(proxy.Totals{Requests: 2, Edited: 1, TokensBefore: 196185, TokensSent: 61827, Compactions: 1}, used), "about 196,185 tokens became 61,827, 1 compaction"; !strings.HasSuffix(got, want) {
		t.Errorf("got %s\nwant %s", got, want) // whether it pays was told at the compaction
	}
	if got := r.endLine(proxy.Totals{}, used); !strings.HasPrefix(got, "no request came through") {
		t.Errorf("got %s", got)
	}
	p, err := proxy.New(&proxy.Options{Anthropic: "http://user:secret@a.example", OpenAI: "http://o.example/v1?api_key=secret"})
	if err != nil {
		t.Fatal(err)
	}
	if line := r.startLine(p.Upstreams()); strings.Contains(line, "secret") || !strings.Contains(line, "a.example") {
		t.Errorf("got %s", line)
	}
}

// TestRunHidesKeys: a key in an address of the environment is not shown by the help, nor by an
// error about the address.
func TestRunHidesKeys(t *testing.T) {
	t.Setenv("ANTHROPIC_BASE_URL", "ftp://user:secret@a.example")
	for _, args := range [][]string{{"run", "--help"}, {"run", "--", "true"}} {
		if _, out, err := run(t, args...); strings.Contains(out+err, "secret") || out+err == "" {
			t.Errorf("%v: %s%s", args, out, err)
		}
	}
}

// TestRunAgain: an agent that resumes its session in another run finds its plans
// again, and its provider is sent the same.
func TestRunAgain(t *testing.T) {
	up := proxytest.New(t)
	t.Setenv("PALIMPSEST_TEST_AGENT", "ask")
	store := "sqlite:" + filepath.Join(t.TempDir(), "agents.db")
	for n, want := range []string{", 1 compaction", ", 0 compactions", ", 1 compaction"} {
		args := []string{"run", "--window", "20k", "--anthropic-upstream", up.URL}
		if n < 2 {
			args = append(args, "--store", store)
		}
		var out, err bytes.Buffer
		status := Run(context.Background(), append(args, "--", os.Args[0], "-test.run=TestAsAgent"),
			Streams{In: strings.NewReader("hello"), Out: &out, Err: &oneByOne{w: &err}})
		if status != 7 || !strings.Contains(err.String(), want+", ~10k until it compacts\n") {
			t.Errorf("run %d: status %d, %q, %q", n, status, out.String(), err.String())
		}
	}
	got := up.Requests()
	if len(got) != 3 || !bytes.Equal(got[0].Body, got[1].Body) {
		t.Errorf("%d requests, or the second run sent something else", len(got))
	}
}

// TestRunKept: what a run kept is shown by the command that its line names, from any folder; in the usual store without
// its name.
func TestRunKept(t *testing.T) {
	up := proxytest.New(t)
	t.Setenv("PALIMPSEST_TEST_AGENT", "ask")
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	for _, tt := range []struct {
		flags []string
		names bool
	}{{[]string{"--store", "agents.db"}, true}, {[]string{"--keep"}, false}, {nil, false}} {
		args := slices.Concat([]string{"run", "--window", "20k", "--anthropic-upstream", up.URL}, tt.flags, []string{"--", os.Args[0], "-test.run=TestAsAgent"})
		var errs bytes.Buffer
		Run(t.Context(), args, Streams{In: strings.NewReader(""), Out: io.Discard, Err: &oneByOne{w: &errs}})
		text := errs.String()
		found := regexp.MustCompile(`palimpsest: kept in .*; to see it: palimpsest (.*)\n`).FindStringSubmatch(text)
		if (found != nil) != (tt.flags != nil) {
			t.Errorf("%v: %s", tt.flags, text)
		}
		if found == nil {
			continue
		}
		if strings.Contains(found[1], "--store") != tt.names {
			t.Errorf("%v: the command is %q", tt.flags, found[1])
		}
		t.Chdir(t.TempDir())
		if status, page, text := run(t, strings.Fields(found[1])...); status != exitDone || !strings.Contains(page, "the pump is off") {
			t.Errorf("%s: status %d, %s", found[1], status, text)
		}
	}
}

// TestRunWrong: what cannot be run is said before anything is started.
func TestRunWrong(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		say    string
	}{
		{[]string{"run"}, 2, "want a COMMAND after --"},
		{[]string{"run", "--policy", "nonsense", "--", "true"}, 2, "nonsense"},
		{[]string{"run", "--favor", "speed", "--", "true"}, 2, "want one of quality, balanced, cost"},
		{[]string{"run", "--favor", "cost", "--policy", "loop", "--", "true"}, 2, "the policy loop has its own marks"},
		{[]string{"run", "--openai-upstream", "nowhere", "--", "true"}, 2, "nowhere"},
		{[]string{"run", "--emulate", "anthropic,opnai", "--", "true"}, 2, `"opnai" is not known; did you mean openai?`},
		{[]string{"run", "--store", "agents:db", "--", "true"}, 2, "want FILE, sqlite:FILE"},
		{[]string{"run", "--store", "sqlite:/no/such/folder/agents.db", "--", "true"}, 1, "nowhere to keep conversations (see --store)"},
		{[]string{"run", "--", "no-such-command-here"}, 127, "palimpsest: no-such-command-here: the program is not found"},
		{[]string{"run", "--", "./no-such-command-here"}, 127, "palimpsest: ./no-such-command-here: the program is not found"},
		{[]string{"run", "--", "/"}, 1, "/ cannot be started"},
	} {
		var out, err bytes.Buffer
		status := Run(context.Background(), c.args, Streams{In: strings.NewReader(""), Out: &out, Err: &oneByOne{w: &err}})
		if status != c.status || !strings.Contains(err.String(), c.say) {
			t.Errorf("%v: status %d, %q", c.args, status, err.String())
		}
	}
}

// TestRunSignals: a signal goes to the agent, once and no other, and the agent decides what it
// means.
func TestRunSignals(t *testing.T) {
	if os.Getenv("PALIMPSEST_TEST_RUN") != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // as main does
		status := Run(ctx, []string{"run", "--", os.Args[0], "-test.run=TestAsAgent"}, Streams{In: strings.NewReader(""), Out: os.Stdout, Err: os.Stderr})
		stop()
		os.Exit(status)
	}
	for _, sent := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		cmd := exec.Command(os.Args[0], "-test.run=TestRunSignals")
		cmd.Env = append(os.Environ(), "PALIMPSEST_TEST_RUN=1", "PALIMPSEST_TEST_AGENT=wait")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		read := func(want string) {
			t.Helper()
			if line, err := lines.ReadString('\n'); line != want+"\n" {
				t.Errorf("%v: the agent says %q, want %q, %v", sent, line, want, err)
			}
		}
		send := func(signal os.Signal) {
			t.Helper()
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
		}
		read("ready")
		send(sent)
		read(sent.String())
		send(syscall.SIGHUP) // ends the agent
		if rest, _ := io.ReadAll(lines); len(rest) > 0 {
			t.Errorf("%v: the agent got %q too", sent, rest)
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 9 {
			t.Errorf("%v: %v", sent, err)
		}
	}
}

// TestSecondSignalOfRun: an agent that goes on after two signals is ended, and the command with it.
func TestSecondSignalOfRun(t *testing.T) {
	for _, sent := range [][2]os.Signal{{syscall.SIGTERM, syscall.SIGTERM}, {os.Interrupt, syscall.SIGTERM}, {os.Interrupt, os.Interrupt}} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRunSignals$")
		cmd.Env = append(os.Environ(), "PALIMPSEST_TEST_RUN=1", "PALIMPSEST_TEST_AGENT=wait")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stuck := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		lines := bufio.NewReader(out)
		for _, got := range []os.Signal{nil, sent[0], sent[1]} { // the agent says "ready" first
			if got != nil {
				if err := cmd.Process.Signal(got); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := lines.ReadString('\n'); err != nil {
				t.Fatalf("%v: %v", sent, err)
			}
		}
		_, _ = io.Copy(io.Discard, lines)
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 128+int(syscall.SIGKILL) || !stuck.Stop() {
			t.Errorf("%v: %v", sent, err)
		}
	}
}

// TestNoTerminal: the null device is a character device, and no terminal: nobody there sends
// the agent a Ctrl-C.
func TestNoTerminal(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if isTerminalFile(null) || sharesTerminal(Streams{Out: null, Err: null}) || isTerminal(null) {
		t.Error("the null device is taken for a terminal")
	}
}

// TestPointed: the agents that need more than a variable get it.
func TestPointed(t *testing.T) {
	args, env := withProxyURLs([]string{"/usr/bin/codex", "exec", "x"}, "http://h:1", []string{"A=b", "OPENAI_BASE_URL=old"})
	if want := []string{"/usr/bin/codex", "-c", `openai_base_url="http://h:1/v1"`, "exec", "x"}; !slices.Equal(args, want) {
		t.Errorf("%q", args)
	}
	if !slices.Contains(env, "OPENAI_BASE_URL=http://h:1/v1") || slices.Contains(env, "OPENAI_BASE_URL=old") || !slices.Contains(env, "A=b") || !slices.Contains(env, "ANTHROPIC_BASE_URL=http://h:1") {
		t.Errorf("%q", env)
	}
	_, env = withProxyURLs([]string{"opencode"}, "http://h:1", nil)
	if !strings.Contains(strings.Join(env, "\n"), `OPENCODE_CONFIG_CONTENT={"provider":`) {
		t.Errorf("%q", env)
	}
	if _, own := withProxyURLs([]string{"opencode"}, "http://h:1", []string{"OPENCODE_CONFIG_CONTENT={}"}); !slices.Contains(own, "OPENCODE_CONFIG_CONTENT={}") {
		t.Errorf("a configuration of the user's is gone: %q", own)
	}
}

// oneByOne lets one write through at a time: the agent and we write at once, into what
// is no file here.
type oneByOne struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *oneByOne) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

// TestLeastWindow: a window that no model has is refused before anything runs.
func TestLeastWindow(t *testing.T) {
	if status, _, told := run(t, "run", "--window", "1", "--", os.Args[0], "-test.run=^$"); status != exitUsage || !strings.Contains(told, "--window 1: want 1,000 tokens or more") {
		t.Errorf("status %d, told %q", status, told)
	}
}
