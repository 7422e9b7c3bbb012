package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/choice"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
	"github.com/palimpsest-ai/palimpsest/wire/text"
)

// textTarget is the target that no API reads.
const textTarget = "text"

// codecs write the request APIs.
var codecs = map[string]wire.Codec{
	wire.Anthropic: anthropic.Codec{},
	wire.Chat:      openai.Chat{},
	wire.Responses: openai.Responses{},
	wire.Gemini:    gemini.Codec{},
}

// targets are the values of --to, in the order in which people are shown them.
var targets = []string{wire.Anthropic, wire.Chat, wire.Responses, wire.Gemini, textTarget}

// defaultModels stand in a request when neither the input nor the caller names
// a model that the API has; the caller is told. Gemini's stands in the URL.
var defaultModels = map[string]string{
	wire.Anthropic: "claude-sonnet-4-5",
	wire.Chat:      "gpt-5.1",
	wire.Responses: "gpt-5.1",
}

// target is what a prompt is made for: who reads it, how large it may be and
// who counts.
type target struct {
	to, policy, model, counter, models, summarizer string
	budget                                         int
	// guessBudget takes the window of the model that the input names, or else defaultViewBudget,
	// where nobody says how large the request may be.
	guessBudget bool
	// answers has what models answered before; nil for what this run asks alone.
	answers llm.Cache
}

func (t *target) addFlags(f *pflag.FlagSet) {
	f.StringVar(&t.to, "to", "", "write for `API`: "+strings.Join(targets, ", ")+" (default: the input's own)")
	f.StringVar(&t.policy, "policy", "auto", "the `POLICY`: a file (see \"palimpsest policy\"), or "+strings.Join(policyfile.Names(), ", "))
	f.Var((*tokensFlag)(&t.budget), "budget", "bound the whole request to this many `TOKENS`, such as 32000 or 32k")
	f.StringVar(&t.model, "model", "", "count for the model `NAME` (default: the one that the file names); without --budget, fill its context window")
	f.StringVar(&t.counter, "counter", "", "count with `NAME`, whatever the model: "+counterNames)
	f.StringVar(&t.models, "models", "", "a `FILE` of models that adds to or replaces the built-in table")
}

// summarizerFlag is for commands that make summaries.
func (t *target) summarizerFlag(f *pflag.FlagSet) {
	f.StringVar(&t.summarizer, "summarizer", "", "who writes summaries: extractive (no model), anthropic:MODEL, openai:MODEL, or a `CHAIN` of them joined by commas (default: the policy's, else extractive)")
}

// resolvedTarget is a target after its names were looked up.
type resolvedTarget struct {
	api           string
	profile       render.Profile
	counter       *token.Counter
	counterReason counterReason // who chose the counter
	model         token.Model   // zero when none was named
	budget        int
	compactor     *palimpsest.Compactor
	// ownPolicy is the policy that decides by its own rules, nil where a ladder fits
	// the budget.
	ownPolicy policy.Policy
	// agentAppends: an agent appends the next message itself.
	agentAppends bool
	// summaries is nil where no model is asked.
	summaries *summaries
}

func (t *target) resolve(in *input) (*resolvedTarget, error) {
	r := &resolvedTarget{api: cmp.Or(t.to, in.api())}
	if r.api != textTarget && codecs[r.api] == nil {
		return nil, fmt.Errorf("%w: --to %s: known are %s", errUsage, t.to, strings.Join(targets, ", "))
	}
	if t.models != "" && t.model == "" {
		return nil, fmt.Errorf("%w: --models %s has no use without --model NAME", errUsage, t.models)
	}
	r.profile = render.For(r.api)
	r.profile.Reach = render.Command
	told := &summaries{By: map[string]int{}, Failures: []summaryFailure{}}
	chosen, err := choice.Open(t.policy, &choice.Options{Summarizer: t.summarizer, OnUsage: told.addUsage})
	if err != nil {
		return nil, err
	}
	if told.Use = chosen.Settings.Summarizer.Use; len(told.Use) > 0 {
		r.summaries = told
	}
	if r.counter, r.counterReason, err = t.chooseCounter(in, chosen.Settings.Counter); err != nil {
		return nil, err
	}
	if t.model != "" {
		if r.model, err = t.findModel(); err != nil {
			return nil, err
		}
		r.profile.BoundReasoning = r.model.BindsThinking
	}
	if r.budget, err = t.budgetTokens(r.model); t.guessBudget && t.budget == 0 && t.model == "" {
		r.budget, err = t.guessedBudget(in)
	}
	if err != nil {
		return nil, err
	}
	config := chosen.Config(r.counter)
	config.Answers = llm.NewAnswers(t.answers)
	return r, r.setCompactor(chosen, config, told)
}

