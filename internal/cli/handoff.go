package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/secret"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// handedOff is the output of handoff.
type handedOff struct {
	Text    string          `json:"text"` // what the fresh session begins with
	Tokens  int             `json:"tokens"`
	Next    string          `json:"next,omitempty"`
	Session *resumedSession `json:"session"`
}

// handoffTokens limits the text of a handoff if the user does not: a fresh session should be nearly empty.
const handoffTokens = 6000

func handoffCommand(s Streams) *cobra.Command {
	conv := conversation{policy: "auto", budget: handoffTokens}
	var out string
	var edit, dry bool
	c := &cobra.Command{
		Use:   "handoff SESSION [\"WHAT COMES NEXT\"]",
		Short: "Begin a fresh session with what matters of another one for what comes next",
		Long: `Handoff writes a fresh session that begins with a text: what matters of SESSION, a file or
what "palimpsest sessions" lists, in at most --budget tokens. What comes next weighs as
the latest request when the text is made, and is the last message of the session. The
text is shown; --dry-run writes no session; --edit opens the text in $VISUAL or $EDITOR before
anything is written, and an empty one writes nothing. Nothing starts by itself: the report says how to resume the session.

The original stays as it was, and the text names its file. To go on with the newest
messages as they are, use compact --into.`,
		Example: "  palimpsest handoff 3\n  palimpsest handoff 91bfefb2 \"write the release notes\" --into codex --edit",
		Args:    argCount(1, 2, "one SESSION, and in quotes what comes next"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := conv.checkOutputs(args[0], &storeFlag{}, out, ""); err != nil {
				return err
			}
			conv.intoOwn = !dry
			if err := conv.open(c.Context(), args[0], s); err != nil {
				return err
			}
			made := &handedOff{Next: strings.TrimSpace(strings.Join(args[1:], ""))}
			var err error
			if made.Text, err = conv.handoffText(c.Context(), made.Next); err != nil {
				return err
			}
			if edit {
				if made.Text, err = editText(c.Context(), made.Text); err != nil {
					return err
				}
			}
			made.Tokens = conv.counter.Text(made.Text)
			if !dry {
				made.Session, err = conv.writeHandoff(made, out)
			}
			if err != nil {
				return err
			}
			if !dry && made.Tokens > conv.budget { // as it was edited
				made.Session.Notes = append(made.Session.Notes, fmt.Sprintf("the edited text has %s tokens, more than --budget %s", number(made.Tokens), number(conv.budget)))
			}
			conv.in.printWarnings(newPrinter(s.Err))
			return writeResult(s.Out, c, made, made.print)
		},
	}
	conv.in.addFlags(c, "hand off")
	f := c.Flags()
	f.Var((*tokensFlag)(&conv.budget), "budget", "limit the text to this many `TOKENS`")
	f.StringVar(&conv.summarizer, "summarizer", "", "who writes the text: extractive (no model), anthropic:MODEL, openai:MODEL, or a `CHAIN` of them joined by commas")
	f.StringVar((*string)(&conv.into), "into", "", "write a session of `AGENT` (default: the one of SESSION): "+writerNames())
	f.StringVarP(&out, "output", "o", "", "write the session to `OUT` (default: where its agent looks for it)")
	f.BoolVar(&edit, "edit", false, "open the text in an editor first")
	f.BoolVar(&dry, "dry-run", false, "show the text and write no session")
	f.BoolVar(&conv.asJSON, "json", false, "write the text and where the session is as JSON")
	return c
}

// handoffHead begins the text.
const handoffHead = "This is a fresh session that goes on from earlier work. Below is what matters of that session for what comes next. "

// headTokens is what the head takes at most, unless a path is very long: the rest does not depend on the path.
const headTokens = 120

