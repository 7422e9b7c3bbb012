package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// holds reports whether all that a plan removes can be read in the store.
func (f *storeFlag) holds(ctx context.Context, p *plan.Plan) bool {
	if p.Empty() {
		return false
	}
	k, err := f.kept(ctx, true)
	if err != nil {
		return false
	}
	defer k.db.Close()
	entries, err := k.removed(ctx, p.ThreadID)
	if err != nil {
		return false
	}
	have := map[thread.ID]bool{}
	for _, e := range entries {
		have[e.MessageID] = true
	}
	for _, ref := range p.Refs() {
		if !have[p.Record(ref).Covers().First()] {
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
			k, err := store.kept(c.Context(), true)
			if err != nil {
				return err
			}
			defer k.db.Close()
			content, err := k.find(c.Context(), args[0], threadID)
			var several *rehydrate.AmbiguousError
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
			k, err := store.kept(c.Context(), true)
			if err != nil {
				return err
			}
			defer k.db.Close()
			entries, unread, err := k.list(c.Context(), threadID)
			if err != nil {
				return err
			}
			warn(s, unread)
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
			k, err := store.kept(c.Context(), true)
			if err != nil {
				return err
			}
			defer k.db.Close()
			entries, unread, err := k.list(c.Context(), o.ThreadID)
			if err != nil {
				return err
			}
			warn(s, unread)
			index, err := recall.NewIndexContext(c.Context(), entries)
			if err != nil {
				return err
			}
			hits := index.Search(strings.Join(args, " "), &o)
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

// warn tells of what cannot be read without hiding what can.
func warn(s Streams, unread []error) {
	for _, err := range unread {
		fmt.Fprintf(s.Err, "palimpsest: warning: %s\n", message(err))
	}
}
