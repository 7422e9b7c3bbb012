package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/api/view"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/apikeytest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
	"github.com/palimpsest-ai/palimpsest/store/mem"
)

// looked makes a thread with something to compact.
func looked(t *testing.T, c *api.Client) {
	t.Helper()
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "look"}); err != nil {
		t.Fatal(err)
	}
	var messages []neutral.Message
	for i := range 60 {
		role := []string{"user", "assistant"}[i%2]
		messages = append(messages, said(role, fmt.Sprintf("%s %d: %s", role, i, strings.Repeat(fmt.Sprintf("word%d of the talk. ", i), 40))))
	}
	if _, err := c.Append(t.Context(), "look", api.Any, api.Append{Messages: messages}); err != nil {
		t.Fatal(err)
	}
}

// TestView: a thread is looked at, previewed, compacted with a policy of the caller's
// choice, pinned, and its texts are read one by one.
func TestView(t *testing.T) {
	asked := ""
	h := start(t, daemon.Config{Policies: func(name, favor string) (palimpsest.Config, error) {
		asked = name + " " + favor
		return palimpsest.Config{Policy: policy.Auto{Favor: policy.Favor(favor)}}, nil
	}})
	c, ctx := h.client(t, ""), t.Context()
	looked(t, c)
	v, err := c.View(ctx, "look", api.Any)
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Messages) != 60 || v.Before != v.After || len(v.Records) != 0 || v.Messages[0].Text != "" {
		t.Fatalf("%d messages, %d → %d tokens", len(v.Messages), v.Before, v.After)
	}
	q := api.Compact{Step: api.Step{Budget: v.Before / 3}, Policy: "auto", Favor: "cost"}
	p, err := c.Preview(ctx, "look", q)
	if err != nil {
		t.Fatal(err)
	}
	if asked != "auto cost" || len(p.Records) == 0 || p.After > q.Budget || p.PlanVersion != 0 || p.Messages[0].Text == "" {
		t.Errorf("the preview asked for %q and has %d records, %d tokens", asked, len(p.Records), p.After)
	}
	if info, err := c.Thread(ctx, "look"); err != nil || info.PlanVersion != 0 {
		t.Errorf("a preview made plan %d, %v", info.PlanVersion, err)
	}
	if _, err := c.Compact(ctx, "look", 0, q); err != nil {
		t.Fatal(err)
	}
	if v, err = c.View(ctx, "look", api.Any); err != nil {
		t.Fatal(err)
	}
	if v.PlanVersion != 1 || len(v.Plans) != 1 || v.After != p.After || len(v.Records) != len(p.Records) {
		t.Errorf("in force is plan %d with %d tokens, the preview had %d", v.PlanVersion, v.After, p.After)
	}
	hidden := v.Messages[v.Records[0].First]
	text, err := c.Text(ctx, "look", string(hidden.ID))
	if err != nil || !strings.Contains(text, "of the talk") {
		t.Errorf("%q, %v", text, err)
	}
	for n, part := range v.Prompt {
		if part.Record < 0 {
			continue
		}
		if _, body := h.do(t, "GET", fmt.Sprintf("/v1/threads/look/text?part=%d", n), ""); !strings.Contains(body, "[") {
			t.Errorf("part %d says %q", n, body)
		}
	}
	if _, err := c.Pin(ctx, "look", 1, view.Pin{MessageID: string(hidden.ID)}); err != nil {
		t.Fatal(err)
	}
	if v, err = c.View(ctx, "look", api.Any); err != nil {
		t.Fatal(err)
	}
	if m := v.Messages[v.Steps[0].At-1]; v.PlanVersion != 2 || m.Record >= 0 && m.ID == hidden.ID {
		t.Errorf("plan %d, message %+v", v.PlanVersion, m)
	}
	pinned := 0
	for _, m := range v.Messages {
		if m.Pinned {
			pinned++
			if m.ID != hidden.ID || m.Record >= 0 {
				t.Errorf("pinned is %s under record %d", m.ID, m.Record)
			}
		}
	}
	if pinned != 1 {
		t.Errorf("%d messages are pinned", pinned)
	}
	if old, err := c.View(ctx, "look", 1); err != nil || old.PlanVersion != 1 || len(old.Records) == 0 {
		t.Errorf("plan 1: %v", err)
	}
	list, err := c.Threads(ctx, "", 0)
	if err != nil || list.Items[0].About != nil {
		t.Errorf("nobody asked what it is about: %+v, %v", list, err)
	}
	if _, body := h.do(t, "GET", "/v1/threads?about=yes", ""); !strings.Contains(body, `"title":"user 0: word0 of`) || !strings.Contains(body, `"compacted_at"`) {
		t.Errorf("about: %s", body)
	}
	for _, bad := range [][3]string{
		{"GET", "/v1/threads/look/view?plan=9", ""}, {"GET", "/v1/threads/look/view?plan=x", ""}, {"GET", "/v1/threads/look/text?message=none", ""},
		{"GET", "/v1/threads/look/text", ""}, {"GET", "/v1/threads/look/text?part=9999", ""}, {"POST", "/v1/threads/look/pin", "{}"},
		{"POST", "/v1/threads/look/pin", `{"message_id":"none"}`}, {"POST", "/v1/threads/look/preview", `{"policy":"/etc/passwd"}`},
		{"POST", "/v1/threads/look/preview", `{"favor":"nobody"}`}, {"GET", "/v1/threads?about=no", ""}, {"GET", "/v1/sessions", ""},
	} {
		if answer, body := h.do(t, bad[0], bad[1], bad[2]); answer.StatusCode != http.StatusBadRequest && answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s %s %s: %d %s", bad[0], bad[1], bad[2], answer.StatusCode, body)
		}
	}
}

