package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/suggest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// edited says what became of a message by pin or expand.
type edited struct {
	Thread  string    `json:"thread_id"`
	Message thread.ID `json:"message_id"`
	Version int       `json:"plan_version"` // of the plan in force now
	// Shown is how many messages are shown again, Tokens what they take.
	Shown  int `json:"shown"`
	Tokens int `json:"tokens"`

	done  string // what became of the message
	again string // the command that takes it back; empty where nothing changed
}

// planEdit is pin or expand.
type planEdit struct {
	store      storeFlag
	pins, free bool // free with pins
}

const messageHelp = `THREAD is the id of a conversation that compact, run or serve stored ("palimpsest threads"),
MESSAGE what recall shows of one: the id of an artifact or of a message, or the beginning of that
(6 characters or more).`

func pinCommand(s Streams) *cobra.Command {
	e := &planEdit{pins: true}
	c := e.command(&cobra.Command{
		Use:   "pin THREAD MESSAGE",
		Short: "Keep a message of a stored conversation as it was said, in all plans",
		Long: `Pin shows a message as it was said, a call with its results, now and after each compaction; the
summary that tells of it stays. --free lets plans hide the message again. This is a new plan: undo takes it back.

` + messageHelp,
		Example: "  palimpsest recall \"retry\"\n  palimpsest pin ticket-4711 5ea67a3188b7",
	}, s)
	c.Flags().BoolVar(&e.free, "free", false, "let plans hide the message again")
	return c
}

func expandCommand(s Streams) *cobra.Command {
	return new(planEdit).command(&cobra.Command{
		Use:   "expand THREAD MESSAGE",
		Short: "Show again what the plan of a stored conversation hides",
		Long: `Expand shows a message that the plan in force hides as it was said, a call with its results,
beside the summary that tells of it, until the next compaction ("palimpsest pin" keeps a
message longer). This is a new plan: undo takes it back.

` + messageHelp,
		Example: "  palimpsest recall \"retry\"\n  palimpsest expand ticket-4711 5ea67a3188b7",
	}, s)
}

func (e *planEdit) command(c *cobra.Command, s Streams) *cobra.Command {
	c.Args = exactArgs(2, "one THREAD and one MESSAGE")
	c.RunE = func(c *cobra.Command, args []string) error {
		made, err := inTenant(c.Context(), &e.store, func(k *tenantStore) (*edited, error) { return e.edit(c.Context(), k, args[0], args[1]) })
		if err != nil {
			return err
		}
		if made.done == "" {
			made.done, made.again = e.done(), "palimpsest undo "+shellQuote(made.Thread)+e.store.arguments()
		}
		return writeResult(s.Out, c, made, made.print)
	}
	e.store.addFlags(c)
	c.Flags().Bool("json", false, "write the result as JSON")
	return c
}

// done says what became of the message.
func (e *planEdit) done() string {
	switch {
	case e.free:
		return "is pinned no more"
	case e.pins:
		return "is pinned: no plan hides it"
	}
	return "is shown as it was said, until the next compaction"
}

