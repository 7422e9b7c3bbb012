package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/view"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/internal/setup"
	"github.com/palimpsest-ai/palimpsest/internal/web"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/token"
)

// pageFile is where explain writes a page that would go to a terminal.
const pageFile = "palimpsest.html"

// maxPageTexts limits the texts of a page that is one file, in bytes; longer ones are
// shortened.
const maxPageTexts = 6 << 20

func explainCommand(s Streams) *cobra.Command {
	var conv conversation
	var store storeFlag
	var out string
	c := &cobra.Command{
		Use:   "explain FILE or THREAD",
		Short: "Write a page that shows what is removed from a conversation, and why",
		Long: `Explain writes one HTML file for a browser: the conversation as it is on the left, the
prompt as the model gets it on the right, and between them each record with its reason.
The file needs no server and loads nothing. FILE is what compact takes: a transcript, a
request body, or the ID of a session. THREAD is
the id of a conversation that compact, run or serve keeps ("palimpsest threads"): the page
shows it under the plan in force, counted as that plan was, with all earlier plans. Of a
session and a conversation with one id the session is shown, or with --store the conversation.`,
		Example: "  palimpsest explain session.jsonl --budget 32000 -o page.html\n  palimpsest explain ticket-4711 --store palimpsest.db -o page.html",
		Args:    exactArgs(1, "one FILE or THREAD"),
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" && isTerminalFile(underlyingWriter(s.Out)) {
				out = pageFile // a page is nothing to read on a terminal
			}
			if err := checkOutputs(append(conv.files(args[0]), store.files()...), out); err != nil {
				return err
			}
			conv.in.store = &store
			shown, err := store.shown(c.Context(), args[0])
			switch {
			case shown == nil && err == nil:
				if shown, err = conv.shown(c.Context(), args[0], s); err == nil {
					store.tellStored(c.Context(), conv.in.Thread.ID(), s)
				}
			case err == nil:
				err = checkStoredFlags(c.Flags())
			}
			if err != nil {
				return err
			}
			masked, err := maskShown(shown)
			if err != nil {
				return err
			}
			v := web.View(*shown)
			if err := fillOutput(out, s.Out, func(w io.Writer) error { return web.Write(w, v) }); err != nil {
				return err
			}
			conv.in.printWarnings(newPrinter(s.Err))
			if masked > 0 {
				fmt.Fprintf(s.Err, "palimpsest: %s\n", maskedNote(masked))
			}
			if out != "" && out != "-" {
				budget := ""
				if conv.budget > 0 { // a stored plan has none
					budget = ", for a budget of " + number(conv.budget) + inBrackets(conv.budgetReason)
				}
				fmt.Fprintf(s.Err, "palimpsest: %s → %s tokens, counted with %s%s; open %s in a browser\n", number(v.Before), number(v.After), v.Counter, budget, printable(out))
			}
			return nil
		},
	}
	conv.addFlags(c)
	c.Flags().Lookup("json").Hidden = true
	conv.addPolicyFlags(c)
	store.addFlags(c)
	c.Flags().Lookup("store").Usage = "where a THREAD is kept; " + storeUsage
	c.Flags().StringVarP(&out, "output", "o", "", "write the page to `OUT` (default: standard output, or "+pageFile+" if that is a terminal)")
	return c
}

// shown is the conversation of a file under the plan that compact would make.
func (c *conversation) shown(ctx context.Context, path string, s Streams) (*web.Input, error) {
	if err := c.open(ctx, path, s); err != nil {
		return nil, err
	}
	res, err := c.compact(ctx, &storeFlag{})
	if err != nil {
		return nil, err
	}
	for _, made := range res.Manifest.Repairs {
		if strings.Contains(made.What, "it is left out") { // the others lose nothing
			c.warn(made.What + " (message " + string(made.ID) + ")")
		}
	}
	shown := &web.Input{
		Thread: c.in.Thread, Result: res, Counter: c.counter, Model: c.model, Title: c.in.Title, Agent: string(c.in.file.Format),
		Budget: c.budget, MaxTextBytes: maxPageTexts,
		Command: "palimpsest compact " + c.in.commandArguments() + " --budget " + strconv.Itoa(c.budget) + " -o prompt.json",
	}
	if shown.Model.Name == "" && c.in.Model != "" {
		shown.Model, _ = c.models.Find(c.in.Model) // without an entry there are no prices
	}
	shown.Window = shown.Model.Window
	if !res.Plan.Empty() {
		shown.Plans = []web.PlanResult{{Result: res}}
	}
	for _, own := range c.in.Compactions {
		shown.Marks = append(shown.Marks, view.Mark{At: own.At, Trigger: own.Trigger})
	}
	for _, side := range c.in.Side {
		shown.Side = append(shown.Side, view.Side{Title: cmp.Or(side.Title, sessions.FirstRequest(side.Thread)), Messages: side.Thread.Len()})
	}
	return shown, nil
}

// checkStoredFlags returns an error for flags that say how to compact: a stored thread is shown
// as it was.
func checkStoredFlags(f *pflag.FlagSet) error {
	for _, name := range []string{"budget", "model", "models", "counter", "policy", "summarizer", "from", "run", "to"} {
		if f.Changed(name) {
			return fmt.Errorf("%w: a stored conversation is shown under its plan in force: --%s is for files and sessions", errUsage, name)
		}
	}
	return nil
}

// shown is a stored thread under the plan in force. It is nil if the name is that of no thread, or, where no store was
// named, of a file or a session.
func (f *storeFlag) shown(ctx context.Context, name string) (shown *web.Input, err error) {
	if f.name == "" && namesFile(name) {
		return nil, nil
	}
	shown, err = inTenant(ctx, f, func(k *tenantStore) (*web.Input, error) { return k.shown(ctx, name) })
	if f.isMissing(err) || errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return shown, err
}

