package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/corpus"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/proxy/proxytest"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

var codecs = map[string]wire.Codec{wire.Anthropic: anthropic.Codec{}, wire.Chat: openai.Chat{}, wire.Responses: openai.Responses{}, wire.Gemini: gemini.Codec{}}

// recording is a real session as a client of one API would have sent it.
type recording struct {
	name  string
	base  *prompt.Prompt
	whole []thread.Message
	at    []int // before which messages the model was asked
}

// record makes the requests of a transcript for an API.
func record(t testing.TB, file, api string) []recording {
	t.Helper()
	f, err := transcript.Open(filepath.Join(corpus.Dir(t, "transcripts"), file), nil)
	if err != nil {
		t.Fatal(err)
	}
	var list []recording
	for _, tr := range f.Transcripts {
		base := &prompt.Prompt{Model: "test-model", System: tr.System, Tools: tr.Tools, MaxOutput: 4000}
		if len(base.System) == 0 {
			base.System = []prompt.System{{Text: "You are a coding agent.", Role: "system"}}
		}
		if len(base.Tools) == 0 {
			base.Tools = toolsOf(tr.Thread)
		}
		legal, _, err := render.Render(tr.Thread, nil, base, &render.Options{Profile: render.For(api)})
		if err != nil {
			t.Fatal(err)
		}
		r := recording{name: filepath.Base(file), base: base, whole: legal.Messages}
		for i, m := range r.whole {
			if i > 0 && m.Role == thread.Assistant && r.whole[i-1].Role != thread.Assistant {
				r.at = append(r.at, i)
			}
		}
		list = append(list, r)
	}
	return list
}

// toolsOf declares the tools that a session called, where it does not say.
func toolsOf(th *thread.Thread) []prompt.Tool {
	seen := map[string]bool{}
	var tools []prompt.Tool
	for _, m := range th.All() {
		for _, c := range m.Calls() {
			if !seen[c.Name] {
				seen[c.Name] = true
				tools = append(tools, prompt.Tool{Name: c.Name, Description: "A tool.", Schema: `{"type":"object"}`})
			}
		}
	}
	return tools
}

func (r *recording) body(t testing.TB, api string, n int) []byte {
	t.Helper()
	p := *r.base
	p.Messages = r.whole[:n]
	if api == wire.Gemini {
		p.Model = ""
	}
	body, err := codecs[api].Encode(&p)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

var paths = map[string]string{
	wire.Anthropic: "/v1/messages", wire.Chat: "/v1/chat/completions", wire.Responses: "/v1/responses", wire.Gemini: "/v1beta/models/test-model:generateContent",
}

// replay sends every step of a session and returns what arrived upstream.
func (r *recording) replay(t testing.TB, api string, size int, o proxy.Options, restart int) ([]*proxytest.Request, proxy.Totals) {
	t.Helper()
	up := strict(t)
	up.Window, up.BindThinking = size, false
	o.Window, o.Config.Counter = size, counter()
	url, p := start(t, up, o)
	var totals proxy.Totals
	for i, n := range r.at {
		if restart > 0 && i%restart == restart-1 {
			totals.Compactions += p.Totals().Compactions
			url, p = start(t, up, o)
		}
		res, err := plainly.RoundTrip(request(t, url+paths[api], r.body(t, api, n)))
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 200 {
			t.Fatalf("step %d of %d: status %d: %.300s", i, len(r.at), res.StatusCode, said)
		}
	}
	now := p.Totals()
	now.Compactions += totals.Compactions
	return up.Requests(), now
}

func request(t testing.TB, url string, body []byte) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return r
}

// TestReplay: real sessions, step by step. No request is refused, none is over
// the window, the prefix holds between compactions, and a proxy that is started
// anew every few steps over the same store sends the same.
func TestReplay(t *testing.T) {
	for _, c := range []struct {
		file, api string
		size      int
	}{
		{"pi-mono/before-compaction.jsonl.gz", wire.Anthropic, 32_000},
		{"entire-cli/long-63bd3f9b02f2-0.jsonl.gz", wire.Responses, 64_000},
		{"entire-cli/long-63bd3f9b02f2-0.jsonl.gz", wire.Gemini, 32_000},
		{"vscode-copilot-chat/*", wire.Chat, 32_000},
	} {
		t.Run(fmt.Sprintf("%s, %s, %d", filepath.Dir(c.file), c.api, c.size), func(t *testing.T) {
			t.Parallel()
			replayFile(t, c.file, c.api, c.size, 60)
		})
	}
}

// TestReplayAll is TestReplay with every long session, at every window, for every
// API. It takes an hour, and so runs only where it is asked for.
func TestReplayAll(t *testing.T) {
	if os.Getenv("PALIMPSEST_TEST_REPLAY") != "all" {
		t.Skip("an hour long: set PALIMPSEST_TEST_REPLAY=all")
	}
	for _, size := range []int{32_000, 64_000, 128_000} {
		for _, api := range apis {
			for _, pattern := range []string{"pi-mono/*", "entire-cli/long-*", "vscode-copilot-chat/*"} {
				t.Run(fmt.Sprintf("%s, %s, %d", filepath.Dir(pattern), api, size), func(t *testing.T) { replayFile(t, pattern, api, size, 1<<20) })
			}
		}
	}
}

// replayFile replays the sessions of a file, each up to so many steps.
func replayFile(t *testing.T, pattern, api string, size, steps int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t, "transcripts"), pattern))
	if err != nil || len(files) == 0 {
		t.Fatal("no file is called ", pattern)
	}
	for _, file := range files {
		rel, _ := filepath.Rel(corpus.Dir(t, "transcripts"), file)
		if filepath.Base(rel) == "LICENSE" {
			continue
		}
		for _, r := range record(t, rel, api) {
			r.at = r.at[:min(steps, len(r.at))]
			requests, totals := r.replay(t, api, size, proxy.Options{}, 0)
			for _, q := range requests {
				if q.Refused != "" {
					t.Errorf("request %d was refused: %.300s", q.N, q.Refused)
				}
				if m := q.Prompt.Messages; m[len(m)-1].Role == thread.Assistant {
					t.Errorf("request %d ends with the model's own turn", q.N)
				}
			}
			if totals.Faults != 0 || totals.Recovered != 0 {
				t.Errorf("totals: %+v", totals)
			}
			var client []*proxytest.Request
			for _, n := range r.at {
				client = append(client, &proxytest.Request{API: api, Body: r.body(t, api, n)})
			}
			own, _ := breaks(client) // contents of one role are merged, so that the last one may grow
			kept := prefixes(t, requests, int(totals.Compactions)+len(own))
			t.Logf("%s: %d steps, %d compactions, %.1f %% of what was sent had been sent before", r.name, len(r.at), totals.Compactions, 100*kept)

			memory := &store.Memory{}
			again, _ := r.replay(t, api, size, proxy.Options{Config: palimpsest.Config{Log: memory, Plans: memory}}, 40)
			if !slices.EqualFunc(requests, again, func(a, b *proxytest.Request) bool { return bytes.Equal(a.Body, b.Body) }) {
				t.Error("a proxy that is started anew sends something else")
			}
		}
	}
}
