package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// metered has an answer read, while it passes, for what the provider counted of
// the request: that corrects the counter for the thread. What stays far below
// every mark is not looked into.
func (x *exchange) metered(res *http.Response, d decision) {
	if d.step == nil || res.StatusCode != http.StatusOK || d.instead() || d.action == Passed && !x.near(d) || d.step.read.beyond() {
		return
	}
	stream := strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
	if stream && !unpacked(res) {
		return
	}
	res.Body = &meter{ReadCloser: res.Body, x: x, step: d.step, of: d.step.prepared, header: res.Header.Clone(), stream: stream}
}

// beyond reports whether the provider puts into the prompt what the request does
// not hold, so that its count is of something else: Gemini's caches, OpenAI's stored
// prompts.
func (r *reading) beyond() bool { return r.Names("cachedContent") || r.Names("prompt") }

// meter is the body of an answer. It books the usage before it hands out the
// bytes that tell of it, so that no further request can be there first.
type meter struct {
	io.ReadCloser
	x      *exchange
	step   *step
	of     *palimpsest.Prepared // what the request was
	header http.Header
	stream bool

	buf    []byte // a line that is not whole, or a body to be handed out
	err    error  // behind a body
	read   bool   // the body was read
	booked bool
	usage  string // what a stream has told so far
}

func (m *meter) Read(p []byte) (int, error) {
	if m.stream {
		n, err := m.ReadCloser.Read(p)
		m.look(p[:n])
		return n, err
	}
	if !m.read {
		m.read = true
		m.whole()
	}
	n := copy(p, m.buf)
	if m.buf = m.buf[n:]; n > 0 {
		return n, nil
	}
	if m.err != nil {
		return 0, m.err
	}
	return m.ReadCloser.Read(p)
}

// whole reads a body in one piece. What is longer than anybody's answer passes.
func (m *meter) whole() {
	raw, all, err := readBody[[]byte](m.ReadCloser, maxAnswer)
	m.buf, m.err = raw, err
	if err != nil || !all {
		return
	}
	if body, err := decoded(m.header, raw, maxAnswer); err == nil {
		m.book(gjson.ParseBytes(body))
	}
}

// look goes through the lines of a stream.
func (m *meter) look(p []byte) {
	for !m.booked {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		if !whole {
			if m.buf = append(m.buf, p...); len(m.buf) > maxEvent {
				m.booked, m.buf = true, nil
			}
			return
		}
		p = rest
		if len(m.buf) > 0 {
			line = append(m.buf, line...)
			m.buf = nil
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && bytes.Contains(data, []byte(`"usage`)) {
			m.event(gjson.ParseBytes(data))
		}
	}
}

// event takes in an event that may tell of usage. It is booked at the end of the
// answer, when all is known that could speak against it.
func (m *meter) event(e gjson.Result) {
	switch m.x.endpoint.dialect.API() {
	case wire.Anthropic:
		switch e.Get("type").Str {
		case "message_start":
			m.usage = e.Get("message.usage").Raw
		case "message_delta":
			// The prompt's own count is the first; the last may have grown with
			// what the provider's own tools brought.
			e = gjson.Parse(set(e.Raw, "usage", over(e.Get("usage").Raw, m.usage)))
			m.book(e)
		}
	case wire.Chat:
		if e.Get("usage").IsObject() {
			m.book(e)
		}
	case wire.Responses:
		if kind := e.Get("type").Str; kind == "response.completed" || kind == "response.incomplete" {
			m.book(e.Get("response"))
		}
	case wire.Gemini:
		if e.Get("candidates.0.finishReason").Type == gjson.String {
			m.book(e)
		}
	}
}

// patience bounds how long an answer waits until its usage is booked: somebody
// else may be at work on the thread.
const patience = time.Second

// book tells the thread what the provider counted, if it was of the prompt that
// the thread handed out last.
func (m *meter) book(answer gjson.Result) {
	m.booked = true
	input := promptTokens(m.x.endpoint.dialect.API(), answer)
	if input == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.x.request.Context()), patience)
	defer cancel()
	x, s, of := *m.x, m.step, m.of
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				x.fault("usage", fmt.Errorf("%w: %v", errPanic, p), s)
			}
		}()
		if err := s.session.FinishStep(ctx, of, llm.Usage{Input: input, Known: true}); err != nil {
			x.fault("usage", err, s)
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// promptTokens is what the provider counted of the prompt, in tokens, what it read
// from its cache included; 0 where it tells nothing, or the count is not of the
// prompt alone: tools that the provider runs itself ask the model several times,
// and its own compaction takes away what was sent.
func promptTokens(api string, answer gjson.Result) int {
	used := answer.Get("usage")
	switch api {
	case wire.Anthropic:
		if len(used.Get("iterations").Array()) > 1 || len(answer.Get("context_management.applied_edits").Array()) > 0 {
			return 0
		}
		ran := false
		used.Get("server_tool_use").ForEach(func(_, n gjson.Result) bool { ran = n.Num > 0; return !ran })
		if ran {
			return 0
		}
		return tokens(used, "input_tokens") + tokens(used, "cache_read_input_tokens") + tokens(used, "cache_creation_input_tokens")
	case wire.Responses:
		for _, item := range answer.Get("output").Array() {
			if kind := item.Get("type").Str; hosted[kind] {
				return 0
			}
		}
		return tokens(used, "input_tokens")
	case wire.Gemini:
		if tokens(answer, "usageMetadata.toolUsePromptTokenCount") > 0 {
			return 0
		}
		return tokens(answer, "usageMetadata.promptTokenCount")
	}
	return tokens(used, "prompt_tokens")
}

// hosted are the items of tools that OpenAI runs, and of its compaction.
var hosted = map[string]bool{
	"web_search_call": true, "file_search_call": true, "code_interpreter_call": true, "image_generation_call": true,
	"mcp_call": true, "mcp_list_tools": true, "compaction": true,
}

func tokens(v gjson.Result, path string) int {
	if n := v.Get(path); n.Type == gjson.Number && n.Num > 0 && n.Num < 1<<40 {
		return int(n.Num)
	}
	return 0
}
