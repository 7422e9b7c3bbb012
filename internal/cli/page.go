package cli

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/view"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/internal/setup"
	"github.com/palimpsest-ai/palimpsest/internal/web"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/token"
)

// maxSessions limits the sessions that the page lists.
const maxSessions = 200

// pageSessions are the agents' sessions on this machine, for the daemon's page.
type pageSessions struct{ finder *sessions.Finder }

// List implements daemon.Sessions.
func (l *pageSessions) List(ctx context.Context) (items []view.Session, err error) {
	all, err := l.finder.Find("")
	for some := range slices.Chunk(firstN(all, maxSessions), indexedAtOnce) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		l.finder.Describe(some)
		for _, f := range some {
			items = append(items, view.Session{ID: f.ID, Agent: f.Agent, Project: printable(f.Project), Title: firstWords(f), ChangedAt: f.Changed, Bytes: f.Bytes})
		}
	}
	return items, err
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