// setCompactor makes the compactor of a policy; what it reports of summaries is added to
// told.
func (r *resolvedTarget) setCompactor(chosen *choice.Choice, config palimpsest.Config, told *summaries) (err error) {
	if chosen.HasOwnRules() {
		r.ownPolicy = config.Policy
		config.Policy = reportingPolicy{config.Policy, told}
	}
	r.compactor, err = palimpsest.New(config)
	return err
}

// budgetTokens is the budget: the flag, or what the model's window leaves for input.
func (t *target) budgetTokens(m token.Model) (int, error) {
	switch {
	case t.budget > 0:
		return t.budget, nil
	case t.model == "":
		return 0, fmt.Errorf("%w: say how large the request may be: --budget TOKENS, or --model NAME for its context window", errUsage)
	}
	room := inputTokens(m)
	if room <= 0 {
		return 0, fmt.Errorf("%w: the context window of %s is not known; add --budget TOKENS", errUsage, m.Name)
	}
	return room, nil
}

// defaultViewBudget bounds a conversation to look at whose model nobody knows, in tokens.
const defaultViewBudget = 160_000

func (t *target) guessedBudget(in *input) (int, error) {
	set, err := t.modelTable()
	if err != nil {
		return 0, err
	}
	if m, err := set.Find(in.Model); err == nil && in.Model != "" && inputTokens(m) > 0 {
		return inputTokens(m), nil
	}
	return defaultViewBudget, nil
}

// tokensFlag is the value of a flag that takes a number of tokens.
type tokensFlag int

// Set reads 32000, 32_000, 32,000 and 32k (thousands, as model makers count).
func (n *tokensFlag) Set(text string) error {
	v, err := config.ParseTokens(text)
	if err != nil || v < 1 {
		return errors.New("want a number of tokens above 0, such as 32000 or 32k")
	}
	*n = tokensFlag(v)
	return nil
}

// String returns the number; empty when none was given.
func (n *tokensFlag) String() string {
	if *n == 0 {
		return ""
	}
	return strconv.Itoa(int(*n))
}

// Type names the value in help texts.
func (n *tokensFlag) Type() string { return "TOKENS" }

// answerReserve is what is kept free for the answer, in tokens: agents that do
// well reserve up to 20,000 of a large output limit.
const answerReserve = 20_000

func inputTokens(m token.Model) int {
	room := m.Window - min(max(m.MaxOutput, 0), answerReserve)
	if m.MaxInput > 0 {
		room = min(room, m.MaxInput)
	}
	return room
}

func (t *target) findModel() (token.Model, error) {
	set, err := t.modelTable()
	if err != nil {
		return token.Model{}, err
	}
	m, err := set.Find(t.model)
	if err != nil {
		return token.Model{}, fmt.Errorf("%w: --model: %w (`palimpsest models` lists them, --models FILE adds others)", errUsage, err)
	}
	return m, nil
}

func (t *target) modelTable() (token.ModelSet, error) {
	set := token.Models()
	if t.models == "" {
		return set, nil
	}
	data, err := os.ReadFile(t.models)
	if err != nil {
		return set, fmt.Errorf("--models: %w", err)
	}
	own, err := token.ParseModels(data)
	if err != nil {
		return set, fmt.Errorf("%w: --models %s: %w", errUsage, t.models, err)
	}
	return set.With(own)
}

// encode writes a prompt that was made from an input.
func (r *resolvedTarget) encode(p *prompt.Prompt, in *input) ([]byte, error) {
	if r.api == textTarget {
		return text.Encode(p), nil
	}
	// What we write must pass what we check. What was broken when it came is
	// the input's fault; anything else is ours, and better reported than sent.
	body, broken, err := encodeAndValidate(r.api, p)
	if err != nil || broken == nil {
		return body, err
	}
	if in.Prompt != nil {
		if _, own, err := encodeAndValidate(in.api(), in.Prompt); cmp.Or(own, err) != nil {
			return nil, fmt.Errorf("%w: %s: the %s API would refuse the request as it is: %w", errInvalid, in.path, in.api(), cmp.Or(own, err))
		}
	}
	return nil, fmt.Errorf("the request would be refused by the %s API: %w", r.api, broken)
}

// encodeAndValidate is a prompt as the body of a request, and the rules of the API that it breaks.
func encodeAndValidate(api string, p *prompt.Prompt) (body []byte, broken, err error) {
	if body, err = codecs[api].Encode(p); err != nil {
		return nil, nil, err
	}
	for _, problem := range codecs[api].Validate(body) {
		if !problem.Advice {
			broken = errors.Join(broken, problem)
		}
	}
	return body, broken, nil
}

// compact makes the request fit: by a ladder that fills the budget, or once by a
// policy that keeps to its own rules and formats. Such a policy does not aim at
// the budget, so what it leaves may still be too much.
func (r *resolvedTarget) compact(ctx context.Context, q palimpsest.Request) (*palimpsest.Result, error) {
	res, err := r.compactOnce(ctx, q)
	if err == nil && res.After > q.Budget {
		return nil, fmt.Errorf("policy %s keeps to its own rules and leaves %s tokens, over the budget of %s: raise it, or use --policy auto: %w",
			r.ownPolicy.Name(), number(res.After), number(q.Budget), palimpsest.ErrOverBudget)
	}
	return res, err
}

