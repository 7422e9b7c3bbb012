package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/wire"
)

const askForSummary = "Plain text, please, and do not call any tools. Write a detailed summary of our conversation so far, so that somebody else can go on with the work."

// summarising is the agent when it has its own history summarised: as Claude Code
// does, with its tools and behind the results of the same message, or as Codex
// does, without tools and with a header that says so.
func (a *agent) summarising() *agent {
	b := *a
	b.history = append([]string(nil), a.history...)
	switch a.api {
	case wire.Anthropic:
		last := len(b.history) - 1
		b.history[last], _ = sjson.SetRaw(b.history[last], "content.-1", `{"type":"text","text":`+rawjson.Quote(askForSummary)+`}`)
	case wire.Responses:
		b.tools = nil
		b.header = a.header.Clone()
		b.header.Set("X-Codex-Turn-Metadata", `{"session_id":"s","request_kind":"compaction"}`)
		b.user("Write a handoff for another model.")
	default:
		b.user(askForSummary)
	}
	return &b
}

// TestOwnCompaction: a client that has its whole history summarised is sent on in
// a fork, made smaller where the conversation is; the conversation goes on as if
// nothing had been asked.
func TestOwnCompaction(t *testing.T) {
	for _, api := range half(t) {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			up := strict(t)
			memory := &store.Memory{}
			url, p := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Log: memory, Plans: memory}}})
			a := newAgent(t, api, url, false)

			// Where it fits and nothing was removed it passes, and nothing is kept.
			a.grow(0, 4)
			a.peek()
			s := a.summarising()
			before := len(up.Requests())
			if got := s.peek(); got.status != 200 || got.action() != proxy.Passed || got.header.Get(proxy.ReasonHeader) != "own-compaction" {
				t.Errorf("status %d, %q, %q", got.status, got.action(), got.header.Get(proxy.ReasonHeader))
			}
			if !bytes.Equal(up.Requests()[before].Body, s.body()) {
				t.Error("the body changed")
			}

			// Under a plan.
			a.grow(4, 30)
			main := a.peek()
			if main.status != 200 || main.action() != proxy.Compacted {
				t.Fatalf("status %d, %q", main.status, main.action())
			}
			s = a.summarising()
			first, again := s.peek(), s.peek()
			if first.status != 200 || first.action() == proxy.Passed || first.thread() == main.thread() || again.thread() != first.thread() {
				t.Errorf("status %d, %q, %q of %q, then %q", first.status, first.action(), first.thread(), main.thread(), again.thread())
			}
			q := up.Requests()[len(up.Requests())-2]
			if text := q.Prompt.Messages[len(q.Prompt.Messages)-1].Text(); !strings.HasSuffix(text, "for another model.") && !strings.HasSuffix(text, "go on with the work.") {
				t.Errorf("the request ends with %q", text)
			}

			// With its last turns left out, so that it fits.
			short := *a
			short.history = a.history[:len(a.history)-8]
			if got := short.summarising().peek(); got.status != 200 || got.action() == proxy.Passed || got.thread() == main.thread() {
				t.Errorf("status %d, %q, %q", got.status, got.action(), got.thread())
			}

			a.grow(34, 1)
			if next := a.peek(); next.status != 200 || next.thread() != main.thread() || next.action() != proxy.Planned {
				t.Errorf("the next step is %q, %q after %q", next.thread(), next.action(), main.thread())
			}
			log, err := memory.Load(context.Background(), main.thread())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range log.All() {
				if strings.Contains(m.Text(), "summary of our") || strings.Contains(m.Text(), "for another model") {
					t.Errorf("the log of the conversation holds the question: %.200q", m.Text())
				}
			}
			refused(t, up.Requests())
			if totals := p.Totals(); totals.Faults != 0 || totals.Recovered != 0 {
				t.Errorf("totals: %+v", totals)
			}
		})
	}
}

// TestOwnCompactionUnknown: a history over the window that nobody here has seen
// before is made smaller all the same: at once, or, where the window is not known,
// when the provider refuses it.
func TestOwnCompactionUnknown(t *testing.T) {
	for _, api := range half(t) {
		for _, size := range []int{window, 0} {
			up := strict(t)
			url, p := start(t, up, proxy.Options{Window: size, Config: palimpsest.Config{Counter: counter()}})
			a := newAgent(t, api, url, false)
			a.grow(0, 34)
			s := a.summarising().peek()
			if want := map[int]string{window: proxy.Compacted, 0: proxy.Recovered}[size]; s.status != 200 || s.action() != want {
				t.Errorf("%s, window %d: status %d, %q, want %q: %.300s", api, size, s.status, s.action(), want, s.raw)
			}
			if totals := p.Totals(); totals.Faults != 0 {
				t.Errorf("totals: %+v", totals)
			}
		}
	}
}

func refused(t testing.TB, requests []*proxytest.Request) {
	t.Helper()
	for _, q := range requests {
		if q.Refused != "" {
			t.Errorf("request %d was refused: %.300s", q.N, q.Refused)
		}
	}
}

// TestOwnCompactionSamples: which of the real clients' requests are recognised.
func TestOwnCompactionSamples(t *testing.T) {
	up := proxytest.New(t)
	url, _ := start(t, up, proxy.Options{Window: 200_000, Config: palimpsest.Config{Counter: counter()}})
	dir := corpus.Dir(t, "wire-samples")
	seen := 0
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".json" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var sample struct {
			Method, Path string
			Headers      map[string]string
			Body         json.RawMessage
		}
		if json.Unmarshal(raw, &sample) != nil || !gjson.ParseBytes(sample.Body).IsObject() || strings.Contains(sample.Path, "count_tokens") {
			return nil
		}
		r := request(t, url+sample.Path, sample.Body)
		for name, value := range sample.Headers {
			r.Header.Set(name, value)
		}
		r.Header.Set(proxy.ThreadHeader, "sample-"+strings.ReplaceAll(filepath.Base(path), ".", "-")) // so that none is too small to be looked at
		r.Header.Del("Accept-Encoding")
		res, err := plainly.RoundTrip(r)
		if err != nil {
			return err
		}
		res.Body.Close()
		seen++
		rel, _ := filepath.Rel(dir, path)
		want := rel == "claude-code/own-compaction-request.json" || rel == "codex/own-compaction-request.json" &&
			strings.Contains(sample.Headers["x-codex-turn-metadata"], `"request_kind":"compaction"`)
		if got := res.Header.Get(proxy.ReasonHeader) == "own-compaction"; got != want {
			t.Errorf("%s: recognised %t, reason %q", rel, got, res.Header.Get(proxy.ReasonHeader))
		}
		return nil
	})
	if err != nil || seen < 20 {
		t.Errorf("%d samples: %v", seen, err)
	}
}