// TestViewAfterRestart: another process shows a thread with the same figures, though it
// has not heard the agent: model, prices, window, and the size of system and tools.
func TestViewAfterRestart(t *testing.T) {
	db := mem.New()
	c := start(t, daemon.Config{Store: db}).client(t, "")
	looked(t, c)
	step := api.Step{Window: 64_000, Base: &neutral.Prompt{
		Model: "claude-sonnet-4-5", System: []neutral.System{{Text: strings.Repeat("Answer in short sentences. ", 50)}},
	}}
	if _, err := c.Prepare(t.Context(), "look", api.Any, step); err != nil {
		t.Fatal(err)
	}
	was, err := c.View(t.Context(), "look", api.Any)
	if err != nil {
		t.Fatal(err)
	}
	again := start(t, daemon.Config{Store: db}).client(t, "")
	is, err := again.View(t.Context(), "look", api.Any)
	if err != nil {
		t.Fatal(err)
	}
	if is.Model != "claude-sonnet-4-5" || is.Window != 64_000 || is.Fixed < 200 || !is.Cached {
		t.Errorf("model %q, window %d, %d tokens fixed, prices %v", is.Model, is.Window, is.Fixed, is.Cached)
	}
	if is.CompactsAt <= 0 || is.CompactsAt >= is.Window {
		t.Errorf("it compacts at %d tokens of a window of %d", is.CompactsAt, is.Window)
	}
	page := struct{ Items []struct{ About view.About } }{}
	if _, body := start(t, daemon.Config{Store: db}).do(t, "GET", "/v1/threads?about=yes", ""); json.Unmarshal([]byte(body), &page) != nil || page.Items[0].About.Model != is.Model {
		t.Errorf("about: %s", body)
	}
	if is.Before != was.Before || is.After != was.After || is.Fixed != was.Fixed || !slices.Equal(is.Steps, was.Steps) {
		t.Errorf("%d → %d tokens, %d of them fixed; before the restart %d → %d and %d", is.Before, is.After, is.Fixed, was.Before, was.After, was.Fixed)
	}
	plan, err := again.Preview(t.Context(), "look", api.Compact{Step: api.Step{Budget: is.Before / 2}})
	if err != nil || plan.Fixed != was.Fixed || plan.After > is.Before/2 {
		t.Errorf("a preview after it has %d of %d tokens fixed, %v", plan.Fixed, plan.After, err)
	}
}

// listed are sessions of a machine that has one.
type listed struct{}

