package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/integrations"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/hook"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
)

// plugin makes Palimpsest the context engine of an agent. Both methods return what to tell
// the user.
type plugin interface {
	agentName() string
	install(context.Context) (string, error)
	remove(context.Context) (string, error)
}

// plugins are all plugins, in the order in which people see them.
func plugins() []plugin {
	all := []plugin{claudePlugin{}}
	for _, p := range filePlugins {
		all = append(all, p)
	}
	return all
}

func pluginCommand(s Streams) *cobra.Command {
	agents := joinEach(plugins(), plugin.agentName)
	change := func(c *cobra.Command, do func(plugin, context.Context) (string, error)) *cobra.Command {
		c.Args = exactArgs(1, "the AGENT: "+agents)
		c.RunE = func(c *cobra.Command, args []string) error {
			all := plugins()
			i := slices.IndexFunc(all, func(p plugin) bool { return p.agentName() == args[0] })
			if i < 0 {
				return fmt.Errorf("%w: there are plugins for %s, not for %s", errUsage, agents, printable(args[0]))
			}
			message, err := do(all[i], c.Context())
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
itself as before. There are plugins for ` + agents + `.`,
	},
		change(&cobra.Command{
			Use: "install AGENT", Short: "Install the plugin in an agent",
			Example: "  palimpsest plugin install claude-code\n  palimpsest plugin install opencode",
		}, plugin.install),
		change(&cobra.Command{Use: "remove AGENT", Short: "Remove the plugin from an agent"}, plugin.remove),
	)
}

// filePlugin is a plugin that an agent loads from its own folder.
type filePlugin struct {
	agent           string
	path            string // what the agent loads, in that folder
	enable, disable string // what the user has to run besides; may be empty
}

var filePlugins = []filePlugin{
	{"opencode", "plugins/palimpsest.js", "", ""},
	{"pi", "extensions/palimpsest.js", "", ""},
	{"openclaw", "extensions/palimpsest",
		"openclaw config set plugins.slots.contextEngine palimpsest && openclaw config set agents.defaults.compaction.provider palimpsest",
		"openclaw config unset plugins.slots.contextEngine && openclaw config unset agents.defaults.compaction.provider"},
	{"hermes", "plugins/palimpsest",
		"hermes plugins enable palimpsest && hermes config set context.engine palimpsest", "hermes config set context.engine compressor"},
}

func (p filePlugin) agentName() string { return p.agent }

func (p filePlugin) install(context.Context) (string, error) {
	folder, err := sessions.AgentFolder(p.agent)
	if err != nil {
		return "", err
	}
	if err := writePlugin(p.agent, folder); err != nil {
		return "", err
	}
	next := "new sessions of " + p.agent + " will use it"
	if p.enable != "" {
		next = "run `" + p.enable + "`, then " + next
	}
	return "Installed " + filepath.Join(folder, filepath.FromSlash(p.path)) + "; " + next, nil
}

func (p filePlugin) remove(context.Context) (string, error) {
	folder, err := sessions.AgentFolder(p.agent)
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, filepath.FromSlash(p.path))
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return path + " is not installed", nil
	} else if err != nil {
		return "", err
	}
	if err := checkPluginFiles(folder, integrations.Plugin(p.agent)); err != nil {
		return "", err
	}
	// The folder beside palimpsest.js first: while the file is there, the plugin is.
	for _, ours := range []string{strings.TrimSuffix(path, ".js"), path} {
		if err := os.RemoveAll(ours); err != nil {
			return "", err
		}
	}
	if p.disable != "" {
		path += "; run `" + p.disable + "` to undo the settings"
	}
	return "Removed " + path, nil
}

// writePlugin writes the files of an agent's plugin, which call this program, into a folder.
func writePlugin(agent, folder string) error {
	shell, err := shellCommand()
	program := shell
	if err == nil && shell != "palimpsest" {
		program, err = os.Executable()
	}
	if err != nil {
		return err
	}
	calls, files := programReplacer(shell, program), integrations.Plugin(agent)
	if err := checkPluginFiles(folder, files); err != nil {
		return err
	}
	for name, text := range files {
		if err := writeWithFolders(filepath.Join(folder, filepath.FromSlash(name)), []byte(calls.Replace(text))); err != nil {
			return err
		}
	}
	return nil
}

// programReplacer puts into a plugin's files how a shell calls this program, and how other
// programs start it.
func programReplacer(shell, program string) *strings.Replacer {
	return strings.NewReplacer(
		`PROGRAM = 'palimpsest'`, `PROGRAM = `+rawjson.Quote(program),
		`"palimpsest hook `, strings.TrimSuffix(rawjson.Quote(shell+" hook "), `"`),
		`"command": "palimpsest"`, `"command": `+rawjson.Quote(program),
	)
}

const (
	claudeCode = "claude-code"
	// claudePluginName is the plugin's name and its marketplace.
	claudePluginName = "palimpsest@palimpsest"
)

// claudePlugin is a folder that Claude Code's own command installs and reads in place.
type claudePlugin struct{}

func (claudePlugin) agentName() string { return claudeCode }

func (claudePlugin) folder() (string, error) {
	data, err := config.DataDir()
	return filepath.Join(data, "plugins", claudeCode), err
}

func (p claudePlugin) install(ctx context.Context) (string, error) {
	folder, err := p.folder()
	if err != nil {
		return "", err
	}
	if err := writePlugin(claudeCode, folder); err != nil {
		return "", err
	}
	// The plugin brings the hooks itself.
	agent, err := hook.Find(claudeCode)
	if err == nil {
		_, _, err = changeSettings(agent, (*hook.Agent).Remove)
	}
	if err != nil {
		return "", err
	}
	for _, args := range [][]string{{"plugin", "marketplace", "add", folder}, {"plugin", "install", claudePluginName}} {
		if err := runClaude(ctx, args...); err != nil {
			return "", fmt.Errorf("%w: the plugin is in %s; `claude --plugin-dir` accepts that folder too", err, folder)
		}
	}
	return "Installed " + claudePluginName + "; new sessions will use it", nil
}

func (p claudePlugin) remove(ctx context.Context) (string, error) {
	folder, err := p.folder()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return claudePluginName + " is not installed", nil
	}
	// The user may have removed one of the two already: then removing the other is enough.
	uninstalled := runClaude(ctx, "plugin", "uninstall", claudePluginName)
	if err := runClaude(ctx, "plugin", "marketplace", "remove", "palimpsest"); err != nil {
		return "", errors.Join(uninstalled, err)
	}
	return "Removed " + claudePluginName, os.RemoveAll(folder)
}

// runClaude runs Claude Code's own command, which keeps its settings.
func runClaude(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "claude", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("claude %s: %w: %s", strings.Join(args, " "), err, clip.Short(strings.TrimSpace(string(out)), 500))
	}
	return nil
}
