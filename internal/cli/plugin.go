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
)

// claudeCode is the agent whose own command keeps its plugins, and marketed the plugin's
// name with its marketplace.
const (
	claudeCode = "claude-code"
	marketed   = "palimpsest@palimpsest"
)

// pluginFile is a plugin of one file, which an agent loads from where it lies.
type pluginFile struct {
	agent    string
	text     string
	variable string   // names the folder of the agent's settings, where it is set
	home     []string // is that folder in the user's home, where nothing else is set
	path     []string // is the file in it
}

var pluginFiles = []pluginFile{
	{"opencode", integrations.Opencode, "OPENCODE_CONFIG_DIR", []string{".config", "opencode"}, []string{"plugins", "palimpsest.js"}},
	{"pi", integrations.Pi, "PI_CODING_AGENT_DIR", []string{".pi", "agent"}, []string{"extensions", "palimpsest.js"}},
}

func pluginCommand(s Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "plugin",
		Short: "Be the context engine of an agent, by its plugins",
		Long: `Have an agent's compactions made by Palimpsest, without a proxy and with any login: the
newest messages stay as they are, what is older becomes a summary with pointers, and the
agent can search all of it and read it again. It asks a daemon on this machine, which is
started when it is needed ("palimpsest daemon"). Whatever fails, the agent compacts as it
does by itself. There are plugins for ` + strings.Join(pluginAgents(), ", ") + `.`,
	}
	c.AddCommand(
		&cobra.Command{
			Use: "install AGENT", Short: "Install the plugin in an agent",
			Example: "  palimpsest plugin install claude-code\n  palimpsest plugin install opencode",
			Args:    pluginAgent,
			RunE: func(c *cobra.Command, args []string) error {
				if f, ok := pluginFileOf(args[0]); ok {
					return f.install(s)
				}
				return installPlugin(c.Context(), s)
			},
		},
		&cobra.Command{
			Use: "remove AGENT", Short: "Remove the plugin from an agent",
			Args: pluginAgent,
			RunE: func(c *cobra.Command, args []string) error {
				if f, ok := pluginFileOf(args[0]); ok {
					return f.remove(s)
				}
				return removePlugin(c.Context(), s)
			},
		},
	)
	return c
}

func pluginAgent(c *cobra.Command, args []string) error {
	names := pluginAgents()
	if err := exactly(1, "the AGENT: "+strings.Join(names, ", "))(c, args); err != nil {
		return err
	}
	if !slices.Contains(names, args[0]) {
		return fmt.Errorf("%w: there are plugins for %s, not for %s", errUsage, strings.Join(names, ", "), printable(args[0]))
	}
	return nil
}

// pluginAgents are the agents that there is a plugin for.
func pluginAgents() []string {
	names := []string{claudeCode}
	for _, f := range pluginFiles {
		names = append(names, f.agent)
	}
	return names
}

func pluginFileOf(agent string) (pluginFile, bool) {
	i := slices.IndexFunc(pluginFiles, func(f pluginFile) bool { return f.agent == agent })
	if i < 0 {
		return pluginFile{}, false
	}
	return pluginFiles[i], true
}

// place is where the file is for the agent to find it.
func (f pluginFile) place() (string, error) {
	folder := os.Getenv(f.variable)
	if config := os.Getenv("XDG_CONFIG_HOME"); folder == "" && config != "" && f.home[0] == ".config" {
		folder = filepath.Join(append([]string{config}, f.home[1:]...)...)
	}
	if folder == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		folder = filepath.Join(append([]string{home}, f.home...)...)
	}
	return filepath.Join(append([]string{folder}, f.path...)...), nil
}

func (f pluginFile) install(s Streams) error {
	path, err := f.place()
	if err != nil {
		return err
	}
	_, program, err := ownProgram()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := write(path, []byte(calls(program).Replace(f.text)), nil); err != nil {
		return err
	}
	newPrinter(s.Out).line("Installed %s; sessions of %s that begin from now on have it", path, f.agent)
	return nil
}

func (f pluginFile) remove(s Streams) error {
	path, err := f.place()
	if err != nil {
		return err
	}
	p := newPrinter(s.Out)
	switch err := os.Remove(path); {
	case errors.Is(err, fs.ErrNotExist):
		p.line("%s is not installed", path)
		return nil
	case err != nil:
		return err
	}
	p.line("Removed %s", path)
	return nil
}

// ownProgram is this program as a shell calls it and as it is started otherwise.
func ownProgram() (shell, program string, err error) {
	if shell, err = ownCommand(); err != nil || shell == "palimpsest" {
		return shell, shell, err
	}
	program, err = os.Executable()
	return shell, program, err
}

// calls puts the program where a plugin's module starts it.
func calls(program string, more ...string) *strings.Replacer {
	return strings.NewReplacer(append(more, `const PROGRAM = 'palimpsest'`, `const PROGRAM = `+rawjson.Quote(program))...)
}

// pluginFolder is where the plugin's files are, which Claude Code reads in place.
func pluginFolder() (string, error) {
	data, err := config.DataDir()
	return filepath.Join(data, "plugins", claudeCode), err
}

func installPlugin(ctx context.Context, s Streams) error {
	folder, err := pluginFolder()
	if err != nil {
		return err
	}
	shell, program, err := ownProgram()
	if err != nil {
		return err
	}
	if err := writePlugin(folder, shell, program); err != nil {
		return err
	}
	// The plugin brings the hooks itself.
	if err := withoutHooks(); err != nil {
		return err
	}
	for _, args := range [][]string{{"plugin", "marketplace", "add", folder}, {"plugin", "install", marketed}} {
		if err := claude(ctx, args...); err != nil {
			return fmt.Errorf("%w: the plugin is in %s, and `claude --plugin-dir` takes that folder too", err, folder)
		}
	}
	newPrinter(s.Out).line("Installed %s; sessions that begin from now on have it", marketed)
	return nil
}

// writePlugin writes the plugin's files, with the program as a shell calls it and as it is
// started otherwise.
func writePlugin(folder, shell, program string) error {
	files := integrations.ClaudeCode()
	calls := calls(program,
		`"palimpsest hook `, strings.TrimSuffix(rawjson.Quote(shell+" hook "), `"`),
		`"command": "palimpsest"`, `"command": `+rawjson.Quote(program),
	)
	return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path := filepath.Join(folder, filepath.FromSlash(name))
		if d.IsDir() {
			return os.MkdirAll(path, 0o700)
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(calls.Replace(string(data))), 0o600)
	})
}

// withoutHooks takes the hooks that "palimpsest hook install" added out of the settings.
func withoutHooks() error {
	agent, err := hook.Find(claudeCode)
	if err != nil {
		return err
	}
	path, err := settingsFile(agent)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	settings, err := agent.Remove(old)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if string(settings) == string(old) {
		return nil
	}
	return write(path, settings, nil)
}

func removePlugin(ctx context.Context, s Streams) error {
	folder, err := pluginFolder()
	if err != nil {
		return err
	}
	p := newPrinter(s.Out)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		p.line("%s is not installed", marketed)
		return nil
	}
	// One of the two may have been removed by hand: what counts is that both are gone.
	uninstalled := claude(ctx, "plugin", "uninstall", marketed)
	if err := claude(ctx, "plugin", "marketplace", "remove", "palimpsest"); err != nil {
		return errors.Join(uninstalled, err)
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	p.line("Removed %s", marketed)
	return nil
}

// claude runs Claude Code's own command, which keeps its settings.
func claude(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "claude", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("claude %s: %w: %s", strings.Join(args, " "), err, clip.Short(strings.TrimSpace(string(out)), 500))
	}
	return nil
}
