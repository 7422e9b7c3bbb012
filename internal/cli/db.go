package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/store/care"
)

// dbFlag are the flags of the commands that look after a store.
type dbFlag struct {
	store  storeFlag
	master masterFlag
	asJSON bool
}

func (f *dbFlag) flags(c *cobra.Command) {
	c.Flags().StringVar(&f.store.name, "store", "", "the store to look after; "+storeUsage)
	f.master.flags(c)
	c.Flags().BoolVar(&f.asJSON, "json", false, "write one JSON object")
}

// use opens the store and calls do with it. An existing one is never made by a
// mistyped name.
func (f *dbFlag) use(ctx context.Context, existing bool, do func(*database) error) error {
	db, err := f.store.open(ctx, existing, f.master)
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}

// care is how artifacts are looked after: with the keys that there are.
func (db *database) care() *care.Options { return &care.Options{Artifacts: db.artifacts()} }

func dbCommand(s Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "db",
		Short: "Look after a store: check, export, import, reseal, stats, vacuum",
		Example: `  palimpsest db check --store palimpsest.db
  palimpsest db export --store palimpsest.db -o backup.jsonl
  palimpsest db import backup.jsonl --store postgres://palimpsest@localhost/palimpsest`,
		RunE: func(c *cobra.Command, args []string) error {
			return fmt.Errorf("%w: want `db check`, `db export`, `db import`, `db reseal`, `db stats` or `db vacuum`", errUsage)
		},
	}
	c.AddCommand(dbCheckCommand(s), dbExportCommand(s), dbImportCommand(s), dbResealCommand(s), dbStatsCommand(s), dbVacuumCommand(s))
	return c
}

// errProblems is the error of a check that found something.
var errProblems = errors.New("the store has problems")

func dbCheckCommand(s Streams) *cobra.Command {
	var f dbFlag
	c := &cobra.Command{
		Use:   "check",
		Short: "Read everything and tell what does not fit together",
		Long: `Reads everything in a store and tells what does not fit together: ids that do not
follow from what was said, plans that do not hold for their thread, pointers that
lead nowhere, contents that are not what was put in, pages and indexes of a SQLite
file that do not agree. Nothing is changed.`,
		Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			found := checked{Problems: []string{}}
			err := f.use(c.Context(), true, func(db *database) (err error) {
				found.Counts, err = care.Check(c.Context(), db.DB, func(p care.Problem) { found.Problems = append(found.Problems, p.String()) }, db.care())
				return err
			})
			if err != nil {
				return err
			}
			if f.asJSON {
				err = writeJSON(s.Out, found)
			} else {
				found.print(newPrinter(s.Out))
			}
			if err == nil && len(found.Problems) > 0 {
				err = fmt.Errorf("%w: %s of them", errProblems, number(len(found.Problems)))
			}
			return err
		},
	}
	f.flags(c)
	return c
}

// checked is the report of a check.
type checked struct {
	Counts   care.Counts `json:"counts"`
	Problems []string    `json:"problems"`
}

func (r *checked) print(p *printer) {
	printCounts(p, r.Counts)
	for _, problem := range r.Problems {
		p.line("%s", printable(problem))
	}
	if len(r.Problems) == 0 {
		p.line("everything fits together")
	}
}

func printCounts(p *printer, c care.Counts) {
	p.line("%s · %s · %s · %s · %s · %s · %s with %s bytes",
		plural(c.Tenants, "tenant"), plural(c.Threads, "thread"), plural(c.Messages, "message"), plural(c.Plans, "plan"),
		plural(c.Events, "event"), plural(c.Documents, "document"), plural(c.Artifacts, "artifact"), number(int(c.ArtifactBytes)))
	if c.Erased > 0 {
		p.line("and %s whose keys were erased, which nobody can read: a daemon removes what is left of it, or `palimpsest db reseal`", plural(c.Erased, "tenant"))
	}
}

func dbExportCommand(s Streams) *cobra.Command {
	var f dbFlag
	var out string
	c := &cobra.Command{
		Use:   "export",
		Short: "Write everything as lines of JSON, which `db import` reads into any store",
		Long: `Writes everything in a store as lines of JSON, in the clear, also where the store
is encrypted: keep the file as you keep your keys. The last line counts the
others, so an export that was cut off is never taken for a whole one.`,
		Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			var counts care.Counts
			err := f.use(c.Context(), true, func(db *database) error {
				return writeStream(out, s.Out, func(w io.Writer) (err error) {
					counts, err = care.Export(c.Context(), db.DB, w, db.care())
					return err
				})
			})
			if err != nil {
				return err
			}
			return f.tell(s.Err, counts)
		},
	}
	f.flags(c)
	c.Flags().StringVarP(&out, "output", "o", "", "write to `OUT` (default: standard output)")
	return c
}

// tell reports what was moved.
func (f *dbFlag) tell(w io.Writer, counts care.Counts) error {
	if f.asJSON {
		return writeJSON(w, counts)
	}
	printCounts(newPrinter(w), counts)
	return nil
}

