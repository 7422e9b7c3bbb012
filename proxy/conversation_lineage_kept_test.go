package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// wanting is a model that looks up the codes of parts, where it can, and says which it found.
func wanting(parts ...int) func(*proxytest.Request) proxytest.Answer {
	return func(q *proxytest.Request) proxytest.Answer {
		var seen strings.Builder
		for i := range q.Prompt.Messages {
			for _, c := range q.Prompt.Messages[i].Calls() {
				seen.WriteString(c.Arguments)
			}
			if r, ok := q.Prompt.Messages[i].Result(); ok && r.Tool == recall.RecallTool {
				seen.WriteString(r.Text())
			}
		}
		found := []int{}
		for _, n := range parts {
			if strings.Contains(seen.String(), fmt.Sprintf("the code of part %d is K%05d", n, n*7919%100000)) {
				found = append(found, n)
				continue
			}
			query := fmt.Sprintf(`{"query":"\"the code of part %d is\""}`, n)
			if offered(q) && !strings.Contains(seen.String(), query) {
				return proxytest.Answer{Calls: []thread.ToolCall{{ID: fmt.Sprintf("ours_%d_%d", q.N, n), Name: recall.RecallTool, Arguments: query}}}
			}
		}
		return proxytest.Answer{Text: fmt.Sprint(found)}
	}
}

// compactions are the histories that clients without a session id go on with after their own compaction:
// of the history before, whose first message is the task, they keep the end.
var compactions = map[string]struct {
	apis []string
	begin,
	answer string
	task bool
}{
	"pi":    {apis: []string{wire.Anthropic, wire.Chat}, begin: "The conversation history before this point was compacted into the following summary:\n\n<summary>\nParts were read.\n</summary>"},
	"Cline": {apis: []string{wire.Anthropic, wire.Chat}, begin: "Summary of the work so far: parts were read.", task: true},
	"Qwen":  {apis: []string{wire.Chat}, begin: "<state_snapshot>\nParts were read.\n</state_snapshot>", answer: "Got it. Thanks for the additional context!"},
}

// shortened is the agent after its own compaction, which keeps so many of its last elements.
func (a *agent) shortened(begin, answer string, task bool, kept int) *agent {
	b := *a
	b.history = nil
	if task {
		b.history = append(b.history, a.history[0])
		if a.api == wire.Anthropic { // roles alternate
			b.history = append(b.history, `{"role":"assistant","content":[{"type":"text","text":"I begin."}]}`)
		}
	}
	b.user(begin)
	if answer != "" {
		b.history = append(b.history, fmt.Sprintf(`{"role":"assistant","content":%q}`, answer))
	}
	b.history = append(b.history, a.history[len(a.history)-kept:]...)
	return &b
}

// TestKeptCalls: a client that names no session and compacts by itself reaches what it took out by the
// calls that it kept, from the first request on, also after a restart and a second compaction.
func TestKeptCalls(t *testing.T) {
	for name, c := range compactions {
		for _, api := range c.apis {
			t.Run(name+" "+api, func(t *testing.T) {
				t.Parallel()
				up := strict(t)
				up.Model = wanting(0, 1, 2, 3, 4)
				kept := &store.Memory{}
				o := proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Log: kept, Plans: kept, Documents: kept}}}
				url, p := start(t, up, o)
				a := newAgent(t, api, url, false)
				a.large = true
				a.grow(0, 8)
				if s := a.peek(); s.text != "[]" || s.action() != proxy.Passed {
					t.Fatalf("%s: %q: %.300s", s.action(), s.text, s.raw)
				}
				first := a.shortened(c.begin, c.answer, c.task, 6)
				if s := first.peek(); s.text != "[0 1 2 3 4]" {
					t.Errorf("of the early parts %s were found: %s", s.text, s.action())
				}
				first.url, _ = start(t, up, o)
				first.grow(8, 1)
				if s := first.peek(); s.text != "[0 1 2 3 4]" {
					t.Errorf("after a restart %s were found", s.text)
				}
				if s := first.shortened(c.begin, c.answer, c.task, 4).peek(); s.text != "[0 1 2 3 4]" {
					t.Errorf("after a second compaction %s were found", s.text)
				}
				if p.Totals().Faults != 0 {
					t.Errorf("%+v", p.Totals())
				}
			})
		}
	}
}

