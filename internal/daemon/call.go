package daemon

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/store"
)

// call is one request to an operation.
type call struct {
	s      *Server
	w      http.ResponseWriter
	r      *http.Request
	op     api.Operation
	who    identity
	tenant *tenant
	// version is what If-Match names, api.Any when it names nothing.
	version int
	// endRequest ends its count among the tenant's requests; nil when it was not counted.
	endRequest func()
	// endChecks ends the checks of its key; nil where it has no caller.
	endChecks func()
	// bodyBytes is what its body takes of the memory for bodies.
	bodyBytes int
}

// handler answers a call. The value is the body of the answer: JSON, a textAnswer, or
// answerWritten when the handler has written it itself.
type handler func(c *call) (any, error)

// withThread asks a handler about the thread that the address names.
func withThread(do func(*call, store.Info) (any, error)) handler {
	return func(c *call) (any, error) {
		info, err := c.findThread()
		if err != nil {
			return nil, err
		}
		return do(c, info)
	}
}

// withBody is withThread for a request with a body.
func withBody[Q any](do func(*call, store.Info, *Q) (any, error)) handler {
	return withThread(func(c *call, info store.Info) (any, error) {
		var q Q
		if err := c.decodeJSON(&q); err != nil {
			return nil, err
		}
		return do(c, info, &q)
	})
}

// textAnswer is an answer that is not JSON.
type textAnswer struct{ content, mediaType string }

// answerWritten says that the handler has written the answer.
type answerWritten struct{}

func (s *Server) operationHandler(op api.Operation, h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{s: s, w: w, r: r, op: op, version: api.Any}
		defer c.release()
		var answer any
		err := c.admit()
		if err == nil {
			answer, err = h(c)
		}
		if err != nil {
			s.answerError(w, r, err)
			return
		}
		switch answer := answer.(type) {
		case answerWritten:
		case textAnswer:
			w.Header().Set("Content-Type", answer.mediaType)
			w.Header().Set("Cache-Control", "no-store")
			io.WriteString(w, answer.content)
		default:
			c.writeJSON(answer)
		}
	})
}

// admit checks that the caller may make the call, and that the limits leave room for it.
func (c *call) admit() (err error) {
	if c.who, err = c.s.access.authenticate(c.r, c.s.access.byBearer); err != nil {
		return err
	}
	c.r, c.endChecks = c.s.access.whileValid(c.w, c.r, c.who)
	if err := c.who.require(c.op.Right); err != nil {
		return err
	}
	if c.op.ID != "" { // agents may send to /mcp what their protocol adds
		if err := cmp.Or(c.readIfMatch(), c.checkQuery()); err != nil {
			return err
		}
	}
	if c.tenant, err = c.s.tenants.get(c.who.tenant); err != nil || c.op.Streams() { // event streams have a limit of their own
		return err
	}
	c.endRequest, err = c.s.beginRequest(c.who.tenant)
	return err
}

// checkQuery refuses query parameters that the operation does not take.
func (c *call) checkQuery() error {
	for name := range c.r.URL.Query() {
		if !slices.Contains(c.op.Query, name) {
			return problem(api.BadRequest, "unknown query parameter %.40q; known: %s", name, cmp.Or(strings.Join(c.op.Query, ", "), "none are"))
		}
	}
	return nil
}

// release gives back what the call has taken of the limits.
func (c *call) release() {
	for _, end := range []func(){c.endRequest, c.endChecks} {
		if end != nil {
			end()
		}
	}
	if c.bodyBytes > 0 {
		c.s.config.Memory.Release(c.who.tenant, c.bodyBytes)
	}
}

// reserveBody takes room in memory for more of the body.
func (c *call) reserveBody(bytes int) bool {
	ok := c.s.config.Memory.Reserve(c.who.tenant, bytes)
	if ok {
		c.bodyBytes += bytes
	}
	return ok
}