// writeStream writes into a file of the user's alone, which has its name when it
// is whole; "" and "-" are standard output.
func writeStream(path string, stdout io.Writer, make func(io.Writer) error) (err error) {
	if path == "" || path == "-" {
		return make(stdout)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.part")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err = make(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func dbImportCommand(s Streams) *cobra.Command {
	var f dbFlag
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Read an export into a store, with the same ids",
		Long: `Reads what ` + "`palimpsest db export`" + ` wrote into a store. What the store has already
is passed over, so an import that was cut off can be run again.`,
		Args: exactly(1, "the FILE of an export, or - for standard input"),
		RunE: func(c *cobra.Command, args []string) error {
			in := s.In
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer file.Close()
				in = file
			}
			var counts care.Counts
			err := f.use(c.Context(), false, func(db *database) (err error) {
				counts, err = care.Import(c.Context(), db.DB, in, db.care())
				return err
			})
			if errors.Is(err, care.ErrFormat) {
				err = fmt.Errorf("%w: %s: %w", errInvalid, args[0], err)
			}
			if err != nil {
				return err
			}
			return f.tell(s.Out, counts)
		},
	}
	f.flags(c)
	return c
}

func dbResealCommand(s Streams) *cobra.Command {
	var f dbFlag
	c := &cobra.Command{
		Use:   "reseal",
		Short: "Encrypt anew what is under an older key, or under none",
		Long: `Encrypts under each tenant's newest key what is under an older one or in the clear,
messages, plans, events, documents, cached summaries and artifacts, and removes what
is left of tenants whose keys were erased. A daemon does the same every hour. Others
may use the store meanwhile; where it is stopped it goes on when it is run again.

When it ends without an error, nothing that was there when it began is under an older
key. Processes that run take up to a minute to use a new key: run it after that.`,
		Example: "  palimpsest db reseal --store palimpsest.db --master-key master.key",
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if !f.master.given() {
				return errNoMaster
			}
			var r care.Resealed
			err := f.use(c.Context(), true, func(db *database) (err error) {
				r, err = care.Reseal(c.Context(), db.DB, db.care())
				return err
			})
			if err != nil {
				return err
			}
			if f.asJSON {
				return writeJSON(s.Out, r)
			}
			p := newPrinter(s.Out)
			p.line("%s and %s encrypted anew", plural(r.Records, "record"), plural(r.Artifacts, "artifact"))
			if r.Erased > 0 {
				p.line("what was left of %s whose keys were erased is removed", plural(r.Erased, "tenant"))
			}
			p.line("all of %s is under the newest keys", plural(r.Tenants, "tenant"))
			return nil
		},
	}
	f.flags(c)
	return c
}

// sized is what stores in databases tell beside the contracts.
type sized interface {
	Bytes(ctx context.Context) (int64, error)
	Leftovers(ctx context.Context) ([]string, error)
}

// stats is the report of db stats.
type stats struct {
	care.Counts
	// Bytes is the size of the database, Leftovers how many files beside it no
	// row names.
	Bytes     int64 `json:"database_bytes,omitempty"`
	Leftovers int   `json:"leftovers,omitempty"`
}

func dbStatsCommand(s Streams) *cobra.Command {
	var f dbFlag
	c := &cobra.Command{
		Use:   "stats",
		Short: "Count what is in a store",
		Args:  exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			var r stats
			err := f.use(c.Context(), true, func(db *database) (err error) {
				r, err = statsOf(c.Context(), db)
				return err
			})
			if err != nil {
				return err
			}
			if f.asJSON {
				return writeJSON(s.Out, r)
			}
			p := newPrinter(s.Out)
			printCounts(p, r.Counts)
			if r.Bytes > 0 {
				p.line("the database takes %s bytes", number(int(r.Bytes)))
			}
			if r.Leftovers > 0 {
				p.line("%s that nothing needs: `palimpsest db vacuum` removes those older than an hour", plural(r.Leftovers, "file"))
			}
			return nil
		},
	}
	f.flags(c)
	return c
}

func statsOf(ctx context.Context, db *database) (r stats, err error) {
	if r.Counts, err = care.Count(ctx, db.DB); err != nil {
		return r, err
	}
	d, ok := db.DB.(sized)
	if !ok {
		return r, nil
	}
	if r.Bytes, err = d.Bytes(ctx); err != nil {
		return r, err
	}
	left, err := d.Leftovers(ctx)
	r.Leftovers = len(left)
	return r, err
}

func dbVacuumCommand(s Streams) *cobra.Command {
	var f dbFlag
	c := &cobra.Command{
		Use:   "vacuum",
		Short: "Give back the room of what was deleted",
		Long: `Removes cached summaries of more than 30 days and files that a crash has left, and
gives back the room of what was deleted. Others may use the store meanwhile, and
wait while a SQLite file is written anew.`,
		Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			var before, after stats
			err := f.use(c.Context(), true, func(db *database) (err error) {
				before, err = statsOf(c.Context(), db)
				if v, ok := db.DB.(interface{ Vacuum(context.Context) error }); ok && err == nil {
					err = v.Vacuum(c.Context())
				}
				if err == nil {
					after, err = statsOf(c.Context(), db)
				}
				return err
			})
			if err != nil {
				return err
			}
			if f.asJSON {
				return writeJSON(s.Out, map[string]int64{"bytes_before": before.Bytes, "bytes_after": after.Bytes})
			}
			newPrinter(s.Out).line("the database takes %s bytes, before it was %s", number(int(after.Bytes)), number(int(before.Bytes)))
			return nil
		},
	}
	f.flags(c)
	return c
}