// compactOnce compacts like compact, but accepts a result over the budget from a policy
// that keeps to its own rules.
func (r *resolvedTarget) compactOnce(ctx context.Context, q palimpsest.Request) (*palimpsest.Result, error) {
	if r.ownPolicy == nil {
		res, err := r.compactor.Compact(ctx, q)
		if err == nil && r.summaries != nil {
			r.summaries.addAll(res.Summaries)
		}
		return res, err
	}
	whole, err := r.compactor.Render(nil, q)
	if err != nil || whole.After <= q.Budget {
		return whole, err
	}
	th := r.compactor.Session(q.Thread.ID())
	if _, err := th.Append(ctx, uncopied.Messages(q.Thread)...); err != nil {
		return nil, err
	}
	p, err := th.Plan(ctx, palimpsest.Step{Base: q.Base, Profile: q.Profile, Budget: q.Budget, Window: r.model.Window, Output: r.model.MaxOutput})
	if errors.Is(err, policy.ErrNothing) {
		return nil, fmt.Errorf("policy %s: %w; %w", r.ownPolicy.Name(), err, palimpsest.ErrOverBudget)
	}
	if err != nil {
		return nil, err
	}
	res, err := r.compactor.Render(p, q)
	if err != nil {
		return nil, err
	}
	res.Plan.CompactedTokens = res.After
	return res, nil
}

// reportingPolicy is a policy whose summaries are told: of a dry run only the plan comes
// back.
type reportingPolicy struct {
	policy.Policy
	summaries *summaries
}

// Unwrap returns the policy itself (see policy.As).
func (h reportingPolicy) Unwrap() policy.Policy { return h.Policy }

// Plan implements policy.Policy.
func (h reportingPolicy) Plan(ctx context.Context, s *policy.Situation) (*policy.Fitted, error) {
	f, err := h.Policy.Plan(ctx, s)
	if err == nil {
		h.summaries.addAll(f.Summaries)
	}
	return f, err
}

// counterNames are the values of --counter, as help texts show them.
const counterNames = "o200k, cl100k, claude, gemini, chars/4, …"

// counterReason says why a counter was chosen: for a model, or by what the caller wrote.
type counterReason struct {
	Model string `json:"counted_for,omitempty"`
	// Because says where the model's name comes from, or the counter's.
	Because string `json:"counted_because"`
}

// chooseCounter finds the counter of a request: what --counter or the policy names, else
// that of the model to which the request goes. That is --model's, else the one that
// the file names, else, where the request is written for another API than the
// file's, the one that stands in it.
func (t *target) chooseCounter(in *input, policy string) (*token.Counter, counterReason, error) {
	switch {
	case t.counter != "":
		return namedCounter(t.counter, "--counter")
	case policy != "" && policy != "auto":
		return namedCounter(policy, t.policy+": counter")
	case t.model != "":
		m, err := t.findModel()
		if err != nil {
			return nil, counterReason{}, err
		}
		c, err := token.ForModel(m)
		return c, counterReason{m.Name, "--model"}, err
	}
	set, err := t.modelTable()
	if err != nil {
		return nil, counterReason{}, err
	}
	api := t.to
	if api == "" || api == textTarget {
		api = in.api()
	}
	name, because := in.Model, "the file names it"
	switch {
	case in.Model != "" && api == in.api():
	case defaultModels[api] != "":
		name, because = defaultModels[api], "it stands in the request"
	case api == wire.Gemini:
		name, because = "gemini", "the request is for its API"
	}
	return modelCounter(set, name, because)
}

func namedCounter(name, flag string) (*token.Counter, counterReason, error) {
	c, err := token.New(name, nil)
	if err != nil {
		return nil, counterReason{}, fmt.Errorf("%w: %s: %w", errUsage, flag, err)
	}
	return c, counterReason{Because: flag}, nil
}

// modelCounter is the counter of a model. One that is not in the table is counted as
// its family's newest; of another maker, as OpenAI's.
func modelCounter(set token.ModelSet, model, because string) (*token.Counter, counterReason, error) {
	if m, err := set.Find(model); err == nil {
		c, err := token.ForModel(m)
		return c, counterReason{model, because}, err
	}
	name := "o200k"
	switch lower := strings.ToLower(model); {
	case strings.Contains(lower, "claude"):
		name = "claude-4.7"
	case strings.Contains(lower, "gemini"):
		name = "gemini"
	}
	c, err := token.New(name, nil)
	return c, counterReason{model, because}, err
}

// String tells it behind the counter's name.
func (c counterReason) String() string {
	if c.Model == "" {
		return ""
	}
	return fmt.Sprintf(", as %s (%s)", c.Model, c.Because)
}
