package proxy_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// steersContext are options with the tools by which a model sees and steers its context.
func steersContext() proxy.Options {
	o := smallWindow()
	o.Config.Recall = &palimpsest.Recall{ContextTools: true, Rehydrate: recall.Rehydration{Disabled: true}}
	return o
}

// itemID is the id of a text of the model's on Responses.
var itemID = regexp.MustCompile(`"id":"msg_[0-9]+",`)

// TestContextTools: the tools stand in every request from the first on; a note that the model writes
// before the client's history is compacted, at its own wish, stands behind the summary; the client
// sees none of it, and the prefix breaks only with the compaction.
func TestContextTools(t *testing.T) {
	const fact = "The spare key hangs behind shelf 9."
	for _, api := range apis {
		for _, stream := range streams(t, api) {
			t.Run(fmt.Sprintf("%s, stream %t", api, stream), func(t *testing.T) {
				t.Parallel()
				up := strict(t)
				script := []struct{ tool, arguments, answered string }{
					{"context_note", `{"action":"write","text":"` + fact + `","cites":["turn 1"]}`, "Noted as n1. 1 note of 40."},
					{"context_note", `{"action":"write","text":"x","cites":["turn 77"]}`, "nothing here has the id"},
					{"context_status", `{}`, "next compaction: at "},
					{"compact_now", `{"keep_in_mind":"the key"}`, "before your next request"},
					{"compact_now", `{}`, "requests ago"},
				}
				at := 0
				up.Model = func(q *proxytest.Request) proxytest.Answer {
					if text, tools := last(q); at > 0 && slices.Contains(tools, script[at-1].tool) && !strings.Contains(text, script[at-1].answered) {
						t.Errorf("%s is answered: %s", script[at-1].tool, text)
					}
					if at == len(script) || len(up.Requests()) == 1 && q.N > 1 {
						return proxytest.Answer{Text: "ok"}
					}
					step := script[at]
					at++
					return proxytest.Answer{Text: "Let me see.", Calls: []thread.ToolCall{{ID: fmt.Sprintf("ours_%04d", q.N), Name: step.tool, Arguments: step.arguments}}}
				}
				url, p := start(t, up, steersContext())
				a := newAgent(t, api, url, stream)
				a.grow(0, 12)
				if s := a.ask(); s.status != 200 {
					t.Fatalf("status %d: %s", s.status, s.raw)
				}
				a.user("Go on.") // else the call that follows would be a part of the answer, on Responses
				a.grow(12, 1)
				a.ask()
				sent := up.Requests()
				if at != len(script) || p.Totals().Faults != 0 || p.Totals().Compactions != 1 {
					t.Fatalf("%d calls, %d requests, totals %+v", at, len(sent), p.Totals())
				}
				for _, q := range sent {
					names := map[string]bool{}
					for _, tool := range q.Prompt.Tools {
						names[tool.Name] = true
					}
					if !names["context_status"] || !names["context_note"] || !names["compact_now"] || !names[recall.RecallTool] || q.Refused != "" {
						t.Errorf("request %d offers %v: %s", q.N, names, q.Refused)
					}
				}
				before, after := string(sent[3].Body), string(sent[len(sent)-1].Body)
				if noted := "n1: " + fact + " [turn 1]"; strings.Contains(before, noted) || strings.Count(after, noted) != 1 {
					t.Errorf("the note stands %d times behind the summary: %.2000s", strings.Count(after, noted), after)
				}
				for _, element := range a.history {
					if strings.Contains(element, "context_") || strings.Contains(element, "compact_now") || strings.Contains(element, fact) {
						t.Errorf("the client was shown our tools: %.300s", element)
					}
				}
				for _, q := range sent { // items of rounds get their ids back from the client, and the model reads none
					q.Body = itemID.ReplaceAll(q.Body, nil)
				}
				prefixes(t, sent, 1)
			})
		}
	}
}

