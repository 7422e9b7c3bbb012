package emulate

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/failsafe"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// responses does the compaction of the Responses API.
type responses struct{ work }

func (n responses) apply(ctx context.Context) (Result, error) {
	r, err := native.ParseResponses(n.r.Body)
	if refusal, ok := errors.AsType[*native.Refusal](err); ok {
		return Result{}, refusal
	}
	switch {
	case err != nil:
		return Result{Request: n.r}, nil // the provider says what is wrong
	case !n.asksNow(r):
		return n.whenDue(r), nil
	case r.Conversation:
		return Result{}, &native.Refusal{API: wire.Responses, Param: "conversation", Message: "a conversation that the provider holds cannot be compacted here: send its items as the input"}
	}
	answer, err := n.compactNow(ctx, r)
	return Result{Answer: answer, Compactions: 1}, err
}

// asksNow reports whether a request asks for nothing but a compaction.
func (n responses) asksNow(r *native.Responses) bool {
	return n.r.Compacts || !n.r.Counts && r.Trigger != ""
}

// whenDue sends a request on, and has the answer show the compaction that it led to.
func (n responses) whenDue(r *native.Responses) Result {
	if !r.Managed {
		return Result{Request: n.r}
	}
	out := Result{Request: n.r.with(r.Body(r.Items, "context_management"))}
	out.Request.Managed, out.Request.Threshold = true, r.Threshold
	out.Finish = func(res *http.Response, at *Place) {
		if at == nil {
			return
		}
		item, err := failsafe.Within(n.r.HTTP.Context(), n.Deadline, func(ctx context.Context) (string, error) { return n.item(ctx, *at) })
		if err != nil {
			n.Fault(n.r, "compaction", err, at.Log)
		} else {
			n.insertItem(res, item)
		}
	}
	return out
}

func (n responses) fallback() Result {
	r, err := native.ParseResponses(n.r.Body)
	if err != nil {
		return Result{Request: n.r}
	}
	if n.asksNow(r) {
		if answer, err := n.compactWithoutLog(n.r.HTTP.Context(), r, nil); err == nil {
			return Result{Answer: answer, Compactions: 1}
		}
	}
	return Result{Request: n.r.with(r.Body(r.WithRecaps(), "context_management"))}
}

// compactNow answers a request for a compaction.
func (n responses) compactNow(ctx context.Context, r *native.Responses) (*http.Response, error) {
	at, err := n.log.Compact(ctx, n.r.with(r.Body(r.Items, "context_management")))
	item := ""
	if err == nil {
		item, err = n.item(ctx, at)
	}
	if refusal, ok := errors.AsType[*native.Refusal](err); ok {
		return nil, refusal
	}
	if err != nil && ctx.Err() == nil {
		n.Fault(n.r, "compaction", err, "")
		return n.compactWithoutLog(ctx, r, at.Items)
	}
	if err != nil {
		return nil, err
	}
	if !n.r.Compacts && r.Stored {
		n.keep(ctx, n.responseID(item), at, item)
	}
	return n.answer(r, retained(at.Request), item), nil
}

func (n responses) keep(ctx context.Context, id string, at Place, output ...string) {
	if err := n.log.Keep(ctx, id, at, output...); err != nil {
		n.Fault(n.r, "link", err, at.Log)
	}
}

// item is the compaction that stands for a log up to a place.
func (n responses) item(ctx context.Context, at Place) (string, error) {
	summary, err := summaryText(ctx, at.Messages, summaryBudget)
	if err != nil {
		return "", err
	}
	content, err := n.seal(ctx, native.Token{API: wire.Responses, Kind: "compaction", Thread: at.Log, At: at.At, Last: string(at.Last), Summary: summary})
	if err != nil {
		return "", err
	}
	if len(at.System) > 0 {
		// A client may drop everything before the item, its instructions too.
		n.keep(ctx, native.ItemID(content), at)
	}
	return native.CompactionItem(native.ItemID(content), content), nil
}

// answer is the answer to a request for a compaction.
func (n responses) answer(r *native.Responses, kept []string, item string) *http.Response {
	answer := native.ResponsesAnswer{ID: n.responseID(item), Created: n.r.Start.Unix(), Items: []string{item}}
	switch {
	case n.r.Compacts:
		answer.Items = append(kept, item)
		return httpbody.NewAnswer(n.r.HTTP, http.StatusOK, httpbody.JSON, answer.CompactedBody())
	case r.Stream:
		return httpbody.NewAnswer(n.r.HTTP, http.StatusOK, httpbody.EventStream, answer.Events(r))
	}
	return httpbody.NewAnswer(n.r.HTTP, http.StatusOK, httpbody.JSON, answer.Response(r))
}

