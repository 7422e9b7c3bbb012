package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/closest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Sessions are the conversations that the tools read. Errors are shown to whoever
// asks, so they say nothing that is not meant for them. Implementations are safe for
// concurrent use.
type Sessions interface {
	// List lists them all, the one that changed last first.
	List(ctx context.Context) ([]Session, error)
	// Open reads one that List named.
	Open(ctx context.Context, id string) (*Conversation, error)
	// Artifact reads what is kept by itself under an id. The error is as
	// rehydrate.Artifacts has it.
	Artifact(ctx context.Context, id string) (rehydrate.Content, error)
	// Compact makes the plan that brings a conversation to a budget in tokens; 0 is what
	// its model takes. With keep the plan is kept and in force, else nothing changes.
	Compact(ctx context.Context, id string, budget int, keep bool) (*Compaction, error)
}

// Session is a conversation as a list shows it.
type Session struct {
	ID string
	// Agent is who had it: claude-code, codex, …, or thread for one of the store's.
	Agent   string
	Project string // the folder that it was about; empty where nobody knows
	Changed time.Time
	// Messages and Bytes say how large it is; 0 is not known.
	Messages, Bytes int
	// Plans is how many plans were made for it.
	Plans int
	// Version changes whenever the conversation does.
	Version string
	// FirstWords looks up what the user said first; nil where nobody can.
	FirstWords func(context.Context) string
}

// SessionOfThread is a thread of a store as a session.
func SessionOfThread(info store.Info) Session {
	return Session{
		ID: info.ID, Agent: "thread", Changed: info.Changed, Messages: info.Messages, Plans: info.Plans,
		Version: strconv.Itoa(info.Messages) + "." + strconv.Itoa(info.Plans),
	}
}

// CompareNewest compares sessions by when they changed, the last first, and then by id.
func CompareNewest(a, b Session) int {
	return cmp.Or(b.Changed.Compare(a.Changed), strings.Compare(a.ID, b.ID))
}

// Conversation is one that was read.
type Conversation struct {
	Log *thread.Thread
	// Plan is the plan in force, nil where there is none, and Version its number.
	Plan    *plan.Plan
	Version int
	// OwnCompactions are the places where the agent itself lost sight of what stood before.
	OwnCompactions []OwnCompaction
}

// OwnCompaction is a compaction of an agent's own.
type OwnCompaction struct {
	Turn    int
	Trigger string // the agent's word for the cause; empty where it has none
	Summary thread.ID
}

// Compaction is what a plan makes of a conversation.
type Compaction struct {
	Log    *thread.Thread
	Plan   *plan.Plan // empty where the conversation fits as it is, or under the plan in force
	Budget int
	// Before and After are the tokens of the whole request.
	Before, After int
	// StoredIn says where the plan is kept now; empty where it is not. Next says how to get
	// the prompt.
	StoredIn, Next string
}

// findSession returns the session that a call is about.
func (s *Server) findSession(ctx context.Context, id string) (Session, error) {
	if id == "" {
		return Session{}, errors.New("session: want the id of one; the tool sessions lists them")
	}
	list, err := s.filterSessions(ctx, id, "", "")
	if err != nil {
		return Session{}, err
	}
	return list[0], nil
}

// filterSessions returns the sessions that a call is about, the newest first.
func (s *Server) filterSessions(ctx context.Context, session, agent, project string) ([]Session, error) {
	all, err := s.sessions.List(ctx)
	if err != nil {
		return nil, err
	}
	if session != "" { // an id, or the beginning of one
		found := closest.ByID(all, session, func(s Session) string { return s.ID })
		switch len(found) {
		case 1:
			return found, nil
		case 0:
			return nil, fmt.Errorf("there is no session %s; the tool sessions lists them", quotedName(session))
		}
		return nil, fmt.Errorf("%s is the beginning of %d ids; write more of it", quotedName(session), len(found))
	}
	out := slices.DeleteFunc(slices.Clone(all), func(one Session) bool {
		return agent != "" && one.Agent != agent || !strings.Contains(strings.ToLower(one.Project), strings.ToLower(project))
	})
	if len(out) == 0 && (agent != "" || project != "") {
		return nil, errors.New("no session is of that agent and project; the tool sessions lists all where neither is given")
	}
	return out, nil
}
