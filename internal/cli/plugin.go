package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/integrations"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/hook"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// claudeCode is the agent that there is a plugin for, and marketed the plugin's name with
// its marketplace.
const (
	claudeCode = "claude-code"
	marketed   = "palimpsest@palimpsest"
)

func pluginCommand(s Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "plugin",
		Short: "Be the context engine of Claude Code, by its plugins",
		Long: `Have Claude Code's compactions made by Palimpsest, without a proxy and with any login:
the newest messages stay as they are, what is older becomes a summary with pointers, and
the agent can search all of it and read it again. It asks a daemon on this machine,
which is started when it is needed ("palimpsest daemon"). Whatever fails, Claude Code
compacts as it does by itself.`,
	}
	c.AddCommand(
		&cobra.Command{
			Use: "install AGENT", Short: "Install the plugin in claude-code",
			Example: "  palimpsest plugin install claude-code",
			Args:    pluginAgent,
			RunE:    func(c *cobra.Command, _ []string) error { return installPlugin(c.Context(), s) },
		},
		&cobra.Command{
			Use: "remove AGENT", Short: "Remove the plugin from claude-code",
			Args: pluginAgent,
			RunE: func(c *cobra.Command, _ []string) error { return removePlugin(c.Context(), s) },
		},
	)
	return c
}

func pluginAgent(c *cobra.Command, args []string) error {
	if err := exactly(1, "the AGENT: "+claudeCode)(c, args); err != nil {
		return err
	}
	if args[0] != claudeCode {
		return fmt.Errorf("%w: there is a plugin for %s, not for %s", errUsage, claudeCode, printable(args[0]))
	}
	return nil
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
	shell, err := ownCommand()
	if err != nil {
		return err
	}
	program := shell
	if program != "palimpsest" {
		if program, err = os.Executable(); err != nil {
			return err
		}
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
	calls := strings.NewReplacer(
		`"palimpsest hook `, strings.TrimSuffix(rawjson.Quote(shell+" hook "), `"`),
		`"command": "palimpsest"`, `"command": `+rawjson.Quote(program),
		`const PROGRAM = 'palimpsest'`, `const PROGRAM = `+rawjson.Quote(program),
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
