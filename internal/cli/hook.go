package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/hook"
	"github.com/palimpsest-ai/palimpsest/internal/install"
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
				return errors.New("want `palimpsest hook AGENT EVENT`, or `palimpsest hook install AGENT`; see: palimpsest hook --help")
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
	c.AddCommand(partCommands(s, install.Hooks, "the hooks")...)
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
	switches, folder, err := loadSwitches()
	if err != nil || switches.Off(agent.Name, call.Session) != "" {
		return nil, err
	}
	switch event {
	case hook.PostToolUse, hook.AfterTool:
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
	if info, err := os.Stat(call.Transcript); err == nil && !info.Mode().IsRegular() { // a pipe may never end
		return nil, fmt.Errorf("%s is no file of a session", printable(call.Transcript))
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
