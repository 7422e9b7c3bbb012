package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/setup"
	"github.com/palimpsest-ai/palimpsest/internal/text"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// textTarget is the value of --to for plain text, which no API reads.
const textTarget = "text"

// targets are the values of --to, in the order in which people see them.
var targets = []string{wire.Anthropic, wire.Chat, wire.Responses, wire.Gemini, textTarget}

// conversation is a conversation and the request that a command makes of it. Flags fill
// the first group of fields, open the second.
type conversation struct {
	in                                             input
	to, policy, modelName, counterName, summarizer string
	modelsFile                                     string
	budget                                         int
	planCounter                                    string            // of the plan that is rendered; empty if it need not count
	into                                           transcript.Format // the agent that will resume the result; empty for a prompt
	intoOwn                                        bool              // without into, the agent whose session it is
	asJSON                                         bool
	answers                                        llm.Cache // of earlier model answers; may be nil

	api           string
	models        token.ModelSet // the table, with those of modelsFile
	profile       render.Profile
	counter       *token.Counter
	counterReason counterReason
	model         token.Model // zero if the user named none
	assumed       string      // whose figures model has, if the table does not know it
	budgetReason  string      // where budget comes from; empty if the user named it
	compactor     *palimpsest.Compactor
	writes        summarize.Summarizer // of summaries; nil without a model
	summaries     *summaries           // how those of the plan were made
}

func (c *conversation) addFlags(cmd *cobra.Command) {
	c.in.addFlags(cmd, "work on")
	f := cmd.Flags()
	f.BoolVar(&c.asJSON, "json", false, "write the report as one JSON object on standard error")
	f.StringVar(&c.to, "to", "", "write for `API`: "+strings.Join(targets, ", ")+" (default: the input's own)")
	f.Var((*tokensFlag)(&c.budget), "budget", "limit the whole request to this many `TOKENS`, such as 32000, 32k or 1m (default: "+defaultBudgetHelp+")")
	f.StringVar(&c.modelName, "model", "", "count for the model `NAME` (default: the one named in the file); without --budget, fill its context window")
	f.StringVar(&c.counterName, "counter", "", "count with `NAME`, whatever the model: "+counterNames)
	f.StringVar(&c.modelsFile, "models", "", modelsUsage)
}

// addPolicyFlags are for the commands that make plans.
func (c *conversation) addPolicyFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.policy, "policy", "auto", "the `POLICY`: a file (see \"palimpsest policy\"), or "+strings.Join(policyfile.Names(), ", "))
	cmd.Flags().StringVar(&c.summarizer, "summarizer", "", "who writes summaries: extractive (no model), anthropic:MODEL, openai:MODEL, or a `CHAIN` of them joined by commas (default: the policy's, else extractive)")
}

// files are the files that the command reads, besides the store's. A policy's name is none.
func (c *conversation) files(path string) []string {
	read := []string{path, c.modelsFile}
	if _, err := policyfile.ByName(c.policy); err != nil {
		read = append(read, c.policy)
	}
	return read
}

// open reads the input and resolves the names that the user gave.
func (c *conversation) open(ctx context.Context, path string, s Streams) error {
	told := s
	if c.asJSON {
		told.Err = nil
	}
	if err := c.in.open(ctx, path, told); err != nil {
		return err
	}
	if c.in.Thread.Len() == 0 && len(c.in.Side) > 0 {
		return fmt.Errorf("%s: all messages of the conversation were taken back by going back to its start: %w", path, transcript.ErrEmpty)
	}
	if c.intoOwn {
		c.into = cmp.Or(c.into, c.in.file.Format)
	}
	if c.into != "" || c.intoOwn {
		if err := c.targetAgent(); err != nil {
			return err
		}
	}
	if err := c.resolve(); err != nil {
		return err
	}
	if c.assumed != "" && !c.asJSON {
		fmt.Fprintf(s.Err, "palimpsest: warning: %s\n", printable(c.assumed))
	}
	return nil
}

// targetAgent chooses the API whose shape the agent's sessions have.
func (c *conversation) targetAgent() error {
	if c.into == "" { // a stored conversation is no agent's
		return fmt.Errorf("%w: say which agent goes on with it, with --into: known are %s", errUsage, writerNames())
	}
	if !slices.Contains(transcript.Writers(), c.into) {
		return fmt.Errorf("%w: --into %s: known are %s", errUsage, c.into, writerNames())
	}
	if c.to != "" {
		return fmt.Errorf("%w: --into decides the format: leave --to %s out", errUsage, c.to)
	}
	if c.to = c.into.API(); c.to == "" { // the agent uses several APIs
		if c.to = c.in.api(); c.to == wire.Gemini {
			c.to = wire.Chat
		}
	}
	return nil
}

