// Package cli is the command line. Each command is a function that returns a cobra.Command:
// it reads flags and files, calls the library, and writes a report. The result goes to
// standard output, everything else to standard error.
//
// Most commands work on a conversation (target.go, input.go, conversation.go) or on a store (store.go,
// tenant_store.go); reports are written with a printer (table.go).
package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/internal/setup"
	"github.com/palimpsest-ai/palimpsest/internal/suggest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Streams are what a command reads and writes. Err must allow concurrent writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// The exit statuses.
const (
	exitDone       = 0
	exitFailed     = 1
	exitUsage      = 2
	exitOverBudget = 3
	exitInvalid    = 4
	exitNoProgram  = 127 // as of a shell
)

// errUsage marks errors in flags, names and arguments.
var errUsage = errors.New("usage")

// ErrInvalid is wrapped by errors about input that is not valid.
var ErrInvalid = errors.New("the input is not valid")

// Run executes one command line and returns the exit status.
func Run(ctx context.Context, args []string, s Streams) int {
	return Execute(ctx, args, s, func(s Streams) *cobra.Command { return newRootCommand(args, s) })
}

// Execute is Run for the command that newRoot returns, which works on the streams it is given.
// Exit statuses and the text of errors are the same for all programs.
func Execute(ctx context.Context, args []string, s Streams, newRoot func(Streams) *cobra.Command) int {
	s.In = &interruptibleReader{ctx: ctx, r: s.In}
	out := &stickyErrorWriter{w: s.Out}
	s.Out = out
	root := newRoot(s)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = true
	cmd, err := root.ExecuteContextC(ctx)
	if err = cmp.Or(err, out.err); err == nil {
		return exitDone
	}
	if child, ok := errors.AsType[exitStatus](err); ok {
		return int(child)
	}
	status := statusOf(err)
	if asJSON, _ := cmd.Flags().GetBool("json"); asJSON {
		f := failure{Error: ErrorText(err), Status: status}
		if over, ok := errors.AsType[*policy.BudgetError](err); ok {
			f.Error, f.Budget, f.Need, f.Parts = policy.ErrOverBudget.Error(), over.Budget, over.Need, over.Parts
		}
		if writeJSON(s.Err, f) == nil {
			return status
		}
	}
	fmt.Fprintf(s.Err, "%s: %s\n", root.Name(), ErrorText(err))
	if status == exitUsage {
		fmt.Fprintf(s.Err, "see: %s --help\n", cmd.CommandPath())
	}
	return status
}

// newRootCommand returns the command with all others below it.
func newRootCommand(args []string, s Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "palimpsest",
		Short: "Keep LLM agents inside their context window without losing the conversation",
		Long: `Palimpsest keeps LLM agents inside their context window without losing the
conversation. It reads the session files of Claude Code, Codex, pi, Gemini CLI and
others, and request bodies of the Anthropic, OpenAI and Gemini APIs. Without a
command it shows your latest sessions, what the last compaction lost, and the
next step. A FILE is a path, - for standard input, a session by its number or id, "latest",
or a stored conversation by its id.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 the budget cannot be met (the error lists
what does not fit), 4 the input is not valid (the error names the line or path).`,
		Example: `  palimpsest
  palimpsest inspect session.jsonl
  palimpsest compact session.jsonl --budget 32000 -o prompt.json
  palimpsest check prompt.json --to anthropic`,
	}
	group := func(title string, of ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
		for _, c := range of {
			c.GroupID = title
		}
		root.AddCommand(of...)
	}
	group("Make a session or request fit", compactCommand(s), planCommand(s), inspectCommand(s), checkCommand(s), renderCommand(s), diffCommand(s))
	group("See, search, read and put back what was removed", explainCommand(s), recallCommand(s), artifactCommand(s), pinCommand(s), expandCommand(s),
		undoCommand(s), threadsCommand(s), sessionsCommand(s), lostCommand(s))
	group("Connect agents, and take it back", installCommand(s), uninstallCommand(s), switchCommand(s, true), switchCommand(s, false), doctorCommand(s),
		statuslineCommand(s), pluginCommand(s), hookCommand(s), mcpCommand(s), handoffCommand(s))
	group("Stand in front of providers", runCommand(s), serveCommand(s), daemonCommand(s), healthCommand(s))
	group("Set and keep", policyCommand(s), modelsCommand(s), configCommand(s), keysCommand(s), dbCommand(s), versionCommand(s))
	root.AddCommand(manCommand(s))
	root.SetHelpCommandGroupID("Set and keep")
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.RunE = showHelp // cobra's own ends well for a command that there is not
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		registerCompletions(root)
	}
	// Not root.Version: it is a template, and templates make the linker keep every method of
	// every type, a tenth of the program.
	root.RunE = func(c *cobra.Command, _ []string) error {
		if asked, _ := c.Flags().GetBool("version"); asked {
			_, err := fmt.Fprint(s.Out, thisBuild())
			return err
		}
		return runOverview(c, s)
	}
	root.Flags().Bool("json", false, "write the overview as JSON")
	root.Flags().BoolP("version", "v", false, "version for palimpsest")
	return root
}

