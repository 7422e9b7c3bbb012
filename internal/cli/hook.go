package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/hook"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

const (
	// maxHookInput is the most that an agent may write to a hook, in bytes.
	maxHookInput = 64 << 20
	// hookLimit ends the work of a hook before the agent gives up waiting.
	hookLimit = 20 * time.Second
)

func hookCommand(s Streams) *cobra.Command {
	var most int
	c := &cobra.Command{
		Use:   "hook AGENT EVENT",
		Short: "Answer a hook of Claude Code, Codex or Gemini CLI",
		Long: `Answer a hook of an agent: it writes JSON to this command and reads JSON back.
"palimpsest hook install AGENT" adds the hooks to the agent's settings.

  claude-code  SessionStart  after a compaction of its own: where the work stands
               PreCompact    what its summary should say besides
               PostToolUse   a very large output goes to a file, a pointer stands in its place
  codex        SessionStart  as above
  gemini-cli   AfterTool     as PostToolUse above

Whatever fails here, the agent goes on as if there were no hook.`,
		Example: `  palimpsest hook install claude-code
  palimpsest hook remove claude-code`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			// Not a usage error: its exit status 2 would tell an agent to stop what it does.
			if len(args) != 2 {
				return errors.New("want `palimpsest hook AGENT EVENT`, or `palimpsest hook install AGENT`")
			}
			agent, err := hook.Find(args[0])
			if err != nil {
				return err
			}
			answer, err := answerHook(c.Context(), agent, args[1], s.In, most)
			if err != nil {
				return err
			}
			_, err = s.Out.Write(answer)
			return err
		},
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return err })
	c.Flags().IntVar(&most, "offload", hook.DefaultOffload, "a tool's text above `BYTES` goes to a file; 0 leaves all as they are")
	c.AddCommand(hookInstallCommand(s), hookRemoveCommand(s))
	return c
}

// answerHook is what an agent reads back, nothing where nothing is to be said.
func answerHook(ctx context.Context, agent hook.Agent, event string, in io.Reader, most int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, hookLimit)
	defer cancel()
	body, err := io.ReadAll(io.LimitReader(in, maxHookInput+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxHookInput {
		return nil, fmt.Errorf("%s wrote more than %d MB to the hook", agent.Name, maxHookInput>>20)
	}
	call, err := agent.Read(event, body)
	if err != nil {
		return nil, err
	}
	switch event {
	case hook.PostToolUse, hook.AfterTool:
		folder, err := config.DataDir()
		if err != nil {
			return nil, err
		}
		response, err := hook.Offload(call, filepath.Join(folder, "outputs"), most, time.Now())
		if err != nil || response == "" {
			return nil, err
		}
		return hook.WithOutput(event, response)
	}
	if call.Transcript == "" {
		return nil, nil // a session that is kept nowhere
	}
	file, err := transcript.Open(call.Transcript, nil)
	if err != nil {
		return nil, err
	}
	text, err := agent.Context(ctx, &file.Transcripts[0])
	switch {
	case err != nil || text == "":
		return nil, err
	case event == hook.PreCompact: // what is added later can be made
		return []byte(hook.Instructions), nil
	}
	return hook.WithContext(event, text)
}

func hookInstallCommand(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "install AGENT",
		Short: "Add the hooks to the settings of claude-code, codex or gemini-cli",
		Args:  exactly(1, "the AGENT: "+strings.Join(hook.Names(), ", ")),
		RunE: func(c *cobra.Command, args []string) error {
			command, err := ownCommand()
			if err != nil {
				return err
			}
			return changeSettings(s, args[0], "Added to", func(a *hook.Agent, old []byte) ([]byte, error) { return a.Add(old, command) })
		},
	}
}

func hookRemoveCommand(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "remove AGENT",
		Short: "Take the hooks out of the settings of claude-code, codex or gemini-cli",
		Args:  exactly(1, "the AGENT: "+strings.Join(hook.Names(), ", ")),
		RunE: func(c *cobra.Command, args []string) error {
			return changeSettings(s, args[0], "Removed from", (*hook.Agent).Remove)
		},
	}
}

// changeSettings changes the settings of an agent, which are replaced whole or not at
// all.
func changeSettings(s Streams, name, done string, change func(*hook.Agent, []byte) ([]byte, error)) error {
	agent, err := hook.Find(name)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	path, err := settingsFile(agent)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	settings, err := change(&agent, old)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	p := newPrinter(s.Out)
	if string(settings) == string(old) {
		p.line("%s has nothing to change", path)
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := write(path, settings, nil); err != nil {
		return err
	}
	p.line("%s %s", done, path)
	if agent.Note != "" && len(settings) > len(old) {
		p.line("%s", agent.Note)
	}
	return nil
}

// settingsFile is where an agent's hooks are set for all its sessions.
func settingsFile(a hook.Agent) (string, error) {
	folder := ""
	if a.Variable != "" {
		folder = os.Getenv(a.Variable)
	}
	if folder == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		folder = filepath.Join(home, a.Home)
	}
	return filepath.Join(folder, a.Settings), nil
}

// ownCommand is this program as a shell calls it: by its name where that finds it.
func ownCommand() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	if found, err := exec.LookPath("palimpsest"); err == nil {
		a, errA := os.Stat(found)
		b, errB := os.Stat(path)
		if errA == nil && errB == nil && os.SameFile(a, b) {
			return "palimpsest", nil
		}
	}
	if strings.HasPrefix(path, os.TempDir()) && strings.Contains(path, "go-build") {
		return "", errors.New("this program is gone when it ends: build or install it first, and call that")
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(path) + `"`, nil
}
