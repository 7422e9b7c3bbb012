package daemon_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/leak"
	"github.com/palimpsest-ai/palimpsest/store/postgres/pgtest"
)

func TestMain(m *testing.M) {
	corpus.CollectLessOften()
	status := pgtest.Main(m)
	if err := leak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// host is a daemon on a real connection.
type host struct {
	*daemon.Server
	url  string
	http *http.Client
}

// start starts a daemon. Every answer that its clients get is held against the
// OpenAPI document.
func start(t *testing.T, c daemon.Config) *host {
	t.Helper()
	s, err := daemon.New(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Stop()
		server.Close()
	})
	client := server.Client()
	client.Transport = &checked{t: t, next: client.Transport, document: readDocument(t)}
	return &host{Server: s, url: server.URL, http: client}
}

// client returns a client with a key.
func (h *host) client(t *testing.T, key string) *api.Client {
	t.Helper()
	c, err := api.NewClient(h.url, &api.Options{HTTP: h.http, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// do sends a request as it is.
func (h *host) do(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	answer, err := h.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(data)
}

// checked holds answers against the OpenAPI document.
type checked struct {
	t        *testing.T
	next     http.RoundTripper
	document document
}

func (c *checked) RoundTrip(r *http.Request) (*http.Response, error) {
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
	for _, problem := range c.document.check(r, answer, data) {
		c.t.Errorf("%s %s: %d: %s", r.Method, r.URL.Path, answer.StatusCode, problem)
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
			Content map[string]struct{ Schema schema }
		}
	}
	Components struct{ Schemas map[string]schema }
}

type schema struct {
	Ref                  string `json:"$ref"`
	Type                 any
	Properties           map[string]schema
	Required             []string
	Items                *schema
	AdditionalProperties *schema
}

func readDocument(t *testing.T) document {
	t.Helper()
	var d document
	if err := json.Unmarshal(api.Document(), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// isOf tells whether a path is what one of the document stands for, such as /v1/threads/{thread}.
func isOf(pattern, path string) bool {
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

// check lists where an answer is not what the document says.
func (d document) check(r *http.Request, answer *http.Response, data []byte) []string {
	kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	if answer.StatusCode >= 400 {
		if kind != "application/problem+json" {
			return []string{"a problem has the type " + kind}
		}
		return d.checkJSON(schema{Ref: "#/components/schemas/Problem"}, data)
	}
	for path, methods := range d.Paths {
		op, ok := methods[strings.ToLower(r.Method)]
		if !ok || !isOf(path, r.URL.EscapedPath()) {
			continue
		}
		success, ok := op.Responses[strconv.Itoa(answer.StatusCode)]
		if !ok {
			return []string{"the document does not know this status"}
		}
		if _, any := success.Content["*/*"]; any {
			return nil
		}
		if len(success.Content) == 0 && len(data) == 0 {
			return nil
		}
		content, ok := success.Content[kind]
		if !ok {
			return []string{"the document does not know the type " + kind}
		}
		if strings.HasPrefix(kind, "text/") {
			return nil
		}
		return d.checkJSON(content.Schema, data)
	}
	return []string{"the document does not know this address"}
}

func (d document) checkJSON(s schema, data []byte) []string {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return []string{err.Error()}
	}
	var problems []string
	d.value("body", s, v, &problems)
	return problems
}

func (d document) value(path string, s schema, v any, problems *[]string) {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		known, ok := d.Components.Schemas[name]
		if !ok {
			*problems = append(*problems, path+": there is no schema "+name)
		}
		s = known
	}
	kind := typeOf(v)
	if s.Type == "number" && kind == "integer" {
		kind = "number"
	}
	if s.Type != nil && !strings.Contains(fmt.Sprint(s.Type), kind) {
		*problems = append(*problems, fmt.Sprintf("%s: want %v, got %s", path, s.Type, typeOf(v)))
		return
	}
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if s.Items != nil {
				d.value(fmt.Sprintf("%s[%d]", path, i), *s.Items, item, problems)
			}
		}
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				*problems = append(*problems, path+": "+name+" is missing")
			}
		}
		for name, member := range v {
			if property, ok := s.Properties[name]; ok {
				d.value(path+"."+name, property, member, problems)
			} else if s.AdditionalProperties != nil {
				d.value(path+"."+name, *s.AdditionalProperties, member, problems)
			} else if s.Properties != nil {
				*problems = append(*problems, path+": the schema has no "+name)
			}
		}
	}
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	}
	return "object"
}