// tellStored says how to see the stored conversation of a session that was shown, if it has a plan.
func (f *storeFlag) tellStored(ctx context.Context, id string, s Streams) {
	_ = f.withTenant(ctx, func(k *tenantStore) error { // the page is written: a store that cannot be read is no matter
		if info, err := k.Catalog.Thread(ctx, id); err == nil && info.Plans > 0 {
			fmt.Fprintf(s.Err, "palimpsest: this is the session; as it was stored, with %s: %s\n", plural(info.Plans, "plan"), f.explainCommand(id))
		}
		return nil
	})
}

func (k *tenantStore) shown(ctx context.Context, name string) (*web.Input, error) {
	info, err := k.thread(ctx, name)
	if err != nil {
		return nil, err
	}
	log, plans, err := k.load(ctx, info)
	if err != nil {
		return nil, err
	}
	counter, err := counterOfNewest(plans)
	if err != nil {
		return nil, err
	}
	c, err := palimpsest.New(palimpsest.Config{Counter: counter, Store: store.Tenant{Documents: k.Documents}})
	if err != nil {
		return nil, err
	}
	last, err := c.Session(info.ID).LastStep(ctx)
	if err != nil {
		return nil, err
	}
	if last.Profile == (render.Profile{}) { // compact stored it, which keeps no step
		last.Profile = render.For(apiOf(log))
		last.Profile.Reach = render.Command
	}
	shown := &web.Input{
		Thread: log, Version: info.Plans, Counter: counter, MaxTextBytes: maxPageTexts,
		Window: last.Window, Budget: last.Budget, UnstoredTokens: last.Fixed,
	}
	if last.Base != nil {
		shown.Model, _ = token.Models().Find(last.Base.Model) // an unknown model has no prices
	}
	request := palimpsest.Request{Thread: log, Base: last.Base, Fixed: last.Fixed, Profile: last.Profile}
	if shown.Result, err = web.Render(c, nil, request); err != nil {
		return nil, err
	}
	for i, p := range plans {
		res, err := web.Render(c, p, request)
		if err != nil {
			continue // it does not fit the log as it is now
		}
		shown.Plans = append(shown.Plans, web.PlanResult{Version: i + 1, Result: res})
		if i == len(plans)-1 {
			shown.Result = res
		}
	}
	return shown, nil
}

// counterOfNewest is the counter of the plan in force or, where that names none that is known,
// of the newest plan that does; o200k without any.
func counterOfNewest(plans []*plan.Plan) (*token.Counter, error) {
	for _, p := range slices.Backward(plans) {
		name, factor, _ := strings.Cut(p.Counter, "*") // a provider's figures scaled it
		if counter, err := token.New(name, nil); err == nil {
			scale, _ := strconv.ParseFloat(factor, 64)
			return counter.Scaled(scale), nil
		}
	}
	return token.New("o200k", nil)
}

// maxSessions limits the sessions that the page lists.
const maxSessions = 200

// pageSessions are the agents' sessions on this machine, for the daemon's page.
type pageSessions struct{ finder *sessions.Finder }

// List implements daemon.Sessions.
func (l *pageSessions) List(ctx context.Context) (items []view.Session, err error) {
	all, err := l.finder.Find("")
	all = firstN(all, maxSessions)
	if err := describeAll(ctx, l.finder, all); err != nil {
		return nil, err
	}
	return mapSlice(all, func(f sessions.Session) view.Session {
		return view.Session{ID: f.ID, Agent: f.Agent, Project: printable(f.Project), Title: shorten(f.FirstRequest(), maxFirstWords), ChangedAt: f.Changed, Bytes: f.Bytes}
	}), err
}

// View implements daemon.Sessions.
func (l *pageSessions) View(ctx context.Context, id string, q *api.Compact) (*view.View, error) {
	all, err := l.finder.Find("")
	if err != nil {
		return nil, err
	}
	n := slices.IndexFunc(all, func(f sessions.Session) bool { return f.ID == id })
	if n < 0 {
		return nil, newProblem(api.NotFound, http.StatusNotFound, "there is no session with this id on this machine")
	}
	name := cmp.Or(q.Policy, "auto")
	if !slices.Contains(policyfile.Bases(), name) {
		return nil, newProblem(api.BadRequest, http.StatusBadRequest, "policy: want one of "+strings.Join(policyfile.Bases(), ", "))
	}
	conv := conversation{policy: name, budget: q.Budget, summarizer: policyfile.Extractive}
	conv.in.run = 1 // others in the file belong to sub-agents
	shown, err := conv.shown(ctx, all[n].Path, Streams{})
	var over *policy.BudgetError
	if err != nil && !errors.As(err, &over) && ctx.Err() == nil {
		return nil, newProblem(api.BadRequest, http.StatusBadRequest, ErrorText(err))
	}
	if err != nil {
		return nil, err
	}
	return web.View(*shown), nil
}

func newProblem(kind string, status int, detail string) *api.Problem {
	return &api.Problem{Type: api.ProblemBase + kind, Title: http.StatusText(status), Status: status, Detail: detail}
}

// policyLookup finds policies for the daemon, by name.
func policyLookup(counter *token.Counter) func(name, favor string) (palimpsest.Config, error) {
	return func(name, favor string) (palimpsest.Config, error) {
		chosen, err := setup.Open(name, &setup.Options{Favor: favor})
		if err != nil {
			return palimpsest.Config{}, err
		}
		return chosen.Config(counter), nil
	}
}
