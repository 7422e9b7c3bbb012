package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/dsn"
	"github.com/palimpsest-ai/palimpsest/internal/install"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/internal/suggest"
	"github.com/palimpsest-ai/palimpsest/internal/text"
)

// consent are the flags of commands that change the agents, besides what they ask.
type consent struct{ yes, dry, contextTools bool }

func (a *consent) addFlags(c *cobra.Command) {
	c.Flags().BoolVar(&a.yes, "yes", false, "ask nothing")
	c.Flags().BoolVar(&a.dry, "dry-run", false, "only show what would change")
}

func (a *consent) addContextTools(c *cobra.Command) {
	c.Flags().BoolVar(&a.contextTools, "context-tools", false, "have the MCP server offer context_status, context_note and compact_now too")
}

// onlyAgents accepts names of agents: any number of them, or exactly one.
func onlyAgents(known []string, one bool) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if one && len(args) != 1 {
			return exactArgs(1, "the AGENT: "+strings.Join(known, ", "))(c, args)
		}
		for _, name := range args {
			if !slices.Contains(known, name) {
				return fmt.Errorf("%w: %s is no agent for `%s`%s: want %s", errUsage, printable(name), c.CommandPath(), didYouMean(suggest.Name(name, known)), joinWords(known, "or"))
			}
		}
		return nil
	}
}

func installCommand(s Streams) *cobra.Command {
	var ask consent
	var rules bool
	c := &cobra.Command{
		Use:   "install [AGENT...]",
		Short: "Find the coding agents on this machine, and connect them",
		Long: `Find the coding agents on this machine and connect them, or those that are named: by a plugin
that makes their compactions, else by hooks, and by an MCP server that searches earlier sessions;
in Claude Code also by a status line, which runs the one that is there first. No base URL is
changed: if Palimpsest fails, the agent goes on without it.

No model is asked by what is installed. Agents behind the proxy of "palimpsest serve" can let their own
model say which sentences of their user still stand (--rules, for which the installation asks):
one question for each summary, of at most 15 % of the tokens that are summarized.

What will change is shown, and asked for. Every file that is changed is copied before, and
"palimpsest uninstall" takes everything back.
` + strings.Join(clip.Wrap("Agents: "+strings.Join(install.Names(), ", ")+".", 96, ""), "\n"),
		Example: "  palimpsest install --dry-run\n  palimpsest install claude-code codex --yes",
		Args:    onlyAgents(install.Names(), false), ValidArgs: install.Names(),
		RunE: func(c *cobra.Command, args []string) error {
			chosen, err := install.Find(args...)
			if err != nil {
				return err
			}
			if len(chosen) == 0 {
				newPrinter(s.Out).line("no agents were found; known are %s", strings.Join(install.Names(), ", "))
				return nil
			}
			file, err := settingsFile()
			if err != nil {
				return err
			}
			settings := install.Settings(file)
			if rules {
				return connect(c.Context(), s, append(chosen, settings), ask, nil)
			}
			return connect(c.Context(), s, chosen, ask, &settings)
		},
	}
	ask.addFlags(c)
	ask.addContextTools(c)
	c.Flags().BoolVar(&rules, "rules", false, "behind the proxy, let the agent's own model say which sentences of its user stand")
	return c
}

const rulesQuestion = `Behind the proxy (palimpsest serve), may an agent's own model be asked which of your sentences still
stand? One question for each summary, of at most 15 % of the tokens that are summarized; what is
installed here asks no model.`

