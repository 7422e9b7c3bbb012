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

// claudeCode is the agent whose own command keeps its plugins, and marketed the plugin's
// name with its marketplace.
const (
	claudeCode      = "claude-code"
	marketplaceName = "palimpsest@palimpsest"
)

// plugin is what makes Palimpsest the context engine of an agent.
type plugin struct {
	agent string
	// install says what has it now, and what that is for.
	install func(context.Context) (string, error)
	// remove says what is gone, and whether it was there.
	remove func(context.Context) (what string, was bool, err error)
}

func plugins() []plugin {
	all := []plugin{{claudeCode, installClaudeCode, removeClaudeCode}}
	for _, f := range pluginFiles {
		all = append(all, plugin{f.agent, f.install, f.remove})
	}
	return all
}

// pluginFile is a plugin of files, which an agent loads from where they lie.
type pluginFile struct {
	agent           string
	files           func() map[string]string // by their paths in the agent's own folder
	path            string                   // what the agent loads, in that folder
	enable, disable string                   // what its user runs beside it, where files are not enough
}

var pluginFiles = []pluginFile{
	{"opencode", integrations.Opencode, "plugins/palimpsest.js", "", ""},
	{"pi", integrations.Pi, "extensions/palimpsest.js", "", ""},
	{"openclaw", integrations.OpenClaw, "extensions/palimpsest",
		"openclaw config set plugins.slots.contextEngine palimpsest && openclaw config set agents.defaults.compaction.provider palimpsest",
		"openclaw config unset plugins.slots.contextEngine && openclaw config unset agents.defaults.compaction.provider"},
	{"hermes", integrations.Hermes, "plugins/palimpsest",
		"hermes plugins enable palimpsest && hermes config set context.engine palimpsest", "hermes config set context.engine compressor"},
}

func pluginCommand(s Streams) *cobra.Command {
	agents := joinEach(plugins(), func(p plugin) string { return p.agent })
	c := &cobra.Command{
		Use:   "plugin",
		Short: "Be the context engine of an agent, by its plugins",
		Long: `Have an agent's compactions made by Palimpsest, without a proxy and with any login: the
newest messages stay as they are, what is older becomes a summary with pointers, and the
agent can search all of it and read it again. It asks a daemon on this machine, which is
started when it is needed ("palimpsest daemon"). Whatever fails, the agent compacts as it
does by itself. There are plugins for ` + agents + `.`,
	}
	change := func(c *cobra.Command, do func(context.Context, *plugin) (string, error)) *cobra.Command {
		c.Args = exactArgs(1, "the AGENT: "+agents)
		c.RunE = func(c *cobra.Command, args []string) error {
			all := plugins()
			i := slices.IndexFunc(all, func(p plugin) bool { return p.agent == args[0] })
			if i < 0 {
				return fmt.Errorf("%w: there are plugins for %s, not for %s", errUsage, agents, printable(args[0]))
			}
			said, err := do(c.Context(), &all[i])
			if err == nil {
				newPrinter(s.Out).line("%s", said)
			}
			return err
		}
		return c
	}
	c.AddCommand(
		change(&cobra.Command{
			Use: "install AGENT", Short: "Install the plugin in an agent",
			Example: "  palimpsest plugin install claude-code\n  palimpsest plugin install opencode",
		}, func(ctx context.Context, p *plugin) (string, error) {
			what, err := p.install(ctx)
			return "Installed " + what + " that begin from now on have it", err
		}),
		change(&cobra.Command{
			Use: "remove AGENT", Short: "Remove the plugin from an agent",
		}, func(ctx context.Context, p *plugin) (string, error) {
			what, was, err := p.remove(ctx)
			if !was {
				return what + " is not installed", err
			}
			return "Removed " + what, err
		}),
	)
	return c
}

// paths is the agent's own folder, and where in it is what the agent loads.
func (f pluginFile) paths() (folder, path string, err error) {
	folder, err = sessions.AgentFolder(f.agent)
	return folder, filepath.Join(folder, filepath.FromSlash(f.path)), err
}

func (f pluginFile) install(context.Context) (string, error) {
	folder, path, err := f.paths()
	if err != nil {
		return "", err
	}
	_, program, err := thisProgram()
	if err != nil {
		return "", err
	}
	for name, text := range f.files() {
		if err := writeWithFolders(filepath.Join(folder, filepath.FromSlash(name)), []byte(programReplacer(program).Replace(text))); err != nil {
			return "", err
		}
	}
	after := "; "
	if f.enable != "" {
		after = "; after `" + f.enable + "` "
	}
	return path + after + "sessions of " + f.agent, nil
}

func (f pluginFile) remove(context.Context) (string, bool, error) {
	_, path, err := f.paths()
	if err == nil {
		_, err = os.Stat(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return path, false, nil
	}
	// Beside a file of ours is a folder of its name; what programs leave in one goes too.
	for _, ours := range []string{strings.TrimSuffix(path, ".js"), path} {
		if err == nil {
			err = os.RemoveAll(ours)
		}
	}
	if err != nil {
		return path, true, err
	}
	if f.disable != "" {
		path += "; out of the settings it is taken by `" + f.disable + "`"
	}
	return path, true, nil
}

// thisProgram is this program as a shell calls it and as it is started otherwise.
func thisProgram() (shell, program string, err error) {
	if shell, err = shellCommand(); err != nil || shell == "palimpsest" {
		return shell, shell, err
	}
	program, err = os.Executable()
	return shell, program, err
}

// programReplacer puts the path of this program into a plugin's files.
func programReplacer(program string, more ...string) *strings.Replacer {
	return strings.NewReplacer(append(more, `PROGRAM = 'palimpsest'`, `PROGRAM = `+rawjson.Quote(program))...)
}

// pluginFolder is where the plugin's files are, which Claude Code reads in place.
func pluginFolder() (string, error) {
	data, err := config.DataDir()
	return filepath.Join(data, "plugins", claudeCode), err
}

func installClaudeCode(ctx context.Context) (string, error) {
	folder, err := pluginFolder()
	if err != nil {
		return "", err
	}
	shell, program, err := thisProgram()
	if err != nil {
		return "", err
	}
	if err := writeClaudeCode(folder, shell, program); err != nil {
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
	for _, args := range [][]string{{"plugin", "marketplace", "add", folder}, {"plugin", "install", marketplaceName}} {
		if err := runClaude(ctx, args...); err != nil {
			return "", fmt.Errorf("%w: the plugin is in %s, and `claude --plugin-dir` takes that folder too", err, folder)
		}
	}
	return marketplaceName + "; sessions", nil
}

// writeClaudeCode writes the plugin's files, with the program as a shell calls it and as it is
// started otherwise.
func writeClaudeCode(folder, shell, program string) error {
	files := integrations.ClaudeCode()
	calls := programReplacer(program,
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

func removeClaudeCode(ctx context.Context) (string, bool, error) {
	folder, err := pluginFolder()
	if err != nil {
		return marketplaceName, false, err
	}
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return marketplaceName, false, nil
	}
	// One of the two may have been removed by hand: what counts is that both are gone.
	uninstalled := runClaude(ctx, "plugin", "uninstall", marketplaceName)
	if err := runClaude(ctx, "plugin", "marketplace", "remove", "palimpsest"); err != nil {
		return marketplaceName, true, errors.Join(uninstalled, err)
	}
	return marketplaceName, true, os.RemoveAll(folder)
}

// runClaude runs Claude Code's own command, which keeps its settings.
func runClaude(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "claude", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("claude %s: %w: %s", strings.Join(args, " "), err, clip.Short(strings.TrimSpace(string(out)), 500))
	}
	return nil
}
