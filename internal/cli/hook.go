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
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

const (
	// maxHookInput limits the input of a hook, in bytes.
	maxHookInput = 64 << 20
	// hookTimeout ends the work of a hook before the agent gives up waiting.
	hookTimeout = 20 * time.Second
)

func hookCommand(s Streams) *cobra.Command {
	var most int
	c := &cobra.Command{
		Use:   "hook AGENT EVENT",
		Short: "Answer a hook of Claude Code, Codex or Gemini CLI",
		Long: `Answer a hook of an agent: it writes JSON to this command and reads JSON back.
"palimpsest hook install AGENT" adds the hooks to the agent's settings.

  claude-code  SessionStart  after the agent's own compaction: the state of the work
               PreCompact    what else its summary should say
               PostToolUse   very large output goes to a file, and a pointer replaces it
  codex        SessionStart  as above
  gemini-cli   AfterTool     as PostToolUse above

If anything fails here, the agent goes on as if there were no hook.`,
		Example: `  palimpsest hook install claude-code
  palimpsest hook remove claude-code`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			// Not a usage error: exit status 2 would tell the agent to stop.
			if len(args) != 2 {
				return errors.New("want `palimpsest hook AGENT EVENT`, or `palimpsest hook install AGENT`")
			}
			agent, err := hook.Find(args[0])
			if err != nil {
				return err
			}
			answer, err := answerHook(c.Context(), s, agent, args[1], most)
			if err != nil {
				return err
			}
			_, err = s.Out.Write(answer)
			return err
		},
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return err })
	c.Flags().IntVar(&most, "offload", hook.DefaultOffload, "text of a tool above `BYTES` goes to a file; 0 keeps all text")
	c.AddCommand(
		hookSettingsCommand(s, &cobra.Command{
			Use:   "install AGENT",
			Short: "Add the hooks to the settings of claude-code, codex or gemini-cli",
		}, "Added to", true, func(a *hook.Agent, old []byte) ([]byte, error) {
			command, err := shellCommand()
			if err != nil {
				return nil, err
			}
			return a.Add(old, command)
		}),
		hookSettingsCommand(s, &cobra.Command{
			Use:   "remove AGENT",
			Short: "Remove the hooks from the settings of claude-code, codex or gemini-cli",
		}, "Removed from", false, (*hook.Agent).Remove),
	)
	return c
}

// answerHook returns what the agent reads back; it may be empty.
func answerHook(ctx context.Context, s Streams, agent hook.Agent, event string, most int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	body, err := io.ReadAll(io.LimitReader(s.In, maxHookInput+1))
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
		folder = filepath.Join(folder, "outputs")
		response, err := hook.Offload(call, folder, most, time.Now())
		if err != nil || response == "" {
			return nil, err
		}
		if err := hook.RemoveOld(folder, time.Now()); err != nil { // the answer does not depend on it
			fmt.Fprintf(s.Err, "palimpsest: warning: %s\n", ErrorText(err))
		}
		return hook.WithOutput(event, response), nil
	}
	if call.Transcript == "" {
		return nil, nil // the session is not saved
	}
	file, err := transcript.Open(call.Transcript, nil)
	if err != nil {
		return nil, err
	}
	text, err := agent.Context(ctx, &file.Transcripts[0])
	switch {
	case err != nil || text == "":
		return nil, err
	case event == hook.PreCompact: // only if SessionStart will have something to add
		return []byte(hook.Instructions), nil
	}
	return hook.WithContext(event, text), nil
}

// hookSettingsCommand completes a command that changes the settings of an agent. With note it
// also prints the agent's note.
func hookSettingsCommand(s Streams, c *cobra.Command, done string, note bool, change func(*hook.Agent, []byte) ([]byte, error)) *cobra.Command {
	c.Args = exactArgs(1, "the AGENT: "+strings.Join(hook.Names(), ", "))
	c.RunE = func(_ *cobra.Command, args []string) error {
		agent, err := hook.Find(args[0])
		if err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		path, changed, err := changeSettings(agent, change)
		if err != nil {
			return err
		}
		p := newPrinter(s.Out)
		if !changed {
			p.line("there is nothing to change in %s", path)
			return nil
		}
		p.line("%s %s", done, path)
		if note && agent.Note != "" {
			p.line("%s", agent.Note)
		}
		return nil
	}
	return c
}

// changeSettings rewrites the settings of an agent, if there is something to change.
func changeSettings(agent hook.Agent, change func(*hook.Agent, []byte) ([]byte, error)) (path string, changed bool, err error) {
	folder, err := sessions.AgentFolder(agent.Name)
	if err != nil {
		return "", false, err
	}
	path = filepath.Join(folder, agent.Settings)
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return path, false, err
	}
	settings, err := change(&agent, old)
	if err != nil {
		return path, false, fmt.Errorf("%s: %w", path, err)
	}
	if string(settings) == string(old) {
		return path, false, nil
	}
	return path, true, writeWithFolders(path, settings)
}

// writeWithFolders writes a file and creates its folder.
func writeWithFolders(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return WriteOutput(path, data, nil)
}

// shellCommand is how a shell calls this program: by its name if PATH has it.
func shellCommand() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	if found, err := exec.LookPath("palimpsest"); err == nil && sameFile(found, path) {
		return "palimpsest", nil
	}
	if strings.HasPrefix(path, os.TempDir()) && strings.Contains(path, "go-build") {
		return "", errors.New("`go run` deletes this program when it ends: build or install it first")
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(path) + `"`, nil
}
