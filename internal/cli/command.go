package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// parent is a command that only leads to those below it.
func parent(c *cobra.Command, below ...*cobra.Command) *cobra.Command {
	c.AddCommand(below...)
	c.RunE = func(_ *cobra.Command, args []string) error {
		names := ""
		for i, b := range below {
			switch {
			case i > 0 && i == len(below)-1:
				names += " or "
			case i > 0:
				names += ", "
			}
			names += "`" + c.Name() + " " + b.Name() + "`"
		}
		if len(args) > 0 {
			return fmt.Errorf("%w: unknown command %q for %q: want %s", errUsage, args[0], c.CommandPath(), names)
		}
		return fmt.Errorf("%w: want %s", errUsage, names)
	}
	return c
}

// tell writes what a command has found: as one JSON value where --json asks for it,
// else in words.
func tell(w io.Writer, c *cobra.Command, found any, words func(*printer)) error {
	if asJSON, _ := c.Flags().GetBool("json"); asJSON {
		return writeJSON(w, found)
	}
	words(newPrinter(w))
	return nil
}

// exactly is cobra.ExactArgs with our own status.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("%w: want %s, got %s", errUsage, what, plural(len(args), "argument"))
		}
		return nil
	}
}

// noArguments is exactly none.
var noArguments = exactly(0, "no arguments")

// atMostOne takes an argument or none.
func atMostOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fmt.Errorf("%w: want one %s at most", errUsage, what)
		}
		return nil
	}
}

// some takes arguments that are more than white space, and else complains.
func some(complaint string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if strings.TrimSpace(strings.Join(args, "")) == "" {
			return fmt.Errorf("%w: %s", errUsage, complaint)
		}
		return nil
	}
}
