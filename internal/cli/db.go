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
	"github.com/palimpsest-ai/palimpsest/store/dir"
	"github.com/palimpsest-ai/palimpsest/store/dsn"
)

// dbFlag is the --store flag of the commands that look after a store.
type dbFlag struct {
	name   string
	keys   keysFlag
	master masterFlag
	asJSON bool
}

func (f *dbFlag) flags(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "store", "", "the store: `DSN` is sqlite:FILE or postgres://USER@HOST/NAME")
	f.keys.flags(c)
	f.master.flags(c)
	c.Flags().BoolVar(&f.asJSON, "json", false, "write one JSON object")
}

// open opens the store; an existing one is never made by a mistyped name.
func (f *dbFlag) open(ctx context.Context, existing bool) (*sealedDB, error) {
	if !dsn.Is(f.name) {
		return nil, fmt.Errorf("%w: want --store sqlite:FILE or --store postgres://USER@HOST/NAME", errUsage)
	}
	return openDB(ctx, f.name, existing, f.keys, f.master)
}

func dbCommand(s Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "db",
		Short: "Look after a store: check, export, import, reseal, stats, vacuum",
		Example: `  palimpsest db check --store sqlite:palimpsest.db
  palimpsest db export --store sqlite:palimpsest.db -o backup.jsonl
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
lead nowhere, contents that are not what was put in. Nothing is changed.

--store may also name the folder of a store that ` + "`palimpsest compact`" + ` made.`,
		Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			var found checked
			err := found.check(c.Context(), &f)
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

// checked is the report of a check. Counts are those of a DSN, not of a folder.
type checked struct {
	Counts   *care.Counts `json:"counts,omitempty"`
	Problems []string     `json:"problems"`
}

func (r *checked) check(ctx context.Context, f *dbFlag) (err error) {
	r.Problems = []string{}
	if f.name != "" && !dsn.Is(f.name) {
		st, err := dir.Open(f.name, &dir.Options{ReadOnly: true})
		if err != nil {
			return err
		}
		damage, err := st.Check(ctx)
		for _, d := range damage {
			r.Problems = append(r.Problems, d.String())
		}
		return errors.Join(err, st.Close())
	}
	db, err := f.open(ctx, true)
	if err != nil {
		return err
	}
	counts, err := care.Check(ctx, db.DB, func(p care.Problem) { r.Problems = append(r.Problems, p.String()) }, db.care())
	r.Counts = &counts
	return errors.Join(err, db.Close())
}

func (r *checked) print(p *printer) {
	if r.Counts != nil {
		printCounts(p, *r.Counts)
	}
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
			db, err := f.open(c.Context(), true)
			if err != nil {
				return err
			}
			var counts care.Counts
			err = writeStream(out, s.Out, func(w io.Writer) error {
				counts, err = care.Export(c.Context(), db.DB, w, db.care())
				return err
			})
			if err = errors.Join(err, db.Close()); err != nil {
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
			db, err := f.open(c.Context(), false)
			if err != nil {
				return err
			}
			counts, err := care.Import(c.Context(), db.DB, in, db.care())
			if errors.Is(err, care.ErrFormat) {
				err = fmt.Errorf("%w: %s: %w", errInvalid, args[0], err)
			}
			if err = errors.Join(err, db.Close()); err != nil {
				return err
			}
			return f.tell(s.Out, counts)
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
			db, err := f.open(c.Context(), true)
			if err != nil {
				return err
			}
			r, err := statsOf(c.Context(), db)
			if err = errors.Join(err, db.Close()); err != nil {
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

func statsOf(ctx context.Context, db *sealedDB) (r stats, err error) {
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
			db, err := f.open(c.Context(), true)
			if err != nil {
				return err
			}
			before, err := statsOf(c.Context(), db)
			if v, ok := db.DB.(interface{ Vacuum(context.Context) error }); ok && err == nil {
				err = v.Vacuum(c.Context())
			}
			var after stats
			if err == nil {
				after, err = statsOf(c.Context(), db)
			}
			if err = errors.Join(err, db.Close()); err != nil {
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
