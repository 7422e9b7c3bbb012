package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
)

// socket is a WebSocket on which a client asks for responses, as Codex does. Each text message is a
// request, and is answered with the events of a stream, one message each. A request that names the
// response before it sends only what is new, whether the provider keeps responses or not: the
// connection holds what came before. The provider is asked over HTTP, with the whole.
// https://platform.openai.com/docs/guides/websocket-mode
type socket struct {
	proxy   *Proxy
	request *http.Request // the one that became the WebSocket
	conn    *websocket.Conn
	count   func() error // before each message
	// id is the last response, and items are input and output up to its end.
	id       string
	items    []string
	reserved *reservation // of the items
}

const (
	// socketLife bounds a connection. Clients then open another, as they do after the provider's own
	// hour.
	socketLife = time.Hour
	// socketWriteTimeout bounds how long a client takes to read one event.
	socketWriteTimeout = 2 * time.Minute
)

// socketMessage is a message of the client; busy says that there was no room for it.
type socketMessage struct {
	text     string
	reserved *reservation
	busy     bool
}

// serveSocket serves a WebSocket until the client leaves.
func (p *Proxy) serveSocket(w http.ResponseWriter, r *http.Request, count func() error) {
	conn, err := websocket.Accept(w, r, nil) // refuses pages of another origin
	if err != nil {
		return // Accept has answered
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1) // s.read has its own
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), socketLife)
	defer cancel()
	s := &socket{proxy: p, request: r, conn: conn, count: count, reserved: p.transport.newReservation()}
	defer s.forgetItems()
	asked := make(chan socketMessage)
	read := make(chan struct{})
	defer func() { cancel(); conn.CloseNow(); <-read }()
	go func() {
		defer close(read)
		defer cancel() // without the client no answer is needed
		for {
			a, err := s.read(ctx)
			if err != nil {
				return
			}
			select {
			case asked <- a:
			case <-ctx.Done():
				a.reserved.release()
				return
			}
		}
	}()
	for {
		select {
		case a := <-asked:
			err := s.answer(ctx, a)
			a.reserved.release()
			if err != nil {
				return
			}
		case <-ctx.Done():
			conn.Close(websocket.StatusGoingAway, "")
			return
		}
	}
}

// read reads the next message, if there is room for it.
func (s *socket) read(ctx context.Context) (a socketMessage, err error) {
	kind, r, err := s.conn.Reader(ctx)
	if err != nil {
		return a, err
	}
	if kind != websocket.MessageText {
		s.conn.Close(websocket.StatusUnsupportedData, "requests are text")
		return a, fmt.Errorf("a message of type %s", kind)
	}
	a.reserved = s.proxy.transport.newReservation()
	text, whole, err := httpbody.Read[string](r, s.proxy.transport.options.MaxBody, a.reserved.reserve)
	switch {
	case errors.Is(err, httpbody.ErrBusy):
		a.busy = true
		_, err = io.Copy(io.Discard, r)
	case err == nil && !whole:
		s.conn.Close(websocket.StatusMessageTooBig, "the request is too large")
		err = io.ErrShortBuffer
	}
	if a.text = text; err != nil {
		a.reserved.release()
	}
	return a, err
}

// answer answers a message. The error is that of the client's connection.
func (s *socket) answer(ctx context.Context, a socketMessage) error {
	if err := s.count(); err != nil {
		return s.refuse(ctx, http.StatusTooManyRequests, "rate_limit_exceeded", "palimpsest: "+err.Error())
	}
	if a.busy {
		return s.refuse(ctx, http.StatusServiceUnavailable, "overloaded_error", "palimpsest: "+busyMessage)
	}
	var r *native.Responses
	err := rawjson.Check(a.text)
	if err == nil {
		switch kind := gjson.Get(a.text, "type").Str; kind {
		case "response.create":
			r, err = native.ParseResponses(a.text)
		case "response.processed":
			return nil // an acknowledgement
		default:
			err = fmt.Errorf("type %q: it must be response.create", kind)
		}
	}
	if err != nil {
		return s.refuse(ctx, http.StatusBadRequest, "invalid_request_error", "palimpsest: "+err.Error())
	}
	items, gone := r.Items, []string{"type", "generate", "stream"}
	if s.id != "" && r.Previous == s.id {
		items, gone = slices.Concat(s.items, r.Items), append(gone, "previous_response_id")
	}
	if gjson.Get(a.text, "generate").Type == gjson.False {
		// It only adds items, for later requests to continue.
		now := time.Now()
		made := native.ResponsesAnswer{ID: "resp_" + canonjson.Digest("socket", s.request.RemoteAddr, now.String()), Created: now.Unix()}
		return s.relay(ctx, strings.NewReader(made.Events(r)), items)
	}
	return s.askProvider(ctx, items, jsonedit.Set(r.Body(r.WithTrigger(items), gone...), "stream", "true"))
}

