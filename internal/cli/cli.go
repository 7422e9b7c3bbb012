// Package cli is the command line: it reads files, asks the library, and tells
// people what was done. The prompt goes to the output, everything else to
// standard error.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// The exit statuses.
const (
	done        = 0
	failed      = 1
	usage       = 2
	overBudget  = 3
	invalidFile = 4
)

// errUsage marks errors of the caller's own words: flags, names, missing
// arguments.
var errUsage = errors.New("usage")

// errInvalid marks an input that was read and is not valid.
var errInvalid = errors.New("the input is not valid")

// Run executes one command line and returns the exit status.
func Run(ctx context.Context, args []string, s Streams) int {
	root := &cobra.Command{
		Use:           "palimpsest",
		Short:         "Keep LLM agents inside their context window without losing the conversation",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, err) })
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		compactCommand(s), inspectCommand(s), planCommand(s), renderCommand(s),
		diffCommand(s), checkCommand(s), modelsCommand(s),
	)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return done
	}
	status := statusOf(err)
	fmt.Fprintf(s.Err, "palimpsest: %s\n", message(err))
	if status == usage {
		fmt.Fprintf(s.Err, "see: %s --help\n", cmd.CommandPath())
	}
	return status
}

// statusOf maps an error to the exit status that scripts rely on.
func statusOf(err error) int {
	var syntax *transcript.SyntaxError
	invalid := []error{
		errInvalid, wire.ErrFormat, plan.ErrSchema, plan.ErrInvalid,
		transcript.ErrEmpty, transcript.ErrBinary, transcript.ErrTooLong, transcript.ErrTooDeep, transcript.ErrUnknownFormat,
	}
	for _, sentinel := range invalid {
		if errors.Is(err, sentinel) {
			return invalidFile
		}
	}
	switch {
	case errors.As(err, &syntax):
		return invalidFile
	case errors.Is(err, errUsage), strings.HasPrefix(err.Error(), "unknown command"):
		return usage
	case errors.Is(err, palimpsest.ErrOverBudget):
		return overBudget
	}
	return failed
}

// message is the error as people read it: without the names of the functions
// it came through.
func message(err error) string {
	text := strings.TrimPrefix(err.Error(), errUsage.Error()+": ")
	var over *palimpsest.BudgetError
	if errors.As(err, &over) {
		var b strings.Builder
		fmt.Fprintf(&b, "the budget of %s tokens cannot be met; what must stay takes %s:\n", number(over.Budget), number(over.Need))
		for _, p := range over.Parts {
			fmt.Fprintf(&b, "  %9s  %s\n", number(p.Tokens), p.Name)
		}
		b.WriteString("raise the budget, or shorten these parts")
		return b.String()
	}
	return text
}

// exactly is cobra.ExactArgs with our own status.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("%w: want %s, got %d arguments", errUsage, what, len(args))
		}
		return nil
	}
}
