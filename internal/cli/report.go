package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/describe"
	"github.com/palimpsest-ai/palimpsest/internal/lost"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// report is the report of compact, plan and render.
type report struct {
	Input   inputSummary `json:"input"`
	To      string       `json:"to"`
	Policy  string       `json:"policy"`
	Model   string       `json:"model,omitempty"`
	Counter string       `json:"counter"`
	counterReason
	Exact  bool    `json:"exact"`
	Band   float64 `json:"error_band,omitempty"`
	Budget int     `json:"budget"`
	// BudgetFrom says where the budget comes from; empty if the user named it.
	BudgetFrom string `json:"budget_from,omitempty"`
	Before     int    `json:"tokens_before"`
	Now        int    `json:"tokens_now"` // of Before, what the agent sees after its own compactions
	After      int    `json:"tokens_after"`
	System     int    `json:"system_tokens"`
	Tools      int    `json:"tool_tokens"`
	// Framing are the tokens of no message: the frame of the request, and repairs of the
	// log. With it the parts add up to the whole.
	Framing tokenShare   `json:"framing"`
	Roles   []tokenShare `json:"by_role"`
	ByTool  []toolShare  `json:"by_tool"`

	Records   []recordRow     `json:"records"`
	Pinned    []pinnedRow     `json:"pinned"`
	Unchanged int             `json:"unchanged_messages"` // shown as they were said, those of Pinned among them
	Repairs   []render.Repair `json:"repairs"`
	// Lost is what the user laid down, and what else still stands, that a small prompt does not tell; see lost.Find.
	Lost    []lost.Loss `json:"lost"`
	Savings *savings    `json:"savings,omitempty"`
	// Summaries is nil if no model was to write any.
	Summaries *summaries `json:"summarizer,omitempty"`
	Notes     []string   `json:"notes,omitempty"`

	Output string `json:"output,omitempty"`
	Plan   string `json:"plan,omitempty"`
	Store  string `json:"store,omitempty"`
	// Saved is nil if nothing was stored.
	Saved *saved `json:"stored,omitempty"`
	// Session is nil if a prompt was written.
	Session *resumedSession `json:"session,omitempty"`
}

type tokenShare struct {
	Name   string `json:"name"`
	Before int    `json:"tokens_before"`
	After  int    `json:"tokens_after"`
}

type toolShare struct {
	tokenShare
	Calls int `json:"calls"`
}

type recordRow struct {
	Record   string      `json:"record"`
	Action   plan.Action `json:"action"`
	Strategy string      `json:"strategy"`
	First    int         `json:"first_turn"`
	Last     int         `json:"last_turn"`
	Messages int         `json:"messages"`
	Before   int         `json:"tokens_before"`
	After    int         `json:"tokens_after"`
	Reason   string      `json:"reason"`
	What     string      `json:"what"`
}

type pinnedRow struct {
	ID     thread.ID   `json:"message_id"`
	Role   thread.Role `json:"role"`
	Turn   int         `json:"turn"`
	Tokens int         `json:"tokens"`
	Text   string      `json:"text"`
}

// savings is the price of one request, in US dollars, without a prompt cache.
type savings struct {
	Before float64 `json:"usd_before"`
	After  float64 `json:"usd_after"`
	// Step is how much cheaper each further request is when the provider's cache holds the
	// prompt, and Steps after how many of them that has paid for writing the new prefix to
	// the cache. Both are 0 if the model has no cache.
	Step  float64 `json:"usd_saved_per_step,omitempty"`
	Steps float64 `json:"pays_after_steps,omitempty"`
}

// newSavings compares the request of now, in tokens, with that of a compaction. It returns nil if the model's prices
// are not known.
func newSavings(m token.Model, now int, res *palimpsest.Result) *savings {
	before, ok := m.Price(now)
	if !ok {
		return nil
	}
	after, _ := m.Price(res.After)
	s := &savings{Before: before.Input * float64(now) / 1e6, After: after.Input * float64(res.After) / 1e6}
	if rates, ok := m.Rates(now); ok && rates.Read < 1 && res.After < now {
		freed := now - res.After
		s.Step = rates.Read * before.Input * float64(freed) / 1e6
		s.Steps = rates.BreakEven(freed, now-res.Fixed, false)
	}
	return s
}

