package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/internal/suggest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Sessions are the conversations that the tools read. The tools show its errors to the
// client. Implementations are safe for concurrent use.
type Sessions interface {
	// List returns all of them, the last changed first (see CompareNewest).
	List(ctx context.Context) ([]Session, error)
	// Open reads one of the sessions in the list.
	Open(ctx context.Context, id string) (*Conversation, error)
	// Artifact reads a stored artifact. Errors are those of rehydrate.Artifacts.
	Artifact(ctx context.Context, id string) (rehydrate.Content, error)
	// Compact makes the plan that fits a conversation into a budget, in tokens; 0 is a
	// quarter of the window of its model, or 32,000, and half of what is there where that fits. With keep it stores the plan and puts it in force.
	Compact(ctx context.Context, id string, budget int, keep bool) (*Compaction, error)
}

// Session is a conversation in a list.
type Session struct {
	ID string
	// Agent is claude-code, codex, …, or "thread" for a conversation of the store.
	Agent   string
	Project string // the agent's working folder; may be empty
	Changed time.Time
	// Messages and Bytes are its size; 0 is unknown.
	Messages, Bytes int
	// Plans is how many plans were made for it.
	Plans int
	// Version changes whenever the conversation does.
	Version string
	// FirstWords looks up the first words of the user; may be nil.
	FirstWords func(context.Context) string
}

// SessionOfThread lists a thread of a store.
func SessionOfThread(info store.Info) Session {
	return Session{
		ID: info.ID, Agent: stored, Changed: info.Changed, Messages: info.Messages, Plans: info.Plans,
		// A thread that was deleted and begun anew is another one, of as many messages or not.
		Version: fmt.Sprintf("%d.%d.%d", info.Created.UnixNano(), info.Messages, info.Plans),
	}
}

// CompareNewest sorts the last changed session first, then by id.
func CompareNewest(a, b Session) int {
	return cmp.Or(b.Changed.Compare(a.Changed), strings.Compare(a.ID, b.ID))
}

// Conversation is a session with its log and plan.
type Conversation struct {
	Log *thread.Thread
	// Plan is the plan in force, nil if there is none, and Version its number.
	Plan    *plan.Plan
	Version int
	// OwnCompactions are those that the agent made itself.
	OwnCompactions []OwnCompaction
	// Warnings are what was not known or not read of it.
	Warnings []string
}

// OwnCompaction is a compaction that the agent made itself.
type OwnCompaction struct {
	Turn    int
	Trigger string // the agent's word for the cause; may be empty
	Summary thread.ID
}

// Compaction is the effect of a plan.
type Compaction struct {
	Log    *thread.Thread
	Plan   *plan.Plan // empty if the conversation fits as it is, or under the plan in force
	Budget int
	// Before and After are the tokens of the whole request.
	Before, After int
	// StoredIn says where the plan is stored; empty if it is not. Next says how to get the
	// prompt.
	StoredIn, Next string
	// Warnings are what was not known or not read of the conversation.
	Warnings []string
}

// findSession returns the session of an id, or of the beginning of one.
func (s *Server) findSession(ctx context.Context, id string) (Session, error) {
	if id == "" {
		return Session{}, errors.New("session: want the id of a session; the tool sessions lists them")
	}
	list, err := s.filterSessions(ctx, id, "", "")
	if err != nil {
		return Session{}, err
	}
	return list[0], nil
}

// openSession reads the session of an id, or of the beginning of one.
func (s *Server) openSession(ctx context.Context, id string) (Session, *Conversation, error) {
	one, err := s.findSession(ctx, id)
	if err != nil {
		return one, nil, err
	}
	c, err := s.sessions.Open(ctx, one.ID)
	return one, c, err
}

// filterSessions returns the sessions that match the arguments, the newest first.
func (s *Server) filterSessions(ctx context.Context, session, agent, project string) ([]Session, error) {
	all, err := s.sessions.List(ctx)
	if err != nil {
		return nil, err
	}
	return matching(all, session, agent, project)
}

const (
	// latest means the newest session of an agent, else the newest conversation.
	latest = "latest"
	// stored is the Agent of a conversation of the store.
	stored = "thread"
)

// mergeStored makes one row of a session and of the conversations of the store that are the same: whose ids begin with
// the session's, or that begin with the same words. It empties the rows of those and returns how many rows are left.
func mergeStored(found []Session, rows, words []string) int {
	own, left := map[string]int{}, len(found)
	for i, one := range slices.Backward(found) { // the newest is kept
		if one.Agent != stored {
			own[one.ID], own[words[i]] = i, i
		}
	}
	delete(own, "")
	for i, one := range found {
		if one.Agent != stored {
			continue
		}
		at, same := own[one.ID[:max(0, strings.LastIndexByte(one.ID, '-'))]]
		if !same {
			at, same = own[words[i]]
		}
		if same {
			rows[at] += " · stored as " + one.ID
			rows[i] = ""
			left--
		}
	}
	return left
}

// matching is filterSessions for a list.
func matching(all []Session, session, agent, project string) ([]Session, error) {
	if session == latest && len(all) > 0 {
		own := slices.IndexFunc(all, func(one Session) bool { return one.Agent != stored })
		return all[max(own, 0):][:1], nil
	}
	if session != "" { // an id, or the beginning of one
		found := suggest.ByID(all, session, func(s Session) string { return s.ID })
		switch len(found) {
		case 1:
			return found, nil
		case 0:
			return nil, fmt.Errorf("there is no session %s; the tool sessions lists them", quotedName(session))
		}
		return nil, fmt.Errorf("%d ids begin with %s; give more of it", len(found), quotedName(session))
	}
	out := slices.DeleteFunc(slices.Clone(all), func(one Session) bool {
		return agent != "" && one.Agent != agent || !strings.Contains(strings.ToLower(one.Project), strings.ToLower(project))
	})
	if len(out) == 0 && (agent != "" || project != "") {
		return nil, errors.New("there is no session of that agent and project; without both the tool sessions lists all")
	}
	return out, nil
}
