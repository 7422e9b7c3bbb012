package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest"
)

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

// undo puts plan n of a thread in force again.
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
	if err != nil {
		return nil, err
	}
	made := &undone{Thread: id, Version: info.Plans + 1, Replaced: *earlier(info.Plans, current)}
	if n > 0 {
		restored, err := k.Plans.Plan(ctx, id, n)
		if err != nil {
			return nil, err
		}
		made.Restored = *earlier(n, restored)
	}
	return made, session.OnlyIf(palimpsest.Condition{Plans: &info.Plans}).Undo(ctx, n)
}

// print says what is in force now, and what was before.
func (u *undone) print(p *printer) {
	as := "which removes nothing"
	if u.Restored.Version > 0 {
		as = fmt.Sprintf("the same as plan %d (%s)", u.Restored.Version, u.Restored.size(u.Replaced.Counter))
	}
	p.text("%s: plan %d is in force now, %s; before it was plan %d (%s)", u.Thread, u.Version, as, u.Replaced.Version, u.Replaced.size(u.Replaced.Counter))
	p.line("to take it back: %s", u.again)
}