// resolve looks up the API, policy, counter, model and budget.
func (c *conversation) resolve() error {
	c.api = cmp.Or(c.to, c.in.api())
	if c.api != textTarget && apicodec.For(c.api) == nil {
		return fmt.Errorf("%w: --to %s: known are %s", errUsage, c.to, strings.Join(targets, ", "))
	}
	var err error
	if c.models, err = readModels(c.modelsFile); err != nil {
		return err
	}
	c.profile = render.For(c.api)
	c.profile.Reach = render.Command
	if c.into != "" { // the agent may talk to any of its providers
		c.profile.FirstUser, c.profile.ObjectArguments, c.profile.SystemFirst = true, c.into != "codex", true
	}
	made := &summaries{By: map[string]int{}, Failures: []summaryFailure{}}
	chosen, err := setup.Open(c.policy, &setup.Options{Summarizer: c.summarizer, OnUsage: made.addUsage})
	if err != nil {
		return err
	}
	made.Use = chosen.Settings.Summarizer.Use
	if c.modelName != "" {
		if c.model, c.assumed, err = findModel(c.models, c.modelName); err != nil {
			return err
		}
		c.profile.BoundReasoning = c.model.BindsThinking
	} else if named, _, err := findModel(c.models, c.in.Model); err == nil && c.into == "" && c.api == c.in.api() {
		c.profile.BoundReasoning = named.BindsThinking
	}
	counter, because, err := c.chooseCounter(c.models, chosen.Settings.Counter)
	if err != nil {
		return err
	}
	c.counter, c.counterReason = counter.Remembering(c.counter), because
	if err := c.resolveBudget(); err != nil {
		return err
	}
	config := chosen.Config(c.counter)
	config.Answers = llm.NewAnswers(c.answers)
	// Room for what is read of a whole conversation in the quarter that a memory has for it: with less, each pass over
	// a long one would read all of it again.
	config.Memory = palimpsest.NewMemory(max(palimpsest.DefaultMemory, 4*readFactor*textBytes(c.in.Thread)))
	c.summaries, c.writes = made, config.Summarizer
	c.compactor, err = palimpsest.New(config)
	return err
}

// readFactor is how many times a text what is read of it takes at most: of short lines of code.
const readFactor = 8

// textBytes are the lengths of all texts of a conversation.
func textBytes(t *thread.Thread) (n int) {
	for _, m := range t.All() {
		n += len(m.Text())
		if r, ok := m.Result(); ok {
			n += len(r.Text())
		}
	}
	return n
}

const (
	// windowShare is the part of a model's window that a conversation may fill where nobody says more: its agent
	// adds instructions and tools, and the work goes on.
	windowShare = 4
	// fallbackBudget is for a model whose window is not known, in tokens.
	fallbackBudget = 32_000
	// defaultBudgetHelp says so in help texts.
	defaultBudgetHelp = "a quarter of the window of the model that the file names, 32,000 if that is not known; half of what is there where that fits"
	// halfOfIt and whatMustStay are where the budget of a conversation comes from that fits the default.
	halfOfIt, whatMustStay = "half of it", "what must stay of it"
)

// resolveBudget sets the budget where the user named none: what the window of --model leaves for the input, else a
// part of the window of the file's model.
func (c *conversation) resolveBudget() error {
	switch {
	case c.budget > 0:
	case c.modelName != "":
		answer := c.model.AnswerReserve(0, 0)
		if c.budget = c.model.WindowBeside(answer) - answer; c.budget <= 0 {
			return fmt.Errorf("%w: the context window of %s is not known; add --budget TOKENS", errUsage, c.model.Name)
		}
		c.budgetReason = "what the window of " + c.model.Name + " leaves"
	default:
		c.budget, c.budgetReason = fallbackBudget, "the window of its model is not known"
		if m, err := c.models.Find(c.in.Model); err == nil && c.in.Model != "" && m.Window > 0 {
			c.budget, c.budgetReason = m.Window/windowShare, "a quarter of the window of "+printable(shorten(c.in.Model, 60))
		}
	}
	return nil
}

func (c *conversation) request() palimpsest.Request {
	return palimpsest.Request{
		Thread: c.in.Thread, Base: c.in.baseRequest(c.api, c.modelName), Budget: c.budget,
		Window: c.model.Window, Output: c.model.MaxOutput, Profile: c.profile,
	}
}