func newReport(c *conversation, res *palimpsest.Result) *report {
	in := &c.in
	rep := &report{
		Input: in.summary(), To: c.api, Policy: res.Plan.Policy, Model: c.model.Name,
		Counter: c.counter.Name(), counterReason: c.counterReason, Exact: c.counter.Exact(), Band: c.counter.Band(),
		Budget: c.budget, BudgetFrom: c.budgetReason, Before: res.Before, After: res.After,
		System: c.counter.System(res.Prompt.System), Tools: c.counter.Tools(res.Prompt.Tools),
		Repairs: res.Manifest.Repairs, Lost: []lost.Loss{},
	}
	if made := c.summaries; len(made.Use) > 0 {
		rep.Summaries = made
	}
	rep.Roles, rep.ByTool = shares(in.Thread, res)
	rep.Framing = tokenShare{Name: "framing", Before: rep.Before - rep.System - rep.Tools, After: rep.After - rep.System - rep.Tools}
	for _, role := range rep.Roles {
		rep.Framing.Before -= role.Before
		rep.Framing.After -= role.After
	}
	pairs := thread.Pair(in.Thread)
	for ref, record := range res.Plan.Records() {
		span, made := record.Covers(), record.Made()
		row := recordRow{
			Record: ref.String(), Action: ref.Action, Strategy: made.Strategy, Reason: made.Reason,
			First: span.FirstTurn, Last: span.LastTurn, Messages: span.Len(),
			Before: made.TokensBefore, After: made.TokensAfter, What: describeSpan(in.Thread, pairs, span),
		}
		if res.Plan.Counter != rep.Counter { // one unit for the whole report
			row.Before, row.After = countRecord(in.Thread, res, ref)
		}
		rep.Records = append(rep.Records, row)
	}
	rep.Records = largest(rep.Records, math.MaxInt, func(r recordRow) int { return r.Before - r.After })
	for _, i := range res.Pinned {
		m := in.Thread.At(i)
		rep.Pinned = append(rep.Pinned, pinnedRow{ID: m.ID, Role: m.Role, Turn: m.Turn, Tokens: res.Sizes[i], Text: shorten(describe.Message(m), 200)})
	}
	rep.Now = rep.Before
	sees := in.seenNow()
	for i, size := range res.Sizes {
		if !sees(i) {
			rep.Now -= size
		}
	}
	rep.Unchanged = in.Thread.Len() - len(res.Manifest.Hidden)
	rep.Savings = newSavings(c.model, rep.Now, res)
	rep.Notes = c.notes(res)
	return rep
}

// seenNow tells which messages the agent still sees, by position: those that its last compaction kept, and later ones.
func (in *input) seenNow() func(i int) bool {
	n := len(in.Compactions)
	if b, ok := lost.Last(in.Transcript, in.file.Format); ok {
		return func(i int) bool { return b.Kept(in.Thread, i) }
	}
	from := 0
	if n > 0 {
		from = in.Compactions[n-1].At
	}
	return func(i int) bool { return i >= from }
}

// smallPrompt is the size, in tokens, below which what the user laid down may not fit; a larger one is not looked through.
const smallPrompt = 8_000

// findLost sets what a small prompt no longer tells.
func (r *report) findLost(ctx context.Context, log *thread.Thread, res *palimpsest.Result) (err error) {
	if !res.Plan.Empty() && res.After < smallPrompt {
		r.Lost, err = lossesOf(ctx, log, res.Prompt.Messages)
	}
	return err
}

// countRecord counts what a record replaces, and what stands in its place.
func countRecord(t *thread.Thread, res *palimpsest.Result, ref plan.Ref) (before, after int) {
	for _, id := range res.Plan.Record(ref).Covers().MessageIDs {
		if i, ok := t.Index(id); ok {
			before += res.Sizes[i]
		}
	}
	for n, origin := range res.Manifest.Messages {
		if origin.Record == ref {
			after += res.PromptSizes[n]
		}
	}
	return before, after
}

// countUnsent counts the parts that the prompt lacks because the API does not take them, such
// as another provider's encrypted reasoning.
func countUnsent(t *thread.Thread, res *palimpsest.Result) map[string]int {
	lost := map[string]int{}
	for i := range res.Prompt.Messages {
		at, ok := t.Index(res.Manifest.Messages[i].ID)
		if !ok || res.Manifest.Messages[i].Synthetic {
			continue
		}
		count := func(m *thread.Message, by int) {
			for _, p := range m.Parts {
				switch p := p.(type) {
				case thread.Reasoning:
					lost["reasoning"] += by
				case thread.Opaque:
					lost["block of type "+p.Kind] += by
				}
			}
		}
		count(t.At(at), 1)
		count(&res.Prompt.Messages[i], -1)
	}
	maps.DeleteFunc(lost, func(_ string, n int) bool { return n <= 0 })
	return lost
}

