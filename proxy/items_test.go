package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/internal/test/items"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestItemsStreamed: a client and a provider have conversations of every type of item, with results that come late
// and a program that still runs, in streams and in one piece, each under one of the policies. The client gets what the provider
// said. Under a plan the provider is sent what it takes, with the instructions and the tools of the client's request,
// and what runs as it was; and it is sent the same after streams as after answers in one piece. On Responses the
// client may also send what is new only, so that the rest is what was read from the answers.
func TestItemsStreamed(t *testing.T) {
	policies := []policy.Policy{
		policy.Auto{}, policy.Notes{}, policy.Ladder{MaxInputTokens: 4000}, policy.Session{Keep: 3, ContextLimit: 13_000}, policy.Timeline{MaxTokens: 4000, KeepRecent: 200},
		policy.Workstream{Tail: 2, ContextSize: 2000, OutputReserve: 200, SafetyMargin: 100}, policy.Loop{ContextLimit: 2500, MaxOutput: 500},
	}
	smaller, ran := map[string]int{}, map[string]int{}
	property.Few(t, 80, func(t *rapid.T) {
		api := rapid.SampledFrom(apis).Draw(t, "api")
		chosen := rapid.SampledFrom(policies).Draw(t, "policy")
		chained := api == wire.Responses && rapid.Bool().Draw(t, "chained")
		turns := items.Turns(api, items.Draw(t, api, 10, 30))
		name := chosen.Name()
		if chained {
			name = "a chain of responses"
		}
		var sent [2][]string
		for n, stream := range []bool{false, true} {
			p := &playedProvider{api: api, stream: stream, chained: chained}
			ran[name]++
			sent[n] = p.play(t, turns, proxy.Options{Window: 6000, Config: palimpsest.Config{Counter: counter(), Policy: chosen}})
			if p.smaller {
				smaller[name]++
			}
		}
		if diff := cmp.Diff(sent[0], sent[1]); diff != "" {
			t.Fatalf("%s, %s: after answers in one piece and after streams the provider is sent something else:\n%s", chosen.Name(), api, diff)
		}
	})
	for name, n := range ran {
		if n >= 10 && smaller[name] == 0 {
			t.Errorf("%s: never took anything away: %v", name, smaller)
		}
	}
}

// playedProvider says what it is told to.
type playedProvider struct {
	api     string
	stream  bool
	chained bool   // the client names the answer before, and sends what is new
	smaller bool   // a plan was made, or was in force
	says    string // the answer, and
	kind    string // its content type
	got     string // the last body
}

func (p *playedProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.got = string(body)
	w.Header().Set("Content-Type", p.kind)
	io.WriteString(w, p.says)
}

// play has the turns played by a client and the provider with a proxy between them, and returns the bodies that the
// provider was sent, without their wish for a stream.
func (p *playedProvider) play(t *rapid.T, turns [][]string, o proxy.Options) (sent []string) {
	upstream := httptest.NewServer(p)
	defer upstream.Close()
	o.Anthropic, o.OpenAI, o.Gemini = upstream.URL, upstream.URL+"/v1", upstream.URL
	between, err := proxy.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(between)
	defer server.Close()
	codec := apicodec.For(p.api)
	var history []string
	news, previous := 0, ""
	for n := range turns {
		history = append(history, turns[n]...)
		answer := ""
		switch {
		case n+1 < len(turns) && items.ByModel(p.api, turns[n+1][0]):
			answer = strings.Join(turns[n+1], ",")
		case n+1 < len(turns):
			continue
		default:
			answer = map[string]string{wire.Gemini: `{"role":"model","parts":[{"text":"So be it."}]}`}[p.api]
			if answer == "" {
				answer = `{"role":"assistant","content":"So be it."}`
			}
		}
		own := items.Body(p.api, history)
		asked := own
		if p.chained && previous != "" {
			asked, _ = sjson.Set(items.Body(p.api, history[news:]), "previous_response_id", previous)
		}
		got := p.ask(t, server.URL, asked, answer, n)
		if previous = fmt.Sprintf("msg_%d", n); n+1 < len(turns) {
			news = len(history) + len(turns[n+1])
		}
		if gjson.Get(p.got, "previous_response_id").Exists() {
			continue // the provider has the rest
		}
		if err := items.Lost(codec, own, p.got); err != nil {
			t.Fatalf("%s, stream %t, turn %d of %s: %v\n%s", p.api, p.stream, n, o.Config.Policy.Name(), err, p.got)
		}
		if diff := cmp.Diff(p.says, got); diff != "" {
			t.Fatalf("%s, turn %d: the client is not told what the provider says:\n%s", p.api, n, diff)
		}
		plain, _ := sjson.Delete(p.got, "stream")
		sent = append(sent, plain)
	}
	if totals := between.Totals(); totals.Faults != 0 {
		t.Fatalf("%+v", totals)
	}
	return sent
}

// ask sends a request, which the provider answers, and returns the answer.
func (p *playedProvider) ask(t *rapid.T, url, body, answer string, n int) string {
	whole, streams := wiretest.Answer(p.api, answer)
	for _, name := range []string{"id", "responseId"} {
		if gjson.Get(whole, name).Exists() {
			whole, _ = sjson.Set(whole, name, fmt.Sprintf("msg_%d", n))
		}
	}
	if p.api != wire.Gemini {
		body, _ = sjson.SetRaw(body, "stream", "null") // as long as true: how a request is treated depends on its length
	}
	path := map[string]string{wire.Anthropic: "/v1/messages", wire.Chat: "/v1/chat/completions", wire.Responses: "/v1/responses", wire.Gemini: "/v1beta/models/m:generateContent"}[p.api]
	p.says, p.kind = whole, "application/json"
	if p.stream && streams {
		p.says, p.kind = strings.Join(wiretest.Events(p.api, whole, &wiretest.StreamOptions{Once: n%2 == 0}), ""), "text/event-stream"
		if p.api == wire.Gemini {
			path = "/v1beta/models/m:streamGenerateContent?alt=sse"
		} else {
			body, _ = sjson.Set(body, "stream", true)
		}
	}
	res, err := http.Post(url+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	action := res.Header.Get(proxy.ActionHeader)
	p.smaller = p.smaller || action == proxy.Compacted || action == proxy.Planned
	got, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v: %s", res.StatusCode, err, got)
	}
	return string(got)
}
