package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store/dir"
	"github.com/palimpsest-ai/palimpsest/store/dsn"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// storeFlag is the --store flag of the commands that keep or read what was
// taken out.
type storeFlag struct{ dir, tenant string }

func (f *storeFlag) flags(c *cobra.Command) {
	c.Flags().StringVar(&f.dir, "store", "", "what is taken out is kept in `DIR`, or with the whole conversation in sqlite:FILE or postgres://… (default: palimpsest in your data directory)")
	c.Flags().StringVar(&f.tenant, "tenant", "", "whose conversations, in a store of several tenants: `NAME`")
}

// path is the folder of a store that is none of package dsn.
func (f *storeFlag) path() (string, error) {
	if f.tenant != "" {
		return "", fmt.Errorf("%w: --tenant has no use in a folder: name a store of several tenants with --store, sqlite:FILE or postgres://…", errUsage)
	}
	if f.dir != "" {
		return f.dir, nil
	}
	return dir.Default()
}

// shown is the name of the store for people.
func (f *storeFlag) shown() string {
	if dsn.Is(f.dir) {
		return withoutPassword(f.dir)
	}
	path, err := f.path()
	if err != nil {
		return f.dir
	}
	return path
}

// save keeps what a plan takes out, and returns where. A plan that hides
// nothing opens no store.
func (f *storeFlag) save(ctx context.Context, t *thread.Thread, p *plan.Plan) (string, error) {
	if p.Empty() {
		return "", nil
	}
	if dsn.Is(f.dir) {
		k, err := openKept(ctx, f.dir, f.tenant, false)
		if err != nil {
			return "", fmt.Errorf("nowhere to keep what is taken out (see --store): %w", err)
		}
		return f.shown(), errors.Join(k.save(ctx, t, p), k.Close())
	}
	path, err := f.path()
	if err != nil {
		return "", err
	}
	s, err := dir.Open(path, nil)
	if err != nil {
		return "", fmt.Errorf("nowhere to keep what is taken out (see --store): %w", err)
	}
	if err := s.Save(ctx, t, p); err != nil {
		return "", errors.Join(err, s.Close())
	}
	return path, s.Close()
}

// withoutPassword is the name of a store as it may be shown.
func withoutPassword(name string) string {
	if u, err := url.Parse(name); err == nil && u.User != nil {
		return u.Redacted()
	}
	return name
}

// read opens a store that must be there.
func (f *storeFlag) read(ctx context.Context) (reader, error) {
	if dsn.Is(f.dir) {
		k, err := openKept(ctx, f.dir, f.tenant, true)
		if err != nil {
			return nil, err
		}
		return k, nil
	}
	path, err := f.path()
	if err != nil {
		return nil, err
	}
	s, err := dir.Open(path, &dir.Options{ReadOnly: true})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no store at %s: `palimpsest compact` makes one when it takes something out; --store names another", path)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// holds reports whether all that a plan removes can be read in the store.
func (f *storeFlag) holds(ctx context.Context, p *plan.Plan) bool {
	if p.Empty() {
		return false
	}
	st, err := f.read(ctx)
	if err != nil {
		return false
	}
	defer st.Close()
	for _, ref := range p.Refs() {
		if _, err := st.Artifact(ctx, string(p.Record(ref).Covers().First()), p.ThreadID); err != nil {
			return false
		}
	}
	return true
}

func artifactCommand(s Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "artifact",
		Short: "Read what was taken out of prompts",
		RunE: func(c *cobra.Command, args []string) error {
			return fmt.Errorf("%w: want `artifact get ID` or `artifact list`", errUsage)
		},
	}
	c.AddCommand(artifactGetCommand(s), artifactListCommand(s))
	return c
}

func artifactGetCommand(s Streams) *cobra.Command {
	var store storeFlag
	var threadID, out string
	var asJSON bool
	c := &cobra.Command{
		Use:     "get ID",
		Short:   "Print what is behind an artifact or a removed message, in full",
		Example: "  palimpsest artifact get art_8b69b77d2582a190",
		Args:    exactly(1, "the ID of an artifact or of a message"),
		RunE: func(c *cobra.Command, args []string) error {
			st, err := store.read(c.Context())
			if err != nil {
				return err
			}
			defer st.Close()
			content, err := st.Artifact(c.Context(), args[0], threadID)
			var several *dir.AmbiguousError
			switch {
			case errors.As(err, &several):
				return fmt.Errorf("%w: %w", errUsage, err)
			case errors.Is(err, artifact.ErrNotFound):
				return fmt.Errorf("%w; `palimpsest artifact list` shows what the store at %s holds", err, store.shown())
			case err != nil:
				return err
			}
			if asJSON {
				return writeJSON(s.Out, content)
			}
			return write(out, []byte(content.Text), s.Out)
		},
	}
	store.flags(c)
	c.Flags().StringVar(&threadID, "thread", "", "look only in the conversation `ID`")
	c.Flags().StringVarP(&out, "output", "o", "", "write the content to `OUT` (default: standard output)")
	c.Flags().BoolVar(&asJSON, "json", false, "write one JSON object with its origin")
	return c
}

