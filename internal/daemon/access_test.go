package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event/slogsink"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/apikeytest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// key makes a key.
func key(t *testing.T, keys *apikey.Keys, tenant string, rights apikey.Rights) string {
	t.Helper()
	token, _, err := keys.Add(t.Context(), apikey.Grant{Tenant: tenant, Rights: rights})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestTenants: whatever one tenant asks about a thread of another, the answer is
// the one that it gets about a thread that is not there, word for word. A20
func TestTenants(t *testing.T) {
	keys := apikey.New(&apikeytest.Memory{}, nil)
	h := start(t, daemon.Config{Keys: keys, Compactor: putsAside()})
	mine, theirs := key(t, keys, "mine", apikey.Read|apikey.Write|apikey.Admin), key(t, keys, "theirs", apikey.Read|apikey.Write)
	c := h.client(t, theirs)
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "secret"}); err != nil {
		t.Fatal(err)
	}
	for step := range 30 {
		if _, err := c.Prepare(t.Context(), "secret", api.Any, api.Step{API: wire.Anthropic, Body: stepRequest(step), Window: 12_000, Output: 1000}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Finish(t.Context(), "secret", api.Any, api.Answer{API: wire.Anthropic, Response: response(step)}); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := c.Artifacts(t.Context(), "secret", "", 0)
	if err != nil || len(kept.Items) == 0 {
		t.Fatalf("nothing was externalized: %v", err)
	}
	content, err := c.Content(t.Context(), "secret", kept.Items[0].ID)
	if err != nil || !strings.Contains(content, "func Handle") {
		t.Fatalf("%.80q: %v", content, err)
	}
	bodies := map[string]string{
		"append": `{"messages":[{"role":"user","parts":[{"type":"text","text":"x"}]}]}`, "finish": `{"messages":[{"role":"assistant","parts":[{"type":"text","text":"x"}]}]}`,
		"answer": `{"type":"tool_call","call_id":"c","tool":"recall"}`, "undo": `{"version":1}`, "expand": `{"message_id":"x"}`,
		"cut-off": `{"messages":[{"role":"assistant","parts":[{"type":"text","text":"x"}]}]}`, "remember": `{"entries":["x"]}`,
	}
	for _, op := range api.Operations() {
		if !strings.Contains(op.Path, "{thread}") {
			continue
		}
		var answers []string
		for _, id := range []string{"secret", "nobody"} {
			path := strings.NewReplacer("{thread}", id, "{version}", "1", "{artifact}", kept.Items[0].ID).Replace(op.Path)
			body := ""
			if op.Request != nil {
				if body = bodies[op.ID]; body == "" {
					body = "{}"
				}
			}
			answer, text := h.do(t, op.Method, path, body, "Authorization", "Bearer "+mine, "X-Request-Id", "same")
			if answer.StatusCode != http.StatusNotFound {
				t.Errorf("%s of %s: %d", op.ID, id, answer.StatusCode)
			}
			answers = append(answers, text)
		}
		if answers[0] != answers[1] {
			t.Errorf("%s: a thread of another tenant is not answered as one that is not there:\n%s%s", op.ID, answers[0], answers[1])
		}
	}
	// Their id is free to us, and our thread of that name is another one.
	ours := h.client(t, mine)
	if _, err := ours.CreateThread(t.Context(), api.NewThread{ID: "secret"}); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Content(t.Context(), "secret", kept.Items[0].ID); !api.IsKind(err, api.NotFound) {
		t.Errorf("an artifact of another tenant: %v", err)
	}
	if list, err := ours.Threads(t.Context(), "", 0); err != nil || len(list.Items) != 1 || list.Items[0].Version != 0 {
		t.Errorf("%+v: %v", list, err)
	}
}

// TestKeys: without a key, with a wrong one, and with one that lacks the right,
// every operation is refused, and nothing of the tenant is told.
func TestKeys(t *testing.T) {
	keys := apikey.New(&apikeytest.Memory{}, nil)
	h := start(t, daemon.Config{Keys: keys})
	revoked, made, err := keys.Add(t.Context(), apikey.Grant{Tenant: "a", Rights: apikey.Read | apikey.Write})
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	reader, writer := key(t, keys, "a", apikey.Read), key(t, keys, "a", apikey.Write)
	for _, op := range api.Operations() {
		path := strings.NewReplacer("{thread}", "t", "{version}", "1", "{artifact}", "art_0123456789abcdef").Replace(op.Path)
		lacks := writer
		if op.Right == apikey.Write {
			lacks = reader
		}
		for name, tt := range map[string]struct {
			authorization string
			status        int
		}{
			"none":       {"", 401},
			"no bearer":  {"Basic " + reader, 401},
			"empty":      {"Bearer ", 401},
			"wrong":      {"Bearer plk_wrong", 401},
			"changed":    {"Bearer " + reader + "x", 401},
			"revoked":    {"Bearer " + revoked, 401},
			"no right":   {"Bearer " + lacks, 403},
			"two tokens": {"Bearer " + reader + " " + writer, 401},
		} {
			answer, body := h.do(t, op.Method, path, "", "Authorization", tt.authorization)
			if answer.StatusCode != tt.status {
				t.Errorf("%s with %s key: %d, want %d: %s", op.ID, name, answer.StatusCode, tt.status, body)
			}
			if tt.status == 401 && answer.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s: no WWW-Authenticate", op.ID)
			}
		}
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/openapi.json": 200, "/metrics": 401} {
		if answer, _ := h.do(t, "GET", path, ""); answer.StatusCode != want {
			t.Errorf("%s without a key: %d, want %d", path, answer.StatusCode, want)
		}
	}
	if answer, body := h.do(t, "GET", "/metrics", "", "Authorization", "Bearer "+reader); answer.StatusCode != 200 || !strings.Contains(body, `palimpsest_http_requests_total{route="GET /metrics",status="401"} 1`) {
		t.Errorf("metrics: %d %s", answer.StatusCode, body)
	}
}

