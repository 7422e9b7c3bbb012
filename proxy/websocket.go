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
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/failsafe"
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
}

// lane is what a client asks under one stream_id, one request after the other, beside other lanes.
// Requests without the member have a lane too.
type lane struct {
	*socket
	stream string        // the stream_id as it was written; empty for none
	free   chan struct{} // closed when the requests so far are answered
	used   int           // by which request of the connection last
	// id is the last response, and items are input and output up to its end.
	id       string
	items    []string
	reserved *reservation // of the items
}

const (
	// socketLife bounds a connection. Clients then open another, as they do after the provider's own
	// hour.
	socketLife = time.Hour
	// socketReadTimeout bounds how long a message takes to arrive once it has begun, and
	// socketWriteTimeout how long a client takes to read one event.
	socketReadTimeout, socketWriteTimeout = 2 * time.Minute, 2 * time.Minute
	// maxLanes bounds the lanes of a connection, and maxWaiting the requests in them: no more, so that there is an idle lane
	// for a new one.
	maxLanes, maxWaiting = 64, 64
	// maxStreamID bounds a stream_id, in bytes: lanes keep theirs.
	maxStreamID = 512
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
	conn.SetReadLimit(-1)                                       // s.read has its own
	ctx, cancel := context.WithTimeout(r.Context(), socketLife) // it outlives that the connection was taken over
	defer cancel()
	s := &socket{proxy: p, request: r, conn: conn, count: count}
	lanes, waiting := map[string]*lane{}, make(chan struct{}, maxWaiting)
	var work sync.WaitGroup
	defer func() {
		cancel()
		conn.CloseNow()
		work.Wait()
		for _, l := range lanes {
			l.forgetItems()
		}
	}()
	for request := 0; ; request++ {
		a, err := s.read(ctx) // also notices that the client has left
		if err != nil {
			break
		}
		stream := ""
		if v := gjson.Get(a.text, "stream_id"); v.Type == gjson.String && len(v.Str) <= maxStreamID {
			stream = rawjson.Quote(v.Str)
		}
		select {
		case waiting <- struct{}{}:
		case <-ctx.Done():
			a.reserved.release()
			return
		}
		l := lanes[stream]
		if l == nil {
			if len(lanes) == maxLanes {
				freeLane(lanes)
			}
			l = &lane{socket: s, stream: stream, free: make(chan struct{}), reserved: p.transport.newReservation()}
			close(l.free)
			lanes[stream] = l
		}
		before, free := l.free, make(chan struct{})
		l.free, l.used = free, request
		work.Go(func() {
			defer func() {
				close(free)
				<-waiting
			}()
			<-before
			tell := func(err error) { // nobody else would hear of a panic here
				p.transport.emitFault(&received{request: s.request, start: time.Now()}, "websocket", err, nil)
			}
			goesOn := ctx.Err() == nil && failsafe.OrOnPanic(false, tell, func() bool { return l.answer(ctx, a) == nil })
			a.reserved.release()
			if !goesOn && stream != "" && ctx.Err() == nil { // the others go on
				goesOn = l.refuse(ctx, http.StatusBadGateway, "api_error", "palimpsest: the answer broke off") == nil
			}
			if !goesOn {
				cancel() // without the client no answer is needed
			}
		})
	}
	if ctx.Err() != nil {
		conn.Close(websocket.StatusGoingAway, "")
	}
}

// freeLane takes out the lane that is idle longest. Of a request that goes on with its last response the proxy no longer
// knows what came before.
func freeLane(lanes map[string]*lane) {
	var idle *lane
	for _, l := range lanes {
		select {
		case <-l.free:
			if idle == nil || l.used < idle.used {
				idle = l
			}
		default:
		}
	}
	if idle != nil {
		idle.forgetItems()
		delete(lanes, idle.stream)
	}
}

// read reads the next message, if there is room for it.
func (s *socket) read(ctx context.Context) (a socketMessage, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kind, r, err := s.conn.Reader(ctx)
	if err != nil {
		return a, err
	}
	defer time.AfterFunc(socketReadTimeout, cancel).Stop()
	if kind != websocket.MessageText {
		s.conn.Close(websocket.StatusUnsupportedData, "requests are text")
		return a, fmt.Errorf("a message of type %s", kind)
	}
	a.reserved = s.proxy.transport.newReservation()
	text, whole, err := httpbody.Read[string](r, s.proxy.transport.options.MaxBody, 0, a.reserved.reserve)
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
func (l *lane) answer(ctx context.Context, a socketMessage) error {
	if err := l.count(); err != nil {
		return l.refuse(ctx, http.StatusTooManyRequests, "rate_limit_exceeded", "palimpsest: "+err.Error())
	}
	if a.busy {
		return l.refuse(ctx, http.StatusServiceUnavailable, "overloaded_error", "palimpsest: "+busyMessage)
	}
	var r *native.Responses
	err := rawjson.Check(a.text)
	if err == nil && len(gjson.Get(a.text, "stream_id").Str) > maxStreamID {
		err = fmt.Errorf("stream_id: at most %d bytes", maxStreamID)
	}
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
		return l.refuse(ctx, http.StatusBadRequest, "invalid_request_error", "palimpsest: "+err.Error())
	}
	items, gone := r.Items, []string{"type", "generate", "stream", "stream_id"}
	if l.id != "" && r.Previous == l.id {
		items, gone = slices.Concat(l.items, r.Items), append(gone, "previous_response_id")
	}
	if gjson.Get(a.text, "generate").Type == gjson.False {
		// It only adds items, for later requests to continue.
		now := time.Now()
		made := native.ResponsesAnswer{ID: "resp_" + canonjson.Digest("socket", l.request.RemoteAddr, now.String()), Created: now.Unix()}
		return l.relay(ctx, strings.NewReader(made.Events(r)), items)
	}
	return l.askProvider(ctx, items, jsonedit.Set(r.Body(r.WithTrigger(items), gone...), "stream", "true"))
}

