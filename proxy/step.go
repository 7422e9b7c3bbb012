package proxy

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/permit"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// step is a request whose conversation is known.
type step struct {
	id      string // of the log
	session *palimpsest.Session
	ask     palimpsest.Step
	request *prompt.Prompt // as the client sent it
	ids     []thread.ID    // of its messages
	offered bool           // the model was offered our tools
	// rounds are those of an earlier try that the log ends with.
	rounds []*thread.Message
	// earlier are the logs that the conversation goes on from.
	earlier []string
	// prepared is what was last rendered; nil where nothing was.
	prepared *palimpsest.Prepared
}

// decide looks at a request and says what goes to the provider.
func (x *exchange) decide(ctx context.Context) (verdict, error) {
	if x.endpoint.task == count {
		return x.counted(ctx)
	}
	if x.endpoint.task == compaction || x.native != nil && x.native.settled {
		return pass("native"), nil
	}
	if x.small(ctx) {
		return pass("below-mark"), nil
	}
	p, reason, err := x.look(ctx)
	switch {
	case err != nil:
		return verdict{}, err
	case reason == ownCompaction:
		x.t.lineage.passed(x.session(), reason, len(x.plain))
		return x.summarised(ctx, p)
	case reason != "":
		if x.known != nil {
			x.t.lineage.passed(x.session(), reason, len(x.plain))
		}
		return pass(reason), nil
	}
	return x.prepare(ctx, p, false)
}

// read decodes the request. A reason says why it is none of ours.
func (x *exchange) read() (p *prompt.Prompt, reason string) {
	plain, err := decoded(x.request.Header, x.original, x.t.options.MaxBody)
	if err != nil {
		return nil, "encoding"
	}
	x.plain = plain
	text := unsafe.String(unsafe.SliceData(plain), len(plain)) // nobody writes to it any more, and it may be long
	before, same := x.t.bodies.find(x.endpoint.dialect.API(), text)
	if before != nil {
		x.known = before.extended(x.endpoint.dialect, text, same)
	}
	if x.known == nil {
		if p, err = x.endpoint.dialect.Decode(plain); err != nil {
			return nil, "format"
		}
		if p.Source.Body == text {
			text = p.Source.Body // the same bytes, which need not be kept twice
		}
		before, x.known = nil, newKnown(text, p, top(text))
	}
	k := x.known
	for i := range k.prompt.Messages[len(k.ids):] {
		if m := &k.prompt.Messages[len(k.ids)+i]; m.Role == thread.User {
			m.Kind = injected.Message(m)
		}
	}
	k.ids = x.t.ids.ids(k.ids, k.prompt.Messages)
	x.t.bodies.keep(k, before)
	for _, name := range serverSide {
		if v := k.top[name]; v.Exists() && v.Type != gjson.Null {
			return nil, "server-side-history"
		}
	}
	return k.prompt, aside(x.request.Header, k.prompt, k.top)
}

// serverSide are the members of a body whose history the provider holds: there
// is nothing here to make smaller.
var serverSide = []string{"previous_response_id", "conversation", "thread"}

// small reports whether a request is too small for any policy. Where the window is
// not known the automatic policy waits for the provider to refuse.
func (x *exchange) small(ctx context.Context) bool {
	if x.request.Header.Get("Content-Encoding") != "" || x.request.Header.Get(ThreadHeader) != "" {
		return false
	}
	if a := x.asked; a != nil {
		if r := a.rebuilt; r != nil || a.emulated {
			return !a.emulated && !r.strict && r.Log == "" && len(r.body) < smallAlways
		}
	}
	if len(x.original) < smallAlways {
		return true
	}
	switch x.t.options.Config.Policy.(type) {
	case nil, policy.Auto:
		return x.model(ctx, x.modelName()).Window == 0
	}
	return false
}

// smallAlways is the size of a body, in bytes, below which no policy is asked.
const smallAlways = 12 << 10