// connect shows what installing parts of agents (none are the usual ones) would change, asks, and does
// it. Where it asks, it also asks whether to install in the settings, if they are given.
func connect(ctx context.Context, s Streams, chosen []install.Agent, ask consent, settings *install.Agent, parts ...install.Part) error {
	self, err := thisProgram()
	if err != nil {
		return err
	}
	self.ContextTools = ask.contextTools
	record, err := install.OpenRecord(self.Data)
	if err != nil {
		return err
	}
	changes, left := self.Plan(chosen, parts...)
	if len(parts) == 0 {
		changes = record.Pending(changes)
	} else if left != nil {
		return left
	}
	p := newPrinter(s.Out)
	if len(parts) == 0 {
		p.table([]string{"agent", "version", "~folder", "how"}, mapSlice(chosen, func(a install.Agent) []string {
			return []string{a.Name, a.Version, homePath(a.Folder), joinEach(a.Usual(), func(part install.Part) string { return string(part) })}
		}))
		p.line("")
	}
	p.changes("what will change", changes)
	for _, a := range chosen {
		if missing := a.Missing(); missing != "" && len(parts) == 0 {
			p.text("%s: %s", a.Name, missing)
		}
		if _, err := os.Stat(a.Folder); err != nil && a.Absent != "" {
			sayLeft(s, fmt.Errorf("%s was not found (no program %s on the PATH, no folder %s): what is installed waits for it", a.Name, a.Absent, homePath(a.Folder)))
		}
	}
	if fixed := slices.DeleteFunc(slices.Clone(chosen), func(a install.Agent) bool { return !a.Fixed() }); ask.contextTools && len(fixed) > 0 {
		p.line("--context-tools changes nothing for %s, whose plugins have no such tools", joinEach(fixed, func(a install.Agent) string { return a.Name }))
	}
	if len(changes) == 0 && left != nil {
		return left
	}
	if len(changes) == 0 {
		p.line("everything is installed; there is nothing to change")
	}
	sayLeft(s, left)
	if ask.dry || len(changes) == 0 {
		return nil
	}
	if !ask.yes {
		answers := bufio.NewReader(s.In)
		if ok, err := confirm(s, answers, "make these changes?"); err != nil || !ok {
			return p.unchanged(err)
		}
		if settings != nil {
			if ok, _ := confirm(s, answers, rulesQuestion); ok { // no answer is the default
				more, left := self.Plan([]install.Agent{*settings})
				changes = append(changes, more...)
				sayLeft(s, left)
			}
		}
	}
	err = install.UpdateRecord(ctx, self.Data, func(r *install.Record) error { return r.Apply(ctx, changes) })
	if err != nil {
		return fmt.Errorf("%w; `palimpsest uninstall` takes back what was done", err)
	}
	p.text("installed; new sessions will use it. `palimpsest doctor` checks it, `palimpsest off` stops it, `palimpsest uninstall` takes it back")
	for _, a := range chosen {
		if a.Next != "" && slices.ContainsFunc(changes, func(c install.Change) bool { return c.Agent == a.Name }) {
			p.line("%s: %s", a.Name, a.Next)
		}
	}
	return nil
}

// unchanged says that a no was heard.
func (p *printer) unchanged(err error) error {
	if err == nil {
		p.line("nothing was changed")
	}
	return err
}

// homePath is a path with ~ for the user's home.
func homePath(path string) string {
	if home, err := os.UserHomeDir(); err == nil && sessions.Within(path, home) {
		return "~" + strings.TrimPrefix(path, home)
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
	var ask consent
	var force bool
	c := &cobra.Command{
		Use:   "uninstall [AGENT...]",
		Short: "Take back what install changed",
		Long: `Take back what "palimpsest install" (and "plugin install", "hook install") changed, in all agents
or in those that are named. A file that nobody changed since is put back as it was. From one that
others changed only our entries are taken. What was changed of our own is left, and named; --force
removes it. Conversations that were kept stay ("palimpsest threads").`,
		Example: "  palimpsest uninstall --dry-run\n  palimpsest uninstall codex",
		Args:    onlyAgents(install.Names(), false), ValidArgs: install.Names(),
		RunE: func(c *cobra.Command, args []string) error { return disconnect(c.Context(), s, args, ask, force) },
	}
	ask.addFlags(c)
	c.Flags().BoolVar(&force, "force", false, "also remove what was changed since it was installed")
	return c
}

// disconnect shows what was installed in agents (none are all), asks, and takes it back. What is left
// is an error.
func disconnect(ctx context.Context, s Streams, names []string, ask consent, force bool) error {
	data, err := config.DataDir()
	if err != nil {
		return err
	}
	record, err := install.OpenRecord(data)
	if err != nil {
		return err
	}
	p := newPrinter(s.Out)
	chosen := slices.DeleteFunc(record.Agents(), func(name string) bool { return len(names) > 0 && !slices.Contains(names, name) })
	if len(chosen) == 0 {
		p.line("nothing is installed")
		p.remains(data, record)
		return nil
	}
	p.changes("what will be taken back", slices.DeleteFunc(slices.Clone(record.Done), func(d install.Change) bool { return !slices.Contains(chosen, d.Agent) }))
	if ask.dry {
		return nil
	}
	if !ask.yes {
		if ok, err := confirm(s, bufio.NewReader(s.In), "take this back?"); err != nil || !ok {
			return p.unchanged(err)
		}
	}
	err = install.UpdateRecord(ctx, data, func(r *install.Record) (left error) {
		record = r
		for _, name := range chosen {
			if err := r.Remove(ctx, name, force); err != nil {
				left = errors.Join(left, fmt.Errorf("%s: %w", name, err))
				continue
			}
			p.line("%s: taken back", name)
			if found, err := install.Find(name); err == nil && len(found) > 0 && found[0].Undo != "" {
				p.line("%s: %s", name, found[0].Undo)
			}
		}
		return left
	})
	p.remains(data, record)
	return err
}

// remains says that the data directory is still there, and how large it is, where nothing is installed any more.
func (p *printer) remains(data string, record *install.Record) {
	size, kept := 0, ""
	_ = filepath.WalkDir(data, func(_ string, d fs.DirEntry, err error) error { // what cannot be read is not counted
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				size += int(info.Size())
			}
			if d.Name() == dsn.File {
				kept = " of conversations"
			}
		}
		return nil
	})
	if size > 0 && len(record.Done) == 0 {
		p.line("left: %s (%s%s)", homePath(data), text.Size(size), kept)
	}
}

