package proxy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// compactedAgent is an agent that has read n parts and compacted.
func compactedAgent(t *testing.T, url string, n int) *agent {
	a := newAgent(t, wire.Responses, url, false)
	a.user("Read all parts. My name is Ada.")
	for range n {
		a.results(a.ask().calls, partOf)
	}
	items := a.triggered()
	a.history = append(retainedWords(a.history), items[0].Raw)
	return a
}

// TestForgedCompaction: an item that looks like ours and is not is refused with
// the provider's own code, whether compaction is emulated or not.
func TestForgedCompaction(t *testing.T) {
	up := plainUpstream(t)
	up.Model = steps(20, false)
	o := proxy.Options{Window: window, Emulate: []string{"openai"}, Config: palimpsest.Config{Counter: counter()}}
	url, _ := start(t, up, o)
	a := compactedAgent(t, url, 3)
	last := len(a.history) - 1
	good := a.history[last]
	other, _ := start(t, up, smallWindow())
	for name, c := range map[string]struct{ url, item string }{
		"changed":       {url, strings.Replace(good, "palimpsest.c1.", "palimpsest.c1.AA", 1)},
		"another proxy": {other, good},
	} {
		up.Forget()
		a.url, a.history[last] = c.url, c.item
		s, err := a.try()
		if err != nil {
			t.Fatal(err)
		}
		if e := gjson.GetBytes(s.raw, "error"); s.status != 400 || e.Get("code").Str != "invalid_encrypted_content" || e.Get("type").Str != "invalid_request_error" {
			t.Errorf("%s: %d %s", name, s.status, s.raw)
		}
		if len(up.Requests()) > 0 {
			t.Errorf("%s: the upstream was asked", name)
		}
	}
	a.url, a.history[last] = url, good
	if s := a.ask(); s.status != 200 {
		t.Errorf("%d %s", s.status, s.raw)
	}
}

// TestForeignCompaction: the provider's own items pass untouched, and what is
// ours before them does not go out.
func TestForeignCompaction(t *testing.T) {
	up := strict(t)
	up.Model = steps(20, false)
	url, p := start(t, up, proxy.Options{Window: window, Emulate: []string{"openai"}, Config: palimpsest.Config{Counter: counter()}})
	a := compactedAgent(t, url, 3)
	const foreign = `{"type":"compaction","id":"cmp_9","encrypted_content":"gAAAAfromtheprovider=="}`
	a.history = append(a.history, foreign, `{"role":"user","content":"Go on."}`)
	up.Forget()
	a.ask()
	body := string(up.Requests()[0].Body)
	if !strings.Contains(body, foreign) || strings.Contains(body, "palimpsest.c1.") || strings.Contains(body, "part_001.go") {
		t.Errorf("the upstream got %s", body)
	}
	b := newAgent(t, wire.Responses, url, false)
	b.history = []string{foreign, `{"role":"user","content":"Go on."}`}
	up.Forget()
	want := string(b.body())
	b.ask()
	if body := string(up.Requests()[0].Body); body != want {
		t.Errorf("the upstream got %s\nwant %s", body, want)
	}
	if p.Totals().Faults != 0 {
		t.Errorf("%+v", p.Totals())
	}
}

// TestNativeOff: without emulation all of it passes to a provider that can, and
// what was made here before is still understood.
func TestNativeOff(t *testing.T) {
	up := strict(t)
	up.Model = steps(20, false)
	kept := &store.Memory{}
	o := proxy.Options{Window: window, Emulate: []string{"openai"}, Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Log: kept, Plans: kept, Documents: kept}}}
	url, _ := start(t, up, o)
	a := compactedAgent(t, url, 5)
	o.Emulate = nil
	a.url, _ = start(t, up, o)
	up.Forget()
	a.native = `,"context_management":[{"type":"compaction","compact_threshold":40000}]`
	a.ask()
	body := string(up.Requests()[0].Body)
	if strings.Contains(body, "palimpsest.c1.") || !strings.Contains(body, a.native) || !strings.Contains(body, "part_004.go") || !strings.Contains(body, "My name is Ada.") {
		t.Errorf("the upstream got %.600s", body)
	}
	for _, c := range []struct{ path, body string }{
		{"/v1/responses/compact", `{"model":"m","input":"x"}`},
		{"/v1/responses", `{"model":"m","store":false,"input":[{"role":"user","content":"x"},{"type":"compaction_trigger"}]}`},
	} {
		up.Forget()
		posted(t, a.url+c.path, c.body)
		if got := string(up.Requests()[0].Body); got != c.body {
			t.Errorf("%s: the upstream got %s", c.path, got)
		}
	}
}

