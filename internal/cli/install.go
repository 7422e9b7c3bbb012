package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/install"
)

func installCommand(s Streams) *cobra.Command {
	var yes, dry bool
	var rules string
	c := &cobra.Command{
		Use:   "install [AGENT...]",
		Short: "Find the coding agents on this machine, and connect them",
		Long: `Find the coding agents on this machine and connect them, or those that are named: by a plugin
that makes their compactions, else by hooks, and by an MCP server that searches earlier sessions;
in Claude Code also by a status line, which runs the one that is there first. No base URL is
changed: if Palimpsest fails, the agent goes on without it.

No model is asked by what is installed. Agents behind the proxy of "palimpsest serve" can let their own
model say which sentences of their user still stand (--rules model, for which the installation asks):
one question for each summary, of at most 15 % of the tokens that are summarized.

What will change is shown, and asked for. Every file that is changed is copied before, and
"palimpsest uninstall" takes everything back. Agents: ` + strings.Join(install.Names(), ", ") + `.`,
		Example: "  palimpsest install --dry-run\n  palimpsest install claude-code codex --yes",
		Args:    cobra.ArbitraryArgs, ValidArgs: install.Names(),
		RunE: func(c *cobra.Command, args []string) error {
			self, err := thisProgram()
			if err != nil {
				return err
			}
			chosen, err := chooseAgents(args)
			if err != nil {
				return err
			}
			if !slices.Contains([]string{"", rulesTable, rulesModel}, rules) {
				return fmt.Errorf("%w: --rules %s: want %s or %s", errUsage, printable(rules), rulesTable, rulesModel)
			}
			p := newPrinter(s.Out)
			if len(chosen) == 0 {
				p.line("no agents were found; known are %s", strings.Join(install.Names(), ", "))
				return nil
			}
			record, err := install.OpenRecord(self.Data)
			if err != nil {
				return err
			}
			changes, left := install.Plan(self, chosen, install.Read)
			changes = record.Pending(changes)
			if rules == rulesModel {
				more, err := planRules()
				changes, left = append(changes, more...), errors.Join(left, err)
			}
			p.planned(chosen, changes, left == nil)
			sayLeft(s, left)
			if dry || len(changes) == 0 {
				return nil
			}
			if !yes {
				more, ok, err := askInstall(s, rules == "")
				if err != nil || !ok {
					p.unchanged(err)
					return err
				}
				changes = append(changes, more...)
			}
			if err := applyChanges(c.Context(), record, changes, func(install.Change) {}); err != nil {
				return fmt.Errorf("%w; `palimpsest uninstall` takes back what was done", err)
			}
			p.next(chosen, changes)
			return nil
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "ask nothing")
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would change")
	c.Flags().StringVar(&rules, "rules", "", "`WHO` says which sentences of a user stand, behind the proxy: table (no model, what --yes takes) or model (the agent's own)")
	return c
}

const (
	rulesTable, rulesModel = "table", "model"
	rulesQuestion          = `Behind the proxy (palimpsest serve), may an agent's own model be asked which of your sentences still
stand? One question for each summary, of at most 15 % of the tokens that are summarized; what is
installed here asks no model.`
)

// unchanged says that a no was heard.
func (p *printer) unchanged(err error) {
	if err == nil {
		p.line("nothing was changed")
	}
}

// askInstall asks whether to install and, if so and with rules, who says which sentences stand; more
// are the changes for that.
func askInstall(s Streams, rules bool) (more []install.Change, ok bool, err error) {
	answers := bufio.NewReader(s.In)
	if ok, err = confirm(s, answers, "make these changes?"); err != nil || !ok || !rules {
		return nil, ok, err
	}
	if asked, _ := confirm(s, answers, rulesQuestion); asked { // no answer is the default
		var left error
		more, left = planRules()
		sayLeft(s, left)
	}
	return more, true, nil
}

// planRules lets the agent's own model say which sentences stand.
func planRules() ([]install.Change, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return nil, err
	}
	return install.PlanRules(filepath.Join(folder, "palimpsest"), install.Read)
}

// chooseAgents are the agents that were found, or those of the names.
func chooseAgents(names []string) (chosen []install.Agent, err error) {
	found, err := install.Find()
	if err != nil || len(names) == 0 {
		return found, err
	}
	for _, name := range names {
		agent, ok, err := install.Named(name)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("%w: %s is no agent that is known: want %s", errUsage, printable(name), joinWords(install.Names(), "or"))
		}
		all := slices.DeleteFunc(slices.Clone(found), func(a install.Agent) bool { return a.Name != name })
		if len(all) == 0 {
			all = []install.Agent{agent}
		}
		chosen = append(chosen, all...)
	}
	return chosen, nil
}

