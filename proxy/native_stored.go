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
func (m emulation) strict() bool {
	return m.asked != nil && m.asked.rebuilt != nil && m.asked.rebuilt.strict
}

// budget is what bounds a request whose compaction the client manages, in tokens;
// 0 where nothing but the window does. A policy compacts at nine tenths of it.
func (m emulation) budget(ask *palimpsest.Step) int {
	if m.asked == nil || !m.asked.emulated || m.asked.Threshold == 0 {
		return 0
	}
	budget := m.asked.Threshold * 10 / 9
	if room := ask.Window - ask.Output; room > 0 {
		budget = min(budget, room)
	}
	return budget
}

// unstored says that the provider is not to keep a response. Inside a text the
// quotes would be escaped.
var unstored = regexp.MustCompile(`"store"\s*:\s*false`)

// stored reports whether the provider keeps the response, so that a later
// request may go on with it by its id alone.
func (n nativeResponses) stored() bool {
	if n.endpoint.task != generate || n.endpoint.dialect.API() != wire.Responses {
		return false
	}
	if a := n.native.asked; a != nil {
		return a.Stored && !a.Conversation && (a.Previous == "" || a.known)
	}
	return n.request.Header.Get("Content-Encoding") == "" && !unstored.MatchString(n.body)
}

// keep shows the client the compaction that it asked for in the answer, and
// remembers what the provider holds from now on.
func (n nativeResponses) keep(res *http.Response, d decision) (*http.Response, error) {
	item := ""
	if d.action == Compacted && n.native.asked != nil && n.native.asked.emulated && d.step != nil {
		item = n.madeItem(d.step)
	}
	remember := func(string) {}
	if n.stored() {
		remember = func(response string) {
			n.attempt(context.WithoutCancel(n.request.Context()), "link", d.step, func(ctx context.Context) error { return n.remember(ctx, d, response) })
		}
	} else if item == "" {
		return res, nil
	}
	return n.show(res, item, remember)
}

// forgotten reports whether a provider refuses to go on with a response that is
// known here: it has forgotten it, or it holds none at all.
func (n nativeResponses) forgotten(res *http.Response, d decision, why refusal) bool {
	a := n.native.asked
	return d.action == Passed && a != nil && a.known && a.rebuilt != nil && res.StatusCode >= 400 && res.StatusCode < 500 && strings.Contains(why.said, "previous")
}

// whole sends the whole conversation in the place of a response's id.
func (n nativeResponses) whole(ctx context.Context, d decision, res *http.Response) (decision, *http.Response, error) {
	own, a, r := *n.exchange, *n.native.asked, *n.native.asked.rebuilt
	r.strict, a.rebuilt, a.part = true, &r, true
	own.native.asked = &a
	all := own.guarded(ctx, "prepare", own.decide)
	if all.action == Passed {
		return d, res, nil
	}
	res.Body.Close()
	all.whole = true
	again, err := n.send(all)
	return all, again, err
}

// madeItem is the compaction of a step; empty where something failed.
func (n nativeResponses) madeItem(s *step) string {
	item, err := guard(n.request.Context(), n.t.options.Deadline, func(ctx context.Context) (string, error) {
		item, _, err := n.compaction(ctx, s.id, s.read)
		return item, err
	})
	if err != nil {
		n.fault("compaction", err, s)
	}
	return item
}

// remember keeps what is behind a response.
func (n nativeResponses) remember(ctx context.Context, d decision, answer string) error {
	switch gjson.Get(answer, "status").Str {
	case "", "completed", "incomplete":
	default:
		return nil // it goes on in the background
	}
	a := n.native.asked
	switch {
	case a != nil:
	case d.step != nil:
		a = &asked{}
	case len(n.body) > maxResponse:
		return nil
	default:
		r, err := native.ParseResponses(n.body)
		if err != nil || r.Conversation {
			return err
		}
		a = &asked{Responses: r}
	}
	k := &response{Made: n.start.UnixNano(), Part: a.part || d.whole || d.action != Passed}
	gjson.Get(answer, "output").ForEach(func(_, item gjson.Result) bool {
		k.Output = append(k.Output, []byte(item.Raw))
		return true
	})
	switch {
	case d.step != nil:
		h, _, err := n.t.position(ctx, d.step.id, d.step.read)
		if err != nil {
			return err
		}
		k.history = h
		k.System = instructions(d.step.read.Prompt)
	case a.rebuilt != nil && a.rebuilt.Log != "":
		return nil // what went out is not what the log holds
	default:
		k.Prev, k.Input = a.Previous, raws(a.Items)
	}
	return n.t.responses.save(ctx, gjson.Get(answer, "id").Str, k)
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
