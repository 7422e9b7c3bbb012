package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// session is a file that an agent left behind.
type session struct {
	Number int `json:"number"`
	// ID is what the agent calls it, as far as the name of the file says so.
	ID      string    `json:"id"`
	Agent   string    `json:"agent"`
	Project string    `json:"project,omitempty"`
	Changed time.Time `json:"changed"`
	Bytes   int64     `json:"bytes"`
	Path    string    `json:"path"`
	// First is what the user said first; empty where the file cannot be read.
	First string `json:"first,omitempty"`
}

// sessionDir is where an agent keeps its sessions.
type sessionDir struct {
	agent string
	// variable names the agent's own directory; home is where it is without that,
	// under the user's.
	variable, home string
	// sub is the folder of sessions in it; the files are those whose name begins
	// and ends so, at any depth.
	sub, prefix string
	suffixes    []string
	// project is how many folders above the file the project is named; 0 is
	// nowhere.
	project int
}

// sessionDirs are the agents whose session files can be read.
var sessionDirs = []sessionDir{
	{"claude-code", "CLAUDE_CONFIG_DIR", ".claude", "projects", "", []string{".jsonl"}, 1},
	{"codex", "CODEX_HOME", ".codex", "sessions", "rollout-", []string{".jsonl"}, 0},
	{"pi", "PI_CODING_AGENT_DIR", ".pi/agent", "sessions", "", []string{".jsonl"}, 1},
	{"gemini-cli", "", ".gemini", "tmp", "session-", []string{".json", ".jsonl"}, 2},
}

func sessionsCommand(s Streams) *cobra.Command {
	var asJSON bool
	var agent string
	var most int
	c := &cobra.Command{
		Use:   "sessions [NUMBER or ID]",
		Short: "Find the sessions that agents left on this machine",
		Long: `Find the sessions of Claude Code, Codex, pi and Gemini CLI on this machine, the
newest first, with the first words of their user. The commands that take a FILE take
the ID of a session too, or a beginning of it that no other has. With its NUMBER or
ID, only its path is written. --json says the projects and the paths as well.`,
		Example: `  palimpsest sessions
  palimpsest inspect 91bfefb2-9533-4bcc-8bfc-f00dd138f269
  palimpsest inspect "$(palimpsest sessions 1)"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%w: want one NUMBER or ID at most", errUsage)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := findSessions(agent)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				found, err := pickSession(all, args[0])
				if err == nil {
					_, err = fmt.Fprintln(s.Out, found.Path)
				}
				return err
			}
			shown := all
			if most > 0 && len(shown) > most {
				shown = shown[:most]
			}
			for i := range shown {
				shown[i].First = shown[i].firstWords()
			}
			if asJSON {
				return writeJSON(s.Out, append([]session{}, shown...))
			}
			var rows [][]string
			for _, f := range shown {
				rows = append(rows, []string{strconv.Itoa(f.Number), f.ID, f.Agent, age(time.Since(f.Changed)), number(int((f.Bytes + 1023) / 1024)), f.First})
			}
			p := newPrinter(s.Out)
			if len(rows) == 0 {
				p.line("no sessions were found")
				return nil
			}
			p.table([]string{">no", "id", "agent", ">age", ">KB", "first words"}, rows)
			if len(all) > len(shown) {
				p.line("and %s more: --most %d shows all", number(len(all)-len(shown)), len(all))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write the list as JSON")
	c.Flags().StringVar(&agent, "agent", "", "only those of one `AGENT`: claude-code, codex, pi or gemini-cli")
	c.Flags().IntVar(&most, "most", 20, "how many to list, 0 for all")
	return c
}

// findSessions lists the sessions of one agent or of all, the newest first. A
// directory that cannot be read is passed over when it is not there, and named
// otherwise.
func findSessions(agent string) ([]session, error) {
	var all []session
	var failures error
	known := false
	for _, d := range sessionDirs {
		if agent != "" && agent != d.agent {
			continue
		}
		known = true
		root, err := d.root()
		if err != nil {
			return nil, err
		}
		found, err := d.find(root)
		all = append(all, found...)
		failures = errors.Join(failures, err)
	}
	if !known {
		return nil, fmt.Errorf("%w: agent %q: known are claude-code, codex, pi, gemini-cli", errUsage, agent)
	}
	if len(all) == 0 && failures != nil {
		return nil, failures
	}
	slices.SortFunc(all, func(a, b session) int {
		return cmp.Or(b.Changed.Compare(a.Changed), strings.Compare(a.Path, b.Path))
	})
	for i := range all {
		all[i].Number = i + 1
	}
	return all, nil
}

// root is the folder that the agent's sessions stand in.
func (d sessionDir) root() (string, error) {
	if own := os.Getenv(d.variable); d.variable != "" && own != "" {
		return filepath.Join(own, d.sub), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, filepath.FromSlash(d.home), d.sub), err
}

func (d sessionDir) find(dir string) (found []session, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), d.prefix) || !slices.Contains(d.suffixes, filepath.Ext(e.Name())) {
			return nil
		}
		info, err := e.Info()
		if err != nil || info.Size() == 0 {
			return nil // it went away meanwhile, or nothing was said
		}
		f := session{Agent: d.agent, ID: sessionID(e.Name(), d.prefix), Changed: info.ModTime(), Bytes: info.Size(), Path: path}
		above := path
		for range d.project {
			above = filepath.Dir(above)
		}
		if d.project > 0 {
			f.Project = filepath.Base(above)
		}
		found = append(found, f)
		return nil
	})
	return found, err
}