// TestLostLog: where the log is gone, its compaction is told in words, and never
// goes to the provider as it is.
func TestLostLog(t *testing.T) {
	up := plainUpstream(t)
	up.Model = steps(20, false)
	o := proxy.Options{Window: window, Secret: []byte("a secret of this test"), Emulate: []string{"openai"}, Config: palimpsest.Config{Counter: counter()}}
	url, _ := start(t, up, o)
	a := compactedAgent(t, url, 6)
	var p *proxy.Proxy
	a.url, p = start(t, up, o) // with a memory of its own
	up.Forget()
	for range 3 {
		s := a.ask()
		a.results(s.calls, partOf)
	}
	items := a.triggered() // and goes on from there
	a.history = append(retainedWords(a.history), items[0].Raw)
	a.ask()
	refusals(t, up)
	for _, q := range up.Requests() {
		if body := string(q.Body); strings.Contains(body, "palimpsest.c1.") || !strings.Contains(body, "My name is Ada.") || !strings.Contains(body, "part_00") {
			t.Errorf("the upstream got %.600s", body)
		}
	}
	if p.Totals().Faults != 0 {
		t.Errorf("%+v", p.Totals())
	}
}

// TestDroppedInstructions: a client may drop all that stands before a compaction;
// the developer's messages there still hold.
func TestDroppedInstructions(t *testing.T) {
	up := plainUpstream(t)
	up.Model = steps(20, false)
	url, _ := start(t, up, proxy.Options{Window: window, Emulate: []string{"openai"}, Config: palimpsest.Config{Counter: counter()}})
	a := newAgent(t, wire.Responses, url, false)
	a.history = []string{`{"role":"developer","content":"Never touch main."}`}
	a.user("Read all parts.")
	for range 4 {
		a.results(a.ask().calls, partOf)
	}
	a.history = []string{a.triggered()[0].Raw}
	up.Forget()
	a.ask()
	input := gjson.GetBytes(up.Requests()[0].Body, "input").Array()
	if input[0].Get("role").Str != "developer" || input[0].Get("content").Str != "Never touch main." || input[1].Get("content").Str != render.Tools.Note() || input[2].Get("content.0.text").Str != "Read all parts." {
		t.Errorf("the upstream got %.300s %.300s %.300s", input[0].Raw, input[1].Raw, input[2].Raw)
	}
	refusals(t, up)
}

// TestCompactionFaults: a store that fails costs a client nothing but the better
// compaction: a trigger is answered with one in words, and anything else goes out
// without what the provider does not know.
func TestCompactionFaults(t *testing.T) {
	for _, at := range []string{"load", "append", "current", "commit"} {
		for name, harm := range map[string]func(context.Context) error{
			"fails":  func(context.Context) error { return errDisk },
			"panics": func(context.Context) error { panic("on purpose") },
			"hangs":  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		} {
			t.Run(at+" "+name, func(t *testing.T) {
				t.Parallel()
				up := plainUpstream(t)
				up.Window = 0
				up.Model = steps(20, false)
				f := &faulty{at: at, harm: harm}
				url, p := start(t, up, proxy.Options{
					Window: window, Secret: []byte("a secret of this test"), Emulate: []string{"openai"}, Deadline: 300 * time.Millisecond,
					Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Log: f, Plans: f}},
				})
				a := newAgent(t, wire.Responses, url, false)
				a.user("Read all parts. My name is Ada.")
				for n := range 4 {
					a.history = append(a.history, fmt.Sprintf(`{"type":"function_call","call_id":"c%d","name":"read_file","arguments":"{}"}`, n),
						fmt.Sprintf(`{"type":"function_call_output","call_id":"c%d","output":%s}`, n, rawjson.Quote(result(n))))
				}
				items := a.triggered()
				if len(items) != 1 || items[0].Get("type").Str != "compaction" {
					t.Fatalf("%v", items)
				}
				a.history = append(retainedWords(a.history), items[0].Raw)
				a.native = `,"context_management":[{"type":"compaction","compact_threshold":1000}]`
				if s := a.ask(); s.status != 200 {
					t.Errorf("%d %s", s.status, s.raw)
				}
				refusals(t, up)
				body := string(up.Requests()[0].Body)
				if strings.Contains(body, "palimpsest.c1.") || !strings.Contains(body, "My name is Ada.") || !strings.Contains(body, "part_00") {
					t.Errorf("the upstream got %.600s", body)
				}
				if p.Totals().Faults == 0 {
					t.Error("nobody was told")
				}
			})
		}
	}
}

// TestCompactRefusals: what cannot be compacted is refused in the provider's form,
// and the provider is not asked.
func TestCompactRefusals(t *testing.T) {
	up := plainUpstream(t)
	url, _ := start(t, up, proxy.Options{Window: window, Emulate: []string{"openai"}, Config: palimpsest.Config{Counter: counter()}})
	for body, want := range map[string]string{
		`{"model":"m"}`:            "input",
		`{"model":"m","input":[]}`: "input",
		`{"model":"m","input":"x","conversation":"conv_1"}`:                                            "conversation",
		`{"model":"m","input":"x","previous_response_id":"resp_unknown"}`:                              "previous_response_id",
		`{"model":"m","input":"x","context_management":[{"type":"compaction","compact_threshold":1}]}`: "context_management[0].compact_threshold",
	} {
		status, header, answer := posted(t, url+"/v1/responses/compact", body)
		if e := gjson.Get(answer, "error"); status != 400 || e.Get("param").Str != want || e.Get("type").Str != "invalid_request_error" || header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	if n := len(up.Requests()); n > 0 {
		t.Errorf("%d requests went out", n)
	}
}
