package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

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
