// Command upstream is the provider behind the agents of run.sh: it speaks the
// APIs on loopback, refuses what the real ones refuse, and plays a model that
// works through a task with the agent's own shell tool.
//
//	upstream -url FILE -row "claude | 2.1 | direct"   serves until SIGTERM, then prints its row of the table
//	upstream part N                                   prints part N of the task: 8 KB that hold one fact
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/token"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) == 3 && os.Args[1] == "part" {
		n, err := strconv.Atoi(os.Args[2])
		if err != nil {
			return fmt.Errorf("part %q: want a number", os.Args[2])
		}
		fmt.Print(part(n))
		return nil
	}
	url := flag.String("url", "", "write the address to this `file` once it is served")
	row := flag.String("row", "", "the first cells of the row of the table")
	dump := flag.String("dump", "", "keep each refused request, and the last one, in this `directory`")
	steps := flag.Int("steps", 20, "parts that the task has")
	facts := flag.Int("facts", asked, "parts whose codes the model has to tell at last, with one search each where they are more than the default")
	turn := flag.Int("turn", 0, "wait for the user after so many parts; 0 is after all")
	window := flag.Int("window", 0, "refuse requests over so many `tokens`; 0 takes all")
	trouble := flag.Bool("trouble", false, "fail once each with 429, 500, 529 and a broken connection")
	plain := flag.Bool("plain", false, "know nothing of compaction by the provider, and refuse what asks for it")
	vague := flag.Bool("vague", false, "leave the codes out of summaries")
	holds := flag.Bool("holds", false, "hold the histories of responses, conversations and message threads")
	ask := flag.String("ask", "", "do no task: search for these `words` with the tool recall of an MCP server, and say what it gave")
	steer := flag.Bool("steer", false, "use the tools for the context once each: context_status, context_note, compact_now")
	flag.Parse()

	counter, err := token.New("o200k", nil)
	if err != nil {
		return err
	}
	counter = counter.Remembering(nil)
	var mu sync.Mutex
	m := &model{parts: *steps, turn: *turn, vague: *vague, facts: *facts, told: map[int]bool{}, missed: map[int]bool{}}
	if *steer {
		m.steer = &steering{}
	}
	if *trouble {
		m.trouble = map[int]proxytest.Answer{}
		for i, a := range troubles {
			m.trouble[(i+1)*max(*steps/5, 2)] = a
		}
	}
	think := m.answer
	asks := &asking{words: *ask}
	if *ask != "" {
		think = asks.answer
	}
	up := &proxytest.Upstream{Window: *window, NoCompaction: *plain, Chains: *holds, Model: think, Count: func(p *prompt.Prompt) int {
		mu.Lock()
		defer mu.Unlock()
		return counter.Prompt(p)
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// What asks no model is not there: agents then take their own defaults.
		if r.Method != http.MethodPost || strings.HasSuffix(r.URL.Path, "count_tokens") {
			fmt.Fprintln(os.Stderr, "upstream: not there:", r.Method, r.URL.RequestURI())
			http.NotFound(w, r)
			return
		}
		if *ask != "" && strings.HasSuffix(r.URL.Path, "/responses") {
			w = spaced{w}
		}
		up.ServeHTTP(w, r)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if err := os.WriteFile(*url, []byte("http://"+listener.Addr().String()), 0o600); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case err := <-served:
		return err
	}
	server.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	if *ask != "" {
		fmt.Printf("%s | %s\n", *row, asks.told())
		return keep(*dump, up.Requests())
	}
	fmt.Printf("%s | %s\n", *row, m.row(up.Requests()))
	return keep(*dump, up.Requests())
}

// troubles come once each in the middle of the task.
var troubles = []proxytest.Answer{
	{Status: 429, Header: http.Header{"Retry-After": {"1"}}, Body: `{"type":"error","error":{"type":"rate_limit_error","message":"slow down","code":"rate_limit_exceeded"}}`},
	{Status: 500, Body: `{"type":"error","error":{"type":"api_error","message":"internal server error","code":"server_error"}}`},
	{Status: 529, Body: `{"type":"error","error":{"type":"overloaded_error","message":"overloaded","code":"server_is_overloaded"}}`},
	{Text: "broken", Reset: 40},
}

// part is what the agent's tool shows: 8 KB with one fact in it.
func part(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Part %d of the parts\n", n)
	for line := 0; b.Len() < 8<<10; line++ {
		fmt.Fprintf(&b, "%4d: func handle%d_%d(ctx context.Context, order Order) error { return queue.Push(ctx, %d, order.ID) }\n", line, n, line, n*31+line*7)
		if line == 20 {
			fmt.Fprintf(&b, "  21: // The code of part %d is %s.\n", n, fact(n))
		}
	}
	return b.String()
}

// fact cannot be guessed from the number without this line.
func fact(n int) string { return fmt.Sprintf("K%05d", (n*7919+4271)%100000) }
