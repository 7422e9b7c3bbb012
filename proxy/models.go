package proxy

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/token"
)

// windowPatterns find the model's window in the refusals of providers.
var windowPatterns = []func() *regexp.Regexp{
	lazyregexp.New(`tokens? > ([0-9]{4,8}) maximum`),                                 // Anthropic
	lazyregexp.New(`exceed context limit: [0-9]+ \+ [0-9]+ > ([0-9]{4,8})`),          // Anthropic, with the output
	lazyregexp.New(`maximum context length(?: is| of|:) ([0-9]{4,8})`),               // OpenAI and most compatible servers
	lazyregexp.New(`model with ([0-9]{4,8}) maximum context length`),                 // Mistral
	lazyregexp.New(`tokens exceed the configured limit of ([0-9]{4,8})`),             // OpenAI: input limit below the window
	lazyregexp.New(`maximum number of tokens allowed[^0-9]{0,4}([0-9]{4,8})`),        // Gemini
	lazyregexp.New(`maximum prompt length is ([0-9]{4,8})`),                          // xAI
	lazyregexp.New(`exceeded model token limit: ([0-9]{4,8})`),                       // Kimi
	lazyregexp.New(`prompt token count of [0-9]+ exceeds the limit of ([0-9]{4,8})`), // GitHub Copilot
	lazyregexp.New(`loaded with context length of (?:only )?([0-9]{4,8})`),           // LM Studio
	lazyregexp.New(`maximum model length of ([0-9]{4,8})`),                           // vLLM
	lazyregexp.New(`than the model's context length \(([0-9]{4,8})`),                 // SGLang
	lazyregexp.New(`"n_ctx" ?: ?([0-9]{4,8})`),                                       // llama.cpp
	lazyregexp.New(`context (?:window|size)[^0-9]{0,20}([0-9]{4,8})`),                // llama.cpp and others
}

// windowInRefusal finds the window in a refusal; 0 if it names none.
func windowInRefusal(refusal string) int {
	refusal = strings.ReplaceAll(strings.ToLower(refusal), "exceeds limit (2013)", "") // MiniMax's code of the error
	for _, pattern := range windowPatterns {
		if m := pattern().FindStringSubmatch(refusal); m != nil {
			n, _ := strconv.Atoi(m[1]) // eight digits at most
			return n
		}
	}
	return 0
}

func (x *received) windowID(model string) string {
	return canonjson.Digest(x.request.URL.Host, model)
}

// modelName is the model that the request asks for. Without a parsed request the body is
// searched.
func (x *received) modelName(r *parsedRequest) string {
	switch {
	case x.endpoint.model != "":
		return x.endpoint.model
	case r != nil:
		return r.Prompt.Model
	}
	return x.plain.Model()
}

// models knows models: by the table and the options, and by what their providers said.
type models struct {
	*core
	models      token.ModelSet
	learned     records[learned]
	toldWindows *lru.Cache[string, int]         // of which an event has told, by id
	assumed     *lru.Cache[string, token.Model] // of models that the table does not know, by name
}

// modelNow is what is known of a model. The window that its provider named takes precedence over that
// of the built-in table, but not over a smaller one that the options give.
func (ms *models) modelNow(ctx context.Context, x *received, name string) token.Model {
	m := ms.model(name)
	known := ms.learnedOf(ctx, x, name)
	if known.Window > 0 && (known.Window < m.Window || !ms.givesWindow(m)) {
		ms.tellWindow(ctx, x, x.windowID(name), known, m.Window)
		m.Window, m.MaxInput = known.Window, 0
	}
	return m
}

// model is what the table and the options say of a model; only its name if they say nothing.
func (ms *models) model(name string) token.Model {
	m, err := ms.models.Find(name)
	if err != nil {
		m = ms.assumedModel(name)
	}
	if ms.options.Window > 0 {
		m.Window, m.MaxInput = ms.options.Window, 0
	}
	return m
}

