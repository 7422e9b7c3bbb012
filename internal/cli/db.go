package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/store/care"
)

func dbCommand(s Streams) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "db",
		Short: "Look after a store: check, export, import, reseal, stats, vacuum",
		Example: `  palimpsest db check --store palimpsest.db
  palimpsest db export --store palimpsest.db -o backup.jsonl
  palimpsest db import backup.jsonl --store postgres://palimpsest@localhost/palimpsest`,
	}, dbCheckCommand(s), dbExportCommand(s), dbImportCommand(s), dbResealCommand(s), dbStatsCommand(s), dbVacuumCommand(s))
}

// storeCommand is a command that looks after a store and tells what it did.
type storeCommand struct {
	*cobra.Command
	// mayCreate lets the command make a store that is not there. An existing one is never
	// made by a mistyped name.
	mayCreate bool
	run       func(c *cobra.Command, db *database) (storeReport, error)
}

// storeReport is what is told of a store.
type storeReport interface{ print(*printer) }

// complete adds the flags, arguments and run function to the command; its report goes
// to w.
func (c storeCommand) complete(store *storeFlag, w io.Writer) *cobra.Command {
	store.addKeyFlags(c.Command, "the store to look after")
	c.Flags().Bool("json", false, "write one JSON object")
	c.RunE = func(command *cobra.Command, _ []string) error {
		var r storeReport
		err := store.withDatabase(command.Context(), !c.mayCreate, func(db *database) (err error) {
			r, err = c.run(command, db)
			return err
		})
		if err == nil {
			err = writeResult(w, command, r, r.print)
		}
		if checked, ok := r.(*checkReport); ok && err == nil {
			err = checked.err()
		}
		return err
	}
	if c.Args == nil {
		c.Args = noArgs
	}
	return c.Command
}

// careOptions is how artifacts are looked after: with the keys that there are.
func (db *database) careOptions() *care.Options { return &care.Options{Artifacts: db.artifacts()} }

// errProblems is the error of a check that found something.
var errProblems = errors.New("the store has problems")

func dbCheckCommand(s Streams) *cobra.Command {
	return storeCommand{Command: &cobra.Command{
		Use:   "check",
		Short: "Read everything and tell what does not fit together",
		Long: `Reads everything in a store and tells what does not fit together: ids that do not
follow from what was said, plans that do not hold for their thread, pointers that
lead nowhere, contents that are not what was put in, pages and indexes of a SQLite
file that do not agree. Nothing is changed.`,
	}, run: func(c *cobra.Command, db *database) (storeReport, error) {
		r := &checkReport{Problems: []string{}}
		n, err := care.Check(c.Context(), db.DB, func(p care.Problem) { r.Problems = append(r.Problems, p.String()) }, db.careOptions())
		r.Counts = storeCounts(n)
		return r, err
	}}.complete(&storeFlag{}, s.Out)
}

// checkReport is the report of a check.
type checkReport struct {
	Counts   storeCounts `json:"counts"`
	Problems []string    `json:"problems"`
}

func (r *checkReport) print(p *printer) {
	r.Counts.print(p)
	for _, problem := range r.Problems {
		p.line("%s", printable(problem))
	}
	if len(r.Problems) == 0 {
		p.line("everything fits together")
	}
}

func (r *checkReport) err() error {
	if len(r.Problems) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s of them", errProblems, number(len(r.Problems)))
}

// storeCounts are what is in a store.
type storeCounts care.Counts

func (c storeCounts) print(p *printer) {
	p.line("%s · %s · %s · %s · %s · %s · %s with %s bytes",
		plural(c.Tenants, "tenant"), plural(c.Threads, "thread"), plural(c.Messages, "message"), plural(c.Plans, "plan"),
		plural(c.Events, "event"), plural(c.Documents, "document"), plural(c.Artifacts, "artifact"), number(int(c.ArtifactBytes)))
	if c.Erased > 0 {
		p.line("and %s whose keys were erased, which nobody can read: a daemon removes what is left of it, or `palimpsest db reseal`", plural(c.Erased, "tenant"))
	}
}

func dbExportCommand(s Streams) *cobra.Command {
	var out string
	c := storeCommand{Command: &cobra.Command{
		Use:   "export",
		Short: "Write everything as lines of JSON, which `db import` reads into any store",
		Long: `Writes everything in a store as lines of JSON, in the clear, also where the store
is encrypted: keep the file as you keep your keys. The last line counts the
others, so an export that was cut off is never taken for a whole one.`,
	}, run: func(c *cobra.Command, db *database) (storeReport, error) {
		var n care.Counts
		export := func(w io.Writer) (err error) {
			n, err = care.Export(c.Context(), db.DB, w, db.careOptions())
			return err
		}
		var err error
		if out == "" || out == "-" {
			err = export(s.Out)
		} else {
			err = replaceFile(out, 0o600, export)
		}
		return storeCounts(n), err
	}}.complete(&storeFlag{}, s.Err)
	c.Flags().StringVarP(&out, "output", "o", "", "write to `OUT` (default: standard output)")
	return c
}