// changes is a table of changes; the files of a plugin are one row, with the agent's folder.
func (p *printer) changes(heading string, all []install.Change) {
	var rows [][]string
	files := map[string]int{} // of plugins, by their folder
	for _, c := range all {
		if c.OfPlugin() {
			files[c.Root]++
		}
	}
	for _, c := range all {
		path, what := c.Path, c.What()
		if c.OfPlugin() {
			if path, what = c.Root, what+", "+plural(files[c.Root], "file"); files[c.Root] == 0 {
				continue
			}
			files[c.Root] = 0
		}
		rows = append(rows, []string{c.Agent, homePath(path), what})
	}
	if len(rows) > 0 {
		p.title(heading)
		p.table([]string{"agent", "~file", "what"}, rows)
		p.line("")
	}
}

// loadSwitches reads what is off, and says where that is kept.
func loadSwitches() (switches install.Switches, data string, err error) {
	if data, err = config.DataDir(); err == nil {
		switches, err = install.LoadSwitches(data)
	}
	return switches, data, err
}

// offThread says why a plugin's conversation is left to its agent; "" if it is not.
func offThread(name string) string {
	switches, _, err := loadSwitches()
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
	state := "on"
	if off {
		state, c.Use, c.Short = "off", "off [AGENT or SESSION]", "Turn Palimpsest off for an agent or a session, without uninstalling it"
		c.Long = `Turn Palimpsest off for an agent, or for one session (the number or id of "palimpsest
sessions"); without one, for all agents. The plugin, the hooks and the MCP server stay and do
nothing: the agent goes on, and compacts, by itself. Agents behind the proxy are not meant.
"palimpsest on" takes it back.`
		c.Example = "  palimpsest off codex\n  palimpsest off 3\n  palimpsest on codex"
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		data, err := config.DataDir()
		if err != nil {
			return err
		}
		what := "all agents"
		err = install.UpdateSwitches(c.Context(), data, func(switches *install.Switches) (err error) {
			names := install.Names()
			switch {
			case len(args) == 1:
				what, err = switched(args[0], *switches)
				names = []string{what}
			case !off:
				names, what = slices.Clone(*switches), "all agents and sessions"
			}
			for _, name := range names {
				switches.Set(name, off)
			}
			return err
		})
		if err == nil {
			p := newPrinter(s.Out)
			if p.line("palimpsest is %s for %s", state, what); off {
				p.line("to turn it on again: palimpsest on%s", strings.Join(append([]string{""}, args...), " "))
			}
		}
		return err
	}
	return c
}

// switched is the agent, or the id of the session, that a name means.
func switched(name string, switches install.Switches) (string, error) {
	if slices.Contains(install.Names(), name) || slices.Contains(switches, name) {
		return name, nil
	}
	found, err := resolveSession(name)
	if err == nil && found == nil {
		err = fmt.Errorf("%w: %s is neither an agent (%s) nor a session of `palimpsest sessions`", errUsage, printable(name), strings.Join(install.Names(), ", "))
	}
	if err != nil {
		return "", err
	}
	return found.ID, nil
}