func (listed) List(context.Context) ([]view.Session, error) {
	return []view.Session{{ID: "s1", Agent: "codex", Title: "Mend it"}}, nil
}

func (listed) View(_ context.Context, id string, q *api.Compact) (*view.View, error) {
	if id != "s1" {
		return nil, errors.New("no such session")
	}
	return &view.View{ThreadID: id, Budget: q.Budget}, nil
}

// TestSessionsOfThisMachine: they are shown to their own user, and to nobody where
// there are keys.
func TestSessionsOfThisMachine(t *testing.T) {
	c := start(t, daemon.Config{Sessions: listed{}}).client(t, "")
	if all, err := c.Sessions(t.Context()); err != nil || len(all.Items) != 1 || all.Items[0].Title != "Mend it" {
		t.Errorf("%+v, %v", all, err)
	}
	if v, err := c.SessionView(t.Context(), "s1", api.Compact{Step: api.Step{Budget: 7}}); err != nil || v.ThreadID != "s1" || v.Budget != 7 {
		t.Errorf("%+v, %v", v, err)
	}
	keys := apikey.New(&apikeytest.Memory{}, nil)
	other := start(t, daemon.Config{Sessions: listed{}, Keys: keys}).client(t, key(t, keys, "acme", apikey.Read|apikey.Write|apikey.Admin))
	for _, ask := range []func() error{
		func() error { _, err := other.Sessions(t.Context()); return err },
		func() error { _, err := other.SessionView(t.Context(), "s1", api.Compact{}); return err },
	} {
		var p *api.Problem
		if err := ask(); !errors.As(err, &p) || p.Status != http.StatusNotFound {
			t.Errorf("with keys: %v", err)
		}
	}
}

// TestPageIsServed: the page needs no key and tells nothing, its data needs one; what
// changes something needs the right to write.
func TestPageIsServed(t *testing.T) {
	keys := apikey.New(&apikeytest.Memory{}, nil)
	h := start(t, daemon.Config{Keys: keys})
	answer, body := h.do(t, "GET", "/", "")
	if answer.StatusCode != http.StatusOK || !strings.Contains(answer.Header.Get("Content-Security-Policy"), "default-src 'none'") || !strings.Contains(body, "/page.js") {
		t.Errorf("%d %v", answer.StatusCode, answer.Header)
	}
	looked(t, h.client(t, key(t, keys, "acme", apikey.Read|apikey.Write)))
	if answer, _ := h.do(t, "GET", "/v1/threads/look/view", ""); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a key: %d", answer.StatusCode)
	}
	reader := h.client(t, key(t, keys, "acme", apikey.Read))
	v, err := reader.View(t.Context(), "look", api.Any)
	if err != nil {
		t.Fatal(err)
	}
	var p *api.Problem
	if _, err := reader.Pin(t.Context(), "look", api.Any, view.Pin{MessageID: string(v.Messages[0].ID)}); !errors.As(err, &p) || p.Status != http.StatusForbidden {
		t.Errorf("a reader pins: %v", err)
	}
	if _, err := h.client(t, key(t, keys, "other", apikey.Read)).View(t.Context(), "look", api.Any); !errors.As(err, &p) || p.Status != http.StatusNotFound {
		t.Errorf("another tenant looks: %v", err)
	}
}

// TestTitlesAreShown: a title in the list of threads shows what would steer a terminal or only looks like
// something else.
func TestTitlesAreShown(t *testing.T) {
	h := start(t, daemon.Config{})
	h.do(t, "POST", "/v1/threads", `{"id":"t"}`, "Content-Type", "application/json")
	h.do(t, "POST", "/v1/threads/t/messages", `{"messages":[{"role":"user","parts":[{"type":"text","text":"Me\u0430d \u202eit \u001b[2J"}]}]}`, "Content-Type", "application/json")
	_, body := h.do(t, "GET", "/v1/threads?about=yes", "")
	if want := `"title":"Me\\u0430d \\u202eit \\x1b[2J"`; !strings.Contains(body, want) {
		t.Errorf("%s, want %s", body, want)
	}
}