func dbImportCommand(s Streams) *cobra.Command {
	in := io.NopCloser(s.In)
	return storeCommand{Command: &cobra.Command{
		Use:   "import FILE",
		Short: "Read an export into a store, with the same ids",
		Long: `Reads what ` + "`palimpsest db export`" + ` wrote into a store. What the store has already
is passed over, so an import that was cut off can be run again.`,
		Args: exactArgs(1, "the FILE of an export, or - for standard input"),
		PreRunE: func(_ *cobra.Command, args []string) (err error) { // before a store is made
			if args[0] != "-" {
				in, err = os.Open(args[0])
			}
			return err
		},
	}, mayCreate: true, run: func(c *cobra.Command, db *database) (storeReport, error) {
		defer in.Close()
		n, err := care.Import(c.Context(), db.DB, in, db.careOptions())
		if errors.Is(err, care.ErrFormat) {
			err = fmt.Errorf("%w: %s: %w", errInvalid, c.Flags().Arg(0), err)
		}
		return storeCounts(n), err
	}}.complete(&storeFlag{}, s.Out)
}

func dbResealCommand(s Streams) *cobra.Command {
	var store storeFlag
	return storeCommand{Command: &cobra.Command{
		Use:   "reseal",
		Short: "Encrypt anew what is under an older key, or under none",
		Long: `Encrypts under each tenant's newest key what is under an older one or in the clear,
messages, plans, events, documents, cached summaries and artifacts, and removes what
is left of tenants whose keys were erased. A daemon does the same every hour. Others
may use the store meanwhile; where it is stopped it goes on when it is run again.

When it ends without an error, nothing that was there when it began is under an older
key. Processes that run take up to a minute to use a new key: run it after that.`,
		Example: "  palimpsest db reseal --store palimpsest.db --master-key master.key",
		PreRunE: func(*cobra.Command, []string) error {
			_, err := store.masterKeys()
			return err
		},
	}, run: func(c *cobra.Command, db *database) (storeReport, error) {
		r, err := care.Reseal(c.Context(), db.DB, db.careOptions())
		return resealReport(r), err
	}}.complete(&store, s.Out)
}

// resealReport is the report of db reseal.
type resealReport care.Resealed

func (r resealReport) print(p *printer) {
	p.line("%s and %s encrypted anew", plural(r.Records, "record"), plural(r.Artifacts, "artifact"))
	if r.Erased > 0 {
		p.line("what was left of %s whose keys were erased is removed", plural(r.Erased, "tenant"))
	}
	p.line("all of %s is under the newest keys", plural(r.Tenants, "tenant"))
}

func dbStatsCommand(s Streams) *cobra.Command {
	return storeCommand{Command: &cobra.Command{
		Use:   "stats",
		Short: "Count what is in a store",
	}, run: func(c *cobra.Command, db *database) (storeReport, error) {
		return collectStats(c.Context(), db)
	}}.complete(&storeFlag{}, s.Out)
}

// statsReport is the report of db stats.
type statsReport struct {
	storeCounts
	// Bytes is the size of the database, Leftovers how many files beside it no
	// row names.
	Bytes     int64 `json:"database_bytes,omitempty"`
	Leftovers int   `json:"leftovers,omitempty"`
}

func (r statsReport) print(p *printer) {
	r.storeCounts.print(p)
	if r.Bytes > 0 {
		p.line("the database takes %s bytes", number(int(r.Bytes)))
	}
	if r.Leftovers > 0 {
		p.line("%s that nothing needs: `palimpsest db vacuum` removes those older than an hour", plural(r.Leftovers, "file"))
	}
}

// databaseStore is what stores in databases tell and do beside the contracts.
type databaseStore interface {
	Bytes(ctx context.Context) (int64, error)
	Leftovers(ctx context.Context) ([]string, error)
	Vacuum(ctx context.Context) error
}

func collectStats(ctx context.Context, db *database) (r statsReport, err error) {
	n, err := care.Count(ctx, db.DB)
	r.storeCounts = storeCounts(n)
	d, ok := db.DB.(databaseStore)
	if err != nil || !ok {
		return r, err
	}
	if r.Bytes, err = d.Bytes(ctx); err != nil {
		return r, err
	}
	left, err := d.Leftovers(ctx)
	r.Leftovers = len(left)
	return r, err
}

func dbVacuumCommand(s Streams) *cobra.Command {
	return storeCommand{Command: &cobra.Command{
		Use:   "vacuum",
		Short: "Give back the room of what was deleted",
		Long: `Removes cached summaries of more than 30 days and files that a crash has left, and
gives back the room of what was deleted. Others may use the store meanwhile, and
wait while a SQLite file is written anew.`,
	}, run: func(c *cobra.Command, db *database) (storeReport, error) {
		before, err := collectStats(c.Context(), db)
		if d, ok := db.DB.(databaseStore); ok && err == nil {
			err = d.Vacuum(c.Context())
		}
		if err != nil {
			return nil, err
		}
		after, err := collectStats(c.Context(), db)
		return vacuumReport{after.Bytes, before.Bytes}, err
	}}.complete(&storeFlag{}, s.Out)
}

// vacuumReport is the size of a database before and after, in bytes.
type vacuumReport struct {
	After  int64 `json:"bytes_after"`
	Before int64 `json:"bytes_before"`
}

func (r vacuumReport) print(p *printer) {
	p.line("the database takes %s bytes, before it was %s", number(int(r.After)), number(int(r.Before)))
}
