package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/sessions"
)

// listedSession is a session in a list.
type listedSession struct {
	Number int `json:"number"`
	sessions.Session
	First string `json:"first,omitempty"` // the user's first words; empty if the file cannot be read
}

func sessionsCommand(s Streams) *cobra.Command {
	var agent string
	var most int
	c := &cobra.Command{
		Use:   "sessions [NUMBER or ID]",
		Short: "Find the sessions that agents left on this machine",
		Long: `Find the sessions of Claude Code, Codex, pi, Gemini CLI, opencode, Qwen Code, Cline, Droid,
Copilot CLI, Kimi Code, Kilo, Crush, Goose and Amp (old threads) on this machine, the newest
first, with the first words of their user and the number of their sub-agents, which are not
listed. Commands that take a FILE also take the ID of a session, or the beginning of one if it
is unique. With a NUMBER or ID the output is only the session's path. --json adds projects and paths.`,
		Example: `  palimpsest sessions
  palimpsest inspect 91bfefb2-9533-4bcc-8bfc-f00dd138f269
  palimpsest inspect "$(palimpsest sessions 1)"`,
		Args: atMostOneArg("NUMBER or ID"),
		RunE: func(c *cobra.Command, args []string) error {
			all, unread, err := sessions.Search(agent)
			if err == nil && len(all) == 0 {
				err = errors.Join(unread...)
			}
			if err != nil {
				return err
			}
			warnUnread(s, unread)
			if len(args) == 1 {
				found, err := sessions.Pick(all, args[0])
				if err == nil {
					_, err = fmt.Fprintln(s.Out, found.Path)
				}
				return err
			}
			shown := []listedSession{}
			for i, f := range firstN(all, most) {
				shown = append(shown, listedSession{i + 1, f, firstWords(f)})
			}
			return writeResult(s.Out, c, shown, func(p *printer) {
				if len(shown) == 0 {
					p.line("no sessions were found")
					return
				}
				p.sessions(shown)
				p.printUnlisted(len(shown), len(all))
			})
		},
	}
	c.Flags().Bool("json", false, "write the list as JSON")
	c.Flags().StringVar(&agent, "agent", "", "only those of one `AGENT`: "+strings.Join(sessions.Agents(), ", "))
	addMostFlag(c, &most)
	return c
}

// sessions prints a list, with a column of sub-agents if there are any.
func (p *printer) sessions(shown []listedSession) {
	heads := []string{">no", "id", "agent", ">age", ">KB", ">sub-agents", "first words"}
	some := slices.ContainsFunc(shown, func(f listedSession) bool { return f.Subagents > 0 })
	without := func(row []string) []string {
		if some {
			return row
		}
		return slices.Delete(row, 5, 6)
	}
	p.table(without(heads), mapSlice(shown, func(f listedSession) []string {
		return without([]string{strconv.Itoa(f.Number), f.ID, f.Agent, ageText(time.Since(f.Changed)), number(int((f.Bytes + 1023) / 1024)), number(f.Subagents), f.First})
	}))
}

// addMostFlag adds the flag that limits a list.
func addMostFlag(c *cobra.Command, most *int) {
	c.Flags().IntVar(most, "most", 20, "how many to list, 0 for all")
}

// firstN returns at most that many elements of a list; 0 is all.
func firstN[T any](all []T, most int) []T {
	if most <= 0 {
		return all
	}
	return all[:min(most, len(all))]
}

// printUnlisted says how many more there are.
func (p *printer) printUnlisted(shown, all int) {
	if all > shown {
		p.line("and %s more: --most %d shows all", number(all-shown), all)
	}
}

// firstWords is the beginning of the user's first message.
func firstWords(s sessions.Session) string {
	return shorten(s.FirstRequest(maxInput), maxFirstWords)
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
