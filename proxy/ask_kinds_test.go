package proxy_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestOutputRefusalPasses: an answer that fills the window is refused whatever the input is: the
// client gets that refusal as it is, after one request, and nothing is compacted. G5
func TestOutputRefusalPasses(t *testing.T) {
	up := proxytest.New(t)
	const body = `{"error":{"message":"This endpoint's maximum context length is 65536 tokens. However, you requested about 70000 tokens (4464 of text input, 65536 in the output). Please reduce the length of either one.","code":400}}`
	full := true
	up.Model = func(*proxytest.Request) proxytest.Answer {
		if full {
			return proxytest.Answer{Status: 400, Body: body}
		}
		return proxytest.Answer{Text: "well"}
	}
	url, p := start(t, up, proxy.Options{Config: palimpsest.Config{Counter: counter()}})
	a := newAgent(t, wire.Chat, url, false)
	a.grow(0, 35)
	if s := a.peek(); s.status != 400 || string(s.raw) != body || len(up.Requests()) != 1 || p.Totals().Compactions != 0 {
		t.Errorf("status %d after %d requests, %+v: %.200s", s.status, len(up.Requests()), p.Totals(), s.raw)
	}
	full = false
	if s := a.peek(); s.status != 200 || s.action() != proxy.Passed {
		t.Errorf("then: status %d, %q", s.status, s.action())
	}
}

// TestOutputOverflowCase: the same over a request that was written elsewhere. G5
func TestOutputOverflowCase(t *testing.T) {
	request, err := os.ReadFile(filepath.Join(corpus.Dir(t, "cases/providers"), "output-overflow", "request.json"))
	if err != nil {
		t.Fatal(err)
	}
	up := proxytest.New(t)
	const body = `{"error":{"message":"This endpoint's maximum context length is 65536 tokens. However, you requested about 70000 tokens (4464 of text input, 65536 in the output). Please reduce the length of either one.","code":400}}`
	up.Model = func(*proxytest.Request) proxytest.Answer { return proxytest.Answer{Status: 400, Body: body} }
	url, p := start(t, up, proxy.Options{Config: palimpsest.Config{Counter: counter()}})
	res := post(t, url+"/v1/chat/completions", request, nil)
	said, err := io.ReadAll(res.Body)
	sent := up.Requests()
	if err != nil || res.StatusCode != 400 || string(said) != body || len(sent) != 1 || string(sent[0].Body) != string(request) || p.Totals().Compactions != 0 {
		t.Errorf("status %d after %d requests, %+v: %.300s", res.StatusCode, len(sent), p.Totals(), said)
	}
}

// TestPicturesBelowTheMark: more pictures than the API takes go before it refuses them, and once; documents,
// which count with them, too. G5
func TestPicturesBelowTheMark(t *testing.T) {
	for kind, item := range map[string]func(int) []string{"image": shot, "document": paper} {
		up := proxytest.New(t)
		up.Model = func(*proxytest.Request) proxytest.Answer { return proxytest.Answer{Text: "well"} }
		url, p := start(t, up, proxy.Options{Window: 10_000_000, Config: palimpsest.Config{Counter: counter()}})
		a := newAgent(t, wire.Anthropic, url, false)
		a.user("Look at all of them.")
		for n := range 120 {
			a.history = append(a.history, item(n)...)
		}
		for range 2 {
			if s := a.peek(); s.status != 200 {
				t.Fatalf("status %d: %.300s", s.status, s.raw)
			}
		}
		for _, sent := range up.Requests() {
			if n := strings.Count(string(sent.Body), `"type":"`+kind+`"`); n != 50 || strings.Count(string(sent.Body), "left out; call read_file again") != 70 {
				t.Errorf("%d of type %s", n, kind)
			}
		}
		if n := p.Totals().Compactions; n != 1 {
			t.Errorf("%s: %d compactions", kind, n)
		}
	}
}

// shot is a call that a picture answers.
func shot(n int) []string {
	return []string{
		fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"shot_%d","name":"read_file","input":{"path":"%d.png"}}]}`, n, n),
		fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"shot_%d","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAADwAAAA8"}}]}]}`, n),
	}
}

// paper is a call that a document answers.
func paper(n int) (all []string) {
	const picture = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAADwAAAA8"}}`
	for _, message := range shot(n) {
		all = append(all, strings.Replace(message, picture, `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjQK"}}`, 1))
	}
	return all
}

// TestPictureRefusal: a refusal for pictures is cured by taking old ones out, and by nothing else.
// G5
func TestPictureRefusal(t *testing.T) {
	for _, cured := range []bool{true, false} {
		up := proxytest.New(t)
		up.Model = func(q *proxytest.Request) proxytest.Answer {
			if n := strings.Count(string(q.Body), `"type":"image"`); n > 12 || !cured {
				return proxytest.Answer{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"image dimensions exceed max allowed size for many-image requests: 2000 pixels"}}`}
			}
			return proxytest.Answer{Text: "well"}
		}
		url, p := start(t, up, proxy.Options{Window: 1_000_000, Config: palimpsest.Config{Counter: counter()}})
		a := newAgent(t, wire.Anthropic, url, false)
		a.user("Look at all of them.")
		for n := range 20 {
			a.history = append(a.history, shot(n)...)
		}
		s := a.peek()
		sent := up.Requests()
		if len(sent) != 2 {
			t.Fatalf("cured %t: status %d after %d requests: %.300s", cured, s.status, len(sent), s.raw)
		}
		last := string(sent[1].Body)
		if n := strings.Count(last, `"type":"image"`); n != 10 || strings.Count(last, `"tool_result"`) != 20 {
			t.Errorf("cured %t: %d pictures, %d results", cured, n, strings.Count(last, `"tool_result"`))
		}
		if want := map[bool]int{true: 200, false: 400}[cured]; s.status != want {
			t.Errorf("cured %t: status %d: %.300s", cured, s.status, s.raw)
		}
		if !cured { // the plan did not help, so it is not in force
			if again := a.peek(); strings.Count(string(up.Requests()[2].Body), `"type":"image"`) != 20 {
				t.Errorf("the plan stayed: %q, %+v", again.action(), p.Totals())
			}
		}
	}
}