// planned says which agents there are, and what would change.
func (p *printer) planned(chosen []install.Agent, changes []install.Change, all bool) {
	p.table([]string{"agent", "version", "~folder", "how"}, mapSlice(chosen, func(a install.Agent) []string {
		return []string{a.Name, a.Version, homePath(a.Folder), joinEach(a.Usual(), func(part install.Part) string { return string(part) })}
	}))
	if len(changes) == 0 {
		p.line("")
		if all {
			p.line("everything is installed; there is nothing to change")
		} else {
			p.line("nothing can be changed:")
		}
		return
	}
	var rows []changeRow
	for _, c := range changes {
		rows = append(rows, changeRow{c.Agent, c.Path, c.What(), c.Path != "" && !c.Existed, c.OfPlugin()})
	}
	p.section("what will change", changeColumns, changeRows(rows))
	p.line("")
}

// next says what the user does now.
func (p *printer) next(chosen []install.Agent, changes []install.Change) {
	p.line("installed; new sessions will use it. `palimpsest doctor` checks it, `palimpsest off` stops it, `palimpsest uninstall` takes it back")
	for _, a := range chosen {
		if a.Next() != "" && slices.ContainsFunc(changes, func(c install.Change) bool { return c.Agent == a.Name }) {
			p.line("%s: now run `%s`", a.Name, a.Next())
		}
	}
	for _, c := range changes {
		if c.Agent == install.Settings && filepath.Base(c.Path) == "config.yaml" {
			p.line("settings: %s is in %s", c.What(), homePath(c.Path))
		}
	}
	if slices.ContainsFunc(changes, func(c install.Change) bool { return c.Agent == "codex" }) {
		p.line("codex: it asks at its next start whether you trust the hooks")
	}
}

// homePath is a path with ~ for the user's home.
func homePath(path string) string {
	home, err := os.UserHomeDir()
	if rel, out := filepath.Rel(home, path); err == nil && out == nil && path != "" && filepath.IsLocal(rel) {
		return filepath.Join("~", rel)
	}
	return path
}

// sayLeft says what is left as it is.
func sayLeft(s Streams, left error) {
	if left != nil {
		for line := range strings.SplitSeq(left.Error(), "\n") {
			fmt.Fprintf(s.Err, "palimpsest: warning: %s\n", printable(line))
		}
	}
}

