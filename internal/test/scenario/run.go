package scenario

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/setup"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// Setting is what a face runs a conversation in.
type Setting struct {
	Config palimpsest.Config // over Store
	Store  store.DB
	Base   *prompt.Prompt // model, system prompt, tools
	Window int            // of the model, in tokens
}

// Step is a request of the agent's.
type Step struct {
	All    []thread.Message // everything that was said
	News   []thread.Message // of it what the step before did not hold
	Answer *thread.Message  // the model's; nil where the agent does not wait for it
}

// Face begins a conversation. Each step returns the body that the model's provider gets, of the Chat API.
type Face func(t *testing.T, s *Setting) (step func(Step) []byte)

// Run runs the scenarios of a folder through a face, each log under each of its policies with each of its models.
func Run(t *testing.T, dir, name string, face Face) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has %d scenarios, %v", dir, len(files), err)
	}
	for _, file := range files {
		s, err := read(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if !slices.Contains(s.Faces, name) {
			continue
		}
		for policy := range s.policies {
			for _, model := range s.modelsOf(policy) {
				for log, ops := range s.logs {
					path := slices.DeleteFunc([]string{strings.TrimSuffix(s.name, ".txtar"), policy, model, log}, func(part string) bool { return part == "" })
					t.Run(strings.Join(path, "/"), func(t *testing.T) { s.run(t, policy, model, ops, face) })
				}
			}
		}
	}
}

// modelsOf are the sections of answers that a policy runs with: its own, else all that are no other policy's.
func (s *scenario) modelsOf(policy string) (names []string) {
	if s.models[policy] != nil {
		return []string{policy}
	}
	for name := range s.models {
		if s.policies[name] == nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return []string{""}
	}
	return names
}

// runner is a conversation that goes on.
type runner struct {
	*testing.T
	s     *scenario
	db    store.DB
	heard *heard
	model *llmtest.Scripted
	count *token.Counter
	said  []thread.Message
	sent  int // of said

	shown, before *prompt.Prompt // the requests of the last step and the one before
	plan          *plan.Plan     // in force
	version       int            // of the plan
}

func (s *scenario) run(t *testing.T, policy, model string, ops []op, face Face) {
	file := filepath.Join(t.TempDir(), policy+".yaml")
	if err := os.WriteFile(file, s.policies[policy], 0o600); err != nil {
		t.Fatal(err)
	}
	r := &runner{T: t, s: s, db: mem.New(), heard: &heard{}}
	options := &setup.Options{}
	if answers, ok := s.models[model]; ok {
		r.model = llmtest.Script(answers...)
		options.Model = r.model
	}
	p, err := setup.Open(file, options)
	if err != nil {
		t.Fatal(err)
	}
	if r.count, err = token.New("o200k", nil); err != nil {
		t.Fatal(err)
	}
	tenant := r.db.Tenant("")
	c := p.Config(r.count)
	c.Store, c.Events = tenant, r.heard
	c.Now = func() time.Time { return time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC) }
	base := &prompt.Prompt{Model: "m", System: []prompt.System{{Text: "You look after a shop."}}, MaxOutput: s.Output}
	if text, ok := strings.CutPrefix(ops[0].text, "system: "); ok {
		base.System[0].Text, ops = broken(text), slices.Clone(ops)
		ops[0] = op{line: line{ops[0].n, "# " + text}}
	}
	if s.Tools { // proxy and daemon look at the request; a program that has no tools does not set Recall
		c.Recall = &palimpsest.Recall{}
		base.Tools = []prompt.Tool{{Name: "inspect", Description: "looks", Schema: `{"type":"object"}`}}
	}
	step := face(t, &Setting{c, r.db, base, s.Window})
	checks := 0
	for i := 0; i < len(ops); i++ {
		o := ops[i]
		check, isCheck := strings.CutPrefix(o.text, "> ")
		switch {
		case o.text == "step":
			r.ask(o.line, ops[i+1:], step)
		case isCheck:
			checks++
			r.check(o.line, check)
		case strings.HasPrefix(o.text, "# "):
		case o.plan == 0:
			r.say(o.line)
		case r.version >= o.plan:
			i = o.behind - 1
		case i == o.behind-1:
			r.wrong(o.line, "plan %d is in force", r.version)
		}
	}
	if checks == 0 {
		t.Errorf("%s checks nothing", s.name)
	}
}

