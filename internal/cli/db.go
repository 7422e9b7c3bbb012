package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/care"
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

// completeDBCommand adds the flags of a db command and opens the store for run. Only
// with create does it create a store: otherwise a mistyped name would leave one behind.
func completeDBCommand(c *cobra.Command, create bool, run func(*cobra.Command, *database) error) *cobra.Command {
	var store storeFlag
	store.addKeyFlags(c, "the store to look after")
	c.Flags().Bool("json", false, "write one JSON object")
	if c.Args == nil {
		c.Args = noArgs
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		return store.withDatabase(c.Context(), !create, func(db *database) error { return run(c, db) })
	}
	return c
}

func dbCheckCommand(s Streams) *cobra.Command {
	return completeDBCommand(&cobra.Command{
		Use:   "check",
		Short: "Read everything and report what is inconsistent",
		Long: `Reads everything in a store and reports what is inconsistent: ids that do not match
their content, plans that do not fit their thread, pointers to nothing, changed
contents, damaged pages and indexes of a SQLite file. Nothing is changed.`,
	}, false, func(c *cobra.Command, db *database) error {
		r := struct {
			Counts   care.Counts `json:"counts"`
			Problems []string    `json:"problems"`
		}{Problems: []string{}}
		var err error
		r.Counts, err = care.Check(c.Context(), db.DB, func(p care.Problem) { r.Problems = append(r.Problems, p.String()) }, db.artifacts())
		if err != nil {
			return err
		}
		err = writeResult(s.Out, c, r, func(p *printer) {
			p.counts(r.Counts)
			for _, problem := range r.Problems {
				p.line("%s", problem)
			}
			if len(r.Problems) == 0 {
				p.line("everything fits together")
			}
		})
		if err == nil && len(r.Problems) > 0 {
			err = fmt.Errorf("the store has %s", plural(len(r.Problems), "problem"))
		}
		return err
	})
}

func (p *printer) counts(c care.Counts) {
	p.line("%s · %s · %s · %s · %s · %s · %s with %s bytes",
		plural(c.Tenants, "tenant"), plural(c.Threads, "thread"), plural(c.Messages, "message"), plural(c.Plans, "plan"),
		plural(c.Events, "event"), plural(c.Documents, "document"), plural(c.Artifacts, "artifact"), number(int(c.ArtifactBytes)))
	if c.Erased > 0 {
		p.line("and %s whose keys were erased, so that nobody can read the rest: a daemon or `palimpsest db reseal` removes it", plural(c.Erased, "tenant"))
	}
}

func dbExportCommand(s Streams) *cobra.Command {
	var out string
	c := completeDBCommand(&cobra.Command{
		Use:   "export",
		Short: "Write everything as lines of JSON, which `db import` reads into any store",
		Long: `Writes everything in a store as lines of JSON, in the clear even if the store is
encrypted: protect the file like your keys. The last line counts the others, so that
a truncated export is noticed.`,
	}, false, func(c *cobra.Command, db *database) error {
		if err := checkOutputs(db.files, out); err != nil {
			return err
		}
		var n care.Counts
		export := func(w io.Writer) (err error) {
			n, err = care.Export(c.Context(), db.DB, w, db.artifacts())
			return err
		}
		if err := fillOutput(out, s.Out, export); err != nil {
			return err
		}
		return writeResult(s.Err, c, n, func(p *printer) { p.counts(n) })
	})
	c.Flags().StringVarP(&out, "output", "o", "", "write to `OUT` (default: standard output)")
	return c
}

func dbImportCommand(s Streams) *cobra.Command {
	var in io.Reader
	var file io.ReadCloser
	invalid := func(name string, err error) error {
		if errors.Is(err, care.ErrFormat) {
			err = fmt.Errorf("%w: %s: %w", ErrInvalid, name, err)
		}
		return err
	}
	var tenant string
	var o care.ImportOptions
	command := completeDBCommand(&cobra.Command{
		Use:   "import FILE",
		Short: "Read an export into a store, with the same ids",
		Long: `Reads the output of ` + "`palimpsest db export`" + ` into a store. It skips what the store has
already, so an interrupted import can be run again. A message whose id does not follow
from its content is refused: it was changed, or a caller brought the id (--any-ids).
Read a file from somebody else with --tenant: it may name any tenant.`,
		Args: exactArgs(1, "the FILE of an export, or - for standard input"),
		PreRunE: func(_ *cobra.Command, args []string) (err error) { // before it creates a store
			if file, err = openInput(args[0], s.In); err != nil {
				return err
			}
			if in, err = care.ReadHead(file); err != nil {
				return errors.Join(invalid(args[0], err), file.Close())
			}
			return nil
		},
	}, true, func(c *cobra.Command, db *database) error {
		defer file.Close()
		if c.Flags().Changed("tenant") {
			o.Tenant = &tenant
		}
		n, err := care.Import(c.Context(), db.DB, in, db.artifacts(), &o)
		if err != nil {
			return invalid(c.Flags().Arg(0), err)
		}
		return writeResult(s.Out, c, n, func(p *printer) { p.counts(n) })
	})
	command.Flags().StringVar(&tenant, "tenant", "", "refuse records of another tenant than `NAME`")
	command.Flags().BoolVar(&o.AnyIDs, "any-ids", false, "take ids that look like ours and do not follow from the content")
	return command
}