func statusOf(err error) int {
	var syntax *transcript.SyntaxError
	invalid := []error{
		ErrInvalid, policyfile.ErrInvalid, wire.ErrFormat, plan.ErrSchema, plan.ErrInvalid,
		transcript.ErrEmpty, transcript.ErrBinary, transcript.ErrTooLong, transcript.ErrTooDeep, transcript.ErrUnknownFormat,
	}
	switch {
	case errors.Is(err, context.Canceled): // whatever was being read
		return exitFailed
	case errors.As(err, &syntax), slices.ContainsFunc(invalid, func(sentinel error) bool { return errors.Is(err, sentinel) }):
		return exitInvalid
	case errors.Is(err, errUsage), errors.Is(err, setup.ErrUsage), errors.Is(err, sessions.ErrName), strings.HasPrefix(err.Error(), "unknown command"):
		return exitUsage
	case errors.Is(err, policy.ErrOverBudget):
		return exitOverBudget
	case errors.Is(err, errNoProgram):
		return exitNoProgram
	}
	return exitFailed
}

// failure is what --json writes for an error.
type failure struct {
	Error  string        `json:"error"`
	Status int           `json:"exit_status"`
	Budget int           `json:"budget,omitempty"`
	Need   int           `json:"need,omitempty"`
	Parts  []policy.Part `json:"parts,omitempty"`
}

// callPrefixes matches the function names in the text of an error.
var callPrefixes = lazyregexp.New(`\b(palimpsest|care|apikey|artifact|eval|job|keyring|plan|recall|references|rehydrate|render|river|strategy|cut|thread|token|wire|anthropic|openai|gemini|daemon|dsn|sqlite|postgres)\.[A-Z]\w*(\([^()]*\))?: |\btranscript: `)

// WithoutCalls is the text of an error without function names.
func WithoutCalls(err error) string { return callPrefixes().ReplaceAllString(err.Error(), "") }

// maxErrorLines limits the text of an error.
const maxErrorLines = 60

// ErrorText is an error for people: without function names and control characters.
func ErrorText(err error) string {
	if over, ok := errors.AsType[*policy.BudgetError](err); ok {
		return budgetText(err, over)
	}
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	if errors.Is(err, store.ErrSealed) {
		return "the store is encrypted: name the file of its master key in " + config.MasterFileEnv + ", or put the key itself into " + config.MasterEnv
	}
	text := WithoutCalls(err)
	for _, status := range []string{errUsage.Error(), ErrInvalid.Error()} {
		text = strings.TrimPrefix(text, status+": ")
		text = strings.ReplaceAll(text, ": "+status+": ", ": ")
	}
	if strings.HasPrefix(text, "open ") && errors.Is(err, fs.ErrNotExist) {
		text = strings.TrimPrefix(text, "open ")
	}
	// The error may quote a whole file.
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if more := len(lines) - maxErrorLines; more > 0 {
		lines = append(lines[:maxErrorLines], fmt.Sprintf("and %d more lines", more))
	}
	for n, line := range lines {
		lines[n] = strings.TrimRight(strings.ReplaceAll(line, "\t", "  "), " ")
		lines[n] = clip.Short(printable(lines[n]), 1200)
	}
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "\n")
}