func (e *planEdit) edit(ctx context.Context, k *tenantStore, name, message string) (*edited, error) {
	info, err := k.thread(ctx, name)
	if err != nil {
		return nil, err
	}
	log, err := k.Log.Load(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	current, version, err := k.Plans.Current(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	id, err := k.messageOf(ctx, log, message)
	if err != nil {
		return nil, err
	}
	made := &edited{Thread: info.ID, Message: id, Version: version + 1}
	current = cmp.Or(current, &plan.Plan{})
	hidden := current.Actions()[id].Action != plan.Include
	switch pinned := slices.Contains(current.Pinned, id); {
	case e.pins && pinned && !e.free && !hidden:
		made.done, made.Version = "is pinned already", version
		return made, nil
	case e.free && !pinned:
		made.done, made.Version = "is not pinned", version
		return made, nil
	}
	session, err := k.session(info.ID)
	if err != nil {
		return nil, err
	}
	if session = session.OnlyIf(palimpsest.Condition{Plans: &version}); e.pins {
		err = session.Pin(ctx, id, !e.free)
	} else {
		err = session.Expand(ctx, id)
	}
	if errors.Is(err, store.ErrNotFound) && !hidden {
		err = fmt.Errorf("message %s is shown as it was said already: the plan in force does not hide it", printable(string(id)))
	}
	if err != nil {
		return nil, err
	}
	next, err := k.Plans.Plan(ctx, info.ID, made.Version)
	if err != nil {
		return nil, err
	}
	made.Shown, made.Tokens = len(current.Actions())-len(next.Actions()), next.CompactedTokens-current.CompactedTokens
	return made, nil
}

// messageOf is the id that a MESSAGE means: one of the log, the only one that begins so, or that of an artifact of
// any plan of the conversation.
func (k *tenantStore) messageOf(ctx context.Context, log *thread.Thread, name string) (thread.ID, error) {
	found := suggest.ByID(log.Messages(), name, func(m thread.Message) string { return string(m.ID) })
	if len(found) == 0 {
		removed, err := k.entries(ctx, log.ID(), recall.Removed)
		if err != nil {
			return "", err
		}
		for _, e := range suggest.ByID(removed, name, func(e recall.Entry) string { return e.ArtifactID }) {
			if i, ok := log.Index(e.MessageID); ok {
				found = append(found, *log.At(i))
			}
		}
	}
	switch len(found) {
	case 0:
		way := fmt.Sprintf("`palimpsest recall WORDS --thread %s` shows ids", printable(log.ID()))
		if len(name) < suggest.MinID {
			way = fmt.Sprintf("give %d characters or more of the id; %s", suggest.MinID, way)
		}
		return "", fmt.Errorf("%s: %w %s: %s", printable(name), thread.ErrUnknownID, printable(log.ID()), way)
	case 1:
		return found[0].ID, nil
	}
	return "", fmt.Errorf("%w: %d messages begin with %s; give more of the id", errUsage, len(found), printable(name))
}

func (e *edited) print(p *printer) {
	if e.again == "" {
		p.text("%s: message %s %s; nothing was changed", e.Thread, e.Message, e.done)
		return
	}
	p.text("%s: message %s %s; plan %d is in force now", e.Thread, e.Message, e.done, e.Version)
	if e.Shown > 0 {
		p.text("%s shown again, %s", clip.Count(e.Shown, "message"), clip.Count(e.Tokens, "token"))
	}
	p.line("to take it back: %s", e.again)
}

// undone says which plan an undo put in force.
type undone struct {
	Thread string `json:"thread_id"`
	// Version is that of the plan in force now, a copy of Restored.
	Version  int         `json:"plan_version"`
	Restored earlierPlan `json:"restored"`
	Replaced earlierPlan `json:"replaced"`

	again string // the command that puts Replaced in force
}

func undoCommand(s Streams) *cobra.Command {
	var store storeFlag
	var to int
	c := &cobra.Command{
		Use:   "undo THREAD",
		Short: "Put an earlier plan of a stored conversation in force again",
		Long: `Undo puts the plan before the last one in force again, or the one that --plan names; with
--plan 0 the whole conversation is shown as it was said. Nothing is lost: this is a new plan
with a number of its own, so a second undo takes it back. Requests through the proxy go out
under it from then on; one that does not fit its window is compacted again. THREAD is the id
of a conversation that compact, run or serve stored ("palimpsest threads"); explain shows
its plans.`,
		Example: "  palimpsest undo ticket-4711\n  palimpsest undo ticket-4711 --plan 0 --store palimpsest.db",
		Args:    exactArgs(1, "one THREAD"),
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("plan") {
				to = beforeLast
			} else if to < 0 {
				return fmt.Errorf("%w: --plan %d: want the number of a plan, or 0 for none", errUsage, to)
			}
			made, err := inTenant(c.Context(), &store, func(k *tenantStore) (*undone, error) { return k.undo(c.Context(), args[0], to) })
			if err != nil {
				return err
			}
			made.again = "palimpsest undo " + shellQuote(made.Thread) + store.arguments()
			return writeResult(s.Out, c, made, made.print)
		},
	}
	store.addFlags(c)
	c.Flags().IntVar(&to, "plan", 0, "put the plan with this `NUMBER` in force, 0 for none (default: the one before the last)")
	c.Flags().Bool("json", false, "write the result as JSON")
	return c
}

// beforeLast stands for the plan before the one in force.
const beforeLast = -1

func (k *tenantStore) undo(ctx context.Context, name string, n int) (*undone, error) {
	info, err := k.thread(ctx, name)
	if err != nil {
		return nil, err
	}
	id := info.ID
	if info.Plans == 0 {
		return nil, fmt.Errorf("%s has no plan: its prompts show the whole conversation", printable(id))
	}
	if n == beforeLast {
		n = info.Plans - 1
	}
	if n >= info.Plans {
		return nil, fmt.Errorf("%w: --plan %d: %s has %s, and the last one is in force", errUsage, n, printable(id), plural(info.Plans, "plan"))
	}
	current, err := k.Plans.Plan(ctx, id, info.Plans)
	if err != nil {
		return nil, err
	}
	session, err := k.session(id)
	if err == nil {
		err = session.OnlyIf(palimpsest.Condition{Plans: &info.Plans}).Undo(ctx, n)
	}
	if err != nil {
		return nil, err
	}
	restored, err := k.Plans.Plan(ctx, id, info.Plans+1) // counted with what came since plan n was made
	if err != nil {
		return nil, err
	}
	return &undone{Thread: id, Version: info.Plans + 1, Restored: *earlier(n, restored), Replaced: *earlier(info.Plans, current)}, nil
}

// print says what is in force now, and what was before.
func (u *undone) print(p *printer) {
	as := "which removes nothing"
	if u.Restored.Version > 0 {
		as = fmt.Sprintf("the same as plan %d (%s)", u.Restored.Version, u.Restored.size(u.Replaced.Counter))
	}
	p.text("%s: plan %d is in force now, %s; before it was plan %d (%s when it was made)", u.Thread, u.Version, as, u.Replaced.Version, u.Replaced.size(u.Replaced.Counter))
	p.line("to take it back: %s", u.again)
}
