package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// hasRemoved reports whether the store has everything that a plan removes.
func (f *storeFlag) hasRemoved(ctx context.Context, p *plan.Plan) bool {
	if p.Empty() {
		return false
	}
	entries, err := inTenant(ctx, f, func(k *tenantStore) ([]recall.Entry, error) { return k.entries(ctx, p.ThreadID, recall.Removed) })
	have := map[thread.ID]bool{}
	for _, e := range entries {
		have[e.MessageID] = true
	}
	return err == nil && !slices.ContainsFunc(p.Refs(), func(ref plan.Ref) bool { return !have[p.Record(ref).Covers().First()] })
}

func artifactCommand(s Streams) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "artifact",
		Short: "Read what was removed from prompts",
	}, artifactGetCommand(s), artifactListCommand(s))
}

func artifactGetCommand(s Streams) *cobra.Command {
	var store storeFlag
	var threadID, out string
	c := &cobra.Command{
		Use:     "get ID",
		Short:   "Print an artifact or a removed message in full",
		Example: "  palimpsest artifact get art_8b69b77d2582a190",
		Args:    exactArgs(1, "the ID of an artifact or of a message"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkOutputs(store.files(), out); err != nil {
				return err
			}
			found, err := inTenant(c.Context(), &store, func(k *tenantStore) (rehydrate.Content, error) {
				if err := k.complete(c.Context(), &threadID); err != nil {
					return rehydrate.Content{}, err
				}
				return k.findContent(c.Context(), args[0], threadID)
			})
			var several *rehydrate.AmbiguousError
			switch {
			case errors.As(err, &several):
				return fmt.Errorf("%w: %w", errUsage, err)
			case errors.Is(err, artifact.ErrNotFound):
				return fmt.Errorf("%w; `palimpsest artifact list` shows what the store at %s holds", err, store.displayName())
			case err != nil:
				return err
			}
			return fillOutput(out, s.Out, func(w io.Writer) error {
				if asJSON, _ := c.Flags().GetBool("json"); asJSON {
					return writeJSON(w, found)
				}
				_, err := io.WriteString(w, found.Text)
				return err
			})
		},
	}
	store.addFlags(c)
	c.Flags().StringVar(&threadID, "thread", "", "look only in the conversation `THREAD`")
	c.Flags().StringVarP(&out, "output", "o", "", "write the content to `OUT` (default: standard output)")
	c.Flags().Bool("json", false, "write one JSON object with its origin")
	return c
}

func artifactListCommand(s Streams) *cobra.Command {
	var store storeFlag
	var threadID string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the messages that were removed from prompts",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			entries, err := store.entries(c.Context(), &threadID, recall.Removed, s)
			if err != nil {
				return err
			}
			recall.AddKeywords(entries)
			return writeResult(s.Out, c, entries, func(p *printer) {
				if len(entries) == 0 {
					p.line("nothing was removed%s in %s", threadPhrase(threadID), store.displayName())
				}
				printEntries(p, entries)
			})
		},
	}
	store.addFlags(c)
	c.Flags().StringVar(&threadID, "thread", "", "list only the conversation `THREAD`")
	c.Flags().Bool("json", false, "write a JSON array, with the whole texts")
	return c
}

// threadPhrase names the thread of --thread; empty for all threads.
func threadPhrase(id string) string {
	if id == "" {
		return ""
	}
	return fmt.Sprintf(" from the thread %q", id)
}