func (n responses) responseID(item string) string {
	return "resp_" + canonjson.Digest(item, n.r.Start.String())
}

// retained are the user's messages of a conversation, as the answer to /responses/compact repeats
// them.
func retained(messages []thread.Message) []string {
	var items []string
	for i := range messages {
		m := &messages[i]
		switch {
		case m.Role != thread.User:
		case m.Frame != nil && m.Frame.API() == wire.Responses && strings.HasPrefix(m.Frame.Raw(), "{"):
			items = append(items, m.Frame.Raw())
		case m.Text() != "":
			items = append(items, `{"role":"user","content":`+rawjson.Quote(m.Text())+`}`)
		}
	}
	return native.RetainedMessages(items)
}

// compactWithoutLog answers with a compaction that needs no log: it holds a summary of the items of
// the request's history; nil for those that it sends.
func (n responses) compactWithoutLog(ctx context.Context, r *native.Responses, items []string) (*http.Response, error) {
	if items == nil {
		items = r.WithRecaps()
	}
	p, err := openai.Responses{}.Decode(r.Body(items))
	if err != nil {
		return nil, err
	}
	p.Messages = injected.MarkKinds(p.Messages, nil)
	parent := thread.ID("")
	for i := range p.Messages {
		parent = thread.ChainID(parent, &p.Messages[i])
		p.Messages[i].ID = parent
	}
	summary, err := summaryText(ctx, p.Messages, 4*summaryBudget)
	if err != nil {
		return nil, err
	}
	content, err := n.seal(ctx, native.Token{API: wire.Responses, Kind: "compaction", Summary: summary})
	if err != nil {
		return nil, err
	}
	return n.answer(r, native.RetainedMessages(items), native.CompactionItem(native.ItemID(content), content)), nil
}

// summaryText summarizes messages without asking a model; empty if the budget is too small.
func summaryText(ctx context.Context, messages []thread.Message, budget int) (string, error) {
	s, err := (&summarize.Extractive{}).Summarize(ctx, summarize.Input{Messages: messages, Budget: budget})
	if errors.Is(err, summarize.ErrBudget) {
		return "", nil
	}
	return s.Render(), err
}

// summaryBudget bounds the summary in a compaction that has a log, in tokens of four bytes.
// Clients count the item by its length.
const summaryBudget = 1_500

// insertItem puts a compaction first in an answer of the Responses API.
func (w work) insertItem(res *http.Response, item string) {
	inserter := &itemInserter{item: item}
	httpbody.RewriteAnswer(res, w.streamFault, func(body string) string {
		if !rawjson.Valid(body) {
			return body
		}
		return prependItem(body, item)
	}, inserter.insertInto)
}

// itemInserter puts the compaction first in the output of a stream.
type itemInserter struct {
	item  string
	shift int64 // how many events were put before those of the provider
}

func prependItem(response, item string) string {
	return jsonedit.Set(response, "output", rawjson.Array(append([]string{item}, rawjson.RawItems(gjson.Get(response, "output"), nil)...)))
}

func (s *itemInserter) insertInto(e sse.Event) (out []byte) {
	v := gjson.Parse(e.Data)
	kind := v.Get("type").Str
	switch {
	case kind == "" || !v.IsObject():
		return e.Raw
	case kind == "response.created" || kind == "response.in_progress" || kind == "response.queued":
	case s.shift == 0:
		out = s.itemEvents(v)
	}
	data := e.Data
	if s.shift > 0 {
		if n := v.Get("sequence_number"); n.Exists() {
			data = jsonedit.Set(data, "sequence_number", strconv.FormatInt(n.Int()+s.shift, 10))
		}
		if n := v.Get("output_index"); n.Exists() {
			data = jsonedit.Set(data, "output_index", strconv.FormatInt(n.Int()+1, 10))
		}
	}
	switch kind {
	case "response.completed", "response.incomplete", "response.failed":
		data = jsonedit.Set(data, "response", prependItem(gjson.Get(data, "response").Raw, s.item))
	}
	return append(out, e.WithData(data)...)
}

func (s *itemInserter) itemEvents(first gjson.Result) (out []byte) {
	n := first.Get("sequence_number").Int()
	for _, kind := range []string{"response.output_item.added", "response.output_item.done"} {
		data := `{"type":"` + kind + `","sequence_number":` + strconv.FormatInt(n+s.shift, 10) + `,"output_index":0,"item":` + s.item + `}`
		out = append(out, sse.Event{Name: kind}.WithData(data)...)
		s.shift++
	}
	return out
}
