package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/token"
)

// windows are the context windows that providers named when they refused a
// request, by upstream and model. They outlive the process where there are
// documents.
type windows struct {
	documents store.Documents
	known     *lru.Cache[string, knownWindow] // by the id of the document
}

// knownWindow is the body of a document; the zero value stands for none.
type knownWindow struct {
	Upstream string    `json:"upstream"`
	Model    string    `json:"model"`
	Window   int       `json:"window"` // tokens
	Seen     time.Time `json:"seen"`

	version int
}

const (
	// windowKind is the kind of the documents that hold windows.
	windowKind = "proxy-window"
	// maxWindows bounds the models that windows are remembered of.
	maxWindows = 1000
	// windowFor is how long a window is believed: providers and servers change
	// theirs, and a refusal tells it anew.
	windowFor = 30 * 24 * time.Hour
)

// find returns the window of a model; 0 where none was named. A store that
// fails costs no more than a refusal that could have been known.
func (l *windows) find(ctx context.Context, upstream, model string) int {
	w, err := l.read(ctx, identify.Digest(upstream, model))
	if err != nil || time.Since(w.Seen) > windowFor {
		return 0
	}
	return w.Window
}

func (l *windows) read(ctx context.Context, id string) (w knownWindow, err error) {
	if w, ok := l.known.Get(id); ok {
		return w, nil
	}
	d, err := l.documents.Document(ctx, windowKind, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return w, err
	}
	if err == nil && json.Unmarshal(d.Body, &w) == nil {
		w.version = d.Version
	}
	l.known.Put(id, w, 1)
	return w, nil
}

// learn keeps the window that a provider named when it refused a request.
func (l *windows) learn(ctx context.Context, upstream, model string, window int) error {
	id := identify.Digest(upstream, model)
	was, _ := l.read(ctx, id) // one that cannot be read now is named anew
	if was.Window == window && time.Since(was.Seen) < windowFor/2 {
		return nil
	}
	w := knownWindow{Upstream: upstream, Model: model, Window: window, Seen: time.Now().UTC().Truncate(time.Second), version: was.version}
	l.known.Put(id, w, 1)
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	w.version, err = l.documents.Put(ctx, store.Document{Kind: windowKind, ID: id, Version: w.version, Body: body})
	switch {
	case errors.Is(err, store.ErrConflict):
		l.known.Delete(id) // what another process wrote is as good
		return nil
	case err == nil:
		l.known.Put(id, w, 1)
	}
	return err
}

// model is what is known of the model that the request goes to: what its provider
// named counts more than the table.
func (x *exchange) model(ctx context.Context, name string) token.Model {
	m := x.t.model(name)
	if w := x.t.windows.find(ctx, x.request.URL.Host, name); w > 0 && (x.t.options.Window == 0 || w < x.t.options.Window) {
		m.Window, m.MaxInput = w, 0
	}
	return m
}

// learn keeps the window that the provider named when it refused the request.
func (x *exchange) learn(model string, window int) {
	x.attempt(x.request.Context(), "window", nil, func(ctx context.Context) error {
		return x.t.windows.learn(ctx, x.request.URL.Host, model, window)
	})
}

// refusedWindows are the places in which providers name the model's window when they
// refuse a request.
var refusedWindows = []*regexp.Regexp{
	regexp.MustCompile(`tokens? > ([0-9]{4,8}) maximum`),                          // Anthropic
	regexp.MustCompile(`maximum context length is ([0-9]{4,8})`),                  // OpenAI and most compatible servers
	regexp.MustCompile(`maximum number of tokens allowed[^0-9]{0,4}([0-9]{4,8})`), // Gemini
	regexp.MustCompile(`context (?:window|size)[^0-9]{0,20}([0-9]{4,8})`),         // llama.cpp and others
}

// namedWindow finds the window in a refusal; 0 where it names none.
func namedWindow(refusal string) int {
	refusal = strings.ToLower(refusal)
	for _, re := range refusedWindows {
		if m := re.FindStringSubmatch(refusal); m != nil {
			n, _ := strconv.Atoi(m[1]) // eight digits at most
			return n
		}
	}
	return 0
}
