package daemon_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/palimpsest-ai/palimpsest/api"
)

// checkingTransport checks every answer by the OpenAPI document.
type checkingTransport struct {
	t        *testing.T
	next     http.RoundTripper
	document document
}

func (c *checkingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(r)
	if err != nil || strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") || answer.Header.Get("X-Provider") != "" || r.URL.Path == "/mcp" && answer.StatusCode < 400 {
		return answer, err
	}
	data, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(data))
	if err != nil {
		return answer, err
	}
	if err := c.document.check(r, answer, data); err != nil {
		c.t.Errorf("%s %s: %d: %v", r.Method, r.URL.Path, answer.StatusCode, err)
	}
	if answer.Header.Get("X-Request-Id") == "" {
		c.t.Errorf("%s %s: no request id", r.Method, r.URL.Path)
	}
	return answer, nil
}

// document is as much of OpenAPI as the daemon's document uses.
type document struct {
	Paths map[string]map[string]struct {
		Responses map[string]struct {
			Content map[string]struct{ Schema *jsonschema.Schema }
		}
	}
	Components struct{ Schemas map[string]*jsonschema.Schema }
}

// readDocument allows no member that the document does not name.
var readDocument = sync.OnceValues(func() (d document, err error) {
	err = json.Unmarshal(bytes.ReplaceAll(api.Document(), []byte("#/components/schemas/"), []byte("#/$defs/")), &d)
	for _, s := range d.Components.Schemas {
		if s.Properties != nil {
			s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
		}
	}
	return d, err
})

// pathMatches reports whether a path fits one of the document, such as
// /v1/threads/{thread}.
func pathMatches(pattern, path string) bool {
	wants, has := strings.Split(pattern, "/"), strings.Split(path, "/")
	return slices.EqualFunc(wants, has, func(want, is string) bool {
		before, variable, _ := strings.Cut(want, "{")
		_, after, any := strings.Cut(variable, "}")
		if !any {
			return want == is
		}
		return len(is) > len(before)+len(after) && strings.HasPrefix(is, before) && strings.HasSuffix(is, after)
	})
}

// check says how an answer differs from the document.
func (d document) check(r *http.Request, answer *http.Response, data []byte) error {
	kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	if answer.StatusCode >= 400 {
		if kind != "application/problem+json" {
			return errors.New("a problem has the type " + kind)
		}
		return d.checkJSON(problem, data)
	}
	for path, methods := range d.Paths {
		op, ok := methods[strings.ToLower(r.Method)]
		if !ok || !pathMatches(path, r.URL.EscapedPath()) {
			continue
		}
		success, ok := op.Responses[strconv.Itoa(answer.StatusCode)]
		if !ok {
			return errors.New("the document does not know this status")
		}
		if _, any := success.Content["*/*"]; any {
			return nil
		}
		if len(success.Content) == 0 && len(data) == 0 {
			return nil
		}
		content, ok := success.Content[kind]
		if !ok {
			return errors.New("the document does not know the type " + kind)
		}
		if strings.HasPrefix(kind, "text/") {
			return nil
		}
		return d.checkJSON(content.Schema, data)
	}
	return errors.New("the document does not know this address")
}

// resolved holds the schemas of the document that answers were checked by; resolving takes long.
var resolved sync.Map

var problem = &jsonschema.Schema{Ref: "#/$defs/Problem"}

func (d document) checkJSON(s *jsonschema.Schema, data []byte) error {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	known, ok := resolved.Load(s)
	if !ok {
		r, err := (&jsonschema.Schema{Defs: d.Components.Schemas, AllOf: []*jsonschema.Schema{s}}).Resolve(nil)
		if err != nil {
			return err
		}
		known, _ = resolved.LoadOrStore(s, r)
	}
	return known.(*jsonschema.Resolved).Validate(v)
}
