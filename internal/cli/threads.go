package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/store/dir"
	"github.com/palimpsest-ai/palimpsest/store/dsn"
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
	var asJSON bool
	var most int
	c := &cobra.Command{
		Use:   "threads",
		Short: "List the conversations that are kept, with their plans",
		Long: `List the conversations that compact, run and serve kept, the one that changed last
first. A folder keeps what was taken out of a conversation and the plans that did so;
a database keeps the whole. The id goes with --thread of "artifact list" and "recall".`,
		Example: "  palimpsest threads\n  palimpsest threads --store sqlite:palimpsest.db",
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			rows, damage, err := store.threads(c.Context(), most)
			if err != nil {
				return err
			}
			warn(s, damage)
			shown := rows
			if most > 0 && len(shown) > most {
				shown = shown[:most]
			}
			if asJSON {
				return writeJSON(s.Out, append([]threadRow{}, shown...))
			}
			p := newPrinter(s.Out)
			if len(shown) == 0 {
				p.line("no conversations are kept in %s", store.shown())
				return nil
			}
			var cells [][]string
			for _, r := range shown {
				cells = append(cells, []string{r.ID, number(r.Messages), number(r.Plans), r.Changed.Local().Format("2006-01-02 15:04"), r.First})
			}
			p.table([]string{"id", ">messages", ">plans", "changed", "first words"}, cells)
			if len(rows) > len(shown) {
				p.line("and %s more: --most %d shows all", number(len(rows)-len(shown)), len(rows))
			}
			return nil
		},
	}
	store.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "write the list as JSON")
	c.Flags().IntVar(&most, "most", 20, "how many to list, 0 for all")
	return c
}

// threads lists what a store keeps, the newest first. The first words of so many
// are looked up, 0 for all.
func (f *storeFlag) threads(ctx context.Context, most int) ([]threadRow, []dir.Damage, error) {
	if dsn.Is(f.dir) {
		k, err := openKept(ctx, f.dir, f.tenant, true)
		if err != nil {
			return nil, nil, err
		}
		rows, err := k.threads(ctx, most)
		return rows, nil, errors.Join(err, k.Close())
	}
	path, err := f.path()
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(path); f.dir == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil // nothing was kept on this machine yet
	}
	st, err := f.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	rows, damage, err := threadsOf(ctx, st.(*dir.Store))
	return rows, damage, errors.Join(err, st.Close())
}

func byChanged(a, b threadRow) int {
	return cmp.Or(b.Changed.Compare(a.Changed), strings.Compare(a.ID, b.ID))
}

// threads lists the conversations of a database.
func (k keptDB) threads(ctx context.Context, most int) ([]threadRow, error) {
	var rows []threadRow
	for after := ""; ; {
		page, err := k.tenant.Catalog.Threads(ctx, after, 0)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		for _, info := range page {
			rows = append(rows, threadRow{ID: info.ID, Messages: info.Messages, Plans: info.Plans, Changed: info.Changed})
			after = info.ID
		}
	}
	slices.SortFunc(rows, byChanged)
	for i := range rows {
		if most > 0 && i == most {
			break
		}
		log, err := k.tenant.Log.Load(ctx, rows[i].ID)
		if err != nil {
			return nil, err
		}
		rows[i].First = firstRequest(log)
	}
	return rows, nil
}

// threadsOf lists the conversations of a folder, by what was taken out of them.
func threadsOf(ctx context.Context, st *dir.Store) ([]threadRow, []dir.Damage, error) {
	entries, damage, err := st.List(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	var rows []threadRow
	for _, e := range entries {
		if len(rows) == 0 || rows[len(rows)-1].ID != e.ThreadID { // they come by thread
			rows = append(rows, threadRow{ID: e.ThreadID})
		}
	}
	for i := range rows {
		row := &rows[i]
		plans, broken, err := st.Plans(ctx, row.ID)
		if err != nil {
			return nil, nil, err
		}
		damage = append(damage, broken...)
		row.Plans = len(plans)
		for _, p := range plans {
			row.Messages = max(row.Messages, p.ThreadVersion)
			if p.CreatedAt.After(row.Changed) {
				row.Changed = p.CreatedAt
			}
		}
		row.First = shorten(st.First(row.ID), 200)
	}
	slices.SortFunc(rows, byChanged)
	return rows, damage, nil
}
