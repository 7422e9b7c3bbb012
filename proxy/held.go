package proxy

import (
	"context"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
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

// hold shows the client the compaction that it asked for in the answer, and
// remembers what the provider holds from now on.
func (x *exchange) hold(res *http.Response, v verdict) (*http.Response, error) {
	a := x.asked
	item := ""
	if v.action == Compacted && a.emulated && v.step != nil {
		made := make(chan string, 1)
		x.guarded(x.request.Context(), "compaction", func(x *exchange, ctx context.Context) (verdict, error) {
			item, err := x.compaction(ctx, v.step)
			made <- item
			return v, err
		})
		select {
		case item = <-made:
		default:
		}
	}
	remember := func(string) {}
	if a.Stored && (a.Previous == "" || a.known) && !a.Conversation {
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

// remember keeps what is behind a response.
func (x *exchange) remember(ctx context.Context, v verdict, response string) error {
	a := x.asked
	k := &link{Held: a.held || v.action != Passed}
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
		for _, s := range v.step.request.System {
			if s.Role != "instructions" && s.Source.API == wire.Responses {
				k.System = append(k.System, []byte(s.Source.Raw))
			}
		}
	case a.rebuilt != nil && a.rebuilt.Log != "":
		return nil // what went out is not what the log holds
	default:
		k.Prev, k.Input = a.Previous, raws(a.Items)
	}
	return x.t.links.save(ctx, gjson.Get(response, "id").Str, k)
}