// modelName is the model that the request asks for.
func (x *exchange) modelName() string {
	if x.endpoint.model != "" {
		return x.endpoint.model
	}
	if x.plain != nil {
		return gjson.GetBytes(x.plain, "model").Str
	}
	return gjson.GetBytes(x.original, "model").Str
}

// limit is the largest request that the model takes, answer included, in tokens.
func limit(m token.Model) int {
	if m.MaxInput > 0 && m.MaxInput < m.Window {
		return m.MaxInput
	}
	return m.Window
}

// output is the room that is kept free for the answer: what the request asks
// for, else enough for a long one, and never more than a third of the window. It is
// less where system and tools are so large that less than a third of the window
// would be left for the conversation: agents ask for the longest answer that any
// model gives, and a conversation without room cannot be compacted.
func output(m token.Model, p *prompt.Prompt) int {
	asked := p.MaxOutput
	if asked == 0 {
		asked = usualOutput
		if m.MaxOutput > 0 && m.MaxOutput < asked {
			asked = m.MaxOutput
		}
	}
	left := m.Window - fixed(p) - m.Window/3
	return min(asked, m.Window/3, max(left, m.Window/8))
}

// fixed is about what system and tools take, in tokens of three bytes.
func fixed(p *prompt.Prompt) int {
	bytes := 0
	for i := range p.System {
		bytes += len(p.System[i].Text)
	}
	for i := range p.Tools {
		bytes += len(p.Tools[i].Name) + len(p.Tools[i].Description) + len(p.Tools[i].Schema)
	}
	return bytes / 3
}

// usualOutput is the room for an answer of a request that names no limit, in
// tokens.
const usualOutput = 16_000

// prepare appends what is new to the log and renders. forced says that the
// provider has refused the request already.
func (x *exchange) prepare(ctx context.Context, p *prompt.Prompt, forced bool) (verdict, error) {
	ids := x.known.ids
	known := x.model(ctx, x.modelNameOf(p))
	compactor, err := x.t.compactor(known, x.offers(p))
	if err != nil {
		return verdict{}, err
	}
	s := &step{ids: ids, request: p, ask: palimpsest.Step{
		Base: x.known.shell(p), Profile: x.profile(known), Window: limit(known), Output: output(known, p),
	}}
	s.ask.Budget = x.budget(&s.ask)
	v := verdict{step: s}
	for n := 1; ; n++ {
		b, err := x.branch(ctx, p, ids)
		var made *palimpsest.Prepared
		if err == nil {
			s.id, s.ask.Messages, s.rounds, s.earlier = b.id, b.news, b.rounds, x.earlier(ctx, p, b)
			s.session = compactor.Session(b.id, s.earlier...)
			made, err = s.session.PrepareStep(ctx, s.ask)
		}
		switch {
		case n < tries && (errors.Is(err, store.ErrConflict) || errors.Is(err, thread.ErrDuplicateID)):
			continue // another request of the same conversation was faster
		case err != nil:
			return v, err
		}
		if !x.apart {
			x.t.known.remember(thread.ID(x.scope(p))+ids[len(ids)-1], b.id)
		}
		if s.prepared = made; forced && made.Compacted == nil {
			return x.smaller(ctx, s)
		}
		return x.finish(ctx, s, made, b.changed)
	}
}

// profile is what the provider's API demands of a prompt. Models that are known not
// to bind their thinking to what stands before it keep it; of one that is not
// known it is not believed.
func (x *exchange) profile(m token.Model) render.Profile {
	p := render.For(x.endpoint.dialect.API())
	p.LastUser = true // models of other providers, behind the same API, refuse it as well
	p.BoundReasoning = p.BoundReasoning && (m.BindsThinking || m.Source == "")
	return p
}

// tries bounds how often a log is looked at again because somebody was faster.
const tries = 8

// modelNameOf is modelName with the body decoded.
func (x *exchange) modelNameOf(p *prompt.Prompt) string { return or(x.endpoint.model, p.Model) }

