package daemon_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/setup"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// clock is a clock that a test moves.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(1_800_000_000, c.at.Load()) }
func (c *clock) forward(d time.Duration) { c.at.Add(int64(d)) }

// TestTenantDisk: who keeps as much as he may is told so and reads on, another writes,
// and deleting makes room.
func TestTenantDisk(t *testing.T) {
	const most = 200 << 10
	var now clock
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "p.db"), &sqlite.Options{TenantBytes: most, Now: now.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	h, a, b := twoTenants(t, daemon.Config{Store: db, Limits: daemon.Limits{Rate: 10_000}})
	ctx, ours, theirs := t.Context(), h.client(t, a), h.client(t, b)
	text := strings.Repeat("much ", 2<<10)
	kept := 0
	for err = nil; err == nil; kept++ {
		if kept > 2*most/len(text) {
			t.Fatal("nothing is refused")
		}
		_, err = ours.Append(ctx, "t", kept, api.Append{Messages: []neutral.Message{said("user", fmt.Sprint(kept, text))}})
	}
	if kept--; !api.IsKind(err, api.OverQuota) || kept < most/len(text)-2 || kept > most/len(text)+1 {
		t.Errorf("after %d messages: %v", kept, err)
	}
	if _, err := ours.CreateThread(ctx, api.NewThread{ID: "new"}); !api.IsKind(err, api.OverQuota) {
		t.Errorf("a new thread: %v", err)
	}
	if log, err := ours.Log(ctx, "t", "", 500); err != nil || len(log.Items) != kept {
		t.Errorf("reading: %d messages, %v", len(log.Items), err)
	}
	if _, err := theirs.Append(ctx, "t", 0, api.Append{Messages: []neutral.Message{said("user", text)}}); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	if n := h.metric(t, b, `palimpsest_refused_total{limit="disk"}`); n != "2" {
		t.Errorf("%s were refused", n)
	}
	if err := db.Tenant("a").Catalog.Delete(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	now.forward(time.Second)
	if _, err := ours.CreateThread(ctx, api.NewThread{ID: "new"}); err != nil {
		t.Errorf("after deleting: %v", err)
	}
}

// TestDeleteAtQuota: who keeps as much as he may can delete threads, also one that the proxy
// remembers something of.
func TestDeleteAtQuota(t *testing.T) {
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "p.db"), &sqlite.Options{TenantBytes: 50 << 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	h := filled(t, daemon.Config{Store: db})
	for kind, body := range map[string]string{"proxy-response": `{"log":"t","at":1,"output":["said"]}`, "proxy-beginning": `["t","u"]`} {
		if _, err := db.Tenant("").Documents.Put(t.Context(), store.Document{Kind: kind, ID: "x", Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	c, text := h.client(t, ""), strings.Repeat("much ", 2<<10)
	for n := 2; ; n++ {
		_, err := c.Append(t.Context(), "t", n, api.Append{Messages: []neutral.Message{said("user", fmt.Sprint(n, text))}})
		if api.IsKind(err, api.OverQuota) {
			break
		} else if err != nil || n > 20 {
			t.Fatalf("message %d: %v", n, err)
		}
	}
	if answer, body := h.do(t, "DELETE", "/v1/threads/t", ""); answer.StatusCode != 204 {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	if left := documents(t, db.Tenant("")); left["proxy-response/x"] != "" || left["proxy-beginning/x"] != `["u"]` {
		t.Errorf("the proxy remembers %v", left)
	}
}

// TestTenantSpending: who has asked models as much as he may is answered without them,
// another still has them asked, and after some time so has the first.
func TestTenantSpending(t *testing.T) {
	provider, compactor := askingProvider(t, "I look further")
	var now clock
	h, a, b := twoTenants(t, daemon.Config{Compactor: compactor, Spending: daemon.NewSpending(40_000, now.now)})
	// compact has a thread of its own compacted, and returns how often a model was asked.
	compact := func(key, id string) int {
		t.Helper()
		c, before := h.client(t, key), len(provider.Requests())
		if _, err := c.CreateThread(t.Context(), api.NewThread{ID: id}); err != nil {
			t.Fatal(err)
		}
		for n := range 16 {
			body := strings.ReplaceAll(string(stepRequest(n)), "Handle", "Handle"+id)
			p, err := c.Prepare(t.Context(), id, api.Any, api.Step{API: wire.Anthropic, Body: []byte(body), Window: 16_000, Output: 1000})
			if err != nil {
				t.Fatalf("%s, step %d: %v", id, n, err)
			}
			if p.Tokens > 16_000 {
				t.Errorf("%s, step %d: %d tokens", id, n, p.Tokens)
			}
			if _, err := c.Finish(t.Context(), id, p.Version, api.Answer{API: wire.Anthropic, Response: []byte(strings.ReplaceAll(string(response(n)), "Handle", "Handle"+id))}); err != nil {
				t.Fatal(err)
			}
		}
		return len(provider.Requests()) - before
	}
	first := compact(a, "a0")
	asked, last := first, first
	for n := 1; n < 12 && last > 0; n++ {
		last = compact(a, fmt.Sprint("a", n))
		asked += last
	}
	if first == 0 || last != 0 {
		t.Fatalf("asked %d times for the first thread, %d in all, %d for the last", first, asked, last)
	}
	if n := compact(b, "b0"); n == 0 {
		t.Error("for another tenant no model is asked")
	}
	t.Logf("%d questions, %s tokens, %s refused", len(provider.Requests()), h.metric(t, b, "palimpsest_spent_tokens_total"), h.metric(t, b, "palimpsest_spending_refused_total"))
	if h.metric(t, b, "palimpsest_spending_refused_total") == "0" || h.metric(t, b, "palimpsest_spent_tokens_total") == "0" {
		t.Error("the metrics say nothing of it")
	}
	now.forward(time.Hour)
	if n := compact(a, "later"); n == 0 {
		t.Error("an hour later no model is asked")
	}
}

// askingProvider is a provider that tells one fact in each summary, and what compacts by asking it.
func askingProvider(t *testing.T, fact string) (*llmtest.Server, palimpsest.Config) {
	t.Helper()
	provider := llmtest.NewProvider(t, llmtest.Provider{Windows: map[string]int{"m": 200_000}, Reply: func(llmtest.Request) llmtest.Answer {
		return llmtest.Answer{Text: `{"facts":[{"text":"` + fact + `","sources":[1,2,3]}],"decisions":[],"plan":[],"open_items":[],"failed_attempts":[],"tool_outcomes":[]}`}
	}})
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": provider.URL + "/v1"}
	chosen, err := setup.Open("auto", &setup.Options{Summarizer: "openai:m", Getenv: func(name string) string { return environment[name] }})
	if err != nil {
		t.Fatal(err)
	}
	return provider, chosen.Config(counter)
}