// handoffText is what matters of the conversation for what comes next.
func (c *conversation) handoffText(ctx context.Context, next string) (string, error) {
	head := handoffHead
	if c.in.path != "-" {
		head += "The whole session is in " + absolute(c.in.path) + ": search it, do not read it whole.\n\n"
	}
	log := c.in.Thread
	n := log.Len()
	if next != "" {
		var err error
		if log, err = log.Append(thread.NewMessage(thread.User, next)); err != nil {
			return "", err
		}
	}
	all := log.Messages()
	end, shown := lastWords(all[:n], next, c.budget)
	in := summarize.Input{Messages: all[:n], Log: all, Context: all[n:], Shown: slices.Concat(shown, all[n:]), Instructions: next}
	in.Budget = max(1, c.budget-max(headTokens, c.counter.Text(head))-c.counter.Text(end))
	var by summarize.Summarizer = &summarize.Extractive{Counter: c.counter.Text}
	if c.writes != nil {
		by = c.writes
	}
	made, err := by.Summarize(ctx, in)
	if errors.Is(err, summarize.ErrBudget) {
		err = fmt.Errorf("%w: raise --budget", err)
	}
	masks, failed := settingsMask()
	text := head + made.Summary.Render() + end
	if masks { // as writePrompt does it, so that what is shown is what is written
		text = secret.Mask(text)
	}
	return text, cmp.Or(err, failed)
}

// lastWords is what the assistant said last, if the user said nothing since, such as what it asks: in about an eighth of
// the budget, with its end. Where the user says what comes next, only a question counts. shown is its message, as it stands there.
func lastWords(log []thread.Message, next string, budget int) (words string, shown []thread.Message) {
	for _, m := range slices.Backward(log) {
		said := strings.TrimSpace(m.Text())
		if m.StartsTurn() || said != "" && next != "" && !strings.HasSuffix(said, "?") {
			break
		}
		if m.Role == thread.Assistant && said != "" {
			said = clip.HeadAndTail(said, budget*3/8) // in bytes, which an eighth of the tokens has in any language
			m.Parts = []thread.Part{thread.Text{Text: said}}
			return "\n## What the assistant said last\n> " + strings.ReplaceAll(said, "\n", "\n> ") + "\n", []thread.Message{m}
		}
	}
	return "", nil
}

// writeHandoff writes a session that begins with the text and ends with what comes next.
func (c *conversation) writeHandoff(h *handedOff, out string) (*resumedSession, error) {
	p := *c.in.baseRequest(c.api, c.modelName)
	begin := thread.NewMessage(thread.User, h.Text)
	begin.Kind = thread.Recap
	p.Messages = []thread.Message{begin}
	if h.Next != "" {
		p.Messages = append(p.Messages, thread.NewMessage(thread.User, h.Next))
	}
	return c.writePrompt(p, out)
}

// editText lets the user change a text in an editor.
func editText(ctx context.Context, text string) (string, error) {
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"))
	if strings.TrimSpace(editor) == "" {
		return "", fmt.Errorf("%w: --edit: set VISUAL or EDITOR to an editor", errUsage)
	}
	file, err := os.CreateTemp("", "handoff-*.md") // only its owner can read it
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	if _, err = file.WriteString(text); errors.Join(err, file.Close()) != nil {
		return "", errors.Join(err, fmt.Errorf("cannot write %s", file.Name()))
	}
	run := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", file.Name()) // as git does: it may have quotes and arguments
	if runtime.GOOS == "windows" {
		words := strings.Fields(editor)
		run = exec.CommandContext(ctx, words[0], append(words[1:], file.Name())...)
	}
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stderr, os.Stderr
	if err := run.Run(); err != nil {
		return "", fmt.Errorf("the editor %s failed, and nothing was written: %w", editor, err)
	}
	edited, err := os.ReadFile(file.Name())
	if err == nil && strings.TrimSpace(string(edited)) == "" {
		err = errors.New("the text is empty: nothing was written")
	}
	return string(edited), err
}

// print shows the text, and says how to go on.
func (h *handedOff) print(p *printer) {
	for line := range strings.Lines(strings.TrimRight(h.Text, "\n") + "\n\n" + h.Next) {
		p.line("%s", strings.TrimRight(line, "\n"))
	}
	p.line("")
	p.text("%s tokens; nothing was started.", number(h.Tokens))
	h.Session.print(p)
	if h.Next != "" && h.Session != nil {
		p.text("The session ends with what comes next: once it is resumed, say \"go on\".")
	}
}
