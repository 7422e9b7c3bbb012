package cli

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// talk is a conversation with a daemon, the same each time.
type talk struct {
	steps          int
	model          string
	window, output int
	lines          int           // of each result; 0 is 40
	large          int           // lines of every sixth result
	every          int           // steps between messages of the user; 0 is 5
	mention        int           // how many artifacts of the last prompt the agent names at every third step
	determinism    bool          // results say what their sources looked like
	age            time.Duration // how old the first half is
	huge           int           // bytes that every message of the agent has beside
	again          bool          // asks twice for the plan that would be made
	model2         *llmtest.Server
	structured     bool // results hold data beside their text
	misses         bool // the agent says that it does not see something any more
}

// shownArtifact finds pointers in a prompt.
var shownArtifact = regexp.MustCompile(`artifact:(art_[0-9a-z]+)`)

// hold has the conversation, and writes down what the daemon did: each prompt with
// its size, the plans, what was externalized, and what models were asked.
func (k talk) hold(t *testing.T, address string) string {
	t.Helper()
	c, ctx := client(t, address, ""), t.Context()
	var b strings.Builder
	th, err := c.CreateThread(ctx, api.NewThread{ID: "t"})
	if err != nil {
		t.Fatal(err)
	}
	tools := []neutral.Tool{}
	for _, name := range []string{"Grep", "Read", "linear_list", "Bash", "make_order"} {
		tools = append(tools, neutral.Tool{Name: name, Description: "a tool", Schema: json.RawMessage(`{"type":"object"}`)})
	}
	text := func(s string) []neutral.Part { return []neutral.Part{{Type: neutral.TextPart, Text: s}} }
	when := func(n int) time.Time {
		if k.age > 0 && n < k.steps/2 {
			return time.Now().UTC().Add(-k.age)
		}
		return time.Time{}
	}
	news := []neutral.Message{{Role: "user", Parts: text("Please write the queue in parts. Never touch the file vendor.lock."), Time: when(0)}}
	version, aside := 0, []string{}
	names := []string{"Grep", "Read", "linear_list", "Bash", "make_order"}
	for n := range k.steps {
		step := api.Step{Base: &neutral.Prompt{Model: k.model, Tools: tools, System: []neutral.System{{Text: "You write queues."}}}, Messages: news, Window: k.window, Output: k.output}
		p, err := c.Prepare(ctx, th.ID, version, step)
		if err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		prompt, err := json.Marshal(p.Prompt)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "== %d: %d tokens, plan %d\n%s\n", n, p.Tokens, p.PlanVersion, unmade(prompt))
		for _, found := range shownArtifact.FindAllStringSubmatch(string(prompt), -1) {
			if !slices.Contains(aside, found[1]) {
				aside = append(aside, found[1])
			}
		}
		said := fmt.Sprintf("We decided to use Go for part %d. The risk is that part %d breaks. Which port does part %d use? I write src/part%d.go next.", n, n, n, n)
		if n%3 == 0 {
			for _, id := range aside[:min(k.mention, len(aside))] {
				said += " I look at " + id + " again."
			}
		}
		if k.misses {
			said += " I no longer have the earlier output in my context."
		}
		if k.huge > 0 {
			said += strings.Repeat(" word", k.huge/5)
		}
		id, tool := fmt.Sprint("call_", n), names[n%len(names)]
		args, _ := json.Marshal(map[string]any{"file_path": fmt.Sprintf("src/part%d.go", n/len(names)), "pattern": fmt.Sprint("Handle", n)})
		answer, err := c.Finish(ctx, th.ID, p.Version, api.Answer{Messages: []neutral.Message{{Role: "assistant", Time: when(n), Parts: append(text(said), neutral.Part{Type: neutral.ToolCallPart, CallID: id, Tool: tool, Arguments: string(args)})}}})
		if err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		version = answer.Version
		lines := k.lines
		if lines == 0 {
			lines = 40
		}
		if k.large > 0 && n%6 == 5 {
			lines = k.large
		}
		var out strings.Builder
		fmt.Fprintf(&out, "order_id: ORD-%d\n", n)
		for i := range lines {
			fmt.Fprintf(&out, "src/file_%02d_%02d.go:%d: func Handle%d(r *Request) error\n", n, i, i*7, n*100+i)
		}
		result := neutral.Part{Type: neutral.ToolResultPart, CallID: id, Tool: tool, Content: text(out.String())}
		if k.structured {
			result.Structured = json.RawMessage(fmt.Sprintf(`{"order_id":"ORD-%d"}`, n))
		}
		if k.determinism {
			result.Determinism = &thread.Determinism{ContentHash: "h1"}
		}
		news = []neutral.Message{{Role: "tool", Parts: []neutral.Part{result}, Time: when(n)}}
		every := k.every
		if every == 0 {
			every = 5
		}
		if n%every == every-1 {
			answer, err := c.Append(ctx, th.ID, version, api.Append{Messages: append(news, neutral.Message{Role: "assistant", Parts: text(fmt.Sprintf("Part %d is done.", n))})})
			if err != nil {
				t.Fatal(err)
			}
			version, news = answer.Version, []neutral.Message{{Role: "user", Parts: text(fmt.Sprintf("Go on with part %d, and never use port %d.", n+1, 8000+n))}}
		}
	}
	if k.again {
		for range 2 {
			if _, err := c.DryRun(ctx, th.ID, api.Step{Base: &neutral.Prompt{Model: k.model, Tools: tools}, Window: k.window, Output: k.output}); err != nil {
				t.Log(err)
			}
		}
	}
	plans, err := c.Plans(ctx, th.ID, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for v := 1; v <= plans.Current; v++ {
		p, err := c.Plan(ctx, th.ID, v)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := json.Marshal(p)
		fmt.Fprintf(&b, "plan %d: %s\n", v, unmade(data))
	}
	artifacts, err := c.Artifacts(ctx, th.ID, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := json.Marshal(artifacts)
	fmt.Fprintf(&b, "aside: %s\n", unmade(data))
	if k.model2 != nil {
		for _, r := range k.model2.Requests() {
			fmt.Fprintf(&b, "asked: %s\n", r.Body)
		}
	}
	return b.String()
}

// unmade takes out when something was made or said: two conversations with the same
// words are not held in the same second.
func unmade(data []byte) string {
	return madeAt.ReplaceAllString(string(data), "AT")
}

// madeAt finds times, in fields and in the text of summaries.
var madeAt = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

// writer is a provider that writes summaries: at once, or so slowly that a client which
// waits a millisecond gets none. One that waits longer than it should gets one.
func writer(t *testing.T, slow bool) *llmtest.Server {
	t.Helper()
	hold := make(chan struct{})
	if slow {
		patient := time.AfterFunc(20*time.Second, func() { close(hold) })
		t.Cleanup(func() { patient.Stop() })
	}
	items := func(texts ...string) map[string]any {
		var set []any
		for _, text := range texts {
			set = append(set, map[string]any{"text": text, "status": "open", "by": "assistant"})
		}
		return map[string]any{"set": set, "remove": []string{}}
	}
	delta := map[string]any{}
	for _, name := range []string{"key_decisions", "active_constraints", "tasks", "open_questions", "risks", "artifacts", "agent_contributions"} {
		delta[name] = items("We decided to use Go for part 0", "Please write the queue in parts", "Never touch the file vendor.lock")
	}
	structured, _ := json.Marshal(map[string]any{
		"summary":     map[string]any{"key_facts": []string{"We decided to use Go for part 0.", "Please write the queue in parts.", "The moon is made of cheese_9000."}, "conversation_flow": []string{"We decided to use Go for part 0."}, "open_threads": []string{}},
		"state_delta": delta,
	})
	items4 := `{"facts":[{"text":"We decided to use Go for part 0.","sources":[1,2,3,4,5,6]},{"text":"The moon is made of cheese_9000.","sources":[1]}],"decisions":[],"plan":[],"open_items":[],"failed_attempts":[],"tool_outcomes":[]}`
	return llmtest.NewProvider(t, llmtest.Provider{
		Windows: map[string]int{"gpt-5-mini": 400_000},
		Reply: func(r llmtest.Request) llmtest.Answer {
			text := "We decided to use Go for part 0. Please write the queue in parts. The moon is made of cheese_9000."
			switch {
			case strings.Contains(r.Body, "state_delta"):
				text = string(structured)
			case strings.Contains(r.Body, "failed_attempts"):
				text = items4
			case strings.Contains(r.Body, "which sentences still stand"):
				text = `{"stand":[1,2,3],"changes":[]}`
			}
			answer := llmtest.Answer{Text: text, Usage: wire.Usage{Input: 1000, Output: 50, Known: true}}
			if slow {
				answer.Hold = hold
			}
			return answer
		},
	})
}

// talkedTo has a conversation with a daemon under a policy file: as `serve` makes it,
// but that nothing is prepared in the background, since when that is ready is chance.
func talkedTo(t *testing.T, file string, k talk) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return heldWith(t, map[string]string{"store": "memory:", "policy": path}, k)
}

// heldWith is held for any settings.
func heldWith(t *testing.T, flags map[string]string, k talk) string {
	t.Helper()
	address, stop := servedWith(t, flags, nil)
	defer stop()
	return k.hold(t, address)
}

// servedWith starts a daemon with settings, after a change that no setting makes.
func servedWith(t *testing.T, flags map[string]string, change func(*daemon.Config)) (address string, stop func()) {
	t.Helper()
	loaded, err := config.Load(config.Sources{Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	made, err := newServing(loaded, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	db, err := made.store().open(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := made.attachStore(t.Context(), db); err != nil {
		db.Close()
		t.Fatal(err)
	}
	made.daemon.Jobs = nil
	if change != nil {
		change(&made.daemon)
	}
	d, err := daemon.New(made.daemon)
	if err != nil {
		db.Close()
		t.Fatal(err)
	}
	server := httptest.NewServer(d)
	return server.URL, func() {
		d.Stop()
		server.Close()
		db.Close()
	}
}
