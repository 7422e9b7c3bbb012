package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/ondemand"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
)

// listedSession is a session in a list.
type listedSession struct {
	Number int `json:"number"`
	sessions.Session
}

func sessionsCommand(s Streams) *cobra.Command {
	var agent string
	var most int
	var index bool
	c := &cobra.Command{
		Use:   "sessions [NUMBER or ID]",
		Short: "Find the sessions that agents left on this machine",
		Long: `Find the sessions of Claude Code, Codex, pi, Gemini CLI, opencode, Qwen Code, Cline, Droid,
Copilot CLI, Cursor, Kimi Code, Kilo, Crush, Goose and Amp (old threads) on this machine, the newest
first: the project, the title or else the first words of their user, the tokens of the newest
request as the agent counted them, and the number of their sub-agents, which are not listed.
Commands that take a FILE also take a NUMBER, which is that of the list last shown, the ID of
a session, or the beginning of one if it is unique, or "latest"; they name what they took. With a NUMBER or
ID the output is only the session's path. --json adds whole ids, folders and paths.

The settings session-folders and session-exclude ("palimpsest config show") add folders of
agents, and leave projects out. What was read is kept in an index in the data directory.`,
		Example: `  palimpsest sessions
  palimpsest inspect 3
  palimpsest inspect 91bfefb2
  palimpsest inspect "$(palimpsest sessions 1)"`,
		Args: atMostOneArg("NUMBER or ID"),
		RunE: func(c *cobra.Command, args []string) error {
			finder, err := localFinder()
			if err != nil {
				return err
			}
			if index {
				all, err := finder.Find("")
				return cmp.Or(describeAll(c.Context(), finder, all), err)
			}
			if len(args) == 1 && agent == "" {
				found, ok, err := finder.Resolve(args[0])
				return printPicked(s, args[0], found, ok, err)
			}
			all, unread, err := finder.Search(agent)
			if err == nil && len(all) == 0 {
				err = errors.Join(unread...)
			}
			if err != nil {
				return err
			}
			warnUnread(s, unread)
			if len(args) == 1 {
				found, ok, err := sessions.Pick(all, args[0])
				return printPicked(s, args[0], found, ok, err)
			}
			shown := numbered(finder, all, most)
			defer indexInBackground(finder, all)
			return writeResult(s.Out, c, shown, func(p *printer) {
				if len(shown) == 0 {
					p.line("no sessions were found")
					return
				}
				p.sessions(shown, all)
				p.printUnlisted(len(shown), len(all))
			})
		},
	}
	c.Flags().Bool("json", false, "write the list as JSON")
	c.Flags().StringVar(&agent, "agent", "", "only those of one `AGENT`: "+strings.Join(sessions.Agents(), ", "))
	c.Flags().BoolVar(&index, "index", false, "only complete the index of all sessions")
	_ = c.Flags().MarkHidden("index") // it is there
	c.Flags().IntVar(&most, "most", 20, "how many to list, 0 for all")
	return c
}

// numbered is a list of the first of all sessions, 0 for all. A number is the place in all of them, in each list, and
// is known from now on.
func numbered(finder *sessions.Finder, all []sessions.Session, most int) []listedSession {
	listed := firstN(all, most)
	finder.Describe(listed)
	if len(listed) > 0 {
		finder.Shown(firstN(all, max(len(listed), leastNumbered)))
	}
	shown := []listedSession{}
	for i, f := range listed {
		f.First = shorten(f.First, maxFirstWords)
		shown = append(shown, listedSession{i + 1, f})
	}
	return shown
}

// leastNumbered is how many sessions have a number that later commands know, also where fewer are listed.
const leastNumbered = 100

// inUse is numbered with the first that an agent has worked in.
func inUse(finder *sessions.Finder, all []sessions.Session, most int) []listedSession {
	upTo := 0
	for found := 0; upTo < len(all) && found < most; upTo++ {
		if finder.Describe(all[upTo : upTo+1]); !all[upTo].Unused() {
			found++
		}
	}
	return slices.DeleteFunc(numbered(finder, all, upTo), func(s listedSession) bool { return s.Unused() })
}

func printPicked(s Streams, name string, found sessions.Session, ok bool, err error) error {
	if err == nil && !ok {
		err = fmt.Errorf("%w: %q is neither the number nor the id of a session; `palimpsest sessions` lists them", sessions.ErrName, name)
	}
	if err == nil {
		printTwins(s.Err, &found)
		_, err = fmt.Fprintln(s.Out, found.Path)
	}
	return err
}

// sessions prints a list of some of all sessions.
func (p *printer) sessions(shown []listedSession, all []sessions.Session) {
	short := shortIDs(mapSlice(all, func(s sessions.Session) string { return s.ID }))
	p.table([]string{">no", "id", "agent", ">age", ">last request", ">sub-agents", "project", "title"}, mapSlice(shown, func(f listedSession) []string {
		return []string{
			strconv.Itoa(f.Number), short(f.ID), f.Agent, ageText(time.Since(f.Changed)), numberOr(f.Tokens, ""), numberOr(f.Subagents, ""),
			shorten(projectName(f.Session), maxProject), cmp.Or(f.Title, f.First),
		}
	}))
}

const (
	// maxProject limits the name of a project in a list, in characters, and leastID is how much of an id
	// stands there at least.
	maxProject = 20
	leastID    = 8
)

// shortIDs returns a function that shortens an id to what no other of the ids begins with.
func shortIDs(ids []string) func(string) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(ids)))
	return func(id string) string {
		need := leastID
		at, _ := slices.BinarySearch(sorted, id)
		for _, other := range sorted[max(0, at-1):min(len(sorted), at+2)] {
			for other != id && need < len(id) && strings.HasPrefix(other, id[:need]) {
				need++
			}
		}
		return strings.ToValidUTF8(id[:min(need, len(id))], "") // it may end within a character
	}
}

// projectName is the name of the folder that the agent worked in, or the agent's own name of the project.
func projectName(s sessions.Session) string {
	if s.Dir != "" {
		return path.Base(strings.ReplaceAll(s.Dir, `\`, "/")) // it may come from Windows
	}
	return s.Project
}

// printUnlisted says how many more there are.
func (p *printer) printUnlisted(shown, all int) {
	if all > shown {
		p.line("and %s more: --most %d shows all", number(all-shown), all)
	}
}

// maxFirstWords limits the first words of a user, in characters.
const maxFirstWords = 200

// ageText writes a duration in its largest whole unit.
func ageText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

// describeAll reads what the sessions are about, a few at a time.
func describeAll(ctx context.Context, f *sessions.Finder, all []sessions.Session) error {
	for some := range slices.Chunk(all, indexedAtOnce) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.Describe(some)
	}
	return nil
}

// indexedAtOnce is after how many sessions the index is written.
const indexedAtOnce = 50

// indexInBackground starts this program once more for the sessions that were not read yet.
func indexInBackground(f *sessions.Finder, all []sessions.Session) {
	program, err := os.Executable()
	if err != nil || f.Keep == "" || !strings.HasPrefix(filepath.Base(program), "palimpsest") { // such as a test
		return
	}
	if slices.ContainsFunc(all, func(s sessions.Session) bool { return !s.Read }) {
		_ = ondemand.Detach([]string{program, "sessions", "--index"}, "GOMAXPROCS=1") // the next list reads them
	}
}
