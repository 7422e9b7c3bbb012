package proxy_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/internal/test/items"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestSocketItems: conversations of every type of item of Responses over a WebSocket, with tools that change,
// programs and results that come late, each message with what is new. They are compacted on the way, and by a trigger
// in the provider's place; the client then goes on from the compaction alone. What the provider is sent keeps the
// instructions, the tools and what runs.
func TestSocketItems(t *testing.T) {
	planned := 0
	property.Few(t, 12, func(t *rapid.T) {
		turns := items.Turns(wire.Responses, items.Draw(t, wire.Responses, 15, 30))
		if !items.ByModel(wire.Responses, turns[len(turns)-1][0]) {
			turns = append(turns, []string{`{"role":"assistant","content":"So be it."}`})
		}
		s := startSocketItems(t)
		for n := 0; n < len(turns); n++ {
			if items.ByModel(wire.Responses, turns[n][0]) {
				continue
			}
			s.ask(t, turns[n], turns[n+1], true)
		}
		s.previous = s.trigger(t)
		own := s.history
		s.history = nil
		s.ask(t, []string{s.previous, `{"role":"user","content":"Go on."}`}, []string{`{"role":"assistant","content":"I do."}`}, false)
		if strings.Contains(s.up.got, s.previous) {
			t.Fatalf("the provider is sent our compaction: %s", s.up.got)
		}
		own = append(own, s.history[1:]...)
		if err := items.Lost(apicodec.For(wire.Responses), items.Body(wire.Responses, own[:len(own)-1]), s.up.got); err != nil {
			t.Fatalf("after the trigger: %v\n%s", err, s.up.got)
		}
		planned += int(s.proxy.Totals().Compactions)
		if totals := s.proxy.Totals(); totals.Faults != 0 {
			t.Fatalf("%+v", totals)
		}
	})
	if planned < 12 {
		t.Errorf("%d compactions", planned)
	}
}

// socketItems is a client on a WebSocket.
type socketItems struct {
	up       *playedProvider
	proxy    *proxy.Proxy
	conn     *websocket.Conn
	history  []string
	previous string // the id of the answer before
	n        int
}

func startSocketItems(t *rapid.T) *socketItems {
	s := &socketItems{up: &playedProvider{kind: "text/event-stream"}}
	upstream := httptest.NewServer(s.up)
	p, err := proxy.New(&proxy.Options{OpenAI: upstream.URL + "/v1", Window: 6000, Emulate: []string{"openai"}, Config: palimpsest.Config{Counter: counter()}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	s.proxy = p
	s.conn, _, err = websocket.Dial(t.Context(), strings.Replace(server.URL, "http", "ws", 1)+"/v1/responses", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.conn.SetReadLimit(-1)
	t.Cleanup(func() {
		s.conn.CloseNow()
		server.Close()
		upstream.Close()
	})
	return s
}

// ask sends news, which is answered. If checks is set, what the provider is sent must keep what the history says.
func (s *socketItems) ask(t *rapid.T, news, answer []string, checks bool) {
	s.n++
	whole, _ := wiretest.Answer(wire.Responses, strings.Join(answer, ","))
	whole, _ = sjson.Set(whole, "id", fmt.Sprint("resp_", s.n))
	s.up.says = strings.Join(wiretest.Events(wire.Responses, whole, &wiretest.StreamOptions{Once: s.n%2 == 0}), "")
	s.history = append(s.history, news...)
	last := s.exchange(t, news)
	if last.Get("type").Str != "response.completed" {
		t.Fatalf("the answer is %s", last.Raw)
	}
	if err := items.Lost(apicodec.For(wire.Responses), items.Body(wire.Responses, s.history), s.up.got); checks && err != nil {
		t.Fatalf("message %d: %v\n%s", s.n, err, s.up.got)
	}
	s.history, s.previous = append(s.history, answer...), last.Get("response.id").Str
}

// trigger asks for a compaction, and returns it.
func (s *socketItems) trigger(t *rapid.T) string {
	s.up.got = ""
	last := s.exchange(t, []string{`{"type":"compaction_trigger"}`})
	output := last.Get("response.output").Array()
	if len(output) != 1 || output[0].Get("type").Str != "compaction" || s.up.got != "" {
		t.Fatalf("the answer to a trigger is %s, and the provider was sent %q", last.Raw, s.up.got)
	}
	return output[0].Raw
}

// exchange sends a message, and returns the last event of the answer.
func (s *socketItems) exchange(t *rapid.T, news []string) gjson.Result {
	body := `{"type":"response.create","store":false,` + strings.TrimPrefix(items.Body(wire.Responses, news), "{")
	if strings.HasPrefix(s.previous, "resp_") {
		body, _ = sjson.Set(body, "previous_response_id", s.previous)
	}
	if err := s.conn.Write(t.Context(), websocket.MessageText, []byte(body)); err != nil {
		t.Fatal(err)
	}
	for {
		_, text, err := s.conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e := gjson.ParseBytes(text)
		if slices.Contains([]string{"response.completed", "response.failed", "response.incomplete", "error"}, e.Get("type").Str) {
			return e
		}
	}
}
