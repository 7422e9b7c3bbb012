package recall_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// worked is a log of a few turns with a call of a program and an edit.
func worked(t *testing.T) *recall.Index {
	t.Helper()
	text := func(role thread.Role, turn int, text string) thread.Message {
		return thread.Message{Role: role, Time: time.Date(2026, time.March, turn, 9, 0, 0, 0, time.UTC), Parts: []thread.Part{thread.Text{Text: text}}}
	}
	call := func(id, tool, arguments string) thread.Message {
		return thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: tool, Arguments: arguments}}}
	}
	result := func(id, tool, text string) thread.Message {
		return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: tool, Content: []thread.Part{thread.Text{Text: text}}}}}
	}
	log, err := thread.New("t").Append(
		text(thread.User, 1, "The retries must stop after five."),
		call("a", "Bash", `{"command":"pytest -q tests"}`),
		result("a", "Bash", "2 failed: retries never stop"),
		call("b", "Edit", `{"path":"queue/client.go","new":"retries = 5"}`),
		result("b", "Edit", "updated"),
		text(thread.Assistant, 1, "The retries stop now. Shall I deploy it to staging?"),
		text(thread.User, 2, "Yes, with the usual label."),
		text(thread.Assistant, 2, "Deployed; retries are watched there."),
		text(thread.User, 3, "And the deployment to production?"),
	)
	if err != nil {
		t.Fatal(err)
	}
	entries := recall.All(log)
	for i := range entries { // numbers tell more than ids here
		entries[i].MessageID = thread.ID(fmt.Sprint(entries[i].Position))
	}
	return recall.NewIndex(entries)
}

// TestFilters: words of a query exclude messages, or make some more likely, or are words where they say
// no filter.
func TestFilters(t *testing.T) {
	x := worked(t)
	for query, want := range map[string]string{
		"retries from:user":                   "0",
		"retries FROM:User turn:1-2":          "0",
		"retries from:nobody":                 "0 2 3 4 5 7", // no role
		"retries tool:pytest":                 "2",
		"retries tool:bash":                   "2",
		"retries tool:Edit":                   "3 4",
		"file:client.go":                      "4 3",
		"turn:2":                              "7 6",
		"turn:x":                              "",
		"retries on:2026-03-02":               "7",
		"retries before:2026-03-02 from:user": "0",
		"stop after:2026-03-01":               "",
		"deploy*":                             "5 7 8",
		"productio*":                          "8",
		`"retries stop"`:                      "5",
		"./*":                                 "", // no beginning of a word
		"../*":                                "",
		"*** failed":                          "2",
		"./deploy*":                           "5 7 8",
		"stagingturn:1 turn:1":                "", // the first is a word, and stays whole
	} {
		var got []string
		for _, h := range x.Search(query, nil) {
			got = append(got, string(h.MessageID))
		}
		sorted := func(of []string) string { slices.Sort(of); return strings.Join(of, " ") }
		if want, first := strings.Fields(want), slices.Clone(got); strings.HasPrefix(query, `"`) && got[0] != want[0] ||
			!strings.HasPrefix(query, `"`) && sorted(first) != sorted(want) {
			t.Errorf("%q: got %v, want %v", query, got, want)
		}
	}
	for query, first := range map[string]thread.Role{
		"what did I say about the retries":   thread.User,
		"retries in the output of pytest":    thread.Tool,
		"what did you tell me about retries": thread.Assistant,
	} {
		if hits := x.Search(query, nil); len(hits) < 3 || hits[0].Role != first {
			t.Errorf("%q: %+v, want %s first of several", query, hits, first)
		}
	}
}

// TestMissing: what no message contains is told, and what only looks so is not.
func TestMissing(t *testing.T) {
	x := worked(t)
	for query, want := range map[string]string{
		"retries of the zeppelin":       "zeppelin",
		"please tell me of the retries": "",
		"retrying":                      "", // another form
		"retri":                         "", // the beginning of a word
		"etries":                        "", // a part of one
		"client.go":                     "",
		"queue/server.go":               "queue/server.go",
		"retries 50":                    "50",
		"label from:assistant retries":  "label",
		`"retries never stop" retries`:  "",
		`"never stop retries" retries`:  `"never stop retries"`,
		`"retries never stop"`:          "",
		`"never stop retries"`:          `"never stop retries"`,
		"retries undeploy*":             "undeploy*",
		"What is retries":               "",
	} {
		hits := x.Search(query, nil)
		if len(hits) == 0 {
			t.Errorf("%q: nothing", query)
			continue
		}
		if got := strings.Join(hits[0].Missing, ", "); got != want {
			t.Errorf("%q: %q is missing, want %q", query, got, want)
		}
	}
}

// TestNeighbors: a hit has the messages beside it, once, where they are no hits themselves; the call of a
// result is told by the hit, and what does not fit is left out.
func TestNeighbors(t *testing.T) {
	x := worked(t)
	hits := x.Search("label", nil)
	if len(hits) != 1 {
		t.Fatalf("%+v", hits)
	}
	h := hits[0]
	if h.Before == nil || h.Before.Text != "The retries stop now. Shall I deploy it to staging?" {
		t.Errorf("before: %+v", h.Before)
	}
	if h.After == nil || h.After.Role != thread.Assistant || h.After.Text != "Deployed; retries are watched there." {
		t.Errorf("after: %+v", h.After)
	}
	if h := x.Search("failed", nil)[0]; h.MessageID != "2" || h.Before == nil || h.Before.MessageID != "0" || h.After == nil || !strings.HasPrefix(h.After.Text, "The retries stop now.") {
		t.Errorf("of a result: %+v", h)
	}
	if h := x.Search("production", nil)[0]; h.Before == nil || h.Before.MessageID != "7" || h.After != nil {
		t.Errorf("of the last: %+v", h)
	}
	if h := x.Search("production", &recall.Options{Tokens: 20})[0]; h.Before != nil {
		t.Errorf("in 20 tokens: %+v", h)
	}
}

// TestAuthors: what a program or a compaction wrote in the user's name is neither the user's nor beside a hit,
// and a hit tells who wrote it.
func TestAuthors(t *testing.T) {
	say := func(kind thread.Kind, text string) thread.Message {
		return thread.Message{Role: thread.User, Kind: kind, Parts: []thread.Part{thread.Text{Text: text}}}
	}
	log, err := thread.New("t").Append(
		say(thread.Plain, "The lint of the person"),
		say(thread.Injected, "<local-command-stdout>lint lint lint</local-command-stdout>"),
		say(thread.Recap, "This session continues one about the lint."),
		say(thread.Plain, "Now the zeppelin."),
	)
	if err != nil {
		t.Fatal(err)
	}
	entries := recall.All(log)
	x := recall.NewIndex(entries)
	for query, want := range map[string][]thread.Author{
		"lint":                          {thread.ByHarness, thread.ByCompaction, ""},
		"lint from:user":                {""},
		"what did I say about the lint": {"", thread.ByHarness, thread.ByCompaction},
	} {
		var got []thread.Author
		for _, h := range x.Search(query, nil) {
			got = append(got, h.Author)
		}
		if first := strings.HasPrefix(query, "what"); first && got[0] != want[0] || !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
	if h := x.Search("zeppelin", nil)[0]; h.Before == nil || h.Before.MessageID != entries[0].MessageID {
		t.Errorf("before: %+v", h.Before)
	}
}