func (r *runner) wrong(l line, format string, args ...any) {
	r.Helper()
	r.Error(r.s.wrong(l, format, args...))
}

// ask takes a step. Where what follows behind the checks is said by the assistant, that is the answer.
func (r *runner) ask(at line, follow []op, send func(Step) []byte) {
	r.Helper()
	step := Step{All: slices.Clone(r.said), News: slices.Clone(r.said[r.sent:])}
	r.sent = len(r.said)
	follow = slices.DeleteFunc(slices.Clone(follow), func(o op) bool { return strings.HasPrefix(o.text, "> ") })
	if len(follow) > 0 && (strings.HasPrefix(follow[0].text, "assistant:") || strings.HasPrefix(follow[0].text, "call ")) {
		answer := &runner{T: r.T, s: r.s}
		for i := 0; i < len(follow) && (i == 0 || strings.HasPrefix(follow[i].text, "+call ")); i++ {
			answer.say(follow[i].line)
		}
		step.Answer = &answer.said[0]
		r.sent++ // it is said once more, from its line
	}
	body := send(step)
	for _, problem := range (openai.Chat{}).Validate(body) {
		if !problem.Advice {
			r.wrong(at, "the provider would refuse the request: %v", problem)
		}
	}
	shown, err := openai.Chat{}.Decode(string(body))
	if err != nil {
		r.Fatal(err)
	}
	r.before, r.shown = r.shown, shown
	if r.plan, r.version, err = r.db.Tenant("").Plans.Current(r.Context(), r.heard.thread()); err != nil {
		r.Fatal(err)
	}
}

// say adds to what was said.
func (r *runner) say(l line) {
	r.Helper()
	head, text, _ := strings.Cut(l.text, ":")
	text = broken(strings.TrimPrefix(text, " "))
	words := strings.SplitN(l.text, " ", 4)
	of := strings.Fields(head)
	switch {
	case head == "user" || head == "assistant":
		r.said = append(r.said, thread.Message{Role: thread.Role(head), Parts: []thread.Part{thread.Text{Text: text}}})
	case words[0] == "call" && len(words) == 4:
		r.said = append(r.said, thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: words[1], Name: words[2], Arguments: words[3]}}})
	case words[0] == "+call" && len(words) == 4 && len(r.said) > 0:
		last := &r.said[len(r.said)-1]
		last.Parts = append(slices.Clip(last.Parts), thread.ToolCall{ID: words[1], Name: words[2], Arguments: words[3]})
	case words[0] == "result" && (len(of) == 3 || len(of) == 4):
		result := thread.ToolResult{CallID: of[1], Tool: of[2], Content: []thread.Part{thread.Text{Text: text}}}
		if len(of) == 4 {
			result.Outcome = thread.Outcome(of[3])
		}
		r.said = append(r.said, thread.Message{Role: thread.Tool, Parts: []thread.Part{result}})
	default:
		r.Fatal(r.s.wrong(l, "want user: assistant: call ID TOOL ARGUMENTS, result ID TOOL: TEXT, step, repeat, end or > CHECK"))
	}
}

// heard keeps the events.
type heard struct {
	mu     sync.Mutex
	events []event.Event
}

// Emit implements event.Sink.
func (h *heard) Emit(_ context.Context, e event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// all are the events so far.
func (h *heard) all() []event.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events)
}

// thread is the conversation that they are about.
func (h *heard) thread() (id string) {
	for _, e := range h.all() {
		id = cmp.Or(e.ThreadID, id)
	}
	return id
}