// scope keeps histories of different models and APIs apart.
func (x *exchange) scope(p *prompt.Prompt) string {
	return x.endpoint.dialect.API() + "\x00" + x.modelNameOf(p) + "\x00" + x.request.Header.Get(ThreadHeader) + "\x00"
}

// overflowed makes a smaller request of one that the provider refused as too
// long.
func (x *exchange) overflowed(ctx context.Context, v verdict) (verdict, error) {
	if v.step != nil {
		return x.smaller(ctx, v.step)
	}
	p, reason, err := x.look(ctx)
	if err != nil {
		return verdict{}, err
	}
	if reason != "" && reason != ownCompaction {
		return pass(reason), nil
	}
	x.apart = reason == ownCompaction
	v, err = x.prepare(ctx, p, true)
	if v.action != Passed && err == nil {
		v.action = Recovered
	}
	return v, err
}

// smaller compacts harder than the last time.
func (x *exchange) smaller(ctx context.Context, s *step) (verdict, error) {
	made, err := s.session.Overflowed(ctx, s.prepared)
	if errors.Is(err, palimpsest.ErrNoRoom) {
		return verdict{action: Passed, reason: "no-room", step: s}, nil
	}
	if err != nil {
		return verdict{step: s}, err
	}
	v, err := x.finish(ctx, s, made, false)
	if v.action != Passed {
		v.action = Recovered
	}
	return v, err
}

// finish encodes what was rendered. A rendering without a plan is the client's
// own request, unless changed says that the log holds what the client does not.
func (x *exchange) finish(ctx context.Context, s *step, made *palimpsest.Prepared, changed bool) (verdict, error) {
	s.prepared = made
	current, _, err := store.CurrentUncopied(ctx, x.t.plans, s.id, permit.Key{})
	if err != nil {
		return verdict{step: s}, err
	}
	if made.Compacted != nil {
		x.t.compactions.Add(1)
	}
	if current.Empty() && !changed && !x.strict() && (len(s.earlier) == 0 || !x.offers(s.request)) {
		return verdict{action: Passed, reason: "below-mark", step: s, before: made.Before, sent: made.Tokens}, nil
	}
	log, err := x.t.log.Load(ctx, s.id)
	if err != nil {
		return verdict{step: s}, err
	}
	rendered := own(made.Prompt)
	refresh(rendered, log, s.request.Messages, s.ids)
	s.offered = x.offers(s.request) && slices.ContainsFunc(rendered.Tools, isOurs)
	body, err := x.endpoint.dialect.Encode(rendered)
	if err != nil {
		return verdict{step: s}, fmt.Errorf("encode: %w", err)
	}
	v := verdict{action: Planned, step: s, body: body, before: made.Before, sent: made.Tokens}
	if made.Compacted != nil {
		v.action = Compacted
	}
	return v, nil
}

// own is a prompt whose messages may be replaced: what was rendered may be
// remembered for the next step.
func own(p *prompt.Prompt) *prompt.Prompt {
	out := *p
	out.Messages = slices.Clone(p.Messages)
	return &out
}

// windows are the places in which providers name the model's window when they
// refuse a request.
var windows = []*regexp.Regexp{
	regexp.MustCompile(`tokens? > ([0-9]{4,8}) maximum`),                          // Anthropic
	regexp.MustCompile(`maximum context length is ([0-9]{4,8})`),                  // OpenAI and most compatible servers
	regexp.MustCompile(`maximum number of tokens allowed[^0-9]{0,4}([0-9]{4,8})`), // Gemini
	regexp.MustCompile(`context (?:window|size)[^0-9]{0,20}([0-9]{4,8})`),         // llama.cpp and others
}

// namedWindow finds the window in a refusal; 0 where it names none.
func namedWindow(refusal string) int {
	refusal = strings.ToLower(refusal)
	for _, re := range windows {
		if m := re.FindStringSubmatch(refusal); m != nil {
			n, _ := strconv.Atoi(m[1]) // eight digits at most
			return n
		}
	}
	return 0
}
