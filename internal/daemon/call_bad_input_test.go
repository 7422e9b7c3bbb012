package daemon_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// said is a message of one text.
func said(role, text string) neutral.Message {
	return neutral.Message{Role: role, Parts: []neutral.Part{{Type: neutral.TextPart, Text: text}}}
}

// filled is a daemon with one thread, "t", of two messages.
func filled(t *testing.T, c daemon.Config) *host {
	t.Helper()
	h := start(t, c)
	client := h.client(t, "")
	if _, err := client.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Append(t.Context(), "t", api.Any, api.Append{Messages: []neutral.Message{said("user", "one"), said("assistant", "two")}}); err != nil {
		t.Fatal(err)
	}
	return h
}

// changedAt is left out of comparisons: that something was tried is an event of
// the thread.
var changedAt = regexp.MustCompile(`,"changed_at":"[^"]*"`)

// state is everything that can be read of the daemon.
func state(t *testing.T, h *host) string {
	t.Helper()
	all := ""
	for _, path := range []string{"/v1/threads", "/v1/threads/t", "/v1/threads/t/messages", "/v1/threads/t/plans"} {
		_, body := h.do(t, "GET", path, "")
		all += changedAt.ReplaceAllString(body, "")
	}
	return all
}

// cursor is one that somebody made up.
func cursor(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// TestBadInput: each bad request gets the right status and a problem that says
// what to do, and changes nothing.
func TestBadInput(t *testing.T) {
	const one = "/v1/threads/t"
	message := `{"role":"user","parts":[{"type":"text","text":"x"}]}`
	in := func(part string) string { return `{"messages":[{"role":"user","parts":[` + part + `]}]}` }
	deep := strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300)
	tests := []struct {
		name, method, path, body string
		header                   []string
		status                   int
		kind, says               string
	}{
		{"no JSON", "POST", "/v1/threads", `{"id":`, nil, 400, api.BadRequest, "ends too early"},
		{"broken JSON", "POST", "/v1/threads", `{"id":x}`, nil, 400, api.BadRequest, "byte 7"},
		{"two documents", "POST", "/v1/threads", `{} {}`, nil, 400, api.BadRequest, "more than one"},
		{"an array", "POST", "/v1/threads", `[]`, nil, 400, api.BadRequest, "want an object"},
		{"no UTF-8", "POST", "/v1/threads", "{\"id\":\"\xff\"}", nil, 400, api.BadRequest, "UTF-8"},
		{"wrong type", "POST", "/v1/threads", `{"id":7}`, nil, 400, api.BadRequest, "id: want a string, got number"},
		{"unknown field", "POST", "/v1/threads", `{"idd":"x"}`, nil, 400, api.BadRequest, `unknown field "idd"`},
		{"control character", "POST", "/v1/threads", `{"id":"a\u0000b"}`, nil, 400, api.BadRequest, "control"},
		{"dots", "POST", "/v1/threads", `{"id":".."}`, nil, 400, api.BadRequest, "not allowed"},
		{"slash", "POST", "/v1/threads", `{"id":"/"}`, nil, 400, api.BadRequest, "not allowed"},
		{"long id", "POST", "/v1/threads", `{"id":"` + strings.Repeat("x", 201) + `"}`, nil, 400, api.BadRequest, "200"},
		{"long label", "POST", "/v1/threads", `{"labels":{"x":"` + strings.Repeat("x", 201) + `"}}`, nil, 400, api.BadRequest, "labels"},
		{"existing", "POST", "/v1/threads", `{"id":"t"}`, nil, 409, api.Exists, "another id"},
		{"more behind it", "POST", "/v1/threads", `{}]`, nil, 400, api.BadRequest, "more than one"},
		{"compressed", "POST", "/v1/threads", `{}`, []string{"Content-Encoding", "gzip"}, 415, api.WrongType, "Content-Encoding"},
		{"form", "POST", "/v1/threads", `id=t2`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, api.WrongType, "application/json"},
		{"other origin", "POST", "/v1/threads", `{}`, []string{"Origin", "https://example.org"}, 403, api.Forbidden, "origin"},
		{"other host", "GET", "/v1/threads", "", []string{"Host", "example.org:7433"}, 403, api.Forbidden, "this machine"},
		{"deep", "POST", "/v1/threads", deep, nil, 400, api.TooDeep, "200"},
		{"large", "POST", one + "/messages", `{"messages":[` + strings.Repeat(" ", 1<<17) + `]}`, nil, 413, api.TooLarge, "several calls"},
		{"method", "PATCH", one, "", nil, 405, api.NotAllowed, "GET, DELETE"},
		{"method not known", "BREW", "/v1/threads", "", nil, 405, api.NotAllowed, "POST"},
		{"address", "GET", "/v2/threads", "", nil, 404, api.NotFound, "openapi.json"},
		{"query", "GET", "/v1/threads?limt=5", "", nil, 400, api.BadRequest, "limit"},
		{"limit", "GET", "/v1/threads?limit=501", "", nil, 400, api.BadRequest, "1 to 500"},
		{"limit no number", "GET", one + "/messages?limit=ten", "", nil, 400, api.BadRequest, "ten"},
		{"cursor", "GET", "/v1/threads?cursor=x", "", nil, 400, api.BadCursor, "without one"},
		{"cursor of another list", "GET", one + "/messages?cursor=bGlzdCAKdA", "", nil, 400, api.BadCursor, "without one"},
		{"cursor behind all", "GET", one + "/messages?cursor=" + cursor("log t\n9223372036854775807"), "", nil, 400, api.BadCursor, "without one"},
		{"cursor before all", "GET", one + "/plans?cursor=" + cursor("plans t\n-1"), "", nil, 400, api.BadCursor, "without one"},
		{"cursor of another thread", "GET", one + "/messages?cursor=" + cursor("log u\n1"), "", nil, 400, api.BadCursor, "without one"},
		{"cursor no text", "GET", "/v1/threads?cursor=" + cursor("list \n\xff"), "", nil, 400, api.BadCursor, "without one"},
		{"unknown address of a thread", "GET", one + "/mesages", "", nil, 404, api.NotFound, "openapi.json"},
		{"unknown thread deleted", "DELETE", "/v1/threads/nope", "", nil, 404, api.NotFound, "no such thread"},
		{"version of a deletion", "DELETE", one, "", []string{"If-Match", `"2"`}, 400, api.BadRequest, "no If-Match"},
		{"unknown thread", "GET", "/v1/threads/nope", "", nil, 404, api.NotFound, "no such thread"},
		{"unknown thread written to", "POST", "/v1/threads/nope/messages", `{"messages":[` + message + `]}`, nil, 404, api.NotFound, "no such thread"},
		{"unknown thread prepared", "POST", "/v1/threads/nope/prepare", `{"messages":[` + message + `]}`, nil, 404, api.NotFound, "no such thread"},
		{"nothing to append", "POST", one + "/messages", `{}`, nil, 400, api.BadRequest, "nothing to append"},
		{"role", "POST", one + "/messages", `{"messages":[{"role":"robot","parts":[{"type":"text"}]}]}`, nil, 400, api.BadRequest, "messages[0].role"},
		{"kind", "POST", one + "/messages", `{"messages":[{"role":"user","kind":"x","parts":[{"type":"text"}]}]}`, nil, 400, api.BadRequest, "messages[0].kind"},
		{"no parts", "POST", one + "/messages", `{"messages":[{"role":"user"}]}`, nil, 400, api.BadRequest, "[] stands for none"},
		{"part", "POST", one + "/messages", in(`{"type":"smell"}`), nil, 400, api.BadRequest, "messages[0].parts[0].type"},
		{"call by the user", "POST", one + "/messages", in(`{"type":"tool_call","call_id":"c","tool":"x"}`), nil, 400, api.BadRequest, "a user message may hold"},
		{"media with two contents", "POST", one + "/messages", in(`{"type":"media","media":"image","data":"eA==","file_id":"f"}`), nil, 400, api.BadRequest, "one of"},
		{"opaque without JSON", "POST", one + "/messages", in(`{"type":"opaque","api":"anthropic","raw":"{"}`), nil, 400, api.BadRequest, "raw: not valid JSON"},
		{"result without call", "POST", one + "/messages", `{"messages":[{"role":"tool","parts":[{"type":"tool_result"}]}]}`, nil, 400, api.BadRequest, "call_id"},
		{"two results in one", "POST", one + "/messages", `{"messages":[{"role":"tool","parts":[{"type":"tool_result","call_id":"a"},{"type":"tool_result","call_id":"b"}]}]}`, nil, 400, api.BadRequest, "exactly one"},
		{"outcome", "POST", one + "/messages", `{"messages":[{"role":"tool","parts":[{"type":"tool_result","call_id":"a","outcome":"meh"}]}]}`, nil, 400, api.BadRequest, "outcome"},
		{"api", "POST", one + "/prepare", `{"api":"carrier-pigeon"}`, nil, 400, api.BadRequest, "carrier-pigeon"},
		{"body of no API", "POST", one + "/prepare", `{"body":{}}`, nil, 400, api.BadRequest, "want anthropic"},
		{"body of another API", "POST", one + "/prepare", `{"api":"anthropic","body":{"contents":[]}}`, nil, 400, api.BadRequest, "body"},
		{"body and base", "POST", one + "/prepare", `{"api":"anthropic","body":{"messages":[]},"base":{}}`, nil, 400, api.BadRequest, "not both"},
		{"window below zero", "POST", one + "/prepare", `{"window":-1}`, nil, 400, api.BadRequest, "window"},
		{"answer of nobody", "POST", one + "/finish", `{}`, nil, 400, api.BadRequest, "no answer"},
		{"answer by the user", "POST", one + "/finish", `{"messages":[` + message + `]}`, nil, 400, api.BadRequest, "assistant"},
		{"empty response", "POST", one + "/finish", `{"api":"openai","response":{}}`, nil, 400, api.BadRequest, "whole response"},
		{"response no object", "POST", one + "/finish", `{"api":"openai","response":7}`, nil, 400, api.BadRequest, "response"},
		{"broken response", "POST", one + "/finish", `{"api":"gemini","response":{"candidates":[{"content":7}]}}`, nil, 400, api.BadRequest, "response"},
		{"cut off by nobody", "POST", one + "/cut-off", `{}`, nil, 400, api.BadRequest, "no answer"},
		{"cut off twice", "POST", one + "/cut-off", `{"messages":[{"role":"assistant","parts":[{"type":"text","text":"x"}]},{"role":"assistant","parts":[{"type":"text","text":"x"}]}]}`, nil, 400, api.BadRequest, "one message"},
		{"cut off with messages", "POST", one + "/cut-off", `{"messages":[{"role":"assistant","parts":[{"type":"text","text":"x"}]}],"step":{"messages":[` + message + `]}}`, nil, 400, api.BadRequest, "step.messages"},
		{"cut off for an old version", "POST", one + "/cut-off", `{"messages":[{"role":"assistant","parts":[{"type":"text","text":"x"}]}]}`, []string{"If-Match", `"1"`}, 412, api.Stale, "it is at 2"},
		{"nothing to remember", "POST", one + "/memory", `{}`, nil, 400, api.BadRequest, "1 to 100"},
		{"blank to remember", "POST", one + "/memory", `{"entries":["x"," "]}`, nil, 400, api.BadRequest, "entries[1]"},
		{"much to remember", "POST", one + "/memory", `{"entries":["` + strings.Repeat("x", 4001) + `"]}`, nil, 400, api.BadRequest, "4000 bytes"},
		{"remembered for an old version", "POST", one + "/memory", `{"entries":["x"]}`, []string{"If-Match", `"1"`}, 412, api.Stale, "it is at 0"},
		{"long message id", "POST", one + "/messages", `{"messages":[{"id":"` + strings.Repeat("x", 513) + `","role":"user","parts":[{"type":"text","text":"x"}]}]}`, nil, 400, api.BadRequest, "512"},
		{"version no number", "POST", one + "/messages", `{"messages":[` + message + `]}`, []string{"If-Match", `"x"`}, 400, api.BadRequest, "If-Match"},
		{"version not quoted", "POST", one + "/messages", `{"messages":[` + message + `]}`, []string{"If-Match", `2`}, 400, api.BadRequest, "double quotes"},
		{"version where none is", "GET", one, "", []string{"If-Match", `"2"`}, 400, api.BadRequest, "no If-Match"},
		{"version behind", "POST", one + "/messages", `{"messages":[` + message + `]}`, []string{"If-Match", `"1"`}, 412, api.Stale, "names version 1, but it is at 2"},
		{"version ahead", "POST", one + "/prepare", `{"messages":[` + message + `]}`, []string{"If-Match", `"9"`}, 412, api.Stale, "names version 9, but it is at 2"},
		{"version of no message", "POST", one + "/prepare", `{}`, []string{"If-Match", `"1"`}, 412, api.Stale, "names version 1, but it is at 2"},
		{"version of an answer", "POST", one + "/finish", `{"messages":[{"role":"assistant","parts":[{"type":"text","text":"x"}]}]}`, []string{"If-Match", `"0"`}, 412, api.Stale, "it is at 2"},
		{"plan version", "POST", one + "/undo", `{"version":0}`, []string{"If-Match", `"3"`}, 412, api.Stale, "names version 3, but it is at 0"},
		{"no plan to go to", "POST", one + "/undo", `{"version":4}`, nil, 404, api.NotFound, "no plan 4"},
		{"undo to nothing named", "POST", one + "/undo", `{}`, nil, 400, api.BadRequest, "version"},
		{"nothing hidden", "POST", one + "/expand", `{"message_id":"x"}`, nil, 404, api.NotFound, `hides no message "x"`},
		{"pin nothing", "POST", one + "/pin", `{"message_id":"x"}`, nil, 404, api.NotFound, `message_id: the thread has no message "x"`},
		{"text of nothing", "GET", one + "/text?message=x", "", nil, 404, api.NotFound, `message: the thread has no message "x"`},
		{"undo by another name", "POST", one + "/undo", `{"plan":1}`, nil, 400, api.BadRequest, `unknown field "plan"; the body takes version, and`},
		{"compact by another name", "POST", one + "/preview", `{"tokens":1}`, nil, 400, api.BadRequest, "budget, "},
		{"expand nothing", "POST", one + "/expand", `{}`, nil, 400, api.BadRequest, "message_id"},
		{"nothing to compact", "POST", one + "/compact", `{"window":100000}`, nil, 409, api.NothingToDo, "nothing to compact"},
		{"compact brings messages", "POST", one + "/compact", `{"messages":[` + message + `]}`, nil, 400, api.BadRequest, "adds no messages"},
		{"render brings messages", "POST", one + "/render", `{"step":{"messages":[` + message + `]}}`, nil, 400, api.BadRequest, "adds no messages"},
		{"render under no plan", "POST", one + "/render", `{"plan_version":3}`, nil, 404, api.NotFound, "no plan 3"},
		{"refused, and brings messages", "POST", one + "/overflowed", `{"messages":[` + message + `]}`, nil, 400, api.BadRequest, "without them"},
		{"refused, but prepared", "POST", one + "/prepare", `{"why":"bytes","messages":[` + message + `]}`, nil, 400, api.BadRequest, "only overflowed"},
		{"refused, for a word of its own", "POST", one + "/overflowed", `{"why":"mood"}`, nil, 400, api.BadRequest, "want tokens, pictures, bytes or output"},
		{"refused, but small", "POST", one + "/overflowed", `{"window":100000}`, nil, 422, api.OverBudget, "no smaller"},
		{"plan", "GET", one + "/plans/7", "", nil, 404, api.NotFound, "no plan 7"},
		{"plan no number", "GET", one + "/plans/x", "", nil, 404, api.NotFound, "current"},
		{"no plan in force", "GET", one + "/plans/current", "", nil, 404, api.NotFound, "as it was said"},
		{"diff", "GET", one + "/diff?from=-1", "", nil, 400, api.BadRequest, "from"},
		{"artifact", "GET", one + "/artifacts/art_0123456789abcdef", "", nil, 404, api.NotFound, "no such artifact"},
		{"artifact no id", "GET", one + "/artifacts/..%2F..%2Fetc/content", "", nil, 404, api.NotFound, "no such artifact"},
		{"recall nothing", "GET", one + "/recall", "", nil, 400, api.BadRequest, "q:"},
		{"recall limit", "GET", one + "/recall?q=x&limit=0", "", nil, 400, api.BadRequest, "limit"},
		{"recall role", "GET", one + "/recall?q=x&role=robot", "", nil, 400, api.BadRequest, "role"},
		{"tool of somebody else", "POST", one + "/answer", `{"type":"tool_call","call_id":"c","tool":"Bash"}`, nil, 404, api.NotFound, "run other tools yourself"},
		{"no call", "POST", one + "/answer", `{"type":"text","text":"x"}`, nil, 400, api.BadRequest, "tool_call"},
		{"call without id", "POST", one + "/answer", `{"type":"tool_call","tool":"recall"}`, nil, 400, api.BadRequest, "call_id"},
		{"event that is to come", "GET", one + "/events", "", []string{"Last-Event-ID", "1000"}, 400, api.BadRequest, "ahead of the thread"},
		{"event id", "GET", one + "/events", "", []string{"Last-Event-ID", "x"}, 400, api.BadRequest, "Last-Event-ID"},
	}
	file, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "daemon.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, db := range map[string]store.DB{"memory": mem.New(), "sqlite": file} {
		h := filled(t, daemon.Config{Store: db, Limits: daemon.Limits{Body: 1 << 16, Rate: 1e6}})
		before := state(t, h)
		for _, tt := range tests {
			t.Run(name+"/"+tt.name, func(t *testing.T) {
				answer, body := h.do(t, tt.method, tt.path, tt.body, tt.header...)
				var p api.Problem
				if err := json.Unmarshal([]byte(body), &p); err != nil {
					t.Fatalf("%d %s: %v", answer.StatusCode, body, err)
				}
				if answer.StatusCode != tt.status || p.Status != tt.status || p.Kind() != tt.kind {
					t.Errorf("got %d %s, want %d %s: %s", answer.StatusCode, p.Kind(), tt.status, tt.kind, p.Detail)
				}
				if !strings.Contains(p.Detail, tt.says) {
					t.Errorf("the detail %q does not say %q", p.Detail, tt.says)
				}
				if p.Instance != answer.Header.Get("X-Request-Id") {
					t.Errorf("the problem names request %q, the header %q", p.Instance, answer.Header.Get("X-Request-Id"))
				}
				if after := state(t, h); after != before {
					t.Errorf("something was changed:\n%s\n%s", before, after)
				}
			})
		}
	}
}