// confirm asks a question on standard error. Anything but yes is no.
func confirm(s Streams, answers *bufio.Reader, question string) (bool, error) {
	fmt.Fprintf(s.Err, "%s [y/N] ", question)
	line, err := answers.ReadString('\n')
	if err == io.EOF && line == "" {
		fmt.Fprintln(s.Err)
		return false, fmt.Errorf("%w: nobody answered; nothing was changed. --yes asks nothing, --dry-run only shows", errUsage)
	}
	if err != nil && err != io.EOF {
		return false, err
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}

func uninstallCommand(s Streams) *cobra.Command {
	var yes, dry, force bool
	c := &cobra.Command{
		Use:   "uninstall [AGENT...]",
		Short: "Take back what install changed",
		Long: `Take back what "palimpsest install" (and "plugin install", "hook install") changed, in all agents
or in those that are named. A file that nobody changed since is put back as it was. From one that
others changed only our entries are taken. What was changed of our own is left, and named; --force
removes it. Conversations that were kept stay ("palimpsest threads").`,
		Example: "  palimpsest uninstall --dry-run\n  palimpsest uninstall codex",
		Args:    cobra.ArbitraryArgs, ValidArgs: install.Names(),
		RunE: func(c *cobra.Command, args []string) error {
			data, err := config.DataDir()
			if err != nil {
				return err
			}
			record, err := install.OpenRecord(data)
			if err != nil {
				return err
			}
			installed, p := record.Agents(), newPrinter(s.Out)
			for _, name := range args {
				if !slices.Contains(install.Names(), name) {
					return fmt.Errorf("%w: %s is no agent that is known: want %s", errUsage, printable(name), joinWords(install.Names(), "or"))
				}
			}
			chosen := slices.DeleteFunc(installed, func(name string) bool { return len(args) > 0 && !slices.Contains(args, name) })
			if len(chosen) == 0 {
				p.line("nothing is installed")
				return nil
			}
			p.section("what will be taken back", changeColumns, changeRows(takenBack(record, chosen)))
			p.line("")
			if dry {
				return nil
			}
			if !yes {
				if ok, err := confirm(s, bufio.NewReader(s.In), "take this back?"); err != nil || !ok {
					p.unchanged(err)
					return err
				}
			}
			return p.uninstall(c.Context(), record, chosen, force)
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "ask nothing")
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would be taken back")
	c.Flags().BoolVar(&force, "force", false, "also remove what was changed since it was installed")
	return c
}

// takenBack are the rows of what was installed in agents.
func takenBack(record *install.Record, agents []string) (rows []changeRow) {
	for _, d := range record.Done {
		if slices.Contains(agents, d.Agent) {
			rows = append(rows, changeRow{d.Agent, d.Path, d.What(), false, d.OfPlugin()})
		}
	}
	return rows
}

var changeColumns = []string{"agent", "~file", "what"}

// changeRow is a change as people see it.
type changeRow struct {
	agent, path, what string
	new, plugin       bool // plugin: a file of one
}

// changeRows are the rows of a table; the files of a plugin are one, with their folder.
func changeRows(all []changeRow) (rows [][]string) {
	files := 0
	for i, r := range all {
		path := homePath(r.path)
		if r.plugin {
			if files++; i+1 < len(all) && all[i+1].plugin && all[i+1].agent == r.agent {
				continue
			}
			for _, other := range all[i+1-files : i] {
				for !strings.HasPrefix(homePath(other.path), path+string(filepath.Separator)) {
					path = filepath.Dir(path)
				}
			}
			r.what, files = fmt.Sprintf("%s, %s", r.what, plural(files, "file")), 0
		}
		if r.new && !r.plugin {
			path += " (new)"
		}
		rows = append(rows, []string{r.agent, path, r.what})
	}
	return rows
}

// uninstall takes back what was installed in agents. What is left is an error.
func (p *printer) uninstall(ctx context.Context, record *install.Record, chosen []string, force bool) error {
	var left error
	for _, name := range chosen {
		done, err := record.Remove(ctx, name, force)
		for _, said := range done {
			p.line("%s: %s", name, said)
		}
		if err != nil {
			left = errors.Join(left, fmt.Errorf("%s: %w", name, err))
			continue
		}
		if agent, _, err := install.Named(name); err == nil && agent.Undo() != "" {
			p.line("%s: now run `%s`", name, agent.Undo())
		}
	}
	return left
}

// loadSwitches reads what is off.
func loadSwitches() (install.Switches, error) {
	data, err := config.DataDir()
	if err != nil {
		return install.Switches{}, err
	}
	return install.LoadSwitches(data)
}

// offThread says why a plugin's conversation is left to its agent; "" if it is not.
func offThread(name string) string {
	switches, err := loadSwitches()
	if err != nil {
		return err.Error()
	}
	return switches.OffThread(name)
}

// switchCommand is `off` or `on`.
func switchCommand(s Streams, off bool) *cobra.Command {
	c := &cobra.Command{
		Use:   "on [AGENT or SESSION]",
		Short: "Turn Palimpsest on again for an agent or a session",
		Long:  `Take back "palimpsest off" for an agent or a session; without one, for all.`,
		Args:  atMostOneArg("AGENT or SESSION"), ValidArgs: install.Names(),
	}
	if off {
		c.Use, c.Short = "off [AGENT or SESSION]", "Turn Palimpsest off for an agent or a session, without uninstalling it"
		c.Long = `Turn Palimpsest off for an agent, or for one session (the number or id of "palimpsest
sessions"); without one, for all agents. The plugin, the hooks and the MCP server stay and do
nothing: the agent goes on, and compacts, by itself. Agents behind the proxy are not meant.
"palimpsest on" takes it back.`
		c.Example = "  palimpsest off codex\n  palimpsest off 3\n  palimpsest on codex"
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		data, err := config.DataDir()
		if err != nil {
			return err
		}
		switches, err := install.LoadSwitches(data)
		if err != nil {
			return err
		}
		state, p := "on", newPrinter(s.Out)
		if off {
			state = "off"
		}
		switch {
		case len(args) == 0 && !off:
			switches = install.Switches{}
			p.line("palimpsest is on for all agents and sessions")
		case len(args) == 0:
			for _, name := range install.Names() {
				switches.Set(name, true, true)
			}
			p.line("palimpsest is off for all agents")
		default:
			name, isAgent := args[0], slices.Contains(install.Names(), args[0])
			if !isAgent {
				if name, err = switchedSession(name, switches); err != nil {
					return err
				}
			}
			if !switches.Set(name, isAgent, off) {
				p.line("palimpsest is %s for %s already", state, name)
				return nil
			}
			p.line("palimpsest is %s for %s", state, name)
		}
		return switches.Save(data)
	}
	return c
}

// switchedSession is the id of a session that a name means, or one that is off.
func switchedSession(name string, switches install.Switches) (string, error) {
	if slices.Contains(switches.Sessions, name) {
		return name, nil
	}
	finder, err := localFinder()
	if err != nil {
		return "", err
	}
	found, ok, err := finder.Resolve(name)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %s is neither an agent (%s) nor a session of `palimpsest sessions`", errUsage, printable(name), strings.Join(install.Names(), ", "))
	}
	return found.ID, err
}
