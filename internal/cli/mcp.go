package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/internal/mcp"
	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

func mcpCommand(s Streams) *cobra.Command {
	var store storeFlag
	var writes, steers bool
	var agent string
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Let an agent search earlier sessions (an MCP server on standard input and output)",
		Long: `Serve the Model Context Protocol on standard input and output until the client closes
them. The tools recall, read_artifact, sessions, explain and compact work on the sessions
of agents on this machine ("palimpsest sessions") and on the conversations of the store
("palimpsest threads"). Nothing is changed, unless --write lets compact store its plans.

docs/agents.md shows how to add the server to an agent. The daemon offers the same tools
for its threads at /mcp.`,
		Example: "  claude mcp add palimpsest -- palimpsest mcp\n  codex mcp add palimpsest -- palimpsest mcp",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			counter, err := token.New("o200k", nil)
			if err != nil {
				return err
			}
			l := localSessions{store: lazyStore{flag: &store, existing: true}}
			defer func() { err = errors.Join(err, l.store.Close()) }()
			switches, _, err := loadSwitches()
			if err != nil {
				return err
			}
			server := mcp.New(&l, &mcp.Options{Off: switches.Off(agent, ""), Version: Version(), Write: writes, ContextTools: steers, Count: counter.Text, Memory: mcp.NewMemory(mcp.DefaultMemory)})
			return server.Serve(c.Context(), s.In, s.Out)
		},
	}
	store.addFlags(c)
	c.Flags().StringVar(&agent, "agent", "", "the `AGENT` that asks: \"palimpsest off AGENT\" leaves it without tools")
	c.Flags().BoolVar(&steers, "context-tools", false, "offer context_status, context_note and compact_now too")
	c.Flags().BoolVar(&writes, "write", false, "let the tool compact store its plans, instead of only showing them")
	return c
}

// localSessions are the sessions on this machine and the conversations of a store. A session
// and a conversation of the same id are one: the file has the messages, the store the plans.
type localSessions struct{ store lazyStore }

// open opens the store. It returns nil while there is none.
func (l *localSessions) open(ctx context.Context) (*tenantStore, error) {
	k, err := l.store.open(ctx)
	if l.store.flag.isMissing(err) {
		return nil, nil
	}
	return k, err
}

// userError is an error with the text for people.
func userError(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(ErrorText(err))
}

// List implements mcp.Sessions.
func (l *localSessions) List(ctx context.Context) ([]mcp.Session, error) {
	files, err := findSessions()
	if err != nil {
		return nil, userError(err)
	}
	k, err := l.open(ctx)
	if err != nil {
		return nil, userError(err)
	}
	var infos []store.Info
	if k != nil {
		if infos, err = care.AllThreads(ctx, k.Catalog); err != nil {
			return nil, userError(err)
		}
	}
	threads := map[string]store.Info{}
	for _, info := range infos {
		threads[info.ID] = info
	}
	seen := map[string]bool{}
	var all []mcp.Session
	for _, f := range files {
		if seen[f.ID] || f.Unused() {
			continue // an id means its newest session
		}
		seen[f.ID] = true
		plans := threads[f.ID].Plans
		all = append(all, mcp.Session{
			ID: f.ID, Agent: f.Agent, Project: f.Project, Changed: f.Changed, Bytes: int(f.Bytes), Plans: plans,
			Version:    fmt.Sprint(f.Path, f.Changed.UnixNano(), f.Bytes, plans),
			FirstWords: func(context.Context) string { return shorten(f.FirstRequest(), maxFirstWords) },
		})
	}
	for _, info := range infos {
		if seen[info.ID] {
			continue
		}
		kept := mcp.SessionOfThread(info)
		kept.FirstWords = func(ctx context.Context) string {
			log, err := k.Log.Load(ctx, info.ID)
			if err != nil {
				return ""
			}
			return shorten(sessions.FirstRequest(log), maxFirstWords)
		}
		all = append(all, kept)
	}
	slices.SortStableFunc(all, mcp.CompareNewest)
	return all, nil
}

// load reads the file of a session, or a conversation of the store.
func (l *localSessions) load(ctx context.Context, id string) (in input, err error) {
	files, err := findSessions()
	if err != nil {
		return in, err
	}
	if i := slices.IndexFunc(files, func(f sessions.Session) bool { return f.ID == id }); i >= 0 {
		in.from = files[i].Agent
		in.target = target{named: id, path: files[i].Path, taken: &files[i]}
		if err := in.read(nil); err != nil {
			return in, err
		}
		in.run = 1 // others in the file belong to sub-agents
		return in, in.selectRun()
	}
	k, err := l.open(ctx)
	if err != nil || k == nil {
		return in, cmp.Or(err, error(fs.ErrNotExist))
	}
	log, err := k.Log.Load(ctx, id)
	if err != nil {
		return in, err
	}
	in.run = 1
	in.setStored(transcript.Transcript{Name: id, Thread: log})
	return in, in.selectRun()
}

// Open implements mcp.Sessions.
func (l *localSessions) Open(ctx context.Context, id string) (*mcp.Conversation, error) {
	in, err := l.load(ctx, id)
	if err != nil {
		return nil, userError(err)
	}
	c := &mcp.Conversation{Log: in.Thread, Warnings: in.warnings()}
	for _, own := range in.Compactions {
		made := mcp.OwnCompaction{Trigger: own.Trigger, Summary: own.Summary}
		if own.At < in.Thread.Len() {
			made.Turn = in.Thread.At(own.At).Turn
		}
		c.OwnCompactions = append(c.OwnCompactions, made)
	}
	k, err := l.open(ctx)
	if err == nil && k != nil {
		c.Plan, c.Version, err = k.Plans.Current(ctx, in.Thread.ID())
	}
	return c, userError(err)
}

// Artifact implements mcp.Sessions.
func (l *localSessions) Artifact(ctx context.Context, id string) (rehydrate.Content, error) {
	k, err := l.open(ctx)
	if err != nil {
		return rehydrate.Content{}, userError(err)
	}
	if k == nil {
		return rehydrate.Content{}, artifact.ErrNotFound
	}
	return k.getArtifact(ctx, id, "")
}

// Compact implements mcp.Sessions.
func (l *localSessions) Compact(ctx context.Context, id string, budget int, keep bool) (*mcp.Compaction, error) {
	made, err := l.compact(ctx, id, budget, keep)
	return made, userError(err)
}

func (l *localSessions) compact(ctx context.Context, id string, budget int, keep bool) (*mcp.Compaction, error) {
	in, err := l.load(ctx, id)
	if err != nil {
		return nil, err
	}
	lazy := &lazyStore{flag: l.store.flag}
	conv := conversation{in: in, policy: "auto", budget: budget, answers: lazy}
	if err := conv.resolve(); err != nil {
		return nil, err
	}
	made := &mcp.Compaction{Warnings: in.warnings()}
	var res *palimpsest.Result
	if keep {
		var kept *saved
		if res, kept, err = conv.compactAndStore(ctx, lazy); kept != nil {
			made.StoredIn = lazy.flag.displayName()
		}
	} else {
		res, err = conv.compact(ctx, l.store.flag)
	}
	if err = errors.Join(err, lazy.Close()); err != nil {
		return nil, err
	}
	if in.stored == "" {
		made.Next = fmt.Sprintf("To get the prompt: palimpsest compact %s --budget %d -o prompt.json", shellQuote(id), conv.budget)
	}
	made.Log, made.Plan, made.Before, made.After, made.Budget = conv.in.Thread, cmp.Or(res.Plan, &plan.Plan{}), res.Before, res.After, conv.budget
	return made, nil
}
