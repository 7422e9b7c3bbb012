package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestSecretLasts: a proxy that is started again over the same store knows what it
// gave, and one with another store does not.
func TestSecretLasts(t *testing.T) {
	kept := &store.Memory{}
	_, first := ignorant(t, proxy.Options{Config: palimpsest.Config{Store: store.Tenant{Documents: kept}}})
	a := newAgent(t, wire.Anthropic, first, false)
	a.grow(0, 5)
	a.native = `,"compaction":{"type":"summarize"}`
	a.history = []string{`{"role":"assistant","content":` + a.decoded(a.peek()).Get("content").Raw + `}`}
	a.native = ""
	a.user("Go on.")
	for name, c := range map[string]struct {
		o    proxy.Options
		want int
	}{
		"the same store": {proxy.Options{Config: palimpsest.Config{Store: store.Tenant{Documents: kept}}}, http.StatusOK},
		"another store":  {proxy.Options{Config: palimpsest.Config{Store: store.Tenant{Documents: &store.Memory{}}}}, http.StatusBadRequest},
		"no documents":   {proxy.Options{}, http.StatusBadRequest},
		"a key":          {proxy.Options{Secret: []byte("another"), Config: palimpsest.Config{Store: store.Tenant{Documents: kept}}}, http.StatusBadRequest},
	} {
		_, url := ignorant(t, c.o)
		a.url = url
		if s := a.peek(); s.status != c.want {
			t.Errorf("%s: %d %s", name, s.status, s.raw)
		}
	}
}

// noDocuments is a store that cannot be read.
type noDocuments struct{ *store.Memory }

func (noDocuments) Documents(context.Context, string, string, int) ([]store.Document, error) {
	return nil, errors.New("the disk is gone")
}

func (noDocuments) Document(context.Context, string, string) (store.Document, error) {
	return store.Document{}, errors.New("the disk is gone")
}

// silent is a summarizer that fails.
type silent struct{}

func (silent) Summarize(context.Context, summarize.Input) (summarize.Result, error) {
	return summarize.Result{}, errors.New("the model is gone")
}

// stuck is a summarizer that never answers, careless one that panics.
type (
	stuck    struct{}
	careless struct{}
)

func (stuck) Summarize(ctx context.Context, _ summarize.Input) (summarize.Result, error) {
	<-ctx.Done()
	return summarize.Result{}, ctx.Err()
}

func (careless) Summarize(context.Context, summarize.Input) (summarize.Result, error) {
	panic("not that again")
}

// TestNativeFaults: where something of ours fails the conversation goes to the
// upstream whole, without what it does not know; a request for nothing but a
// summary is answered as the provider answers when it cannot make one.
func TestNativeFaults(t *testing.T) {
	for name, o := range map[string]proxy.Options{
		"the key":        {Config: palimpsest.Config{Store: store.Tenant{Documents: noDocuments{&store.Memory{}}}}},
		"the summarizer": {Config: palimpsest.Config{Summarizer: silent{}}},
		"the deadline":   {Config: palimpsest.Config{Summarizer: stuck{}}, Deadline: 500 * time.Millisecond},
		"a panic":        {Config: palimpsest.Config{Summarizer: careless{}}},
	} {
		var told []string
		var mu sync.Mutex
		o.Config.Events = event.Func(func(_ context.Context, e event.Event) {
			if e.Type == event.Failed {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, fmt.Sprint(e.Details["where"]))
			}
		})
		up, url := ignorant(t, o)
		a := newAgent(t, wire.Anthropic, url, false)
		a.header = betas(native.BetaCompact)
		a.large = true
		a.grow(0, 24)
		want := a.body()
		a.native = `,"context_management":{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":50000}}]}`
		s := a.peek()
		if s.status != http.StatusOK || s.text == "" || string(up.Requests()[0].Body) != string(want) {
			t.Errorf("%s: %d %s", name, s.status, s.raw)
		}
		a.native = `,"compaction":{"type":"summarize"}`
		if s = a.peek(); s.status != 529 || gjson.GetBytes(s.raw, "error.details.error_code").Str != "compaction_unavailable" || len(up.Requests()) != 1 {
			t.Errorf("%s: %d %s", name, s.status, s.raw)
		}
		mu.Lock()
		if !slices.Equal(told, []string{"proxy_native", "proxy_native"}) {
			t.Errorf("%s: events %q", name, told)
		}
		mu.Unlock()
	}
}
