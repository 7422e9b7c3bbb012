package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand writes manual pages, for packagers.
func manCommand(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write a manual page of each command into a directory",
		Hidden: true,
		Args:   exactArgs(1, "one DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := c.Root()
			root.InitDefaultHelpFlag()
			return writeManual(root, func(name, page string) error {
				return WriteOutput(filepath.Join(args[0], name+".1"), []byte(page), s.Out)
			})
		},
	}
}

// writeManual calls keep with the page of a command and of each subcommand.
func writeManual(c *cobra.Command, keep func(name, page string) error) error {
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	if err := keep(name, manualPage(c, name)); err != nil {
		return err
	}
	for _, below := range c.Commands() {
		if hasManualPage(below) {
			if err := writeManual(below, keep); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasManualPage excludes the commands that cobra adds.
func hasManualPage(c *cobra.Command) bool {
	return c.IsAvailableCommand() && c.Name() != "help" && c.Name() != "completion"
}

// manualPage is the page of a command in roff. It has no date, so that builds are
// reproducible.
func manualPage(c *cobra.Command, name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"Palimpsest\"\n", strings.ToUpper(name), "palimpsest "+Version())
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escapeRoff(name), escapeRoff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", escapeRoff(c.UseLine()))
	if c.Long != "" {
		b.WriteString(".SH DESCRIPTION\n" + strings.ReplaceAll(escapeRoff(c.Long), "\n\n", "\n.PP\n") + "\n")
	}
	manualFlags(&b, "OPTIONS", c.NonInheritedFlags())
	manualFlags(&b, "OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n.EX\n" + escapeRoff(c.Example) + "\n.EE\n")
	}
	var related []string
	if c.HasParent() {
		related = append(related, ".BR "+escapeRoff(strings.ReplaceAll(c.Parent().CommandPath(), " ", "-"))+" (1)")
	}
	for _, below := range c.Commands() {
		if hasManualPage(below) {
			related = append(related, ".BR "+escapeRoff(name+"-"+below.Name())+" (1)")
		}
	}
	if len(related) > 0 {
		b.WriteString(".SH SEE ALSO\n" + strings.Join(related, "\n") + "\n")
	}
	return b.String()
}

func manualFlags(b io.Writer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		short := ""
		if f.Shorthand != "" {
			short = "-" + f.Shorthand + ", "
		}
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR", escapeRoff(short+"--"+f.Name))
		if value != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", escapeRoff(value))
		}
		fmt.Fprintf(b, "\n%s\n", escapeRoff(usage))
	})
}

// escapeRoff escapes a text for roff.
func escapeRoff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
