package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/install"
)

func pluginCommand(s Streams) *cobra.Command {
	agents := strings.Join(install.PluginNames(), ", ")
	change := func(c *cobra.Command, do func(context.Context, install.Agent) (string, error)) *cobra.Command {
		c.Args = exactArgs(1, "the AGENT: "+agents)
		c.RunE = func(c *cobra.Command, args []string) error {
			if !slices.Contains(install.PluginNames(), args[0]) {
				return fmt.Errorf("%w: there are plugins for %s, not for %s", errUsage, agents, printable(args[0]))
			}
			agent, _, err := install.Named(args[0])
			if err != nil {
				return err
			}
			message, err := do(c.Context(), agent)
			if err == nil {
				newPrinter(s.Out).line("%s", message)
			}
			return err
		}
		return c
	}
	return commandGroup(&cobra.Command{
		Use:   "plugin",
		Short: "Make Palimpsest the context engine of an agent, by a plugin",
		Long: `Let Palimpsest make an agent's compactions, without a proxy and with any login. The
newest messages stay as they are, older ones become a summary with pointers, and the
agent can search and read all of them. The plugin asks a daemon on this machine and
starts it when needed ("palimpsest daemon"). If anything fails, the agent compacts by
itself as before. There are plugins for ` + agents + `.

"palimpsest install" does this and more, for all agents at once.`,
	},
		change(&cobra.Command{
			Use: "install AGENT", Short: "Install the plugin in an agent",
			Example: "  palimpsest plugin install claude-code\n  palimpsest plugin install opencode",
		}, installPlugin),
		change(&cobra.Command{Use: "remove AGENT", Short: "Remove the plugin from an agent"}, removePlugin),
	)
}

// thisProgram is how others start this program, and where it keeps its data.
func thisProgram() (self install.Self, err error) {
	if self.Data, err = config.DataDir(); err != nil {
		return self, err
	}
	if self.Shell, err = shellCommand(); err != nil {
		return self, err
	}
	if self.Program = self.Shell; self.Shell != "palimpsest" {
		self.Program, err = os.Executable()
	}
	return self, err
}

// applyChanges makes changes, and says each. Where one fails, the others of its agent are left out.
func applyChanges(ctx context.Context, record *install.Record, changes []install.Change, say func(install.Change)) (err error) {
	failed := map[string]bool{}
	for _, c := range changes {
		if failed[c.Agent] {
			continue
		}
		if one := record.Apply(ctx, c); one != nil {
			failed[c.Agent] = true
			err = errors.Join(err, fmt.Errorf("%s: %w", c.Agent, one))
			continue
		}
		say(c)
	}
	return err
}

// applyParts installs parts of one agent, and says each change.
func applyParts(ctx context.Context, self install.Self, a install.Agent, say func(install.Change), parts ...install.Part) error {
	record, err := install.OpenRecord(self.Data)
	if err != nil {
		return err
	}
	changes, err := install.Plan(self, []install.Agent{a}, install.Read, parts...)
	if err != nil {
		return err
	}
	return applyChanges(ctx, record, changes, say)
}

// installPlugin puts the plugin in place of an earlier one, and says what the user does next.
func installPlugin(ctx context.Context, a install.Agent) (string, error) {
	self, err := thisProgram()
	if err != nil {
		return "", err
	}
	err = applyParts(ctx, self, a, func(install.Change) {}, install.Plugin)
	at := self.Loaded(a)
	switch {
	case err != nil && a.Name == install.ClaudeCode:
		return "", fmt.Errorf("%w: the plugin is in %s; `claude --plugin-dir` accepts that folder too", err, at)
	case err != nil:
		return "", err
	case a.Name == install.ClaudeCode:
		return "Installed " + install.ClaudePlugin + "; new sessions will use it", nil
	case a.Next() != "":
		return "Installed " + at + "; run `" + a.Next() + "`, then new sessions of " + a.Name + " will use it", nil
	}
	return "Installed " + at + "; new sessions of " + a.Name + " will use it", nil
}

// removePlugin takes the plugin out again.
func removePlugin(ctx context.Context, a install.Agent) (string, error) {
	done, err := removePart(ctx, a, install.Plugin)
	name := install.Self{}.Loaded(a)
	if a.Name == install.ClaudeCode {
		name = install.ClaudePlugin
	}
	switch {
	case err != nil:
		return "", err
	case len(done) == 0:
		return name + " is not installed", nil
	case a.Undo() != "":
		name += "; run `" + a.Undo() + "` to undo the settings"
	}
	return "Removed " + name, nil
}

// removePart takes back what was installed of one part, and says what it did.
func removePart(ctx context.Context, a install.Agent, part install.Part) ([]string, error) {
	data, err := config.DataDir()
	if err != nil {
		return nil, err
	}
	record, err := install.OpenRecord(data)
	if err != nil {
		return nil, err
	}
	return record.Remove(ctx, a.Name, false, part)
}