// TestContextToolsOff: without the setting, and where a client has a tool of such a name or none at all,
// nothing is offered and the client's own bytes are sent.
func TestContextToolsOff(t *testing.T) {
	for name, tt := range map[string]struct {
		options proxy.Options
		tools   []string
	}{
		"off":           {smallWindow(), []string{"read_file"}},
		"a client's":    {steersContext(), []string{"read_file", "compact_now"}},
		"without tools": {steersContext(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			up := strict(t)
			up.Model = func(*proxytest.Request) proxytest.Answer { return proxytest.Answer{Text: "ok"} }
			url, _ := start(t, up, tt.options)
			a := newAgent(t, wire.Chat, url, false)
			a.tools = tt.tools
			a.user("What hangs behind shelf 9?")
			want := string(a.body())
			if s, err := a.try(); err != nil || s.action() != proxy.Passed {
				t.Fatal(s.action(), err)
			}
			if got := string(up.Requests()[0].Body); got != want {
				t.Errorf("sent %s\nwant %s", got, want)
			}
		})
	}
}

// TestContextToolOfNobody: a call of a context tool that was not offered goes to the client, beside lookups as well.
func TestContextToolOfNobody(t *testing.T) {
	for _, api := range apis {
		up := strict(t)
		up.Model = steps(60, false)
		url, _ := start(t, up, smallWindow())
		a := newAgent(t, api, url, false)
		runTask(t, a, 60)
		up.Model = func(*proxytest.Request) proxytest.Answer {
			return proxytest.Answer{Calls: []thread.ToolCall{{ID: "n1", Name: "context_note", Arguments: `{"text":"x"}`}}}
		}
		a.user("Note it.")
		if s := a.ask(); s.action() == proxy.Passed || len(s.calls) != 1 || s.calls[0].Name != "context_note" {
			t.Errorf("%s, %s: %+v, %q", api, s.action(), s.calls, s.text)
		}
	}
}

// TestReminderKeepsThePrefix: over a long task the model is reminded before each compaction, once, and
// each request goes on where the last one ended, but for the compactions.
func TestReminderKeepsThePrefix(t *testing.T) {
	for _, api := range half(t) {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			up := strict(t)
			up.Model = steps(60, true)
			o := steersContext()
			o.Config.Recall.Reminder = true
			url, p := start(t, up, o)
			a := newAgent(t, api, url, true)
			a.think = api == wire.Anthropic
			runTask(t, a, 60)
			reminded, most := 0, 0
			for _, q := range up.Requests() {
				if q.Refused != "" {
					t.Errorf("request %d was refused: %.300s", q.N, q.Refused)
				}
				n := strings.Count(string(q.Body), "Reminder by the harness")
				most = max(most, n)
				if n > 0 {
					reminded++
				}
			}
			totals := p.Totals()
			if totals.Faults != 0 || totals.Compactions == 0 || reminded == 0 || most != 1 {
				t.Errorf("in %d requests, at most %d times: %+v", reminded, most, totals)
			}
			prefixes(t, up.Requests(), int(totals.Compactions))
		})
	}
}

// TestNotesOfABranch: a client that takes back its last words goes on in a branch, with the notes that
// the model has made in what stays.
func TestNotesOfABranch(t *testing.T) {
	for _, api := range half(t) {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			up := strict(t)
			calls := 0
			up.Model = func(q *proxytest.Request) proxytest.Answer {
				if calls++; calls == 1 {
					return proxytest.Answer{Calls: []thread.ToolCall{{ID: "ours_1", Name: "context_note", Arguments: `{"action":"write","text":"The spare key hangs behind shelf 9."}`}}}
				}
				return proxytest.Answer{Text: "ok"}
			}
			url, p := start(t, up, steersContext())
			a := newAgent(t, api, url, false)
			a.grow(0, 4)
			a.ask()
			kept := slices.Clone(a.history)
			a.user("Never mind.")
			a.ask()
			a.history = kept
			for n := 4; p.Totals().Compactions == 0 && n < 60; n += 4 {
				a.user("Go on with the parts.")
				a.grow(n, 4)
				a.ask()
			}
			sent := up.Requests()
			if last := sent[len(sent)-1]; last.Refused != "" || !strings.Contains(string(last.Body), "n1: The spare key hangs behind shelf 9.") {
				t.Errorf("%+v, %s: %.1500s", p.Totals(), last.Refused, last.Body)
			}
		})
	}
}