// askProvider asks the provider, through the Transport.
func (l *lane) askProvider(ctx context.Context, items []string, body string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	res, err := l.proxy.transport.RoundTrip(l.outgoing(ctx, body))
	if err != nil {
		return l.refuse(ctx, http.StatusBadGateway, "api_error", "palimpsest: the provider gave no answer: "+connectionTrouble(err))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || !httpbody.IsStream(res) {
		said, _, _ := httpbody.Read[string](res.Body, maxRefusal, 0, nil)
		return l.relayRefusal(ctx, res, said)
	}
	return l.relay(ctx, res.Body, items)
}

// relay writes the events of an answer, and keeps its output behind items.
func (l *lane) relay(ctx context.Context, answer io.Reader, items []string) error {
	stream, ended := sse.NewReader(answer, 0), false
	var streamed streamedOutput
	for {
		e, err := httpbody.NextEvent(stream)
		if rawjson.Valid(e.Data) {
			response, output, done := streamed.read(e.Data)
			if done {
				l.keepItems(response.Get("id").Str, slices.Concat(items, output))
			}
			kind := gjson.Get(e.Data, "type").Str
			ended = ended || done || kind == "response.failed" || kind == "error"
			if err := l.write(ctx, e.Data); err != nil {
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
			return err // clients ask again when the connection closes, or the lane has an error
		}
	}
}

// outgoing is a message of the WebSocket as a request over HTTP, with the headers of the WebSocket.
func (l *lane) outgoing(ctx context.Context, body string) *http.Request {
	out := l.request.Clone(ctx)
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
	routeUpstream(&httputil.ProxyRequest{In: l.request, Out: out}, l.proxy.upstreams)
	return withBody(out, len(body), func() io.Reader { return strings.NewReader(body) })
}

// keepItems keeps what the next request may continue, if there is room.
func (l *lane) keepItems(id string, items []string) {
	l.forgetItems()
	size := 0
	for _, item := range items {
		size += len(item)
	}
	if id != "" && int64(size) <= l.proxy.transport.options.MaxBody && l.reserved.reserve(size) {
		l.id, l.items = id, items
	}
}

func (l *lane) forgetItems() {
	l.reserved.release()
	l.id, l.items = "", nil
}

// relayRefusal passes on the provider's answer in place of a stream.
func (l *lane) relayRefusal(ctx context.Context, res *http.Response, said string) error {
	if why := gjson.Get(said, "error"); rawjson.Valid(said) && why.IsObject() {
		return l.writeError(ctx, res.StatusCode, why.Raw, res.Header)
	}
	return l.refuse(ctx, max(res.StatusCode, http.StatusBadRequest), "api_error", "palimpsest: the provider answered with status "+strconv.Itoa(res.StatusCode)+", and no stream")
}

func (l *lane) refuse(ctx context.Context, status int, code, message string) error {
	return l.writeError(ctx, status, `{"type":`+rawjson.Quote(code)+`,"code":`+rawjson.Quote(code)+`,"message":`+rawjson.Quote(message)+`,"param":null}`, nil)
}

func (l *lane) writeError(ctx context.Context, status int, why string, h http.Header) error {
	headers := ""
	for _, name := range []string{"Retry-After", "X-Request-Id", ActionHeader, ReasonHeader} {
		if v := h.Get(name); v != "" {
			headers += `,` + rawjson.Quote(strings.ToLower(name)) + `:` + rawjson.Quote(v)
		}
	}
	return l.write(ctx, `{"type":"error","status":`+strconv.Itoa(status)+`,"error":`+why+`,"headers":{`+strings.TrimPrefix(headers, ",")+`}}`)
}

func (l *lane) write(ctx context.Context, text string) error {
	if l.stream != "" {
		text = jsonedit.Set(text, "stream_id", l.stream)
	}
	ctx, cancel := context.WithTimeout(ctx, socketWriteTimeout)
	defer cancel()
	return l.conn.Write(ctx, websocket.MessageText, []byte(text))
}