// brokenKeys cannot say whether a key is valid.
type brokenKeys struct{}

func (brokenKeys) Check(_ context.Context, token string) (apikey.Key, error) {
	return apikey.Key{}, fmt.Errorf("reading %q: disk on fire", token)
}

// TestKeysThatCannotBeRead: nobody gets in, and the caller is not told why.
func TestKeysThatCannotBeRead(t *testing.T) {
	h := start(t, daemon.Config{Keys: brokenKeys{}})
	answer, body := h.do(t, "GET", "/v1/threads", "", "Authorization", "Bearer abc")
	if answer.StatusCode != 500 || strings.Contains(body, "fire") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}

// journal keeps what is logged.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(data []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(data)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

var errQuoting = errors.New(`constraint failed: INSERT INTO messages VALUES("CANARY-content")`)

// TestLogsHoldNoContent: neither what a conversation says nor a key is ever
// logged, whatever goes wrong.
func TestLogsHoldNoContent(t *testing.T) {
	const canary = "CANARY-content"
	keys := apikey.New(&apikeytest.Memory{}, nil)
	var log journal
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	config := daemon.Config{Keys: keys, Logger: logger}
	config.Compactor.Events = slogsink.New(logger)
	config.Ready = func(context.Context) error { return errQuoting }
	h := start(t, config)
	token := key(t, keys, "acme", apikey.Read|apikey.Write)
	c := h.client(t, token)
	ctx := t.Context()
	if _, err := c.CreateThread(ctx, api.NewThread{ID: "t", Labels: map[string]string{"about": canary}}); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat(canary+" found in the file. ", 3000)
	for n := range 4 {
		_, err := c.Append(ctx, "t", api.Any, api.Append{Messages: []neutral.Message{
			said("user", canary+" look"),
			{Role: "assistant", Parts: []neutral.Part{{Type: neutral.ToolCallPart, CallID: fmt.Sprint(n), Tool: "Read", Arguments: `{"path":"` + canary + `"}`}}},
			{Role: "tool", Parts: []neutral.Part{{Type: neutral.ToolResultPart, CallID: fmt.Sprint(n), Content: []neutral.Part{{Type: neutral.TextPart, Text: long}}}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Compact(ctx, "t", api.Any, api.Compact{Step: api.Step{Budget: 8000, Instructions: canary}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Recall(ctx, "t", canary, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Remember(ctx, "t", api.Any, canary); err != nil {
		t.Fatal(err)
	}
	cut := api.CutOff{Answer: api.Answer{Messages: []neutral.Message{said("assistant", canary)}}, Step: api.Step{Budget: 8000}}
	if _, err := c.CutOff(ctx, "t", api.Any, cut); err != nil && !api.IsKind(err, api.NothingToDo) {
		t.Fatal(err)
	}
	if err := c.DeleteThread(ctx, "t"); !api.IsKind(err, api.Forbidden) {
		t.Fatal(err)
	}
	auth := []string{"Authorization", "Bearer " + token}
	for _, body := range []string{
		`{"` + canary + `":1}`, `{"messages":"` + canary + `"}`, canary, `{"messages":[{"role":"` + canary + `"}]}`,
		`{"api":"` + canary + `"}`, `{"api":"anthropic","body":{"messages":[{"role":"` + canary + `"}]}}`,
	} {
		if answer, _ := h.do(t, "POST", "/v1/threads/t/messages", body, auth...); answer.StatusCode != 400 {
			t.Errorf("%s: %d", body, answer.StatusCode)
		}
	}
	h.do(t, "GET", "/v1/threads/"+canary+"?"+canary+"="+canary, "", append(auth, "X-Request-Id", canary+" with space", "If-Match", canary)...)
	h.do(t, "GET", "/"+canary, "", "Authorization", "Bearer "+canary)
	h.do(t, canary, "/v1/threads", "", auth...)
	h.do(t, "GET", "/readyz", "")
	text := log.String()
	if strings.Contains(text, canary) {
		t.Error("content in the log")
	}
	if _, secret, _ := strings.Cut(token, "_"); strings.Contains(text, token) || strings.Contains(text, secret[len(secret)-20:]) {
		t.Error("a key in the log")
	}
	for _, want := range []string{"compaction_completed", `"tenant":"acme"`, `"route":"POST /v1/threads/{thread}/compact"`, `"method":"other"`, "not ready"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log says nothing of %s", want)
		}
	}
}

// TestFaultsAreLoggedWithoutContent: an error of the store is logged under the id
// that the caller is told, without what it quotes; a panic likewise.
func TestFaultsAreLoggedWithoutContent(t *testing.T) {
	var log journal
	logger := slog.New(slog.NewTextHandler(&log, nil))
	h := start(t, daemon.Config{Keys: quoting{}, Logger: logger})
	answer, body := h.do(t, "GET", "/v1/threads", "", "Authorization", "Bearer x")
	id := answer.Header.Get("X-Request-Id")
	if answer.StatusCode != 500 || strings.Contains(body, "CANARY") || !strings.Contains(body, id) {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	panics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("CANARY-content") })
	h = start(t, daemon.Config{Logger: logger, Proxy: func(string) (http.Handler, error) { return panics, nil }})
	if answer, body := h.do(t, "GET", "/v1/models", ""); answer.StatusCode != 500 || strings.Contains(body, "CANARY") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	text := log.String()
	if strings.Contains(text, "CANARY") {
		t.Errorf("content in the log:\n%s", text)
	}
	for _, want := range []string{id, "constraint failed", "panic", "access_test.go"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log says nothing of %s:\n%s", want, text)
		}
	}
}

// quoting fails with an error that quotes.
type quoting struct{}

func (quoting) Check(context.Context, string) (apikey.Key, error) { return apikey.Key{}, errQuoting }

// TestArtifactsThatMayNotBeRead: an artifact whose time is over cannot be read any
// more. A20
func TestArtifactsThatMayNotBeRead(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	kept := artifact.NewStore(new(artifact.Memory), &artifact.Options{Now: clock})
	h := filled(t, daemon.Config{Artifacts: kept})
	c := h.client(t, "")
	id, err := kept.Put(t.Context(), artifact.Metadata{ThreadID: "t", TTLSeconds: 60}, "a note")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := c.Content(t.Context(), "t", id); err != nil || text != "a note" {
		t.Fatalf("%q: %v", text, err)
	}
	now = now.Add(2 * time.Minute)
	if _, err := c.Content(t.Context(), "t", id); !api.IsKind(err, api.Gone) {
		t.Errorf("expired: %v", err)
	}
}

// failingList is a backend whose list ends with an error after the first artifact.
type failingList struct {
	artifact.Backend
	err error
}

func (b failingList) List(ctx context.Context, f artifact.Filter) iter.Seq2[artifact.Metadata, error] {
	return func(yield func(artifact.Metadata, error) bool) {
		for m, err := range b.Backend.List(ctx, f) {
			if !yield(m, err) || !yield(artifact.Metadata{}, b.err) {
				return
			}
		}
	}
}

// TestListOfArtifacts: a damaged artifact is left out of the list; a store that fails gives
// an error, and no shorter list.
func TestListOfArtifacts(t *testing.T) {
	for err, want := range map[error]int{artifact.ErrCorrupt: 200, store.ErrUnavailable: 503, errQuoting: 500} {
		kept := artifact.NewStore(failingList{new(artifact.Memory), err}, nil)
		h := filled(t, daemon.Config{Artifacts: kept})
		for _, text := range []string{"one note", "another note"} {
			if _, err := kept.Put(t.Context(), artifact.Metadata{ThreadID: "t"}, text); err != nil {
				t.Fatal(err)
			}
		}
		answer, body := h.do(t, "GET", "/v1/threads/t/artifacts", "")
		if answer.StatusCode != want || want == 200 && strings.Count(body, `"thread_id":"t"`) != 2 {
			t.Errorf("%v: %d %s", err, answer.StatusCode, body)
		}
	}
}
