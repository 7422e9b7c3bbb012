package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/token"
)

// learned are the context windows that providers named when they refused a
// request, by upstream and model. They outlive the process where there are
// documents.
type learned struct {
	documents store.Documents

	mu      sync.Mutex
	loaded  bool
	windows map[string]learnedWindow // by the id of the document
}

// learnedWindow is the body of a document.
type learnedWindow struct {
	Upstream string    `json:"upstream"`
	Model    string    `json:"model"`
	Window   int       `json:"window"` // tokens
	Seen     time.Time `json:"seen"`

	version int
}

const (
	// windowKind is the kind of the documents that hold windows.
	windowKind = "proxy-window"
	// maxLearned bounds the models that windows are remembered of.
	maxLearned = 1000
	// learnedFor is how long a window is believed: providers and servers change
	// theirs, and a refusal tells it anew.
	learnedFor = 30 * 24 * time.Hour
)

func windowID(upstream, model string) string { return digest(upstream, model) }

// find returns the window of a model; 0 where none was learned. A store that
// fails costs no more than a refusal that could have been known.
func (l *learned) find(ctx context.Context, upstream, model string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.loaded {
		l.loaded = l.load(ctx) == nil
	}
	w := l.windows[windowID(upstream, model)]
	if time.Since(w.Seen) > learnedFor {
		return 0
	}
	return w.Window
}

// load reads what earlier processes learned.
func (l *learned) load(ctx context.Context) error {
	windows := map[string]learnedWindow{}
	for after := ""; len(windows) < maxLearned; {
		list, err := l.documents.Documents(ctx, windowKind, after, 0)
		if err != nil {
			return err
		}
		for _, d := range list {
			var w learnedWindow
			if json.Unmarshal(d.Body, &w) == nil {
				w.version = d.Version
				windows[d.ID] = w
			}
			after = d.ID
		}
		if len(list) < store.DefaultLimit {
			break
		}
	}
	for id, w := range l.windows { // learned while the store could not be read
		windows[id] = w
	}
	l.windows = windows
	return nil
}

// learn keeps the window that a provider named when it refused a request.
func (l *learned) learn(ctx context.Context, upstream, model string, window int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := windowID(upstream, model)
	was, there := l.windows[id]
	if !there && len(l.windows) >= maxLearned || was.Window == window && time.Since(was.Seen) < learnedFor/2 {
		return nil
	}
	w := learnedWindow{Upstream: upstream, Model: model, Window: window, Seen: time.Now().UTC().Truncate(time.Second), version: was.version}
	if l.windows == nil {
		l.windows = map[string]learnedWindow{}
	}
	l.windows[id] = w
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	version, err := l.documents.Put(ctx, store.Document{Kind: windowKind, ID: id, Version: w.version, Body: body})
	switch {
	case errors.Is(err, store.ErrConflict):
		l.loaded = false // another process was faster: what it wrote is as good
	case err != nil:
		return err
	default:
		w.version = version
		l.windows[id] = w
	}
	return nil
}

// model is what is known of the model that the request goes to: what its provider
// named counts more than the table.
func (x *exchange) model(ctx context.Context, name string) token.Model {
	m := x.t.model(name)
	if w := x.t.learned.find(ctx, x.request.URL.Host, name); w > 0 && (x.t.options.Window == 0 || w < x.t.options.Window) {
		m.Window, m.MaxInput = w, 0
	}
	return m
}

// learn keeps the window that the provider named when it refused the request.
func (x *exchange) learn(window int) {
	x.guarded(x.request.Context(), "window", func(x *exchange, ctx context.Context) (verdict, error) {
		return verdict{}, x.t.learned.learn(ctx, x.request.URL.Host, x.modelName(), window)
	})
}
