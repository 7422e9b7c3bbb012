package proxy

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/token"
)

// knownWindow is the context window that a provider named when it refused a request as too long.
type knownWindow struct {
	Upstream string    `json:"upstream"`
	Model    string    `json:"model"`
	Window   int       `json:"window"` // tokens; 0 if the refusal named none
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
func (ms *models) modelNow(ctx context.Context, x *received, name string) token.Model {
	m := ms.model(name)
	known := ms.savedWindow(ctx, x, name)
	if known != nil && known.Window > 0 && (known.Window < m.Window || !ms.givesWindow(m)) {
		ms.tellWindow(ctx, x, x.windowID(name), known, m.Window)
		m.Window, m.MaxInput = known.Window, 0
	}
	return m
}

// hasNoLimit reports whether nothing is known that the requests of a model could exceed: neither its
// window, nor that one was refused as too long.
func (ms *models) hasNoLimit(ctx context.Context, x *received, name string) bool {
	return ms.model(name).Window == 0 && ms.savedWindow(ctx, x, name) == nil
}

// savedWindow is what saveWindow kept of a model; nil for none. A store that fails costs no more than
// a refusal.
func (ms *models) savedWindow(ctx context.Context, x *received, name string) *knownWindow {
	known, err := ms.windows.get(ctx, x.windowID(name))
	if err != nil || known.value == nil || time.Since(known.value.Seen) > windowLifetime {
		return nil
	}
	return known.value
}

func (x *received) windowID(model string) string {
	return canonjson.Digest(x.request.URL.Host, model)
}

// tellWindow tells once, and again if the provider names another, that a named window is used in
// place of another; 0 is an unknown one.
func (ms *models) tellWindow(ctx context.Context, x *received, id string, w *knownWindow, instead int) {
	if last, ok := ms.toldWindows.Get(id); ok && last == w.Window || w.Window == instead {
		return
	}
	ms.toldWindows.Put(id, w.Window, 1)
	event.Emit(context.WithoutCancel(ctx), ms.options.Config.Events, event.Event{
		Type: event.WindowLearned, TenantID: ms.options.Config.Requester.TenantID,
		Details: map[string]any{"upstream": w.Upstream, "model": w.Model, "window": w.Window, "instead_of": instead},
	})
}

// saveWindow keeps the window that the provider named when it refused a request as too long. If it
// named none, that is kept of models whose window is not known: the requests that follow have to be
// looked at, and not only once they are refused too.
func (ms *models) saveWindow(x *received, model string, window int) {
	if window == 0 && ms.model(model).Window > 0 {
		return
	}
	upstream := x.request.URL.Host
	ms.bestEffort(x, "window", nil, func(ctx context.Context) error {
		id := x.windowID(model)
		was, _ := ms.windows.get(ctx, id) // one that cannot be read is written again
		if w := was.value; w != nil && (w.Window == window && time.Since(w.Seen) < windowLifetime/2 || window == 0 && time.Since(w.Seen) < windowLifetime) {
			return nil
		}
		_, _, err := ms.windows.put(ctx, id, was, &knownWindow{Upstream: upstream, Model: model, Window: window, Seen: time.Now().UTC().Truncate(time.Second)})
		if errors.Is(err, store.ErrConflict) {
			return nil // another process has written it
		}
		return err
	})
}

// windowPatterns find the model's window in the refusals of providers.
var windowPatterns = []*regexp.Regexp{
	regexp.MustCompile(`tokens? > ([0-9]{4,8}) maximum`),                                 // Anthropic
	regexp.MustCompile(`exceed context limit: [0-9]+ \+ [0-9]+ > ([0-9]{4,8})`),          // Anthropic, with the output
	regexp.MustCompile(`maximum context length(?: is| of|:) ([0-9]{4,8})`),               // OpenAI and most compatible servers
	regexp.MustCompile(`model with ([0-9]{4,8}) maximum context length`),                 // Mistral
	regexp.MustCompile(`tokens exceed the configured limit of ([0-9]{4,8})`),             // OpenAI: input limit below the window
	regexp.MustCompile(`maximum number of tokens allowed[^0-9]{0,4}([0-9]{4,8})`),        // Gemini
	regexp.MustCompile(`maximum prompt length is ([0-9]{4,8})`),                          // xAI
	regexp.MustCompile(`exceeded model token limit: ([0-9]{4,8})`),                       // Kimi
	regexp.MustCompile(`prompt token count of [0-9]+ exceeds the limit of ([0-9]{4,8})`), // GitHub Copilot
	regexp.MustCompile(`loaded with context length of (?:only )?([0-9]{4,8})`),           // LM Studio
	regexp.MustCompile(`maximum model length of ([0-9]{4,8})`),                           // vLLM
	regexp.MustCompile(`than the model's context length \(([0-9]{4,8})`),                 // SGLang
	regexp.MustCompile(`"n_ctx" ?: ?([0-9]{4,8})`),                                       // llama.cpp
	regexp.MustCompile(`context (?:window|size)[^0-9]{0,20}([0-9]{4,8})`),                // llama.cpp and others
}

// windowInRefusal finds the window in a refusal; 0 if it names none.
func windowInRefusal(refusal string) int {
	refusal = strings.ReplaceAll(strings.ToLower(refusal), "exceeds limit (2013)", "") // MiniMax's code of the error
	for _, re := range windowPatterns {
		if m := re.FindStringSubmatch(refusal); m != nil {
			n, _ := strconv.Atoi(m[1]) // eight digits at most
			return n
		}
	}
	return 0
}