func dbResealCommand(s Streams) *cobra.Command {
	return completeDBCommand(&cobra.Command{
		Use:   "reseal",
		Short: "Encrypt again what is under an older key, or under none",
		Long: `Encrypts messages, plans, events, documents, cached summaries and artifacts under
their tenant's newest key, if they are under an older one or in the clear, and removes
the remains of tenants whose keys were erased. A daemon does this every hour. Others
may use the store meanwhile, and an interrupted run can be started again.

When it succeeds, nothing that was in the store when it began is under an older key.
Running processes take up to a minute to use a new key: wait that long first.`,
		Example: "  palimpsest db reseal --store palimpsest.db --master-key master.key",
	}, false, func(c *cobra.Command, db *database) error {
		if db.keyring == nil {
			return errNoMaster
		}
		r, err := care.Reseal(c.Context(), db.DB, db.artifacts())
		if err != nil {
			return err
		}
		return writeResult(s.Out, c, r, func(p *printer) {
			p.line("%s and %s encrypted again", plural(r.Records, "record"), plural(r.Artifacts, "artifact"))
			if r.Erased > 0 {
				p.line("removed the remains of %s whose keys were erased", plural(r.Erased, "tenant"))
			}
			p.line("everything of %s is under the newest keys", plural(r.Tenants, "tenant"))
		})
	})
}

func dbStatsCommand(s Streams) *cobra.Command {
	return completeDBCommand(&cobra.Command{
		Use:   "stats",
		Short: "Count what is in a store",
		Long: `Counts what is in a store. Artifacts are contents that are stored apart. What plans
removed from prompts is a message of its thread in any case, under the id of an artifact
or its own, and "palimpsest artifact" reads it there; it is counted by itself.`,
	}, false, func(c *cobra.Command, db *database) error {
		var r struct {
			care.Counts
			care.Removed
			Bytes     int64 `json:"database_bytes,omitempty"` // the size of the database
			Leftovers int   `json:"leftovers,omitempty"`      // files beside it that no row names
		}
		var err error
		if r.Counts, r.Removed, err = care.Count(c.Context(), db.DB); err != nil {
			return err
		}
		if d, ok := db.DB.(sqlDatabase); ok {
			if r.Bytes, err = d.Bytes(c.Context()); err != nil {
				return err
			}
			files, err := d.Leftovers(c.Context())
			if err != nil {
				return err
			}
			r.Leftovers = len(files)
		}
		return writeResult(s.Out, c, r, func(p *printer) {
			p.counts(r.Counts)
			if r.Removed.Messages > 0 {
				p.line("%s removed from prompts, %s of them as artifacts, whole in their threads: `palimpsest artifact list` shows them", plural(r.Removed.Messages, "message"), number(r.Pointers))
			}
			if r.Bytes > 0 {
				p.line("the database takes %s bytes", number(int(r.Bytes)))
			}
			if r.Leftovers > 0 {
				p.line("%s that nothing needs: `palimpsest db vacuum` removes those older than an hour", plural(r.Leftovers, "file"))
			}
		})
	})
}

// sqlDatabase is what stores in databases can do besides.
type sqlDatabase interface {
	Bytes(ctx context.Context) (int64, error)
	Leftovers(ctx context.Context) ([]string, error)
	Vacuum(ctx context.Context) error
}

func dbVacuumCommand(s Streams) *cobra.Command {
	return completeDBCommand(&cobra.Command{
		Use:   "vacuum",
		Short: "Free the space of what was deleted",
		Long: `Removes cached summaries older than 30 days and files left behind by a crash, and
frees the space of what was deleted. Others may use the store meanwhile, but have to
wait while a SQLite file is rewritten.`,
	}, false, func(c *cobra.Command, db *database) error {
		var r struct {
			After  int64 `json:"bytes_after"`
			Before int64 `json:"bytes_before"`
		}
		if d, ok := db.DB.(sqlDatabase); ok {
			var err error
			if r.Before, err = d.Bytes(c.Context()); err != nil {
				return err
			}
			if err := d.Vacuum(c.Context()); err != nil {
				return err
			}
			if r.After, err = d.Bytes(c.Context()); err != nil {
				return err
			}
		}
		return writeResult(s.Out, c, r, func(p *printer) {
			p.line("the database takes %s bytes, it was %s before", number(int(r.After)), number(int(r.Before)))
		})
	})
}