// TestRepeatedWrites: a request that is sent again because its answer was lost
// changes nothing, when it names the version or brings ids.
func TestRepeatedWrites(t *testing.T) {
	h := filled(t, daemon.Config{})
	c := h.client(t, "")
	news := []neutral.Message{said("user", "three"), said("assistant", "four")}
	first, err := c.Append(t.Context(), "t", 2, api.Append{Messages: news})
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Append(t.Context(), "t", 2, api.Append{Messages: news})
	if err != nil || again.Version != 4 || fmt.Sprint(again) != fmt.Sprint(first) {
		t.Fatalf("got %+v, want %+v: %v", again, first, err)
	}
	own := said("user", "five")
	own.ID = "mine"
	for range 2 {
		a, err := c.Append(t.Context(), "t", api.Any, api.Append{Messages: []neutral.Message{own}})
		if err != nil || a.Version != 5 || a.MessageIDs[0] != "mine" {
			t.Fatalf("%+v: %v", a, err)
		}
	}
	own.Parts[0].Text = "six"
	if a, err := c.Append(t.Context(), "t", api.Any, api.Append{Messages: []neutral.Message{said("user", "x"), own}}); !api.IsKind(err, api.Exists) {
		t.Fatalf("an id twice: %+v: %v", a, err)
	}
	// A whole history with If-Match "0" adds what is not there yet.
	whole := append([]neutral.Message{said("user", "one"), said("assistant", "two")}, news...)
	if a, err := c.Append(t.Context(), "t", 0, api.Append{Messages: whole}); err != nil || a.Version != 5 || len(a.MessageIDs) != 4 {
		t.Fatalf("%+v: %v", a, err)
	}
}

