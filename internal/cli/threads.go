package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/sessions"
)

// threadRow is a conversation that is kept.
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
		Use:   "threads",
		Short: "List the conversations that are kept, with their plans",
		Long: `List the conversations that compact, run and serve kept, the one that changed last
first. The id goes with --thread of "artifact list" and "recall".`,
		Example: "  palimpsest threads\n  palimpsest threads --store palimpsest.db",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			rows, unread, err := store.threads(c.Context(), most)
			if err != nil {
				return err
			}
			warn(s, unread)
			shown := firstOf(rows, most)
			return tell(s.Out, c, append([]threadRow{}, shown...), func(p *printer) {
				if len(shown) == 0 {
					p.line("no conversations are kept in %s", store.shown())
					return
				}
				p.table([]string{"id", ">messages", ">plans", "changed", "first words"}, eachOf(shown, func(r threadRow) []string {
					return []string{r.ID, number(r.Messages), number(r.Plans), r.Changed.Local().Format("2006-01-02 15:04"), r.First}
				}))
				p.unlisted(len(shown), len(rows))
			})
		},
	}
	store.flags(c)
	c.Flags().Bool("json", false, "write the list as JSON")
	mostFlag(c, &most)
	return c
}

// threads lists what a store keeps, the newest first. The first words of so many
// are looked up, 0 for all; those that cannot be read are told.
func (f *storeFlag) threads(ctx context.Context, most int) (rows []threadRow, unread []error, err error) {
	err = f.read(ctx, func(k *kept) error {
		infos, err := k.infos(ctx)
		if err != nil {
			return err
		}
		for _, info := range infos {
			rows = append(rows, threadRow{ID: info.ID, Messages: info.Messages, Plans: info.Plans, Changed: info.Changed})
		}
		slices.SortFunc(rows, func(a, b threadRow) int {
			return cmp.Or(b.Changed.Compare(a.Changed), strings.Compare(a.ID, b.ID))
		})
		for i := range firstOf(rows, most) {
			log, err := k.tenant.Log.Load(ctx, rows[i].ID)
			if err != nil {
				unread = append(unread, err)
				continue
			}
			rows[i].First = shorten(sessions.FirstRequest(log), maxFirst)
		}
		return ctx.Err()
	})
	if f.nothingYet(err) {
		err = nil
	}
	return rows, unread, err
}