func printEntries(p *printer, entries []recall.Entry) {
	for len(entries) > 0 {
		id := entries[0].ThreadID
		var rows [][]string
		for len(entries) > 0 && entries[0].ThreadID == id {
			e := entries[0]
			rows = append(rows, []string{cmp.Or(e.ArtifactID, shortID(e.MessageID)), fmt.Sprint(e.Turn), speakerOf(e.Role, e.Author, e.Tool), e.Action.String(), number(len(e.Text)), e.Summary})
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
	c := &cobra.Command{
		Use:     "recall QUERY",
		Short:   "Search what was removed from prompts",
		Long:    "Recall searches what was removed from prompts and, where nothing of that matches, what is still in them. A phrase in double quotes is sought as it is.\n" + rehydrate.QueryHelp,
		Example: "  palimpsest recall \"retry backoff jitter\"\n  palimpsest recall '\"ORD-48213-B\"' --thread ticket-4711",
		Args:    nonBlankArgs("want a QUERY"),
		RunE: func(c *cobra.Command, args []string) error {
			if o.Limit < 1 {
				return fmt.Errorf("%w: --limit %d: want a number of hits above 0", errUsage, o.Limit)
			}
			query := strings.Join(args, " ")
			if err := new(recall.Options).Check(query); err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			search := func(such listing, s Streams) ([]recall.Hit, error) {
				entries, err := store.entries(c.Context(), &o.ThreadID, such, s)
				if err != nil {
					return nil, err
				}
				index, err := recall.NewIndexContext(c.Context(), entries)
				if err != nil {
					return nil, err
				}
				return append([]recall.Hit{}, index.Search(query, &o)...), nil
			}
			note := ""
			hits, err := search(recall.Removed, s)
			if err == nil && (len(hits) == 0 || len(hits[0].Missing) > 0) {
				var found []recall.Hit
				if found, err = search(shown, Streams{Err: io.Discard}); len(found) > 0 && len(found[0].Missing) == 0 {
					hits, note = found, ", but what is still in the prompt does:"
				}
			}
			if err != nil {
				return err
			}
			return writeResult(s.Out, c, hits, func(p *printer) {
				if len(hits) == 0 {
					note = "; `palimpsest threads" + store.arguments() + "` lists what is searched"
				}
				if note != "" {
					p.line("nothing that was removed%s matches%s", threadPhrase(o.ThreadID), note)
				}
				printHits(p, hits, store.arguments())
			})
		},
	}
	store.addFlags(c)
	c.Flags().IntVarP(&o.Limit, "limit", "n", recall.DefaultLimit, "show at most `N` hits")
	c.Flags().StringVar(&o.ThreadID, "thread", "", "search only the conversation `THREAD`")
	c.Flags().StringVar(&o.Tool, "tool", "", "search only the results of `TOOL`")
	c.Flags().Bool("json", false, "write the hits as a JSON array; the action of one that is still in the prompt is include")
	return c
}

// printHits prints hits, and how to read one with the flags that name the store.
func printHits(p *printer, hits []recall.Hit, flags string) {
	if miss := rehydrate.MissNote(hits); miss != "" {
		p.line("%s", miss)
	}
	beside := func(where string, n *recall.Neighbor) {
		if n != nil {
			p.line("%s %s: %s", where, n.Role, shorten(n.Text, 160))
		}
	}
	for n, h := range hits {
		if n > 0 {
			p.line("")
		}
		p.title(fmt.Sprintf("%s · turn %d · %s%s", cmp.Or(h.ArtifactID, shortID(h.MessageID)), h.Turn, speakerOf(h.Role, h.Author, h.Tool), positionOf(h)))
		p.line("thread %s", h.ThreadID)
		if h.Call != "" { // a result says little without what was asked
			p.line("call %s", shorten(h.Call, 160))
		}
		beside("before", h.Before)
		for line := range strings.SplitSeq(strings.TrimRight(h.Excerpt, "\n"), "\n") {
			p.line("    %s", strings.TrimRight(printable(line), " "))
		}
		beside("after", h.After)
		if len(h.Also) > 0 {
			p.line("and %d more like it: %s", len(h.Also), shortID(h.Also[0]))
		}
	}
	if len(hits) > 0 {
		p.line("")
		p.line("a message in full: palimpsest artifact get %s%s", cmp.Or(hits[0].ArtifactID, shortID(hits[0].MessageID)), flags)
	}
}

// positionOf tells where an excerpt begins in its text. Where it ends is not told, since a
// line of JSON has many lines once its escapes are decoded.
func positionOf(h recall.Hit) string {
	switch {
	case h.Column > 1:
		return fmt.Sprintf(" · line %d of %d, character %d", h.Line, h.Lines, h.Column)
	case h.Lines > 1:
		return fmt.Sprintf(" · line %d of %d", h.Line, h.Lines)
	}
	return ""
}

func speakerOf(role thread.Role, author thread.Author, tool string) string {
	if tool != "" {
		return shorten(tool, 20)
	}
	return cmp.Or(string(author), string(role))
}

// entries returns such messages of a thread, or of all threads. It
// warns about threads that cannot be read. threadID becomes the whole id of the thread that it means.
func (f *storeFlag) entries(ctx context.Context, threadID *string, such listing, s Streams) (all []recall.Entry, err error) {
	var unread []error
	err = f.withTenant(ctx, func(k *tenantStore) (err error) {
		if err = k.complete(ctx, threadID); err == nil {
			all, unread, err = k.listEntries(ctx, *threadID, such)
		}
		return err
	})
	if err == nil {
		warnUnread(s, unread)
	}
	return all, err
}

func warnUnread(s Streams, unread []error) {
	for _, err := range unread {
		fmt.Fprintf(s.Err, "palimpsest: warning: %s\n", ErrorText(err))
	}
}