func (c *call) writeJSON(v any) {
	var data bytes.Buffer
	e := json.NewEncoder(&data)
	e.SetEscapeHTML(false) // bodies for providers stay as they are
	if err := e.Encode(v); err != nil {
		c.s.answerError(c.w, c.r, fmt.Errorf("%s: the answer cannot be written: %w", c.op.ID, err))
		return
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.WriteHeader(c.op.Status)
	c.w.Write(data.Bytes())
}

// readIfMatch reads If-Match: one strong tag with a number, as the daemon gives
// it, or * for whatever is there.
func (c *call) readIfMatch() error {
	header := c.r.Header.Get("If-Match")
	if header == "" || header == "*" {
		return nil
	}
	if c.op.IfMatch == "" {
		return problem(api.BadRequest, "this operation takes no If-Match")
	}
	tag, err := strconv.Unquote(header)
	version, numeric := strconv.Atoi(tag)
	if err != nil || numeric != nil || version < 0 {
		return problem(api.BadRequest, "If-Match is the %s in double quotes, such as \"12\"; got %.40q", c.op.IfMatch, header)
	}
	c.version = version
	return nil
}

// setETag sets the versions of the answer, joined by dots.
func (c *call) setETag(parts ...int) {
	versions := make([]string, len(parts))
	for i, n := range parts {
		versions[i] = strconv.Itoa(n)
	}
	c.w.Header().Set("ETag", strconv.Quote(strings.Join(versions, ".")))
}

// decodeJSON reads the body of the request into v, which is a pointer to a struct.
// An empty body stands for {}.
func (c *call) decodeJSON(v any) error {
	if kind := c.r.Header.Get("Content-Type"); kind != "" || c.r.ContentLength != 0 {
		if base, _, err := mime.ParseMediaType(kind); err != nil || base != "application/json" {
			return problem(api.WrongType, "send the body as JSON, with Content-Type: application/json")
		}
	}
	if coding := c.r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return problem(api.WrongType, "send the body as it is, without Content-Encoding")
	}
	body, err := c.readBody(c.s.config.Limits.Body)
	switch {
	case err != nil:
		return err
	case len(bytes.TrimSpace(body)) == 0:
		return nil
	case !utf8.Valid(body):
		return problem(api.BadRequest, "the body is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return decodeProblem(err, v)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return problem(api.BadRequest, "the body is more than one JSON document")
	}
	return nil
}

// readBody reads the body, of at most so many bytes. Whether it is JSON is not checked, but
// it nests no deeper than JSON may.
func (c *call) readBody(most int64) ([]byte, error) {
	depth := c.s.config.Limits.Depth
	body, err := io.ReadAll(http.MaxBytesReader(c.w, &meteredBody{ReadCloser: c.r.Body, reserve: c.reserveBody}, most))
	large, isLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case isLarge:
		return nil, problem(api.TooLarge, "the body is over %d bytes; send it in several calls", large.Limit)
	case errors.Is(err, errNoBodyRoom):
		c.s.metrics.refused.WithLabelValues("bodies").Inc()
		return nil, retryLater(api.Unavailable, "too many large requests are at work; try again")
	case err != nil:
		return nil, problem(api.BadRequest, "the body ended too early")
	case rawjson.TooDeep(body, depth):
		return nil, problem(api.TooDeep, "the JSON nests deeper than %d levels", depth)
	}
	return body, nil
}

// decodeProblem says why a body is not what the operation takes, without quoting it; v points to what it takes.
func decodeProblem(err error, v any) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return problem(api.BadRequest, "not valid JSON at byte %d", syntax.Offset)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return problem(api.BadRequest, "not valid JSON: it ends too early")
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return badField(cmp.Or(kind.Field, "body"), "want %s, got %s", jsonKind(kind.Type.Kind().String()), kind.Value)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		var takes []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
			if one, _, _ := strings.Cut(f.Tag.Get("json"), ","); one != "" && one != "-" {
				takes = append(takes, one)
			}
		}
		return problem(api.BadRequest, "unknown field %.60s; the body takes %s, and /openapi.json has what these take", name, strings.Join(takes, ", "))
	}
	return problem(api.BadRequest, "the body is not what the operation takes")
}

func jsonKind(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"), strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "slice" || kind == "array":
		return "an array"
	case kind == "struct" || kind == "map" || kind == "ptr":
		return "an object"
	case kind == "bool":
		return "true or false"
	}
	return "a " + kind
}

// queryNumber reads a number from low to high in the query; without one it is missing.
func (c *call) queryNumber(name string, missing, low, high int) (int, error) {
	text := c.r.URL.Query().Get(name)
	if text == "" {
		return missing, nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err == nil && low <= n && n <= high:
		return n, nil
	case high == math.MaxInt:
		return 0, badField(name, "want a number, %d or more; got %.40q", low, text)
	}
	return 0, badField(name, "want a number from %d to %d, got %.40q", low, high, text)
}

// pageQuery reads cursor and limit. The cursor is what cursorAfter made, for the same list.
func (c *call) pageQuery() (after string, limit int, err error) {
	most := c.s.config.Limits.Page
	if limit, err = c.queryNumber("limit", min(100, most), 1, most); err != nil {
		return "", 0, err
	}
	cursor := c.r.URL.Query().Get("cursor")
	if cursor == "" {
		return "", limit, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	list, after, ok := strings.Cut(string(data), "\n")
	if err != nil || !ok || list != c.listName() || after == "" || !utf8.ValidString(after) {
		return "", 0, badCursor()
	}
	return after, limit, nil
}

// pageRange is the page of a list of n things: positions from ≤ i < to, and the cursor
// of the next page.
func (c *call) pageRange(n int) (from, to int, next string, err error) {
	text, limit, err := c.pageQuery()
	if err != nil {
		return 0, 0, "", err
	}
	if text != "" {
		if from, err = strconv.Atoi(text); err != nil || from < 0 || from > math.MaxInt-limit {
			return 0, 0, "", badCursor()
		}
	}
	if to = min(from+limit, n); to < n {
		next = c.cursorAfter(strconv.Itoa(to))
	}
	return from, to, next, nil
}

func badCursor() error {
	return problem(api.BadCursor, "the cursor is not one that this list gave as next; start again without one")
}

// cursorAfter is the cursor of the page that follows an item of the list.
func (c *call) cursorAfter(after string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(c.listName() + "\n" + after))
}

// listName names the list that a cursor belongs to.
func (c *call) listName() string { return c.op.ID + " " + c.r.PathValue("thread") }
