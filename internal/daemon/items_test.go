package daemon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/items"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestItems: hosts have conversations of every type of item by prepare and finish, with results that come late and a
// program that still runs, under each policy. What is prepared is what the provider takes, with the instructions and
// the tools of the whole conversation, and what runs as it was.
func TestItems(t *testing.T) {
	policies := []policy.Policy{policy.Auto{}, policy.Notes{}, policy.Ladder{}, policy.Session{Keep: 3}, policy.Timeline{KeepRecent: 200}, policy.Workstream{Tail: 2}, policy.Loop{}}
	compacted, threads := map[string]int{}, 0
	clients := map[string]*api.Client{}
	for _, p := range policies {
		clients[p.Name()] = start(t, daemon.Config{Compactor: palimpsest.Config{Policy: p}, Limits: daemon.Limits{Rate: 100_000}}).client(t, "")
	}
	property.Few(t, 40, func(t *rapid.T) {
		name := rapid.SampledFrom(policies).Draw(t, "policy").Name()
		h := &itemHost{c: clients[name], api: rapid.SampledFrom([]string{wire.Anthropic, wire.Chat, wire.Gemini, wire.Responses}).Draw(t, "api")}
		threads++
		h.id = fmt.Sprintf("thread-%d", threads)
		h.play(t, items.Turns(h.api, items.Draw(t, h.api, 10, 30)))
		compacted[name] += h.compacted
	})
	for _, p := range policies {
		if compacted[p.Name()] == 0 && !testing.Short() { // few are drawn then
			t.Errorf("%s never compacted: %v", p.Name(), compacted)
		}
	}
}

// itemHost is a host with a thread.
type itemHost struct {
	c         *api.Client
	api, id   string
	history   []string
	compacted int
}

// play has the turns of a conversation played, and asks for a compaction at every eighth.
func (h *itemHost) play(t *rapid.T, turns [][]string) {
	ctx := t.Context()
	if _, err := h.c.CreateThread(ctx, api.NewThread{ID: h.id}); err != nil {
		t.Fatal(err)
	}
	for n, turn := range turns {
		h.history = append(h.history, turn...)
		if !items.ByModel(h.api, turn[0]) {
			h.prepare(t, turn, n%8 == 7)
			continue
		}
		whole, _ := wiretest.Answer(h.api, strings.Join(turn, ","))
		if _, err := h.c.Finish(ctx, h.id, api.Any, api.Answer{API: h.api, Response: json.RawMessage(whole)}); err != nil {
			t.Fatalf("%v: %s", err, whole)
		}
	}
}

func (h *itemHost) prepare(t *rapid.T, news []string, compacts bool) {
	step := api.Step{API: h.api, Body: json.RawMessage(items.Body(h.api, news)), Force: compacts}
	if compacts {
		step.Budget = 2500
	}
	made, err := h.c.Prepare(t.Context(), h.id, api.Any, step)
	var full *api.Problem
	if errors.As(err, &full) && full.Status == http.StatusUnprocessableEntity {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if made.PlanVersion > 0 {
		h.compacted++
	}
	if err := items.Lost(apicodec.For(h.api), items.Body(h.api, h.history), string(made.Body)); err != nil {
		t.Fatalf("%s: %v\n%s", h.api, err, made.Body)
	}
}
