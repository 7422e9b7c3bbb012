package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/proxy"
)

// threadRow is a stored conversation in a list.
type threadRow struct {
	ID       string    `json:"thread_id"`
	Messages int       `json:"messages"`
	Plans    int       `json:"plans"`
	Changed  time.Time `json:"changed"`
	First    string    `json:"first,omitempty"`
}

func threadsCommand(s Streams) *cobra.Command {
	var store storeFlag
	var most int
	c := &cobra.Command{
		Use:   "threads [THREAD]",
		Short: "List the stored conversations, or the plans of one",
		Long: `List the conversations that compact, run and serve stored, the last changed first; with a THREAD
its plans, the newest first: that is the one in force, and "undo" brings another back.
"artifact" and "recall" take a THREAD with --thread; explain, undo and threads take it as
it is: an id, the beginning of one (6 characters or more), or the number of a session that
"palimpsest sessions" lists.`,
		Example: "  palimpsest threads\n  palimpsest threads --store palimpsest.db\n  palimpsest threads ticket-4711",
		Args:    atMostOneArg("THREAD"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return store.printPlans(c, args[0], most, s)
			}
			rows, unread, err := store.threads(c.Context(), most)
			if err != nil {
				return err
			}
			warnUnread(s, unread)
			shown := firstN(rows, most)
			return writeResult(s.Out, c, append([]threadRow{}, shown...), func(p *printer) {
				if len(shown) == 0 {
					p.text("there are no conversations in %s: %s", store.displayName(), errNoStore)
					return
				}
				p.table([]string{"id", ">messages", ">plans", "changed", "first words"}, mapSlice(shown, func(r threadRow) []string {
					return []string{r.ID, number(r.Messages), number(r.Plans), r.Changed.Local().Format("2006-01-02 15:04"), r.First}
				}))
				p.printUnlisted(len(shown), len(rows))
			})
		},
	}
	store.addFlags(c)
	c.Flags().Bool("json", false, "write the list as JSON")
	c.Flags().IntVar(&most, "most", 20, "how many to list, 0 for all")
	c.AddCommand(deleteThreadCommand(s))
	return c
}

// planRow is a plan in a list.
type planRow struct {
	earlierPlan
	Made    time.Time `json:"made,omitzero"`
	Policy  string    `json:"policy,omitempty"`
	Before  int       `json:"tokens_before"`
	Records int       `json:"records"`
}

// printPlans lists the plans of a conversation, the newest first.
func (f *storeFlag) printPlans(c *cobra.Command, name string, most int, s Streams) error {
	id, rows := "", []planRow{}
	err := f.withTenant(c.Context(), func(k *tenantStore) error {
		info, err := k.thread(c.Context(), name)
		if err != nil {
			return err
		}
		_, plans, err := k.load(c.Context(), info)
		if err != nil {
			return err
		}
		for i, p := range slices.Backward(plans) {
			rows = append(rows, planRow{*earlier(i+1, p), p.CreatedAt, p.Policy, p.OriginalTokens, len(p.Refs())})
		}
		id = info.ID
		return nil
	})
	if err != nil {
		return err
	}
	shown := firstN(rows, most)
	return writeResult(s.Out, c, shown, func(p *printer) {
		if len(rows) == 0 {
			p.line("%s has no plan: its prompts show the whole conversation", id)
			return
		}
		p.table([]string{">plan", "made", "by", ">before", ">after", ">records"}, mapSlice(shown, func(r planRow) []string {
			return []string{number(r.Version), r.Made.Local().Format("2006-01-02 15:04"), r.Policy, numberOr(r.Before, ""), numberOr(r.Tokens, ""), number(r.Records)}
		}))
		p.printUnlisted(len(shown), len(rows))
		p.line("to see them: %s", f.explainCommand(id))
		p.line("to bring one back: palimpsest undo %s --plan NUMBER%s", shellQuote(id), f.arguments())
	})
}

func deleteThreadCommand(s Streams) *cobra.Command {
	var store storeFlag
	var yes bool
	c := &cobra.Command{
		Use:   "delete THREAD",
		Short: "Delete a stored conversation for good",
		Long: `Delete removes the messages, plans, events and artifacts of a stored conversation. Nothing
brings them back. Agents' own session files stay, and so do model answers about it, until
"palimpsest db vacuum", and backups. While a daemon uses the store, delete over its API:
it waits for a compaction that is at work. Without --yes nothing is deleted, and what would be
is told.`,
		Example: "  palimpsest threads delete ticket-4711 --yes --store palimpsest.db",
		Args:    exactArgs(1, "one THREAD"),
		RunE: func(c *cobra.Command, args []string) error {
			return store.withTenant(c.Context(), func(k *tenantStore) error {
				info, err := k.thread(c.Context(), args[0])
				if err != nil {
					return err
				}
				what := fmt.Sprintf("%s (%s, %s)", printable(info.ID), plural(info.Messages, "message"), plural(info.Plans, "plan"))
				if !yes {
					return fmt.Errorf("%w: %s would be deleted for good: add --yes", errUsage, what)
				}
				// The thread goes last, so that a deletion that failed can be repeated.
				if err := proxy.Forget(c.Context(), k.Documents, info.ID); err != nil {
					return err
				}
				if err := k.Catalog.Delete(c.Context(), info.ID); err != nil {
					return err
				}
				fmt.Fprintf(s.Err, "palimpsest: deleted %s\n", what)
				return nil
			})
		},
	}
	store.addFlags(c)
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	return c
}

// threads lists the conversations of a store, the newest first. It reads the first words of at
// most that many, 0 for all; unread names those that could not be read.
func (f *storeFlag) threads(ctx context.Context, most int) (rows []threadRow, unread []error, err error) {
	err = f.withTenant(ctx, func(k *tenantStore) error {
		infos, err := care.AllThreads(ctx, k.Catalog)
		if err != nil {
			return err
		}
		for _, info := range infos {
			rows = append(rows, threadRow{ID: info.ID, Messages: info.Messages, Plans: info.Plans, Changed: info.Changed})
		}
		slices.SortFunc(rows, func(a, b threadRow) int {
			return cmp.Or(b.Changed.Compare(a.Changed), strings.Compare(a.ID, b.ID))
		})
		for i := range firstN(rows, most) {
			log, err := k.Log.Load(ctx, rows[i].ID)
			if err != nil {
				unread = append(unread, err)
				continue
			}
			rows[i].First = shorten(sessions.FirstRequest(log), maxFirstWords)
		}
		return ctx.Err()
	})
	if f.isMissing(err) {
		err = nil
	}
	return rows, unread, err
}
