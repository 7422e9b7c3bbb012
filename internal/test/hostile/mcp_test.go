//go:build unix

package hostile_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/hostile"
)

// calls are ordinary messages of an agent by the Model Context Protocol, in their
// order: what every agent says first, and a call of each tool. A tool that is not here
// fails the test. THREAD is a conversation, and LONG a long text.
var calls = []string{
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"agent","version":"1"}}}`,
	`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`,
	`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"recall","arguments":{"query":"LONG"}}}`,
	`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"read_artifact","arguments":{"artifact_id":"art_0123456789abcdef","session":"THREAD"}}}`,
	`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"sessions","arguments":{}}}`,
	`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"explain","arguments":{"session":"THREAD"}}}`,
	`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"compact","arguments":{"session":"THREAD","budget":3000}}}`,
	`{"jsonrpc":"2.0","id":8,"method":"resources/list","params":{}}`,
	`{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{"uri":"palimpsest://session/THREAD"}}`,
}

// ping is asked after each case, and pong is in its answer.
const (
	ping = `{"jsonrpc":"2.0","id":"after all of it","method":"ping"}`
	pong = `"after all of it"`
)

// said are the calls for a thread, with a query of about n bytes.
func saidOf(thread string, n int) []byte {
	text := strings.ReplaceAll(strings.Join(calls, "\n")+"\n", "THREAD", thread)
	query := rawjson.Quote(prose(n))
	return []byte(strings.ReplaceAll(text, "LONG", query[1:len(query)-1]))
}

// TestMCPOverStreams: whatever an agent writes to `palimpsest mcp`, a line at a time, what
// it asks next is answered, or the command ends and says why.
func TestMCPOverStreams(t *testing.T) {
	c := startChild(t)
	session, err := os.ReadFile("../../../testdata/sessions/import-csv.openai-chat.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, store := filepath.Join(dir, "session.json"), filepath.Join(dir, "store.db")
	if err := os.WriteFile(file, session, 0o600); err != nil {
		t.Fatal(err)
	}
	if d := c.do(t, order{Args: []string{"compact", file, "--budget", "6000", "--store", store, "-o", filepath.Join(dir, "out.json")}}); d.Status != 0 {
		t.Fatal(d.Said)
	}
	ask := func(data []byte) order {
		return order{Args: []string{"mcp", "--store", store}, In: data, After: ping, Answer: pong}
	}
	sample := saidOf("session", 100)
	// Answers come in any order, so the tools are asked for last.
	listing := ask([]byte(strings.Join(calls[:2], "\n")))
	listing.After, listing.Answer = calls[2], `"inputSchema"`
	d := c.do(t, listing)
	if !d.Answered {
		t.Fatalf("status %d: %s", d.Status, d.Said)
	}
	for _, name := range []string{"recall", "read_artifact", "sessions", "explain", "compact"} {
		if !strings.Contains(d.Text, `"name":"`+name+`"`) {
			t.Errorf("the tool %s is not offered: %.3000s", name, d.Text)
		}
	}
	if offered, listed := strings.Count(d.Text, `"inputSchema"`), bytes.Count(sample, []byte("tools/call")); offered != listed {
		t.Errorf("%d tools are offered, and %d are called here", offered, listed)
	}
	n, share := size()
	cases := inTurn(slices.Values(some(hostile.Whole(n), 1, share)), slices.Values(hostile.Broken(sample, n)), hostile.Changed(sample, n, 1, share/8+1))
	if corpus.Long() {
		cases = inTurn(slices.Values(hostile.Whole(2<<20)), slices.Values(hostile.Broken(sample, 2<<20)), hostile.Changed(sample, n, 1, max(1, share/16)))
	}
	trial(t, c, cases, sample, saidOf("session", n), ask, func(d done) bool { return d.Answered || d.Status != 0 && d.Said != "" })
}

// TestMCPOverHTTP: whatever is sent to /mcp of the daemon, it answers and goes on.
func TestMCPOverHTTP(t *testing.T) {
	s := serve(t, "--mcp", "write")
	post := func(body []byte, header map[string]string) (int, []byte) {
		all := map[string]string{"Accept": "application/json, text/event-stream"}
		maps.Copy(all, header)
		return s.send(t, request{"POST", "/mcp", all, body})
	}
	var said []string
	for range 12 {
		said = append(said, message("user", "Look at the next file."), message("assistant", prose(1500)))
	}
	for _, q := range []request{
		{"POST", api.Root, nil, []byte(`{"id":"thread"}`)},
		{"POST", api.Root + "/thread/messages", nil, []byte(`{"messages":[` + strings.Join(said, ",") + `]}`)},
	} {
		if status, answer := s.send(t, q); status/100 != 2 {
			t.Fatalf("%s: %d %s", q.path, status, answer)
		}
	}
	alive := func(after string) {
		t.Helper()
		if status, answer := post([]byte(ping), nil); status != 200 || !strings.Contains(string(answer), pong) {
			t.Fatalf("an ordinary one after %s: %d %.300s", after, status, answer)
		}
	}
	alive("nothing")
	n, share := size()
	all := &worst{}
	for i, call := range calls {
		sample := []byte(strings.NewReplacer("THREAD", "thread", "LONG", "handler parses line").Replace(call))
		ordinary := bytes.TrimSpace(longest(sample, rawjson.Quote(prose(n))))
		s.do(t, order{})
		if status, answer := post(ordinary, nil); status == 0 || status >= 500 {
			t.Fatalf("an ordinary one: %d %.300s", status, answer)
		}
		f := s.do(t, order{}).figures
		limit := ceiling{n, f.CPU, f.Peak}
		packed := some(hostile.Packed(sample, n/8), i, share)
		for k := range inTurn(slices.Values(some(hostile.Whole(n), i, share)), slices.Values(some(hostile.Broken(sample, n), i, share/2)), hostile.Changed(sample, n, i, share/4+1), slices.Values(packed)) {
			header := map[string]string{}
			if k.Encoding != "" {
				header["Content-Encoding"] = k.Encoding
			}
			status, answer := post(k.Data, header)
			f := s.do(t, order{}).figures
			all.see(k.Name, f)
			limit.holds(t, len(k.Data), f)
			if status == 0 || status >= 500 || status >= 400 && len(answer) > 3*len(k.Data)+4000 { // the SDK quotes the method
				t.Errorf("%d with %d bytes: %.300s", status, len(answer), answer)
			}
			if alive(k.Name); t.Failed() {
				t.Fatalf("%s: the last case", k.Name)
			}
		}
	}
	for _, value := range []string{"", "\xff\xfe", strings.Repeat("a", 9000), "9999-99-99"} {
		for _, name := range []string{"Mcp-Protocol-Version", "Mcp-Session-Id", "Accept", "Content-Type", "Last-Event-ID"} {
			if status, answer := post([]byte(ping), map[string]string{name: value}); status >= 500 {
				t.Errorf("%s: %.20q: %d %.300s", name, value, status, answer)
			}
			alive(name)
		}
	}
	t.Logf("%d cases, at most %v (%s) and %d MB (%s)", all.cases, all.cpu, all.slow, all.peak>>20, all.wide)
	f := s.do(t, order{}).figures
	s.http.CloseIdleConnections()
	if f.Goroutines > 200 || f.Files > 100 {
		t.Errorf("afterwards there are %d goroutines and %d open files", f.Goroutines, f.Files)
	}
}