// assumedModel is what is assumed of a model that the table does not know: the figures of its
// family, which an event tells once, and the default window.
func (ms *models) assumedModel(name string) token.Model {
	m, known := ms.assumed.Get(name)
	if !known {
		var err error
		if m, err = ms.models.Like(name); err != nil {
			m = token.Model{Name: name}
		}
		ms.assumed.Put(name, m, 1)
		if err == nil && ms.options.Window == 0 && ms.options.DefaultWindow == 0 {
			event.Emit(context.Background(), ms.options.Config.Events, event.Event{
				Type: event.ModelAssumed, TenantID: ms.options.Config.Requester.TenantID,
				Details: map[string]any{"model": name, "window": m.Window, "figures": m.Source},
			})
		}
	}
	if ms.options.DefaultWindow > 0 {
		m.Window, m.MaxInput = ms.options.DefaultWindow, 0
	}
	return m
}

// givesWindow reports whether the window of a model is of the options, and not of the built-in
// table.
func (ms *models) givesWindow(m token.Model) bool {
	if m.Window == 0 || ms.options.Window > 0 {
		return m.Window > 0
	}
	if _, err := ms.models.Find(m.Name); err != nil {
		return ms.options.DefaultWindow > 0
	}
	builtin, err := token.Models().Find(m.Name)
	return err != nil || m.Window != builtin.Window
}

// learned is what a provider let know of a model, and when. It is believed for learnedLifetime:
// providers change their models.
type learned struct {
	Upstream string `json:"upstream"`
	Model    string `json:"model"`
	// Window is the context window, in tokens, that was named in a refusal of a request as too
	// long; 0 if that named none.
	Window     int       `json:"window,omitempty"`
	WindowSeen time.Time `json:"window_seen,omitzero"`
	// Reasoning says that a request which was refused was taken without messages in the
	// assistant's role that were made here.
	Reasoning     bool      `json:"reasoning,omitempty"`
	ReasoningSeen time.Time `json:"reasoning_seen,omitzero"`
}

const (
	// maxModels bounds the models of which something is remembered.
	maxModels       = 1000
	learnedLifetime = 30 * 24 * time.Hour
)

// learnedOf is what is known of a model. A store that fails costs no more than a refusal.
func (ms *models) learnedOf(ctx context.Context, x *received, name string) (known learned) {
	id := x.windowID(name)
	known, _ = ms.learned.getValue(ctx, id)
	if time.Since(known.WindowSeen) > learnedLifetime {
		known.Window, known.WindowSeen = 0, time.Time{}
	}
	if time.Since(known.ReasoningSeen) > learnedLifetime {
		known.Reasoning, known.ReasoningSeen = false, time.Time{}
	}
	return known
}

// learn keeps what was learned of a model. Another process may be faster: then that is kept.
func (ms *models) learn(x *received, what, name string, add func(known learned, now time.Time) learned) {
	ms.bestEffort(x, what, nil, func(ctx context.Context) error {
		was, _ := ms.learned.get(ctx, x.windowID(name)) // one that cannot be read is written again
		before := learned{Upstream: x.request.URL.Host, Model: name}
		if was.value != nil {
			before = *was.value
		}
		after := add(before, time.Now().UTC().Truncate(time.Second))
		if after == before {
			return nil
		}
		_, _, err := ms.learned.put(ctx, x.windowID(name), was, &after)
		return unlessConflict(err)
	})
}

// tellWindow tells once, and again if the provider names another, that a named window is used in
// place of another; 0 is an unknown one.
func (ms *models) tellWindow(ctx context.Context, x *received, id string, w learned, instead int) {
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
	ms.learn(x, "window", model, func(known learned, now time.Time) learned {
		age := now.Sub(known.WindowSeen)
		if known.Window == window && age < learnedLifetime/2 || window == 0 && age < learnedLifetime {
			return known
		}
		known.Window, known.WindowSeen = window, now
		return known
	})
}

// saveReasoning keeps whether the provider demands reasoning everywhere.
func (ms *models) saveReasoning(x *received, model string, holds bool) {
	ms.learn(x, "reasoning_rule", model, func(known learned, now time.Time) learned {
		known.Reasoning, known.ReasoningSeen = holds, now
		return known
	})
}