// compact makes the conversation fit. The prompt tells its reader how to get back what was
// removed, from the given store. Where the conversation fits a budget that the user did not name, the budget becomes
// half of it, or what must stay: who compacts wants less.
func (c *conversation) compact(ctx context.Context, store *storeFlag) (*palimpsest.Result, error) {
	q := c.request()
	if store.lasts() {
		q.Note = store.recallNote()
	} else {
		q.Profile.Reach = render.Nowhere
	}
	res, err := c.compactor.Compact(ctx, q)
	if res != nil {
		c.summaries.addAll(res.Summaries)
	} else {
		c.summaries.addAll(policy.SummariesOf(nil, err))
	}
	if err != nil && res != nil {
		err = fmt.Errorf("%w: raise it, or use --policy auto", err)
	}
	if err != nil || !res.Plan.Empty() || c.modelName != "" || slices.Contains([]string{"", halfOfIt, whatMustStay}, c.budgetReason) {
		return res, err
	}
	usual, from := c.budget, c.budgetReason
	c.budget, c.budgetReason = max(res.Before/2, 1), halfOfIt
	smaller, err := c.compact(ctx, store)
	if over, ok := errors.AsType[*policy.BudgetError](err); ok && over.Need <= res.Before/4*3 {
		c.budget, c.budgetReason = over.Need, whatMustStay
		smaller, err = c.compact(ctx, store)
	}
	if errors.Is(err, policy.ErrOverBudget) { // then it stays as it is
		c.budget, c.budgetReason = usual, from
		return res, nil
	}
	return smaller, err
}

// compactAndStore compacts, and stores the whole conversation with its plan. If nothing was
// removed, or the store does not last, it opens none and returns nil for what it stored.
func (c *conversation) compactAndStore(ctx context.Context, lazy *lazyStore) (*palimpsest.Result, *saved, error) {
	res, err := c.compact(ctx, lazy.flag)
	if err != nil || res.Plan.Empty() || !lazy.flag.lasts() {
		return res, nil, err
	}
	k, err := lazy.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	renamed, err := k.withFreeID(ctx, c.in.Thread)
	if err != nil {
		return nil, nil, err
	}
	if renamed != c.in.Thread { // artifact ids depend on the thread's id
		c.in.Thread = renamed
		if res, err = c.compact(ctx, lazy.flag); err != nil {
			return nil, nil, err
		}
	}
	made, err := k.save(ctx, c.in.Thread, res.Plan)
	if err != nil {
		return res, nil, err
	}
	id := shellQuote(made.Thread) + lazy.flag.arguments()
	made.Recall = "palimpsest recall WORDS --thread " + id
	if (made.Replaced != nil || made.More > 0) && printable(made.Thread) == made.Thread && !namesFile(made.Thread) {
		made.Explain = "palimpsest explain " + id
	}
	return res, made, nil
}

// withNoteOnce returns the messages of a prompt, without the note of an earlier compaction if the system prompt has a
// new one: a session that was written for an agent holds it as a message.
func withNoteOnce(p *prompt.Prompt) []thread.Message {
	told := slices.ContainsFunc(p.System, func(s prompt.System) bool { return strings.HasPrefix(s.Text, render.RemovedNote) })
	return slices.DeleteFunc(slices.Clone(p.Messages), func(m thread.Message) bool {
		return told && m.Kind == thread.Injected && strings.HasPrefix(m.Text(), render.RemovedNote)
	})
}

// encode writes a prompt for the API. A rule that it breaks is an error, unless the whole conversation
// breaks it too: then it is a warning.
func (c *conversation) encode(p *prompt.Prompt) ([]byte, error) {
	sent := *p
	sent.Messages = withNoteOnce(p)
	p = &sent
	if c.api == textTarget {
		return text.Encode(p), nil
	}
	body, broken, err := encodeAndValidate(c.api, p)
	if err != nil {
		return nil, err
	}
	if len(broken) > 0 {
		whole, err := c.compactor.Render(nil, c.request())
		if err != nil {
			return nil, err
		}
		_, own, err := encodeAndValidate(c.api, whole.Prompt)
		if err != nil {
			return nil, err
		}
		for _, b := range broken {
			if !slices.ContainsFunc(own, func(o wire.Problem) bool { return o.Rule == b.Rule }) {
				return nil, fmt.Errorf("the %s API would refuse the request: %w", c.api, b)
			}
			c.warn("the " + c.api + " API would refuse this, as it is in the input: " + b.Error())
		}
	}
	body, halves := rawjson.MendSurrogates(body)
	if halves > 0 {
		c.warn(plural(halves, "broken surrogate pair") + " became U+FFFD, since providers refuse them")
	}
	return body, nil
}

func (c *conversation) warn(text string) {
	c.in.file.Report.Warnings = append(c.in.file.Report.Warnings, transcript.Warning{Text: text})
}

// encodeAndValidate returns a prompt as the body of a request, and the rules of the API that
// the body breaks.
func encodeAndValidate(api string, p *prompt.Prompt) (body []byte, broken []wire.Problem, err error) {
	if body, err = apicodec.For(api).Encode(p); err != nil {
		return nil, nil, err
	}
	return body, brokenRules(apicodec.For(api).Validate(body)), nil
}

// brokenRules are the problems that are more than advice.
func brokenRules(all []wire.Problem) []wire.Problem {
	return slices.DeleteFunc(slices.Clone(all), func(p wire.Problem) bool { return p.Advice })
}
