package proxy

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/token"
)

// knownWindow is the context window that a provider named when it refused a request.
type knownWindow struct {
	Upstream string    `json:"upstream"`
	Model    string    `json:"model"`
	Window   int       `json:"window"` // tokens
	Seen     time.Time `json:"seen"`
}

const (
	// maxWindows bounds the models whose windows are remembered.
	maxWindows = 1000
	// windowLifetime is how long a window is trusted: providers change theirs, and the next
	// refusal names it again.
	windowLifetime = 30 * 24 * time.Hour
)

// windowsIn are the known windows, by upstream and model.
func windowsIn(documents store.Documents) records[knownWindow] {
	return records[knownWindow]{documents: documents, kind: "proxy-window", cache: lru.New[string, record[knownWindow]](maxWindows)}
}

// model is what is known of a model. The window that its provider named takes precedence over that
// of the built-in table, but not over a smaller one that the options give.
func (x *exchange) model(ctx context.Context, name string) token.Model {
	m := x.t.model(name)
	// A store that fails costs no more than a refusal.
	id := identify.Digest(x.request.URL.Host, name)
	known, err := x.t.windows.get(ctx, id)
	if err != nil || known.value == nil || time.Since(known.value.Seen) > windowLifetime {
		return m
	}
	if w := known.value.Window; w > 0 && (w < m.Window || !x.t.givesWindow(m)) {
		x.tellWindow(ctx, id, known.value, m.Window)
		m.Window, m.MaxInput = w, 0
	}
	return m
}

// tellWindow tells once, and again if the provider names another, that a named window is used in
// place of another; 0 is an unknown one.
func (x *exchange) tellWindow(ctx context.Context, id string, w *knownWindow, instead int) {
	if last, ok := x.t.toldWindows.Get(id); ok && last == w.Window || w.Window == instead {
		return
	}
	x.t.toldWindows.Put(id, w.Window, 1)
	event.Emit(context.WithoutCancel(ctx), x.t.options.Config.Events, event.Event{
		Type: event.WindowLearned, TenantID: x.t.options.Config.Requester.TenantID,
		Details: map[string]any{"upstream": w.Upstream, "model": w.Model, "window": w.Window, "instead_of": instead},
	})
}

// saveWindow keeps the window that the provider named when it refused the request.
func (x *exchange) saveWindow(model string, window int) {
	upstream := x.request.URL.Host
	x.bestEffort("window", nil, func(ctx context.Context) error {
		id := identify.Digest(upstream, model)
		was, _ := x.t.windows.get(ctx, id) // one that cannot be read is written again
		if w := was.value; w != nil && w.Window == window && time.Since(w.Seen) < windowLifetime/2 {
			return nil
		}
		_, _, err := x.t.windows.put(ctx, id, was, &knownWindow{Upstream: upstream, Model: model, Window: window, Seen: time.Now().UTC().Truncate(time.Second)})
		if errors.Is(err, store.ErrConflict) {
			return nil // another process has written it
		}
		return err
	})
}

// windowPatterns find the model's window in the refusals of providers.
var windowPatterns = []*regexp.Regexp{
	regexp.MustCompile(`tokens? > ([0-9]{4,8}) maximum`),                          // Anthropic
	regexp.MustCompile(`maximum context length is ([0-9]{4,8})`),                  // OpenAI and most compatible servers
	regexp.MustCompile(`maximum number of tokens allowed[^0-9]{0,4}([0-9]{4,8})`), // Gemini
	regexp.MustCompile(`context (?:window|size)[^0-9]{0,20}([0-9]{4,8})`),         // llama.cpp and others
}

// windowInRefusal finds the window in a refusal; 0 if it names none.
func windowInRefusal(refusal string) int {
	refusal = strings.ToLower(refusal)
	for _, re := range windowPatterns {
		if m := re.FindStringSubmatch(refusal); m != nil {
			n, _ := strconv.Atoi(m[1]) // eight digits at most
			return n
		}
	}
	return 0
}