// TestHead: a GET can be asked for its header alone.
func TestHead(t *testing.T) {
	h := filled(t, daemon.Config{})
	r, err := http.NewRequestWithContext(t.Context(), "HEAD", h.url+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := h.http.Transport.(*checkingTransport).next.RoundTrip(r)
	if err != nil || answer.StatusCode != 200 {
		t.Fatalf("%v: %v", answer, err)
	}
	answer.Body.Close()
}

// TestHalfCreated: of a thread whose creation was cut short only a document is
// kept; it exists all the same, and can be used.
func TestHalfCreated(t *testing.T) {
	db := mem.New()
	c := start(t, daemon.Config{Store: db}).client(t, "")
	made := store.Document{Kind: "thread", ID: "t", Body: []byte(`{"labels":{"team":"build"},"created_at":"2026-11-21T09:00:00Z"}`)}
	if _, err := db.Tenant("").Documents.Put(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if th, err := c.Thread(t.Context(), "t"); err != nil || th.Labels["team"] != "build" || th.CreatedAt.Hour() != 9 {
		t.Errorf("%+v: %v", th, err)
	}
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); !api.IsKind(err, api.Exists) {
		t.Errorf("created twice: %v", err)
	}
	if a, err := c.Append(t.Context(), "t", 0, api.Append{Messages: []neutral.Message{said("user", "one")}}); err != nil || a.Version != 1 {
		t.Errorf("%+v: %v", a, err)
	}
}

// TestIDs: whatever a thread may be called, its address leads to it and to no
// other, in all that can be asked.
func TestIDs(t *testing.T) {
	h := start(t, daemon.Config{Limits: daemon.Limits{Rate: 1e6}})
	c, ctx := h.client(t, ""), t.Context()
	ids := []string{
		"a", "a/b", "a//b", "/a", "a/", "//", "/./", "a/../a", "./a", "..a", "%2e%2e", "a%2Fb", "%", "?q=1", "a#b", " ", "\\", "ö ß/日本", "a;b=c", "a+b", "a b", "messages", "a/messages",
		strings.Repeat("日", 170), // 510 bytes
	}
	for n, id := range ids {
		if th, err := c.CreateThread(ctx, api.NewThread{ID: id}); err != nil || th.ID != id {
			t.Fatalf("%q: %+v: %v", id, th, err)
		}
		if _, err := c.Append(ctx, id, 0, api.Append{Messages: []neutral.Message{said("user", fmt.Sprint(n))}}); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for n, id := range ids {
		log, err := c.Log(ctx, id, "", 0)
		if err != nil || log.Version != 1 || log.Items[0].Parts[0].Text != fmt.Sprint(n) {
			t.Errorf("%q: %+v: %v", id, log, err)
		}
		if _, err := c.Undo(ctx, id, 0, 0); err != nil {
			t.Errorf("%q: %v", id, err)
		}
		for w, err := range c.Events(ctx, id, "0") {
			if err != nil || w.ID != "1" {
				t.Errorf("%q: %+v: %v", id, w, err)
			}
			break
		}
	}
	var listed []string
	for cursor := ""; ; {
		page, err := c.Threads(ctx, cursor, 4)
		if err != nil {
			t.Fatal(err)
		}
		for _, th := range page.Items {
			listed = append(listed, th.ID)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	slices.Sort(ids)
	if !slices.Equal(listed, ids) {
		t.Errorf("the pages list\n%q, want\n%q", listed, ids)
	}
	for n, id := range ids {
		if err := c.DeleteThread(ctx, id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
		if page, err := c.Threads(ctx, "", 0); err != nil || len(page.Items) != len(ids)-n-1 {
			t.Errorf("without %q there are %d threads: %v", id, len(page.Items), err)
		}
	}
}