// budgetText lists the parts that do not fit.
func budgetText(err error, over *policy.BudgetError) string {
	what, advice := fmt.Sprintf("the budget of %s tokens cannot be met; what must stay takes %s", number(over.Budget), number(over.Need)), "raise the budget, or shorten these parts"
	if under, ok := errors.AsType[*planOverBudget](err); ok {
		what = fmt.Sprintf("the budget is %s tokens; under the plan %s the request takes %s", number(over.Budget), printable(under.plan), number(over.Need))
		advice = "raise the budget, or make a plan for this one: palimpsest plan FILE --budget TOKENS --plan-out PLAN.json"
	}
	var b strings.Builder
	b.WriteString(what + ":\n")
	for _, p := range over.Parts {
		fmt.Fprintf(&b, "  %9s  %s\n", number(p.Tokens), printable(p.Name))
	}
	b.WriteString(advice)
	return b.String()
}

// flagError replaces the message of package strconv by a plain one, and asks whether a like flag was meant.
func flagError(c *cobra.Command, err error) error {
	if name, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if name == "budget" && slices.Contains(known, "window") { // of each request, here
			name = "window"
		}
		if name = suggest.Name(name, known); name != "" {
			err = fmt.Errorf("%w%s", err, didYouMean("--"+name))
		}
	}
	text, _, cut := strings.Cut(err.Error(), ": strconv.")
	if cut {
		return fmt.Errorf("%w: %s: want a whole number", errUsage, text)
	}
	return fmt.Errorf("%w: %w", errUsage, err)
}

// commandGroup is a command that only has subcommands.
func commandGroup(c *cobra.Command, below ...*cobra.Command) *cobra.Command {
	c.AddCommand(below...)
	c.RunE = func(_ *cobra.Command, args []string) error {
		names := joinWords(mapSlice(below, func(b *cobra.Command) string { return "`" + c.Name() + " " + b.Name() + "`" }), "or")
		if len(args) > 0 {
			return fmt.Errorf("%w: unknown command %q for %q: want %s", errUsage, args[0], c.CommandPath(), names)
		}
		return fmt.Errorf("%w: want %s", errUsage, names)
	}
	return c
}

// writeResult writes the result of a command: as one JSON value with --json, else in words.
func writeResult(w io.Writer, c *cobra.Command, found any, words func(*printer)) error {
	if asJSON, _ := c.Flags().GetBool("json"); asJSON {
		return writeJSON(w, found)
	}
	words(newPrinter(w))
	return nil
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// argCount takes from least to most arguments, with our exit status.
func argCount(least, most int, want string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("%w: got %s, want %s%s", errUsage, plural(len(args), "argument"), want, listedBy(want))
		}
		return nil
	}
}

// listedBy says which command lists what is wanted.
func listedBy(want string) string {
	switch {
	case strings.Contains(want, "THREAD"):
		return "; `palimpsest threads` lists stored conversations"
	case want == "one FILE", strings.Contains(want, "SESSION"):
		return "; `palimpsest sessions` numbers the sessions of this machine, and `1` is as good as a path"
	}
	return ""
}

func exactArgs(n int, want string) cobra.PositionalArgs { return argCount(n, n, want) }

var noArgs = exactArgs(0, "no arguments")

func atMostOneArg(what string) cobra.PositionalArgs { return argCount(0, 1, "one "+what+" at most") }

func nonBlankArgs(complaint string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if strings.TrimSpace(strings.Join(args, "")) == "" {
			return fmt.Errorf("%w: %s", errUsage, complaint)
		}
		return nil
	}
}