func artifactListCommand(s Streams) *cobra.Command {
	var store storeFlag
	var threadID string
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the messages that were taken out of prompts",
		Args:  exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			st, err := store.read(c.Context())
			if err != nil {
				return err
			}
			defer st.Close()
			entries, damage, err := st.List(c.Context(), threadID)
			if err != nil {
				return err
			}
			warn(s, damage)
			if asJSON {
				return writeJSON(s.Out, entries)
			}
			p := newPrinter(s.Out)
			if len(entries) == 0 {
				p.line("nothing that was taken out is kept%s in %s", ofThread(threadID), store.shown())
				return nil
			}
			printEntries(p, entries)
			return nil
		},
	}
	store.flags(c)
	c.Flags().StringVar(&threadID, "thread", "", "list only the conversation `ID`")
	c.Flags().BoolVar(&asJSON, "json", false, "write a JSON array, with the whole texts")
	return c
}

// ofThread says which conversation is meant, if one is.
func ofThread(id string) string {
	if id == "" {
		return ""
	}
	return fmt.Sprintf(" of the thread %q (`palimpsest threads` lists them)", id)
}

// printEntries lists removed messages, under the id of each thread.
func printEntries(p *printer, entries []recall.Entry) {
	for len(entries) > 0 {
		id := entries[0].ThreadID
		var rows [][]string
		for len(entries) > 0 && entries[0].ThreadID == id {
			e := entries[0]
			name := e.ArtifactID
			if name == "" {
				name = shortID(e.MessageID)
			}
			rows = append(rows, []string{name, fmt.Sprint(e.Turn), speakerOf(e.Role, e.Tool), e.Action.String(), number(len(e.Text)), e.Summary})
			entries = entries[1:]
		}
		p.title("thread " + printable(id))
		p.table([]string{"id", ">turn", "who", "action", ">bytes", "what"}, rows)
		if len(entries) > 0 {
			p.line("")
		}
	}
}

func recallCommand(s Streams) *cobra.Command {
	var store storeFlag
	var o recall.Options
	var asJSON bool
	c := &cobra.Command{
		Use:     "recall QUERY",
		Short:   "Search what was taken out of prompts",
		Example: "  palimpsest recall \"retry backoff jitter\"\n  palimpsest recall '\"ORD-48213-B\"' --thread ticket-4711",
		Args: func(_ *cobra.Command, args []string) error {
			if strings.TrimSpace(strings.Join(args, "")) == "" {
				return fmt.Errorf("%w: want a QUERY", errUsage)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			st, err := store.read(c.Context())
			if err != nil {
				return err
			}
			defer st.Close()
			hits, damage, err := st.Recall(c.Context(), strings.Join(args, " "), &o)
			if err != nil {
				return err
			}
			warn(s, damage)
			if asJSON {
				if hits == nil {
					hits = []recall.Hit{}
				}
				return writeJSON(s.Out, hits)
			}
			p := newPrinter(s.Out)
			if len(hits) == 0 {
				p.line("nothing that was taken out%s matches", ofThread(o.ThreadID))
				return nil
			}
			printHits(p, hits)
			return nil
		},
	}
	store.flags(c)
	c.Flags().IntVarP(&o.Limit, "limit", "n", recall.DefaultLimit, "show at most `N` hits")
	c.Flags().StringVar(&o.ThreadID, "thread", "", "search only the conversation `ID`")
	c.Flags().StringVar(&o.Tool, "tool", "", "search only the results of `TOOL`")
	c.Flags().BoolVar(&asJSON, "json", false, "write the hits as a JSON array")
	return c
}

func printHits(p *printer, hits []recall.Hit) {
	for n, h := range hits {
		if n > 0 {
			p.line("")
		}
		id := h.ArtifactID
		if id == "" {
			id = shortID(h.MessageID)
		}
		p.title(fmt.Sprintf("%s · turn %d · %s · lines %d to %d of %d", id, h.Turn, speakerOf(h.Role, h.Tool), h.Line, h.Line+countLines(h.Excerpt)-1, h.Lines))
		p.line("thread %s", printable(h.ThreadID))
		p.quote(h.Excerpt)
	}
}

func countLines(s string) int {
	n := 1
	for _, r := range s {
		if r == '\n' {
			n++
		}
	}
	return n
}

// shortID is the beginning of a message id, enough for `artifact get`.
func shortID(id thread.ID) string { return string(id[:min(12, len(id))]) }

func speakerOf(role thread.Role, tool string) string {
	if tool != "" {
		return shorten(tool, 20)
	}
	return string(role)
}

// warn tells of damage in a store without hiding what can be read.
func warn(s Streams, damage []dir.Damage) {
	for _, d := range damage {
		fmt.Fprintf(s.Err, "palimpsest: warning: %s\n", d)
	}
}