// notes are what the user should know before sending the prompt.
func (c *conversation) notes(res *palimpsest.Result) []string {
	var notes []string
	if c.assumed != "" && c.asJSON { // else standard error has it
		notes = append(notes, c.assumed)
	}
	own := map[string]string{"anthropic": wire.Anthropic, "openai": wire.Responses, "google": wire.Gemini}[c.model.Provider]
	foreign := own != "" && c.api != own && c.api != textTarget && (own != wire.Responses || c.api != wire.Chat)
	lost := 0
	for _, d := range res.Plan.Drops {
		lost += d.Span.Len()
	}
	if lost > 0 {
		notes = append(notes, fmt.Sprintf("%s dropped without a summary, because the kept messages left no room for one: raise the budget or keep less", plural(lost, "message")))
	}
	if foreign {
		notes = append(notes, fmt.Sprintf("%s is a model of %s: add --to %s to write for its own API", c.model.Name, c.model.Provider, own))
	}
	if n := len(res.Prompt.Messages); n > 0 && c.into == "" && res.Prompt.Messages[n-1].Role == thread.Assistant {
		notes = append(notes, "the conversation ends with the model's own turn: append your next message before sending it")
	}
	return notes
}

// shares divides the tokens before and after by speaker and by tool. Summaries and pointers
// are groups of their own; repairs of the log count as framing.
func shares(t *thread.Thread, res *palimpsest.Result) ([]tokenShare, []toolShare) {
	roles, tools := rows[string, tokenShare]{}, rows[string, toolShare]{}
	role := func(name string) *tokenShare {
		return roles.at(name, func() tokenShare { return tokenShare{Name: name} })
	}
	tool := func(name string) *toolShare {
		return tools.at(name, func() toolShare { return toolShare{tokenShare: tokenShare{Name: name}} })
	}
	for i, m := range t.All() {
		role(describe.Speaker(m)).Before += res.Sizes[i]
		if r, ok := m.Result(); ok {
			tool(r.Tool).Before += res.Sizes[i]
			tool(r.Tool).Calls++
		}
	}
	for n := range res.Prompt.Messages {
		m, origin, size := &res.Prompt.Messages[n], res.Manifest.Messages[n], res.PromptSizes[n]
		action := origin.Record.Action
		r, isResult := m.Result()
		switch {
		case origin.Synthetic && action == plan.Include: // a repair
		case isResult:
			tool(r.Tool).After += size
			role(describe.Speaker(m)).After += size
		case action == plan.Externalize:
			role("pointers").After += size
		case action.Removes():
			role("summaries").After += size
		default:
			role(describe.Speaker(m)).After += size
		}
	}
	byTool := largest(append([]toolShare{}, tools.list()...), math.MaxInt, func(t toolShare) int { return t.Before })
	return append([]tokenShare{}, roles.list()...), byTool
}

func describeSpan(t *thread.Thread, pairs *thread.Pairing, span thread.Span) string {
	if span.Len() > 1 {
		return plural(span.Len(), "message")
	}
	i, _ := t.Index(span.First())
	return describe.MessageAt(t, pairs, i)
}

// write writes the report, for people with at most that many records.
func (r *report) write(w io.Writer, c *cobra.Command, maxRecords int) error {
	return writeResult(w, c, r, func(p *printer) { r.print(p, maxRecords) })
}

