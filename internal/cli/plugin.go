package cli

import (
	"errors"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/install"
)

func pluginCommand(s Streams) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "plugin",
		Short: "Make Palimpsest the context engine of an agent, by a plugin",
		Long: `Let Palimpsest make an agent's compactions, without a proxy and with any login. The
newest messages stay as they are, older ones become a summary with pointers, and the
agent can search and read all of them. The plugin asks a daemon on this machine and
starts it when needed ("palimpsest daemon"). If anything fails, the agent compacts by
itself as before. There are plugins for ` + strings.Join(install.Names(install.Plugin), ", ") + `.

"palimpsest install" does this and more, for all agents at once.`,
	}, partCommands(s, install.Plugin, "the plugin")...)
}

// partCommands install one part in an agent, and take back what was installed in it.
func partCommands(s Streams, part install.Part, what string) []*cobra.Command {
	names, ask := install.Names(part), consent{yes: true}
	all := []*cobra.Command{
		{
			Use: "install AGENT", Short: "Install " + what + " in an agent: " + strings.Join(names, ", "),
			Args: onlyAgents(names, true), ValidArgs: names,
			RunE: func(c *cobra.Command, args []string) error {
				found, err := install.Find(args...)
				if err != nil {
					return err
				}
				return connect(c.Context(), s, found[:1], ask, nil, part)
			},
		},
		{
			Use: "remove AGENT", Short: "Remove what was installed in an agent, as uninstall does",
			Args: onlyAgents(names, true), ValidArgs: names,
			RunE: func(c *cobra.Command, args []string) error {
				return disconnect(c.Context(), s, args, ask, false)
			},
		},
	}
	if part == install.Plugin {
		ask.addContextTools(all[0])
	}
	return all
}

// thisProgram is how others start this program, by its name if PATH has it, and where it keeps its data.
func thisProgram() (self install.Self, err error) {
	if self.Data, err = config.DataDir(); err != nil {
		return self, err
	}
	path, err := os.Executable()
	if err != nil {
		return self, err
	}
	self.Program, self.Shell = path, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(path)+`"`
	if found, err := exec.LookPath("palimpsest"); err == nil && sameFile(found, path) {
		self.Program, self.Shell = "palimpsest", "palimpsest"
	} else if strings.HasPrefix(path, os.TempDir()) && strings.Contains(path, "go-build") {
		return self, errors.New("`go run` deletes this program when it ends: build or install it first")
	}
	return self, nil
}