// TestNotKept: what only looks alike is no conversation that goes on: another session of the same
// client, other instructions, another model, the same ids of calls, and a history that was changed and
// not shortened.
func TestNotKept(t *testing.T) {
	up := strict(t)
	up.Model = wanting(0, 1, 22)
	url, _ := start(t, up, smallWindow())
	begun := func(task string, from, n int, id string) *agent {
		a := newAgent(t, wire.Chat, url, false)
		a.user(task)
		for i := range n {
			c := thread.ToolCall{ID: fmt.Sprintf(id, i), Name: "read_file", Arguments: fmt.Sprintf(`{"path":"part_%03d.go"}`, from+i)}
			a.calls(c)
			a.results([]thread.ToolCall{c}, func(thread.ToolCall) string { return resultOf(from+i, 12<<10) })
		}
		return a
	}
	tell := func(what string, a *agent, want string) {
		t.Helper()
		if s := a.peek(); s.text != want {
			t.Errorf("%s: %s were found, want %s: %s", what, s.text, want, s.action())
		}
	}
	// Two at once, with a provider that counts calls anew in every conversation.
	one, two := begun("Read the first parts.", 0, 6, "functions.read_file:%d"), begun("Read other parts.", 22, 6, "functions.read_file:%d")
	tell("one", one, "[]")
	tell("two", two, "[]")
	const begin = "In short: parts were read."
	tell("the second of two", two.shortened(begin, "", false, 4), "[22]")
	tell("the first of two", one.shortened(begin, "", false, 4), "[0 1]")
	tell("one that begins alike", begun("Read some parts.", 0, 1, "functions.read_file:%d"), "[]")
	tell("one with the ids alone", begun("Read more parts.", 40, 4, "functions.read_file:%d"), "[]")

	mixed := begun("Read mixed parts.", 40, 4, "call_%d")
	mixed.history = append(mixed.history, one.history[5:7]...) // one call of five
	tell("one with a call that is the same", mixed, "[]")
	half := one.shortened("Read both.", "", false, 2)
	half.history = append(half.history, two.history[len(two.history)-4:len(two.history)-2]...)
	tell("half of each", half, "[]")

	other := one.shortened(begin+" Now with other instructions.", "", false, 4)
	other.system = "You are a reviewer."
	tell("other instructions", other, "[]")
	other = one.shortened(begin+" Now with another model.", "", false, 4)
	other.model = "another-model"
	tell("another model", other, "[]")
	other = one.shortened(begin+" Now with other tools.", "", false, 4)
	other.tools = []string{"read_file", "search"}
	tell("other tools", other, "[]")
	elsewhere, _ := start(t, up, smallWindow())
	other = one.shortened(begin+" Now with another tenant.", "", false, 4)
	other.url = elsewhere
	tell("another tenant", other, "[]")

	changed := begun("Write parts.", 60, 5, "call_%d")
	tell("before a change", changed, "[]")
	changed.history[0] = strings.Replace(changed.history[0], "Write parts.", "Write parts, please.", 1)
	tell("changed", changed, "[]")
	if s := changed.peek(); s.action() != proxy.Passed {
		t.Errorf("a history that was changed is sent as %s", s.action())
	}
}

// codex is an agent that names itself as Codex does over HTTP: its window ends when it compacts.
func codex(t *testing.T, url, session, thread string, window int) *agent {
	a := newAgent(t, wire.Responses, url, true)
	a.inWindow(session, thread, window)
	a.user("<environment_context>\n  <cwd>/home/ada/project</cwd>\n</environment_context>")
	return a
}

func (a *agent) inWindow(session, thread string, window int) {
	a.header = a.header.Clone()
	a.header.Set("Session-Id", session)
	a.header.Set("Thread-Id", thread)
	a.header.Set("X-Codex-Window-Id", fmt.Sprintf("%s:%d", thread, window))
	a.header.Set("X-Codex-Turn-Metadata", fmt.Sprintf(`{"session_id":%q,"thread_id":%q,"window_number":%d,"request_kind":"turn"}`, session, thread, window))
	a.native = fmt.Sprintf(`,"prompt_cache_key":%q`, thread)
}

// TestCodexWindows: what Codex compacts away over HTTP, by itself or by its provider, is found in its
// next windows, and not by a sub-agent or by another session.
func TestCodexWindows(t *testing.T) {
	for _, remote := range []bool{false, true} {
		t.Run(fmt.Sprintf("by the provider %t", remote), func(t *testing.T) {
			t.Parallel()
			up := strict(t)
			up.Model = compacting(wanting(0, 1, 2, 3, 4))
			url, p := start(t, up, smallWindow())
			a := codex(t, url, "s1", "s1", 0)
			a.grow(0, 6)
			a.peek()
			for n := 1; n < 3; n++ {
				words := retainedWords(a.history)
				if remote {
					words = append(words, a.triggered()[0].Raw)
				} else {
					aside := a.summarising()
					aside.header.Set("X-Codex-Turn-Metadata", strings.Replace(a.header.Get("X-Codex-Turn-Metadata"), `"turn"`, `"compaction"`, 1))
					if s := aside.peek(); s.header.Get(proxy.ReasonHeader) != "own-compaction" {
						t.Fatalf("%s: %.300s", s.action(), s.raw)
					}
				}
				a.history = words
				a.inWindow("s1", "s1", n)
				if !remote {
					a.user("Another language model started to solve this problem and produced a summary of its thinking process. Parts were read.")
				}
				a.grow(10*n, 3)
				if s := a.peek(); s.text != "[0 1 2 3 4]" {
					t.Errorf("in window %d %s were found: %s", n, s.text, s.action())
				}
				for name, b := range map[string]*agent{"a sub-agent": codex(t, url, "s1", fmt.Sprint("t", n), 0), "another session": codex(t, url, fmt.Sprint("s", n+1), fmt.Sprint("s", n+1), 1)} {
					b.user("Read some parts.")
					b.grow(20*n, 4)
					if s := b.peek(); s.text != "[]" {
						t.Errorf("%s found %s", name, s.text)
					}
				}
			}
			refusals(t, up)
			if p.Totals().Faults != 0 {
				t.Errorf("%+v", p.Totals())
			}
		})
	}
}