func (r *report) print(p *printer, maxRecords int) {
	r.Input.print(p)
	p.line("policy %s · for %s", r.Policy, r.To)
	p.text("counted with %s%s", counterText(r.Counter, r.Exact, r.Band), r.counterReason)

	p.heading("tokens")
	var rows [][]string
	row := func(name string, before, after int, left string) {
		if before != 0 || after != 0 {
			rows = append(rows, []string{name, number(before), number(after), left})
		}
	}
	row("whole request", r.Before, r.After, percent(r.After, r.Before))
	row("  system prompt", r.System, r.System, "")
	row("  tool definitions", r.Tools, r.Tools, "")
	for _, s := range r.Roles {
		row("  "+s.Name, s.Before, s.After, percent(s.After, s.Before))
	}
	row("  framing, repairs", r.Framing.Before, r.Framing.After, "")
	p.table([]string{"", ">before", ">after", ">left"}, rows)
	if r.Now < r.Before {
		p.text("%s of it is what the agent sees now, after its own compactions; prices are for that", number(r.Now))
	}
	if r.Budget > 0 {
		p.text("budget %s%s, %s of it used", number(r.Budget), inBrackets(r.BudgetFrom), percent(r.After, r.Budget))
	}
	if r.Savings != nil {
		p.line("input price of one request: $%.4f before, $%.4f after (uncached)", r.Savings.Before, r.Savings.After)
		if r.Savings.Step > 0 {
			p.line("with the provider's prompt cache: $%.4f less for each further request, which pays for the new prefix after %.0f of them", r.Savings.Step, math.Ceil(r.Savings.Steps))
		}
	}
	r.Summaries.print(p)
	p.sectionUpTo("results by tool", []string{"tool", ">calls", ">before", ">after"}, mapSlice(r.ByTool, func(t toolShare) []string {
		return []string{toolName(t.Name), number(t.Calls), number(t.Before), number(t.After)}
	}), maxToolRows, "more tool")
	r.printRecords(p, maxRecords)
	p.section("kept as it is", []string{"role", ">turn", ">tokens", "text"}, mapSlice(r.Pinned, func(pin pinnedRow) []string {
		return []string{string(pin.Role), fmt.Sprint(pin.Turn), number(pin.Tokens), pin.Text}
	}))
	if more := r.Unchanged - len(r.Pinned); more > 0 && len(r.Pinned) > 0 {
		p.line("and %s", plural(more, "more message"))
	}
	p.section("did not fit, though it still stands", lossColumns, mapSlice(r.Lost, lossRow))
	if len(r.Repairs)+len(r.Notes) > 0 || r.Output != "" || r.Plan != "" || r.Store != "" || r.Session != nil {
		p.line("")
	}
	p.kinds("repaired", mapSlice(r.Repairs, func(made render.Repair) string { return fmt.Sprintf("%s (message %s)", made.What, made.ID) }))
	for _, note := range r.Notes {
		p.text("note: %s", note)
	}
	for _, place := range []struct{ what, path string }{{"prompt", r.Output}, {"plan", r.Plan}, {"removed content", r.Store}} {
		if place.path != "" {
			p.line("%s: %s", place.what, place.path)
		}
	}
	r.Saved.print(p)
	r.Session.print(p)
}

// maxToolRows limits the table by tool.
const maxToolRows = 12

// toolName is a tool's name in a table. Results without a call, and of the old function
// calls, may have none.
func toolName(name string) string {
	if name == "" {
		return "(no name)"
	}
	return shorten(name, 40)
}

func (r *report) printRecords(p *printer, maxRecords int) {
	if len(r.Records) == 0 {
		p.line("")
		p.line("nothing had to be changed")
		return
	}
	count := map[plan.Action]int{}
	for _, record := range r.Records {
		count[record.Action]++
	}
	summary := ""
	for _, action := range []plan.Action{plan.Summarize, plan.Externalize, plan.Clear, plan.Drop} {
		if count[action] > 0 {
			summary += fmt.Sprintf(" · %s %d", action, count[action])
		}
	}
	p.heading(fmt.Sprintf("%s%s", plural(len(r.Records), "record"), summary))
	p.table([]string{"action", ">turn", ">before", ">after", "~what", "why"}, mapSlice(r.Records[:min(maxRecords, len(r.Records))], func(record recordRow) []string {
		turns := fmt.Sprint(record.First)
		if record.Last != record.First {
			turns = fmt.Sprintf("%d-%d", record.First, record.Last)
		}
		return []string{record.Action.String(), turns, number(record.Before), number(record.After), record.What, record.Reason}
	}))
	if more := len(r.Records) - maxRecords; more > 0 {
		p.line("and %s (`palimpsest plan` lists all)", plural(more, "more record"))
	}
}

// planOverBudget says that the prompt under an existing plan is over the budget.
type planOverBudget struct {
	plan string // its file
	*policy.BudgetError
}

func (e *planOverBudget) Unwrap() error { return e.BudgetError }

// overBudget names the parts of the prompt under a plan, the largest first. They add up to
// the whole.
func (r *report) overBudget(plan string) error {
	e := &policy.BudgetError{Budget: r.Budget, Need: r.After}
	add := func(name string, tokens int) {
		if tokens > 0 {
			e.Parts = append(e.Parts, policy.Part{Name: name, Tokens: tokens})
		}
	}
	add("system prompt", r.System)
	add("tool definitions", r.Tools)
	add("framing of the request", r.Framing.After)
	for _, s := range r.Roles {
		add(cmp.Or(partNames[s.Name], "messages of the "+s.Name), s.After)
	}
	e.Parts = largest(e.Parts, math.MaxInt, func(p policy.Part) int { return p.Tokens })
	return &planOverBudget{plan, e}
}

// partNames name the rows of a report that are no messages of a speaker.
var partNames = map[string]string{
	"tool":      "results of tools",
	"summaries": "summaries in place of messages",
	"pointers":  "pointers to results that were externalized",
}
