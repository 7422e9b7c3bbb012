package proxy

import (
	"context"
	"net/http"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/proxy/native"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// strict reports whether the client's own bytes are nothing that the provider
// could answer.
func (x *exchange) strict() bool {
	return x.asked != nil && x.asked.rebuilt != nil && x.asked.rebuilt.strict
}

// budget is what bounds a request whose compaction the client manages, in tokens;
// 0 where nothing but the window does. A policy compacts at nine tenths of it.
func (x *exchange) budget(ask *palimpsest.Step) int {
	if x.asked == nil || !x.asked.emulated || x.asked.Threshold == 0 {
		return 0
	}
	budget := x.asked.Threshold * 10 / 9
	if room := ask.Window - ask.Output; room > 0 {
		budget = min(budget, room)
	}
	return budget
}

// unstored says that the provider is not to keep a response. Inside a text the
// quotes would be escaped.
var unstored = regexp.MustCompile(`"store"\s*:\s*false`)

// remembered reports whether the provider keeps the response, so that a later
// request may go on with it by its id alone.
func (x *exchange) remembered() bool {
	switch a := x.asked; {
	case x.endpoint.task != generate || x.endpoint.dialect.API() != wire.Responses:
		return false
	case a != nil:
		return a.Stored && !a.Conversation && (a.Previous == "" || a.known)
	}
	if x.request.Header.Get("Content-Encoding") != "" {
		return false
	}
	if x.kept == nil {
		kept := !unstored.Match(x.original)
		x.kept = &kept
	}
	return *x.kept
}

// hold shows the client the compaction that it asked for in the answer, and
// remembers what the provider holds from now on.
func (x *exchange) hold(res *http.Response, v verdict) (*http.Response, error) {
	item := ""
	if v.action == Compacted && x.asked != nil && x.asked.emulated && v.step != nil {
		item = x.madeItem(v.step)
	}
	remember := func(string) {}
	if x.remembered() {
		remember = func(response string) {
			x.guarded(context.WithoutCancel(x.request.Context()), "link", func(x *exchange, ctx context.Context) (verdict, error) {
				return verdict{step: v.step}, x.remember(ctx, v, response)
			})
		}
	} else if item == "" {
		return res, nil
	}
	return x.show(res, item, remember)
}

// unheld reports whether a provider refuses to go on with a response that is
// known here: it has forgotten it, or it holds none at all.
func (x *exchange) unheld(res *http.Response, v verdict) bool {
	a := x.asked
	return v.action == Passed && a != nil && a.known && a.rebuilt != nil && res.StatusCode >= 400 && res.StatusCode < 500 && strings.Contains(x.said, "previous")
}

// whole sends the whole conversation in the place of a response's id.
func (x *exchange) whole(ctx context.Context, v verdict, res *http.Response) (verdict, *http.Response, error) {
	r := *x.asked.rebuilt
	a := *x.asked
	r.strict, a.rebuilt, a.held = true, &r, true
	x.asked = &a
	all := x.guarded(ctx, "prepare", (*exchange).decide)
	if all.action == Passed {
		return v, res, nil
	}
	res.Body.Close()
	again, err := x.send(all)
	return all, again, err
}

// madeItem is the compaction of a step; empty where something failed.
func (x *exchange) madeItem(s *step) string {
	made := make(chan string, 1)
	x.guarded(x.request.Context(), "compaction", func(x *exchange, ctx context.Context) (verdict, error) {
		item, _, err := x.compaction(ctx, s)
		made <- item
		return verdict{step: s}, err
	})
	select {
	case item := <-made:
		return item
	default:
		return ""
	}
}

// remember keeps what is behind a response.
func (x *exchange) remember(ctx context.Context, v verdict, response string) error {
	switch gjson.Get(response, "status").Str {
	case "", "completed", "incomplete":
	default:
		return nil // it goes on in the background
	}
	a := x.asked
	switch {
	case a != nil:
	case v.step != nil:
		a = &asked{}
	case len(x.original) > maxLink:
		return nil
	default:
		r, err := native.ParseResponses(string(x.original))
		if err != nil || r.Conversation {
			return err
		}
		a = &asked{Responses: r}
	}
	k := &link{Made: x.start.UnixNano(), Held: a.held || v.action != Passed}
	gjson.Get(response, "output").ForEach(func(_, item gjson.Result) bool {
		k.Output = append(k.Output, []byte(item.Raw))
		return true
	})
	switch {
	case v.step != nil:
		h, _, err := x.t.position(ctx, v.step)
		if err != nil {
			return err
		}
		k.history = h
		k.System = instructions(v.step.request)
	case a.rebuilt != nil && a.rebuilt.Log != "":
		return nil // what went out is not what the log holds
	default:
		k.Prev, k.Input = a.Previous, raws(a.Items)
	}
	return x.t.links.save(ctx, gjson.Get(response, "id").Str, k)
}

// readableHere reports whether all encodings that a client accepts can be read
// here.
func readableHere(h http.Header) bool {
	for encoding := range strings.SplitSeq(h.Get("Accept-Encoding"), ",") {
		name, _, _ := strings.Cut(encoding, ";")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "", "identity", "gzip", "x-gzip", "deflate":
		default:
			return false
		}
	}
	return true
}