// askProvider asks the provider, through the Transport.
func (s *socket) askProvider(ctx context.Context, items []string, body string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	res, err := s.proxy.transport.RoundTrip(s.outgoing(ctx, body))
	if err != nil {
		return s.refuse(ctx, http.StatusBadGateway, "api_error", "palimpsest: the provider gave no answer: "+connectionTrouble(err))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || !httpbody.IsStream(res) {
		said, _, _ := httpbody.Read[string](res.Body, maxRefusal, nil)
		return s.relayRefusal(ctx, res, said)
	}
	return s.relay(ctx, res.Body, items)
}

// relay writes the events of an answer, and keeps its output behind items.
func (s *socket) relay(ctx context.Context, answer io.Reader, items []string) error {
	stream, ended := sse.NewReader(answer, 0), false
	for {
		e, err := httpbody.NextEvent(stream)
		if rawjson.Valid(e.Data) {
			switch gjson.Get(e.Data, "type").Str {
			case "response.failed", "error":
				ended = true
			case "response.completed", "response.incomplete":
				ended = true
				response := gjson.Get(e.Data, "response")
				s.keepItems(response.Get("id").Str, slices.Concat(items, rawjson.RawItems(response.Get("output"), nil)))
			}
			if err := s.write(ctx, e.Data); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) && ended {
			return nil
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // the client would wait for the end
		}
		if err != nil {
			return err // clients ask again when the connection closes
		}
	}
}

// outgoing is a message of the WebSocket as a request over HTTP, with the headers of the WebSocket.
func (s *socket) outgoing(ctx context.Context, body string) *http.Request {
	out := s.request.Clone(ctx)
	out.Method, out.RequestURI = http.MethodPost, ""
	for name := range out.Header {
		if strings.HasPrefix(name, "Sec-Websocket-") {
			out.Header.Del(name)
		}
	}
	for _, name := range []string{"Connection", "Upgrade", "Accept-Encoding", "Origin"} {
		out.Header.Del(name)
	}
	out.Header = httpbody.WithoutListed(out.Header, "Openai-Beta", func(beta string) bool { return strings.Contains(beta, "responses_websockets") })
	// Headers that change from request to request are in the body.
	for name, v := range rawjson.Members(gjson.Get(body, "client_metadata")) {
		if strings.HasPrefix(name, "x-codex-") && v.Type == gjson.String && !strings.ContainsAny(v.Str, "\r\n\x00") {
			out.Header.Set(name, v.Str)
		}
	}
	out.Header.Set("Content-Type", httpbody.JSON)
	out.Header.Set("Accept", "text/event-stream")
	out.Header.Set("Content-Length", strconv.Itoa(len(body)))
	routeUpstream(&httputil.ProxyRequest{In: s.request, Out: out}, s.proxy.upstreams)
	return withBody(out, len(body), func() io.Reader { return strings.NewReader(body) })
}

// keepItems keeps what the next request may continue, if there is room.
func (s *socket) keepItems(id string, items []string) {
	s.forgetItems()
	size := 0
	for _, item := range items {
		size += len(item)
	}
	if id != "" && int64(size) <= s.proxy.transport.options.MaxBody && s.reserved.reserve(size) {
		s.id, s.items = id, items
	}
}

func (s *socket) forgetItems() {
	s.reserved.release()
	s.id, s.items = "", nil
}

// relayRefusal passes on the provider's answer in place of a stream.
func (s *socket) relayRefusal(ctx context.Context, res *http.Response, said string) error {
	if why := gjson.Get(said, "error"); rawjson.Valid(said) && why.IsObject() {
		return s.writeError(ctx, res.StatusCode, why.Raw, res.Header)
	}
	return s.refuse(ctx, max(res.StatusCode, http.StatusBadRequest), "api_error", "palimpsest: the provider answered with status "+strconv.Itoa(res.StatusCode)+", and no stream")
}

func (s *socket) refuse(ctx context.Context, status int, code, message string) error {
	return s.writeError(ctx, status, `{"type":`+rawjson.Quote(code)+`,"code":`+rawjson.Quote(code)+`,"message":`+rawjson.Quote(message)+`,"param":null}`, nil)
}

// writeError writes an error as the API does on a WebSocket.
func (s *socket) writeError(ctx context.Context, status int, why string, h http.Header) error {
	headers := ""
	for _, name := range []string{"Retry-After", "X-Request-Id", ActionHeader, ReasonHeader} {
		if v := h.Get(name); v != "" {
			headers += `,` + rawjson.Quote(strings.ToLower(name)) + `:` + rawjson.Quote(v)
		}
	}
	return s.write(ctx, `{"type":"error","status":`+strconv.Itoa(status)+`,"error":`+why+`,"headers":{`+strings.TrimPrefix(headers, ",")+`}}`)
}

func (s *socket) write(ctx context.Context, text string) error {
	ctx, cancel := context.WithTimeout(ctx, socketWriteTimeout)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, []byte(text))
}
