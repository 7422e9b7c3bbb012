package adapter

import (
	"context"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Codec reads and writes the messages of a framework. Implementations are stateless
// values and safe for concurrent use.
type Codec[M any] interface {
	// API is the name that stands in the frames and sources of what Decode reads.
	API() string
	// Decode reads a whole history. Every message that it returns has a frame, whose
	// position and elements say where in the history it stands. What has no portable
	// meaning is kept in opaque parts.
	Decode(history []M) ([]thread.Message, error)
	// Encode writes messages of a prompt. Messages that Decode returned come back as
	// they were; of messages that were changed, so do the parts that were not. A
	// framework that keeps its instructions elsewhere leaves system messages out.
	Encode(messages []thread.Message) ([]M, error)
}

// Joiner is for codecs of frameworks whose providers want the roles to alternate: of two
// neighbours, one of which was written here, it makes one message, or says that they
// stay apart. It changes neither.
type Joiner[M any] interface {
	Join(a, b M) (joined M, ok bool)
}

// Holder is for codecs of frameworks whose messages hold values that their bytes do not
// bring back, such as those of a type of a model's own.
type Holder[M any] interface {
	// Holding returns the codec for messages that were read from that history: what it
	// writes holds the history's own values where they were not changed.
	Holding(history []M) Codec[M]
}

// Options tune Sessions. The zero value has no limit but those of the policy.
type Options struct {
	// Window is the model's context window and Output what is kept free for its
	// answer, in tokens. Budget bounds the whole request where it should be smaller.
	Window, Output, Budget int
	// Profile is the provider behind the framework (render.For). Its API is not used.
	// The zero value is cautious.
	Profile render.Profile
	// Overflow says that the model refused a request as too long. Nil looks for the
	// errors of package llm, and then for the words that providers use.
	Overflow func(error) bool
	// Failed is told what went wrong here; the agent goes on with the messages of its
	// framework. Nil for nobody.
	Failed func(ctx context.Context, session string, err error)
}

// cautious is the profile of a provider that is not known: a prompt made for it keeps
// the rules of all of them.
func cautious() render.Profile {
	return render.Profile{
		FirstUser: true, LastUser: true, BoundReasoning: true, ResultsInCallOrder: true, ObjectArguments: true, SystemFirst: true,
	}
}

// Sessions are the conversations of a framework whose messages are M. They may be used
// from several goroutines.
type Sessions[M any] struct {
	compactor *palimpsest.Compactor
	codec     Codec[M]
	options   Options
	last      *lru.Cache[string, Call[M]]
}

// maxOpen is how many conversations are remembered from one call to the next. Of one
// that is not, usage is not compared, and recall reads the log of its id alone.
const maxOpen = 256

// New returns the sessions that a compactor keeps for a framework. A nil o is the zero
// Options.
func New[M any](c *palimpsest.Compactor, codec Codec[M], o *Options) *Sessions[M] {
	s := &Sessions[M]{compactor: c, codec: codec, last: lru.New[string, Call[M]](maxOpen)}
	if o != nil {
		s.options = *o
	}
	if s.options.Profile == (render.Profile{}) {
		s.options.Profile = cautious()
	}
	s.options.Profile.API = codec.API()
	return s
}

// Call is one call of the model.
type Call[M any] struct {
	// Messages are to be sent.
	Messages []M
	// System are the texts that stand behind the framework's own instructions; they
	// are in Messages too where Encode writes system messages.
	System []string

	id       string
	history  []M
	base     *prompt.Prompt
	own      []thread.Message // of the history, without what begins it as instructions
	session  *palimpsest.Session
	prepared *palimpsest.Prepared
}

// Compacted reports whether the call has put a plan in force.
func (c *Call[M]) Compacted() bool { return c.prepared != nil && c.prepared.Compacted != nil }

// Prepare makes the messages of a call from the whole history of a conversation. base
// is the request around them, as far as it is known: it is counted. Nil will do. An
// empty id is no conversation: the history goes as it is, as it does when something
// fails.
func (s *Sessions[M]) Prepare(ctx context.Context, id string, base *prompt.Prompt, history []M) Call[M] {
	call := Call[M]{Messages: history, id: id, history: history}
	if id == "" || len(history) == 0 {
		return call
	}
	err := guarded(func() error {
		made, err := s.prepare(ctx, call, base)
		if err == nil {
			call = made
		}
		return err
	})
	if err != nil {
		s.failed(ctx, id, err)
		return call
	}
	s.last.Put(id, call, 1)
	return call
}

func (s *Sessions[M]) prepare(ctx context.Context, call Call[M], base *prompt.Prompt) (Call[M], error) {
	decoded, err := s.codec.Decode(call.history)
	if err != nil {
		return call, fmt.Errorf("adapter.Prepare(%s): %w", call.id, err)
	}
	call.base = &prompt.Prompt{}
	if base != nil {
		*call.base = *base
	}
	lead := 0
	for ; lead < len(decoded) && decoded[lead].Role == thread.System; lead++ {
		call.base.System = append(call.base.System[:len(call.base.System):len(call.base.System)], prompt.System{Text: decoded[lead].Text(), Role: "system"})
	}
	log, err := thread.New(call.id).Append(decoded[lead:]...)
	if err != nil {
		return call, fmt.Errorf("adapter.Prepare: %w", err)
	}
	call.own = log.Messages()
	if len(call.own) == 0 { // of instructions only, which are no part of the log
		call.session = s.compactor.Session(call.id)
		return call, nil
	}
	if call.session, err = s.place(ctx, call.id, call.own); err != nil {
		return call, err
	}
	o := s.options
	prepared, err := call.session.PrepareStep(ctx, palimpsest.Step{Base: call.base, Profile: o.Profile, Window: o.Window, Output: o.Output, Budget: o.Budget})
	if err != nil {
		return call, err
	}
	return s.written(call, prepared)
}

// Overflowed is for a call that the model refused: where it was too long, it returns
// one that is smaller, to be tried once. ok is false for any other error, and where
// there is nothing left to take.
func (s *Sessions[M]) Overflowed(ctx context.Context, call Call[M], refusal error) (smaller Call[M], ok bool) {
	if call.prepared == nil || refusal == nil || !s.overflow(refusal) {
		return call, false
	}
	smaller = call
	err := guarded(func() error {
		prepared, err := call.session.Overflowed(ctx, call.prepared, refusal)
		if err == nil {
			smaller, err = s.written(call, prepared)
		}
		return err
	})
	if err != nil {
		if !errors.Is(err, palimpsest.ErrNoRoom) {
			s.failed(ctx, call.id, err)
		}
		return call, false
	}
	s.last.Put(call.id, smaller, 1)
	return smaller, true
}

func (s *Sessions[M]) overflow(err error) bool {
	if s.options.Overflow != nil {
		return s.options.Overflow(err)
	}
	return palimpsest.IsOverflow(err) || err.Error() != "" && llm.IsOverflow(llm.Classify("", 400, []byte(err.Error())))
}

// Finish tells what the provider counted of a call. The answer itself is a part of the
// next history.
func (s *Sessions[M]) Finish(ctx context.Context, call Call[M], usage wire.Usage) {
	if call.prepared == nil {
		return
	}
	if err := guarded(func() error { return call.session.FinishStep(ctx, call.prepared, usage) }); err != nil {
		s.failed(ctx, call.id, err)
	}
}

// Last is the call of a conversation that was prepared last, for frameworks that hand
// nothing over from one hook to the next. It is false where none is remembered.
func (s *Sessions[M]) Last(id string) (Call[M], bool) { return s.last.Get(id) }

// Tools are the tools that reach what was removed, and those of Recall.ContextTools where
// they are on: frameworks want to know all tools before the first call. They need
// palimpsest.Config.Recall.
func (s *Sessions[M]) Tools() []prompt.Tool { return s.compactor.Tools() }

// Answer runs one of Tools for a conversation. What cannot be found or read is said in
// the text.
func (s *Sessions[M]) Answer(ctx context.Context, id string, call thread.ToolCall) string {
	last, known := s.last.Get(id)
	if !known {
		last.session = s.compactor.Session(id)
	}
	var text string
	err := guarded(func() error {
		m, ok, err := last.session.Answer(ctx, last.prepared, call)
		if !ok && err == nil {
			err = errors.New("the compactor offers no such tool: set Config.Recall")
		}
		if r, has := m.Result(); has {
			text = r.Text()
		}
		return err
	})
	if err != nil {
		s.failed(ctx, id, err)
		return "Error: " + call.Name + " cannot be answered now"
	}
	return text
}

func (s *Sessions[M]) failed(ctx context.Context, id string, err error) {
	if s.options.Failed != nil {
		s.options.Failed(ctx, id, err)
	}
}

var errPanic = errors.New("panic")

// guarded makes a panic of ours an error: it must not reach the agent.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("adapter: %w: %v", errPanic, p)
		}
	}()
	return f()
}
